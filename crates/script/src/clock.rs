//! The time of one call. It starts when the call does and says when the script must end.

use std::cell::Cell;
use std::time::{Duration, Instant};

pub(crate) struct Clock {
    started: Cell<Instant>,
    allowed: Cell<Duration>,
    /// Set once the time was found to be over, because the engine only reports that it was interrupted.
    over: Cell<bool>,
}

impl Clock {
    pub fn start(allowed: Duration) -> Clock {
        Clock { started: Cell::new(Instant::now()), allowed: Cell::new(allowed), over: Cell::new(false) }
    }

    pub fn restart(&self, allowed: Duration) {
        self.started.set(Instant::now());
        self.allowed.set(allowed);
        self.over.set(false);
    }

    pub fn elapsed(&self) -> Duration {
        self.started.get().elapsed()
    }

    /// Asks the time.
    pub fn is_over(&self) -> bool {
        if !self.over.get() && self.elapsed() >= self.allowed.get() {
            self.over.set(true);
        }
        self.over.get()
    }

    /// Whether the time was found to be over, without asking.
    pub fn was_over(&self) -> bool {
        self.over.get()
    }
}
