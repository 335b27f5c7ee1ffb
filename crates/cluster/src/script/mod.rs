//! JavaScript in the database: procedures, triggers around writes, functions in queries.
//!
//! A script runs beside the write path of its partition, on a thread of its own, over a [`Workbench`]: a snapshot
//! of its logical partition with its own writes on top. What it wrote is committed as one transaction when it has
//! succeeded, and forgotten when it has not. The partition takes the transaction only if the logical partition is as
//! the script saw it; otherwise the script runs again on a newer snapshot. So scripts of one logical partition
//! happen one after the other, whatever they read, and so do all other writes between them. To save the work of
//! running again, scripts of one logical partition also wait for each other ([`lanes`]); point writes do not wait.
//!
//! A script that does not end in time is answered for and left alone: nothing it does can be seen any more.
//!
//! [`Workbench`]: orrery_store::Workbench

mod functions;
mod host;
mod lanes;
mod procedure;
mod run;
mod threads;
mod trigger;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_doc::Doc;
use orrery_query::Parameters;
use orrery_script::{Collection, Limits, Program, Programs, Refusal, ScriptError};
use orrery_store::limits::{
    SCRIPT_MEMORY_BYTES, SCRIPT_MEMORY_BYTES_MIN, SCRIPT_MEMORY_PATIENCE, SCRIPTS_AT_ONCE_MAX,
    SCRIPTS_CACHED_BYTES_MAX, SCRIPTS_CACHED_MAX,
};
use orrery_store::{Item, ItemId, Target};
use tokio::sync::Semaphore;

use crate::catalog::{Child, Container};
use crate::cursor::Cursor;
use crate::db::Db;
use crate::error::ErrorKind;
use crate::item_properties::ItemProperties;
use crate::memory::{Consumer, Hold, MemoryShares};
use crate::receipt::Receipt;

pub use trigger::{TriggerNames, TriggeredReply};

/// What all scripts of a database share.
pub(crate) struct Scripts {
    programs: Programs,
    threads: threads::Threads,
    at_once: Arc<Semaphore>,
    lanes: lanes::Lanes,
    limits: Limits,
    /// A bug that tests plant to see that they would find it; no release has it.
    #[cfg(debug_assertions)]
    conflicts_ignored: AtomicBool,
    races: AtomicBool,
}

/// How items, links and refusals look to scripts, which is how they look to clients: the gateway's affair.
pub trait Forms: Send + Sync {
    /// What a script is told of the container that it runs in.
    fn collection(&self, container: &Container) -> Collection;
    /// What a link names; nothing if it is outside of the container.
    fn resolve(&self, container: &Container, link: &str) -> Option<Link>;
    /// What its queries see of items besides what is stored.
    fn properties(&self) -> &'static dyn ItemProperties;
    /// The query that a script asks.
    fn read_query(&self, text: &str) -> Result<(String, Parameters), Refusal>;
    /// Reads an item that a script wrote. One without an id gets a new one, if it may.
    fn read_item(&self, container: &Container, text: &[u8], may_name: bool)
    -> Result<(ItemId, Doc), Refusal>;
    fn write_item(&self, container: &Container, item: &Item, out: &mut Vec<u8>);
    fn refusal(&self, error: &ErrorKind) -> Refusal;
    /// The refusal of what a script asks for outside of what it may touch.
    fn outside(&self, what: Outside) -> Refusal;
    /// Where a page goes on, as scripts hand it back.
    fn write_cursor(&self, cursor: &Cursor) -> String;
    fn read_cursor(&self, text: &str) -> Result<Cursor, Refusal>;
}

/// What a link names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    Container,
    Item(Target),
}

/// What a script may not touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// What its link names is not what the function is for, or not in the container.
    Link,
    /// The document belongs to another logical partition.
    Key,
}

#[derive(Clone)]
pub struct ScriptOptions {
    pub forms: Arc<dyn Forms>,
    /// Whether the client wants to see what the script writes to its console.
    pub logging: bool,
}

/// What a procedure answered.
#[derive(Clone, Debug)]
pub struct ScriptReply {
    /// JSON; nothing if the script set no body.
    pub body: Option<Vec<u8>>,
    pub log: String,
    pub receipt: Receipt,
}

impl Scripts {
    pub fn new(memory: &MemoryShares) -> Scripts {
        let memory_bytes = usize::try_from(memory.scripts / 2).unwrap_or(usize::MAX);
        let memory_bytes = memory_bytes.clamp(SCRIPT_MEMORY_BYTES_MIN, SCRIPT_MEMORY_BYTES);
        Scripts {
            programs: Programs::new(SCRIPTS_CACHED_MAX, SCRIPTS_CACHED_BYTES_MAX),
            threads: threads::Threads::default(),
            at_once: Arc::new(Semaphore::new(SCRIPTS_AT_ONCE_MAX)),
            lanes: lanes::Lanes::default(),
            limits: Limits { memory_bytes, ..Limits::default() },
            #[cfg(debug_assertions)]
            conflicts_ignored: AtomicBool::new(false),
            races: AtomicBool::new(false),
        }
    }

    fn program(&self, child: &Child) -> Result<Arc<Program>, ScriptError> {
        let resource = &child.resource;
        let (key, etag) = (resource.rid.to_string(), resource.etag.to_header());
        self.programs.get(&key, &etag, &resource.id, source_of(child), &self.limits)
    }
}

impl Db {
    /// Waits for the memory that one engine may use.
    pub(crate) async fn hold_engine(&self) -> crate::error::Result<Hold> {
        let bytes = self.inner.scripts.limits.memory_bytes as u64;
        let waiting = self.inner.memory.take(Consumer::Scripts, bytes, SCRIPT_MEMORY_PATIENCE);
        Ok(waiting.await.ok_or(ErrorKind::ScriptsBusy)?)
    }

    /// The same for those who have no time to wait.
    pub(crate) fn try_hold_engine(&self) -> crate::error::Result<Hold> {
        let bytes = self.inner.scripts.limits.memory_bytes as u64;
        Ok(self.inner.memory.try_take(Consumer::Scripts, bytes).ok_or(ErrorKind::ScriptsBusy)?)
    }

    /// For tests: scripts of one logical partition no longer wait for each other.
    #[doc(hidden)]
    pub fn let_scripts_race(&self) {
        self.inner.scripts.races.store(true, Ordering::Relaxed);
    }

    /// Plants a bug for tests of tests: scripts are committed whatever happened since they began.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn ignore_script_conflicts(&self) {
        self.inner.scripts.conflicts_ignored.store(true, Ordering::Relaxed);
    }
}

fn source_of(child: &Child) -> &str {
    child.resource.body.root().get("body").as_str().unwrap_or_default()
}
