//! What one query holds of the memory budget, and when it lets others go first.
//!
//! Most queries hold next to nothing and never get here. One that does takes steps from the share of all queries. It ends with
//! an error of its own if it needs more than one query may have; if only others have the memory, it is told so, gives
//! everything back, waits in line for what it had and as much again, and starts over, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_query::{Program, QueryError, Steward};
use orrery_store::limits::{
    PAGE_BYTES_MAX, PAGE_SHARE, PROGRAM_BYTES_PER_TEXT, QUERY_MEMORY_PATIENCE, QUERY_MEMORY_STEP, QUERY_SHARE,
};
use parking_lot::Mutex;

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Consumer, Hold, Memory};
use crate::request::PageOptions;
use crate::turns::{self, Party};
use crate::world::World;

/// Texts up to this are not worth counting.
const SHORT_TEXT_BYTES: usize = 1024;

/// Answers for one query.
pub struct QuerySteward {
    memory: Memory,
    most: u64,
    taken: AtomicU64,
    granted: AtomicU64,
    hold: Mutex<Option<Hold>>,
}

impl QuerySteward {
    pub(super) fn new(memory: &Memory, hold: Option<Hold>) -> QuerySteward {
        QuerySteward {
            memory: memory.clone(),
            most: memory.shares().queries / QUERY_SHARE,
            taken: AtomicU64::new(0),
            granted: AtomicU64::new(hold.as_ref().map_or(0, Hold::bytes)),
            hold: Mutex::new(hold),
        }
    }

