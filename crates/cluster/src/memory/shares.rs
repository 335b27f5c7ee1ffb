//! How the budget is divided.

use orrery_store::limits::{MEMORY_BASE_BYTES, MEMORY_BYTES_MIN, SCRIPT_MEMORY_BYTES, SCRIPTS_AT_ONCE_MAX};

use super::Consumer;

const MIB: u64 = 1024 * 1024;
/// Beyond these more memory helps no request: what is left goes to the cache.
const WRITE_BUFFERS_MOST: u64 = 256 * MIB;
const BODIES_MOST: u64 = 1024 * MIB;
const ANSWERS_MOST: u64 = 1024 * MIB;
const QUERIES_MOST: u64 = 2048 * MIB;

/// What each consumer may use; together with the base they are the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShares {
    pub budget: u64,
    pub write_buffers: u64,
    pub cache: u64,
    pub bodies: u64,
    pub answers: u64,
    pub queries: u64,
    pub scripts: u64,
}

impl MemoryShares {
    /// The shares of a budget, which is taken to be the least that works if it is less.
    pub fn of(budget: u64) -> MemoryShares {
        let budget = budget.max(MEMORY_BYTES_MIN);
        let rest = budget - MEMORY_BASE_BYTES;
        let write_buffers = (rest / 4).min(WRITE_BUFFERS_MOST);
        let bodies = (rest / 8).min(BODIES_MOST);
        let answers = (rest / 8).min(ANSWERS_MOST);
        let queries = (rest / 4).min(QUERIES_MOST);
        let scripts = (rest / 8).min((SCRIPTS_AT_ONCE_MAX * SCRIPT_MEMORY_BYTES) as u64);
        let cache = (rest - write_buffers - bodies - answers - queries - scripts).min(budget / 2);
        MemoryShares { budget, write_buffers, cache, bodies, answers, queries, scripts }
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
