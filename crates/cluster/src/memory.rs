//! One memory budget for the process.
//!
//! Everything that grows with what clients do takes from it before it grows. The budget is divided into fixed shares, one
//! for each [`Consumer`], and the shares add up to the budget: so queries can never take what uploads need, and a
//! consumer that has spent its share makes only its own clients wait. What a share pays for:
//!
//! ```text
//! budget = base | write buffers | merges | cache | bodies | writes | answers | queries | scripts
//!          not taken, |  the engine is told its   |  taken with try_take, take and try_grow,
//!          only left  |  numbers and keeps them   |  given back when the Hold is dropped
//! ```
//!
//! - A [`Hold`] is memory that was taken. It may grow, and gives back what it has when it is dropped.
//! - A quarter of each share is out of reach for holds that *grow* ([`Hold::try_grow`]): what has begun never keeps all
//!   others from beginning, so a small request finds room beside large ones.
//! - [`Memory::take`] waits in a queue of bounded length for a bounded time, first come first served. While there is a
//!   queue nobody passes it.
//!
//! To take and to give back costs an atomic operation each while nobody waits.
//! Shares, their sizes and what was rejected: `docs/decisions/0013-one-memory-budget.md`.

mod fund;
mod purse;
mod shares;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use crate::world::World;
pub(crate) use fund::Fund;
use purse::{Asks, Purse};
pub use shares::MemoryShares;
pub(crate) use threads::give_back_of_this_thread;
pub use threads::let_threads_give_back;

/// Who takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// What was written and is not in tables yet. Counted by the engine.
    WriteBuffers,
    /// Blocks of tables. Counted by the engine.
    Cache,
    /// Bodies of requests, until they are answered.
    Bodies,
    /// What is made of large bodies on their way to the disk, and all that transactions load and make.
    Writes,
    /// Answers, until they are sent.
    Answers,
    /// What feeds and queries hold while they run.
    Queries,
    /// What scripts may use.
    Scripts,
}

impl Consumer {
    pub const COUNT: usize = 7;
    pub const ALL: [Self; Self::COUNT] = [
        Self::WriteBuffers,
        Self::Cache,
        Self::Bodies,
        Self::Writes,
        Self::Answers,
        Self::Queries,
        Self::Scripts,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::WriteBuffers => "write_buffers",
            Self::Cache => "cache",
            Self::Bodies => "bodies",
            Self::Writes => "writes",
            Self::Answers => "answers",
            Self::Queries => "queries",
            Self::Scripts => "scripts",
        }
    }
}

/// The budget; clones share it.
#[derive(Clone, Debug)]
pub struct Memory {
    shares: MemoryShares,
    purses: Arc<[Arc<Purse>; Consumer::COUNT]>,
    world: World,
}

/// How a consumer stands.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse {
    pub consumer: Consumer,
    pub share_bytes: u64,
    pub used_bytes: u64,
    /// The most that was used at once.
    pub highest_bytes: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// How often one waited, and how often one got nothing.
    pub waited: u64,
    pub refused: u64,
}

impl Memory {
    pub fn new(shares: MemoryShares) -> Memory {
        Memory::in_world(shares, World::Real)
    }

    pub(crate) fn in_world(shares: MemoryShares, world: World) -> Memory {
        let purses =
            Consumer::ALL.map(|consumer| Arc::new(Purse::new(shares.of_consumer(consumer), world.clone())));
        Memory { shares, purses: Arc::new(purses), world }
    }

    /// Where waiting takes its time.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    pub fn shares(&self) -> &MemoryShares {
        &self.shares
    }

    /// Takes so many bytes if they are free and nobody waits for some.
    pub fn try_take(&self, consumer: Consumer, bytes: u64) -> Option<Hold> {
        let purse = self.purse(consumer);
        purse.try_take(bytes).then(|| Hold { purse: Arc::clone(purse), bytes })
    }

    /// Waits until so many bytes are free, but not for longer than `patience`. `None` means that the caller should come
    /// again later; it is said at once if too many are waiting, or if the share is smaller than what is asked for.
    pub async fn take(&self, consumer: Consumer, bytes: u64, patience: Duration) -> Option<Hold> {
        let purse = self.purse(consumer);
        let taken = purse.try_take(bytes) || purse.wait(bytes, Asks::Little, patience).await;
        taken.then(|| Hold { purse: Arc::clone(purse), bytes })
    }

    /// The same for one that had to end for want of memory. It waits in a line of its own, behind those that ask for
    /// little, and gets only what may be grown into.
    pub async fn take_much(&self, consumer: Consumer, bytes: u64, patience: Duration) -> Option<Hold> {
        let purse = self.purse(consumer);
        let taken = purse.wait(bytes, Asks::Much, patience).await;
        taken.then(|| Hold { purse: Arc::clone(purse), bytes })
    }

    /// A hold of nothing, to be joined with others.
    pub fn nothing(&self, consumer: Consumer) -> Hold {
        Hold { purse: Arc::clone(self.purse(consumer)), bytes: 0 }
    }

    /// What nobody has taken of a share.
    pub fn free(&self, consumer: Consumer) -> u64 {
        self.purse(consumer).free()
    }

    /// Whether requests wait for memory of a share.
    pub fn is_wanted(&self, consumer: Consumer) -> bool {
        self.purse(consumer).is_wanted()
    }

    pub fn usage(&self) -> [MemoryUse; Consumer::COUNT] {
        Consumer::ALL.map(|consumer| self.purse(consumer).usage(consumer))
    }

    fn purse(&self, consumer: Consumer) -> &Arc<Purse> {
        &self.purses[consumer as usize]
    }
}

/// Memory that was taken, until it is dropped.
#[derive(Debug)]
#[must_use = "what is held is given back when this is dropped"]
pub struct Hold {
    purse: Arc<Purse>,
    bytes: u64,
}

impl Hold {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes more, unless only what is kept for newcomers is left.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        let grown = self.purse.try_grow(bytes);
        self.bytes += if grown { bytes } else { 0 };
        grown
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.purse.give_back(less);
    }

    /// Takes over what another hold of the same share has.
    pub fn join(&mut self, mut other: Hold) {
        debug_assert!(Arc::ptr_eq(&self.purse, &other.purse), "both are of one share");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Hands a part over to a hold of its own.
    pub fn split_off(&mut self, bytes: u64) -> Hold {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Hold { purse: Arc::clone(&self.purse), bytes }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.purse.give_back(self.bytes);
    }
}
