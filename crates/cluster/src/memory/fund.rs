//! Memory for what transactions hold until they are committed.

use orrery_store::Lender;
use orrery_store::limits::MEMORY_KEPT_FOR_NEWCOMERS;
use parking_lot::Mutex;

use super::{Consumer, Hold, Memory};

/// Lends from the share for writes, and has it all back when it is dropped.
pub(crate) struct Fund {
    hold: Mutex<Hold>,
    most: u64,
}

impl Fund {
    pub fn new(memory: &Memory) -> Fund {
        Fund { hold: Mutex::new(memory.nothing(Consumer::Writes)), most: memory.most_of_a_write() }
    }

    /// Hands over what was lent.
    pub fn take(&self) -> Hold {
        let mut hold = self.hold.lock();
        let bytes = hold.bytes();
        hold.split_off(bytes)
    }
}

impl Lender for Fund {
    fn most(&self) -> u64 {
        self.most
    }

    fn lend(&self, bytes: u64) -> bool {
        self.hold.lock().try_grow(bytes)
    }
}

impl Memory {
    /// What one transaction may hold: what it may grow into when nobody else holds anything.
    pub(crate) fn most_of_a_write(&self) -> u64 {
        self.shares.writes - self.shares.writes / MEMORY_KEPT_FOR_NEWCOMERS
    }
}
