//! Long work, by turns.
//!
//! Short work is done on the thread that got the request, and nobody waits for it. Work that turns out to be long gets in
//! line here. Two things are rationed:
//!
//! ```text
//!   requests ──► start: at most LONG_STARTED_MAX,     ──► turn: as many as there are processors,
//!                waiting costs no thread                  for a slice of a few milliseconds each
//! ```
//!
//! - *To start* is to get a thread and to hold memory. A container may start as many as are still free, so one that starts
//!   all it can leaves half of them, the next one half of the rest: there is always room for one that has none.
//! - *A turn* is the leave to compute. Work that has had its slice while others wait gets in line again
//!   ([`Turn::rest`]). Turns go round between containers, and in a container to those first that have used little
//!   so far, so that a short query among long ones is not as slow as they are.
//!
//! Both queues are first come first served within a container. Those who wait to start do so for a bounded time and in a queue
//! of bounded length; then they are refused and may come again.
//!
//! Which thread has a turn is known to the thread itself, so that deep below nobody has to be told.

mod line;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use orrery_store::limits::{LONG_PATIENCE, LONG_SLICE, LONG_STARTED_MAX, LONG_USED_LITTLE, LONG_WAITING_MAX};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::{ErrorKind, Result};
use crate::memory::give_back_of_this_thread;
use crate::world::World;
use line::Line;

/// On whose behalf: the number of a container.
pub(crate) type Party = u64;

#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// How many wait for a turn, for those who only look.
    waiting: AtomicUsize,
    turns_max: usize,
    world: World,
}

#[derive(Default)]
struct State {
    /// Turns that are given out, and who waits for one.
    turns: usize,
    seats: Line<Arc<Seat>>,
    starts: Starts,
    to_start: Line<oneshot::Sender<Started>>,
}

/// How much has started, and on whose behalf.
#[derive(Default)]
struct Starts {
    all: usize,
    by_party: Vec<(Party, usize)>,
}

/// A thread that waits for its turn.
struct Seat {
    thread: Thread,
    is_called: AtomicBool,
}

/// The right to a thread and to turns, until it is dropped.
pub(crate) struct Started {
    turns: Turns,
    party: Party,
}

/// What a thread is doing.
enum Mode {
    /// Work that must end soon; true once it is known that it does not.
    Short(bool),
    Long(Turn),
}

/// The leave to compute.
#[derive(Clone)]
struct Turn {
    turns: Turns,
    party: Party,
    since: Instant,
    /// What was used in earlier slices.
    used: Duration,
}

thread_local! {
    static MODE: RefCell<Option<Mode>> = const { RefCell::new(None) };
}

/// Does work that may not take long on this thread; nothing if it does.
pub(crate) fn shortly<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _mode = InMode::enter(Mode::Short(false));
    let done = work();
    let is_too_long = MODE.with_borrow(|mode| matches!(mode, Some(Mode::Short(true))));
    (!is_too_long).then_some(done)
}

/// Does work that may be `long`, unless this thread is for short work only: then it ends with an error that nobody sees.
pub(crate) fn at_length<T>(long: bool, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let is_too_long = long
        && MODE.with_borrow_mut(|mode| match mode {
            Some(Mode::Short(is_too_long)) => {
                *is_too_long = true;
                true
            }
            _ => false,
        });
    if is_too_long { Err(ErrorKind::Overloaded.into()) } else { work() }
}

/// Lets others go first if this thread has had its slice and others wait.
pub(crate) fn rest() {
    let is_over = MODE.with_borrow(|mode| match mode {
        Some(Mode::Long(turn)) => {
            let shared = &turn.turns.0;
            shared.waiting.load(Ordering::Relaxed) > 0 && shared.world.since(turn.since) >= LONG_SLICE
        }
        _ => false,
    });
    if is_over {
        aside(|| ());
    }
}

/// Waits for something without keeping others from their turn.
pub(crate) fn aside<T>(wait: impl FnOnce() -> T) -> T {
    let turn = MODE.with_borrow(|mode| match mode {
        Some(Mode::Long(turn)) => Some(turn.clone()),
        _ => None,
    });
    let Some(mut turn) = turn else { return wait() };
    turn.used += turn.turns.0.world.since(turn.since);
    // To get in line is enough where nothing else is waited for: this thread is called when it has its turn again.
    turn.turns.give_back();
    let done = wait();
    turn.turns.take(turn.party, turn.used);
    turn.since = turn.turns.0.world.monotonic();
    MODE.set(Some(Mode::Long(turn)));
    done
}

/// Who the work of this thread is done for, so that other threads can help with it.
pub(crate) fn here() -> Option<Started> {
    MODE.with_borrow(|mode| match mode {
        Some(Mode::Long(turn)) => Some(turn.turns.started_too(turn.party)),
        _ => None,
    })
}

/// Runs with the turns of those that it helps, if they have any.
pub(crate) fn helping<T>(whom: Option<&Started>, work: impl FnOnce() -> T) -> T {
    match whom {
        Some(started) => started.run(work),
        None => work(),
    }
}

