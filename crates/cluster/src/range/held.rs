//! Memory for what transactions load and make.
//!
//! Nobody knows beforehand how much that is. So the leader takes it from the budget as it works a group out, and what finds
//! none is put off until the groups before it are written. One that finds none even then goes back to its request, which
//! waits for it: the leader never waits, so that small transactions are not kept from their turn.

use orrery_store::limits::{BODY_UNCOUNTED_BYTES, WRITES_PATIENCE};

use super::Range;
use super::queue::Work;
use crate::error::ErrorKind;
use crate::memory::{Consumer, Hold};

/// What is held for a transaction besides the documents that it brings.
#[derive(Default)]
pub struct Held {
    hold: Option<Hold>,
    /// What others hold for it.
    elsewhere: u64,
}

impl Held {
    pub fn new(hold: Hold, elsewhere: u64) -> Held {
        Held { hold: Some(hold), elsewhere }
    }

    /// For what must not be refused and is bounded by limits of its own.
    pub fn all_it_needs() -> Held {
        Held { hold: None, elsewhere: u64::MAX / 2 }
    }

    pub fn bytes(&self) -> u64 {
        self.elsewhere + self.hold.as_ref().map_or(0, Hold::bytes)
    }
}

impl Range {
    /// Waits for the memory of a transaction that had so much when there was no more; all of that is given back by now. What
    /// is held for a large body is not, and who holds some must not wait for more: such a transaction is refused.
    pub(super) async fn more_memory(&self, work: &Work, had: u64) -> Result<Held, ErrorKind> {
        let may_wait = match work {
            Work::Write(txn) => txn.text_bytes() <= BODY_UNCOUNTED_BYTES,
            Work::Ahead(_) => true,
            Work::BuildIndex | Work::EraseHistory { .. } | Work::Purge { .. } | Work::Settle => false,
        };
        if !may_wait {
            return Err(ErrorKind::Overloaded);
        }
        // Where it was stopped it may not have been at its end.
        let memory = &self.lead()?.memory;
        let bytes = (2 * had).min(memory.most_of_a_write());
        let hold = memory.take(Consumer::Writes, bytes, WRITES_PATIENCE).await;
        Ok(Held::new(hold.ok_or(ErrorKind::Overloaded)?, 0))
    }
}

#[cfg(test)]
mod tests;
