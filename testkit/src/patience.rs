//! Waiting for something to happen, however slow the machine is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(1);

/// Waits until a count has reached a number, and says whether it has. Whoever waits decides what to do when it has not:
/// other threads may have to be stopped first.
pub fn has_reached(count: &AtomicU64, number: u64, patience: Duration) -> bool {
    let begin = Instant::now();
    while count.load(Ordering::Relaxed) < number {
        if begin.elapsed() > patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}