    fn grow(&self, taken: u64) -> orrery_query::Result<()> {
        let mut hold = self.hold.lock();
        let granted = self.granted.load(Ordering::Relaxed);
        if taken <= granted {
            return Ok(());
        }
        if taken > self.most {
            return Err(QueryError::LimitExceeded(
                "The query needs more memory than one query may use. Use a narrower filter, a smaller page, or fewer \
                 and shorter values to group, sort or tell apart by; or give the server more memory.",
            ));
        }
        let more = (taken - granted).next_multiple_of(QUERY_MEMORY_STEP);
        let grown = match &mut *hold {
            Some(hold) => hold.try_grow(more),
            none => {
                *none = self.memory.try_take(Consumer::Queries, more);
                none.is_some()
            }
        };
        if !grown {
            return Err(QueryError::Busy);
        }
        self.granted.store(granted + more, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps what the answer takes, until that is dropped too.
    fn into_hold(self, bytes: u64) -> Option<Arc<Hold>> {
        let mut hold = self.hold.into_inner()?;
        hold.shrink_to(bytes);
        Some(Arc::new(hold))
    }
}

impl QuerySteward {
    /// Where the query runs.
    pub(crate) fn world(&self) -> &World {
        self.memory.world()
    }
}

impl Steward for QuerySteward {
    fn hold(&self, bytes: usize) -> orrery_query::Result<()> {
        let bytes = bytes as u64;
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if taken <= self.granted.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.grow(taken).inspect_err(|_| {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    fn release(&self, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn rest(&self) {
        turns::rest();
    }

    fn row_bytes_max(&self) -> usize {
        usize::try_from(self.most / 2).unwrap_or(usize::MAX)
    }
}

impl Db {
    /// Runs a query of a container: at once if it can be short and is, and else by turns with others. The second value is
    /// what its rows hold.
    pub(super) async fn run_query<T>(
        &self,
        party: Party,
        program: &Program,
        can_be_short: bool,
        work: impl Fn(&QuerySteward) -> Result<T>,
        bytes_of: impl Fn(&T) -> usize,
    ) -> Result<(T, Option<Arc<Hold>>)> {
        let memory = &self.inner.memory;
        let calls_scripts = !program.user_functions().is_empty();
        if can_be_short && !calls_scripts {
            let steward = QuerySteward::new(memory, None);
            match turns::shortly(|| work(&steward)) {
                Some(Err(error)) if is_busy(&error) => {}
                Some(done) => return done.map(|done| self.with_hold(done, steward, &bytes_of)),
                None => {}
            }
        }
        // From here on the program is kept for a while.
        let _text = self.hold_program(program)?;
        let _engine = if calls_scripts { Some(self.hold_engine().await?) } else { None };
        let mut before = None;
        loop {
            let started = self.inner.turns.start(party).await?;
            let is_last = before.is_some();
            let steward = QuerySteward::new(memory, before.take());
            let done = self.world().blocking(|| started.run(|| work(&steward)));
            drop(started);
            match done {
                Err(error) if is_busy(&error) && !is_last => {
                    let wanted = steward.granted.load(Ordering::Relaxed).max(QUERY_MEMORY_STEP) * 2;
                    let wanted = wanted.min(steward.most);
                    drop(steward);
                    let waiting = memory.take_much(Consumer::Queries, wanted, QUERY_MEMORY_PATIENCE);
                    before = Some(waiting.await.ok_or(ErrorKind::Overloaded)?);
                }
                done => return done.map(|done| self.with_hold(done, steward, &bytes_of)),
            }
        }
    }

    fn with_hold<T>(
        &self,
        done: T,
        steward: QuerySteward,
        bytes_of: &impl Fn(&T) -> usize,
    ) -> (T, Option<Arc<Hold>>) {
        let bytes = bytes_of(&done) as u64;
        (done, steward.into_hold(bytes))
    }

    /// What a long query keeps in memory while it waits for its turn.
    fn hold_program(&self, program: &Program) -> Result<Option<Hold>> {
        let text = program.text_bytes();
        if text <= SHORT_TEXT_BYTES {
            return Ok(None);
        }
        let held = self.inner.memory.try_take(Consumer::Queries, self.program_bytes(text));
        Ok(Some(held.ok_or(ErrorKind::Overloaded)?))
    }

    fn program_bytes(&self, text: usize) -> u64 {
        // Nothing that is allowed to begin with may be larger than all that there is.
        (text as u64 * PROGRAM_BYTES_PER_TEXT).min(self.inner.memory.shares().queries / QUERY_SHARE)
    }

    /// Does long work by turns with others, on behalf of a container or of the catalog. It reads a text of so many bytes and
    /// holds a multiple of that.
    pub async fn by_turns<T>(
        &self,
        container: Option<&Container>,
        text_bytes: usize,
        work: impl FnOnce() -> T,
    ) -> Result<T> {
        let memory = &self.inner.memory;
        let waiting = memory.take(Consumer::Queries, self.program_bytes(text_bytes), QUERY_MEMORY_PATIENCE);
        let _hold = waiting.await.ok_or(ErrorKind::Overloaded)?;
        let started =
            self.inner.turns.start(container.map_or(0, |container| container.number.into())).await?;
        Ok(self.world().blocking(|| started.run(work)))
    }

    /// A steward for queries that run elsewhere: of scripts, and over resources.
    pub fn steward(&self) -> QuerySteward {
        QuerySteward::new(&self.inner.memory, None)
    }

    /// Does what reads a page of a feed, by turns with others.
    pub(crate) async fn read_page<T>(
        &self,
        party: Party,
        page: &PageOptions,
        work: impl FnOnce(&PageOptions) -> Result<T>,
    ) -> Result<T> {
        let memory = &self.inner.memory;
        let most = (memory.shares().queries / PAGE_SHARE).min(PAGE_BYTES_MAX as u64);
        let bytes_max = page.bytes_max.min(usize::try_from(most).unwrap_or(usize::MAX));
        let waiting = memory.take(Consumer::Queries, bytes_max as u64, QUERY_MEMORY_PATIENCE);
        let _hold = waiting.await.ok_or(ErrorKind::Overloaded)?;
        let page = PageOptions { bytes_max, ..page.clone() };
        let started = self.inner.turns.start(party).await?;
        self.world().blocking(|| started.run(|| work(&page)))
    }
}

fn is_busy(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Query(QueryError::Busy))
}
