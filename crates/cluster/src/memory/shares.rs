//! How the budget is divided.

use orrery_store::limits::{MEMORY_BASE_BYTES, MEMORY_BYTES_MIN, SCRIPT_MEMORY_BYTES, SCRIPTS_AT_ONCE_MAX};

use super::Consumer;

const MIB: u64 = 1024 * 1024;
/// Beyond these more memory helps no request: what is left goes to the cache.
const WRITE_BUFFERS_MOST: u64 = 256 * MIB;
const MERGES_MOST: u64 = 128 * MIB;
const BODIES_MOST: u64 = 512 * MIB;
const WRITES_MOST: u64 = 512 * MIB;
const ANSWERS_MOST: u64 = 1024 * MIB;
const QUERIES_MOST: u64 = 2048 * MIB;

/// What is left besides the base is divided into so many parts.
const PARTS: u64 = 16;

/// What each consumer may use; together with the base they are the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShares {
    pub budget: u64,
    pub write_buffers: u64,
    /// What the engine may unpack while it merges tables.
    pub merges: u64,
    pub cache: u64,
    pub bodies: u64,
    pub writes: u64,
    pub answers: u64,
    pub queries: u64,
    pub scripts: u64,
}

impl MemoryShares {
    /// The shares of a budget, which is taken to be the least that works if it is less.
    pub fn of(budget: u64) -> MemoryShares {
        let budget = budget.max(MEMORY_BYTES_MIN);
        let rest = budget - MEMORY_BASE_BYTES;
        let parts = |count: u64| rest / PARTS * count;
        let write_buffers = parts(3).min(WRITE_BUFFERS_MOST);
        let merges = parts(2).min(MERGES_MOST);
        let bodies = parts(1).min(BODIES_MOST);
        let writes = parts(2).min(WRITES_MOST);
        let answers = parts(2).min(ANSWERS_MOST);
        let queries = parts(3).min(QUERIES_MOST);
        let scripts = parts(2).min((SCRIPTS_AT_ONCE_MAX * SCRIPT_MEMORY_BYTES) as u64);
        let others = write_buffers + merges + bodies + writes + answers + queries + scripts;
        let cache = (rest - others).min(budget / 2);
        MemoryShares { budget, write_buffers, merges, cache, bodies, writes, answers, queries, scripts }
    }

    /// The same with a cache of another size, and with a budget that is larger or smaller by the difference.
    pub fn with_cache(self, cache: u64) -> MemoryShares {
        MemoryShares { budget: self.budget - self.cache + cache, cache, ..self }
    }

    pub fn of_consumer(&self, consumer: Consumer) -> u64 {
        match consumer {
            Consumer::WriteBuffers => self.write_buffers,
            Consumer::Cache => self.cache,
            Consumer::Bodies => self.bodies,
            Consumer::Writes => self.writes,
            Consumer::Answers => self.answers,
            Consumer::Queries => self.queries,
            Consumer::Scripts => self.scripts,
        }
    }
}

/// For databases that nobody gave a budget, as those of tests.
impl Default for MemoryShares {
    fn default() -> Self {
        Self::of(8 * 1024 * MIB)
    }
}
