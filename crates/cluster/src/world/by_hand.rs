//! A world whose time passes when a test says so.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{World, chance};

/// The clock of such a world. It stands still until it is moved, and wakes those whose time has come when it is.
#[derive(Debug)]
pub struct ByHand {
    /// Where both clocks began.
    instant: Instant,
    unix: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    passed: Duration,
    /// Sleeping tasks by the time of their waking; a number tells those apart that wake together.
    sleepers: BTreeMap<(Duration, u64), oneshot::Sender<()>>,
    next_sleeper: u64,
    chance: u64,
}

impl World {
    /// A world in which it is this time of day until it is moved, with chance from a seed.
    pub fn by_hand(unix: Duration, seed: u64) -> (World, Arc<ByHand>) {
        let state =
            State { passed: Duration::ZERO, sleepers: BTreeMap::new(), next_sleeper: 0, chance: seed | 1 };
        let hand = Arc::new(ByHand { instant: Instant::now(), unix, state: Mutex::new(state) });
        (World::ByHand(hand.clone()), hand)
    }
}

impl ByHand {
    /// Lets so much time pass at once. Tasks that sleep until then are woken in the order of their times, and do what they do
    /// when their threads come to it.
    pub fn advance(&self, time: Duration) {
        let due = {
            let mut state = self.state.lock();
            state.passed += time;
            let now = state.passed;
            let later = state.sleepers.split_off(&(now, u64::MAX));
            std::mem::replace(&mut state.sleepers, later)
        };
        for (_, sleeper) in due {
            // A sleeper that went away needs no waking.
            let _ = sleeper.send(());
        }
    }

    /// Does work and lets time pass in such steps, but only as far as a task waits for the end of one: so the work takes as
    /// long as it sleeps, on any machine.
    pub async fn pass_during<W: Future>(&self, step: Duration, work: W) -> W::Output {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::task::yield_now() => {}
            }
            if self.is_awaited(step) {
                self.advance(step);
            }
        }
    }

    /// Whether a task sleeps for no longer than this.
    fn is_awaited(&self, time: Duration) -> bool {
        let state = self.state.lock();
        let mut waiting = state.sleepers.iter().filter(|(_, sleeper)| !sleeper.is_closed());
        waiting.next().is_some_and(|((until, _), _)| *until <= state.passed + time)
    }

    /// How many sleep now.
    pub fn sleepers(&self) -> usize {
        self.state.lock().sleepers.values().filter(|sleeper| !sleeper.is_closed()).count()
    }

    pub(super) fn monotonic(&self) -> Instant {
        self.instant + self.state.lock().passed
    }

    /// The time of day, since 1970.
    pub fn unix_time(&self) -> Duration {
        self.unix + self.state.lock().passed
    }

    pub(super) async fn sleep(&self, time: Duration) {
        let woken = {
            let mut state = self.state.lock();
            if time.is_zero() {
                return;
            }
            let (wakes, woken) = oneshot::channel();
            let (until, number) = (state.passed.saturating_add(time), state.next_sleeper);
            state.next_sleeper += 1;
            state.sleepers.insert((until, number), wakes);
            woken
        };
        // The clock wakes all its sleepers, so it is never gone before this.
        let _ = woken.await;
    }

    pub(super) fn random(&self) -> u64 {
        let mut state = self.state.lock();
        state.chance = chance::next(state.chance);
        chance::shown(state.chance)
    }
}