impl Started {
    /// Waits for a turn and works, by turns with others.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.turns.take(self.party, Duration::ZERO);
        let turn = Turn {
            turns: self.turns.clone(),
            party: self.party,
            since: self.turns.0.world.monotonic(),
            used: Duration::ZERO,
        };
        let mode = InMode::enter(Mode::Long(turn));
        let done = work();
        drop(mode);
        // Others have the turn by now.
        give_back_of_this_thread();
        done
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.turns.0.state.lock().starts.less(self.party);
        self.turns.start_waiting();
    }
}

/// A thread's mode, until it is dropped.
struct InMode;

impl InMode {
    fn enter(mode: Mode) -> InMode {
        let before = MODE.replace(Some(mode));
        debug_assert!(before.is_none(), "a thread does one thing at a time");
        InMode
    }
}

impl Drop for InMode {
    fn drop(&mut self) {
        if let Some(Mode::Long(turn)) = MODE.take() {
            turn.turns.give_back();
        }
    }
}

impl Turns {
    pub fn new(turns_max: usize, world: World) -> Turns {
        let state = Mutex::default();
        Turns(Arc::new(Shared { state, waiting: AtomicUsize::new(0), turns_max: turns_max.max(1), world }))
    }

    /// Waits until long work of this party may start.
    pub async fn start(&self, party: Party) -> Result<Started> {
        let hears = {
            let mut state = self.0.state.lock();
            if state.to_start.len() == 0 && state.starts.have_room_for(party) {
                state.starts.more(party);
                return Ok(Started { turns: self.clone(), party });
            }
            if state.to_start.len() >= LONG_WAITING_MAX {
                return Err(ErrorKind::Overloaded.into());
            }
            let (tells, hears) = oneshot::channel();
            state.to_start.push(party, true, tells);
            hears
        };
        // Another party may be the one that the line waits for.
        self.start_waiting();
        match self.0.world.timeout(LONG_PATIENCE, hears).await {
            Some(Ok(started)) => Ok(started),
            _ => Err(ErrorKind::Overloaded.into()),
        }
    }

    /// Lets those start that may.
    fn start_waiting(&self) {
        loop {
            let told = {
                let State { to_start, starts, .. } = &mut *self.0.state.lock();
                let may = |party: Party, tells: &oneshot::Sender<Started>| {
                    tells.is_closed() || starts.have_room_for(party)
                };
                let Some((party, tells)) = to_start.next(may) else { return };
                if tells.is_closed() {
                    continue;
                }
                starts.more(party);
                tells.send(Started { turns: self.clone(), party })
            };
            // One that went away meanwhile gives it back here, where the lock is free.
            drop(told);
        }
    }

    fn started_too(&self, party: Party) -> Started {
        self.0.state.lock().starts.more(party);
        Started { turns: self.clone(), party }
    }

    fn take(&self, party: Party, used: Duration) {
        let seat = {
            let mut state = self.0.state.lock();
            if state.turns < self.0.turns_max && state.seats.len() == 0 {
                state.turns += 1;
                return;
            }
            let seat = Arc::new(Seat { thread: std::thread::current(), is_called: AtomicBool::new(false) });
            state.seats.push(party, used < LONG_USED_LITTLE, seat.clone());
            self.call(&mut state);
            seat
        };
        give_back_of_this_thread();
        while !seat.is_called.load(Ordering::Acquire) {
            // Beside the world: it waits for its call and for no time, and another thread wakes it.
            std::thread::park();
        }
    }

    fn give_back(&self) {
        let mut state = self.0.state.lock();
        state.turns -= 1;
        self.call(&mut state);
    }

    /// Calls those who have their turn next.
    fn call(&self, state: &mut State) {
        while state.turns < self.0.turns_max
            && let Some((_, seat)) = state.seats.next(|_, _| true)
        {
            state.turns += 1;
            seat.is_called.store(true, Ordering::Release);
            seat.thread.unpark();
        }
        self.0.waiting.store(state.seats.len(), Ordering::Relaxed);
    }
}

impl Starts {
    /// A party may have as many as are free.
    fn have_room_for(&self, party: Party) -> bool {
        self.of(party) < LONG_STARTED_MAX.saturating_sub(self.all)
    }

    fn of(&self, party: Party) -> usize {
        self.by_party.iter().find(|(other, _)| *other == party).map_or(0, |(_, count)| *count)
    }

    fn more(&mut self, party: Party) {
        self.all += 1;
        match self.by_party.iter_mut().find(|(other, _)| *other == party) {
            Some((_, count)) => *count += 1,
            None => self.by_party.push((party, 1)),
        }
    }

    fn less(&mut self, party: Party) {
        self.all -= 1;
        self.by_party.iter_mut().filter(|(other, _)| *other == party).for_each(|(_, count)| *count -= 1);
        self.by_party.retain(|(_, count)| *count > 0);
    }
}
