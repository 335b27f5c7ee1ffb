//! Waiting for something to happen, however slow the machine is.
//!
//! Tests that measure time have limits of their own; all others wait here.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long tests wait for what must happen, but not by a certain time.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Between two looks. It is short because some of what tests want to see is over soon.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks until there is what a test waits for. An error is what is there instead: the last one is told when patience
/// ends.
#[track_caller]
pub fn wait_for<T>(look: impl FnMut() -> Result<T, String>) -> T {
    match look_until(PATIENCE, look) {
        Ok(found) => found,
        Err(seen) => panic!("after {PATIENCE:?}: {seen}"),
    }
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(|| happened(what, holds()));
}

/// [`wait_for`] for tests that share their thread with what they wait for.
#[track_caller]
pub fn wait_for_async<T>(mut look: impl FnMut() -> Result<T, String>) -> impl Future<Output = T> {
    // A panic in a future tells this file as its place, whichever test waits.
    let (began, caller) = (Instant::now(), Location::caller());
    async move {
        loop {
            match look() {
                Ok(found) => return found,
                Err(seen) if began.elapsed() > PATIENCE => panic!("{caller}: after {PATIENCE:?}: {seen}"),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// [`eventually`] for tests that share their thread with what they wait for.
#[track_caller]
pub fn eventually_async(what: &str, mut holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
    wait_for_async(move || happened(what, holds()))
}

/// Waits until a count has reached a number, and says whether it has. The caller decides what to do when it has not:
/// other threads may have to be stopped first.
pub fn has_reached(count: &AtomicU64, number: u64) -> bool {
    let look = || if count.load(Ordering::Relaxed) < number { Err(()) } else { Ok(()) };
    look_until(PATIENCE, look).is_ok()
}

fn look_until<T, E>(patience: Duration, mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let began = Instant::now();
    loop {
        let seen = look();
        if seen.is_ok() || began.elapsed() > patience {
            return seen;
        }
        std::thread::sleep(PAUSE);
    }
}

fn happened(what: &str, holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("this has not happened: {what}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_on_until_there_is_something() {
        let mut looks = 0..5;
        assert_eq!(wait_for(|| looks.next().filter(|look| *look == 3).ok_or_else(String::new)), 3);
        let mut looks = 0;
        eventually("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    fn the_last_look_is_told_when_patience_ends() {
        let mut looks = 0;
        let seen = look_until(3 * PAUSE, || {
            looks += 1;
            Err::<(), _>(looks)
        });
        assert_eq!(seen, Err(looks));
    }
}
