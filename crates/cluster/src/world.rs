//! What a database knows of the world outside: the time, chance, and how work is run beside other work.
//!
//! Nothing else in this room asks a clock, waits, starts tasks or threads, or throws dice; `cargo xtask tidy` refuses it. So
//! the owner of the world decides when what happens:
//!
//! ```text
//!            both clocks                      waiting                     tasks, threads   chance
//!   real     the system's                     tokio's                     tokio's          seeded by the thread
//!   by hand  stand still until a test         until the test has moved    tokio's          seeded by the test
//!            moves them, both together        the clocks so far
//! ```
//!
//! Time that only grows is an [`Instant`] in both worlds, so that nothing which is given a time need know where it is from.

mod by_hand;
mod chance;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle as Thread, Scope};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orrery_store::TICKS_PER_SECOND;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, JoinSet};

pub use by_hand::ByHand;

/// Which world a database lives in. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub enum World {
    #[default]
    Real,
    /// Of a test, which moves the time itself.
    ByHand(Arc<ByHand>),
}

/// A thread that is about to be started.
pub(crate) struct ThreadPlan {
    pub name: &'static str,
    pub stack_bytes: Option<usize>,
}

/// A moment until which something may go on.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    world: World,
    at: Instant,
}

impl Deadline {
    pub fn is_past(&self) -> bool {
        self.world.is_past(self.at)
    }
}

impl World {
    /// A clock that never goes back.
    #[inline]
    pub(crate) fn monotonic(&self) -> Instant {
        match self {
            World::Real => Instant::now(),
            World::ByHand(hand) => hand.monotonic(),
        }
    }

    /// How long ago something was.
    pub(crate) fn since(&self, then: Instant) -> Duration {
        self.monotonic().saturating_duration_since(then)
    }

    /// How long it is until then; nothing if that is past.
    pub(crate) fn until(&self, then: Instant) -> Duration {
        then.saturating_duration_since(self.monotonic())
    }

    /// So long from now.
    pub(crate) fn deadline(&self, time: Duration) -> Deadline {
        Deadline { world: self.clone(), at: self.monotonic() + time }
    }

    pub(crate) fn is_past(&self, then: Instant) -> bool {
        self.monotonic() >= then
    }

    /// The time of day, since 1970.
    #[inline]
    pub(crate) fn unix_time(&self) -> Duration {
        match self {
            World::Real => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            World::ByHand(hand) => hand.unix_time(),
        }
    }

    /// The same in units of 100 ns, as items keep it.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let since = self.unix_time();
        since.as_secs() * TICKS_PER_SECOND + u64::from(since.subsec_nanos() / 100)
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        match self {
            World::Real => tokio::time::sleep(time).await,
            World::ByHand(hand) => hand.sleep(time).await,
        }
    }

    /// What the work comes to, or nothing if it takes longer.
    pub(crate) async fn timeout<W: Future>(&self, time: Duration, work: W) -> Option<W::Output> {
        match self {
            World::Real => tokio::time::timeout(time, work).await.ok(),
            World::ByHand(hand) => {
                tokio::select! {
                    biased;
                    done = work => Some(done),
                    () = hand.sleep(time) => None,
                }
            }
        }
    }

    /// The same for work that must have come to something by then.
    pub(crate) async fn by<W: Future>(&self, then: Instant, work: W) -> Option<W::Output> {
        self.timeout(self.until(then), work).await
    }

    /// Starts a task.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::spawn(task)
    }

    /// The same for a task that ends with others at the latest.
    pub(crate) fn spawn_among<T: Send + 'static>(
        &self,
        others: &mut JoinSet<T>,
        task: impl Future<Output = T> + Send + 'static,
    ) {
        others.spawn(task);
    }

    /// Does on this thread what takes long or waits for a disk, while tasks go on elsewhere. A test that has one thread for all
    /// has no elsewhere.
    pub(crate) fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_alone = || Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        match self {
            World::ByHand(_) if is_alone() => work(),
            _ => tokio::task::block_in_place(work),
        }
    }

    /// Does it on a thread of its own.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        tokio::task::spawn_blocking(work).await
    }

    /// Starts a thread that lives as long as it likes.
    pub(crate) fn thread(
        &self,
        plan: ThreadPlan,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<Thread<()>> {
        let builder = std::thread::Builder::new().name(plan.name.into());
        match plan.stack_bytes {
            Some(bytes) => builder.stack_size(bytes),
            None => builder,
        }
        .spawn(work)
    }

    /// Does work that starts threads which end before it does, and so may borrow what it has.
    pub(crate) fn scope<'env, T>(
        &self,
        work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    ) -> T {
        std::thread::scope(work)
    }

    /// Something that nobody need be unable to guess.
    pub(crate) fn random(&self) -> u64 {
        match self {
            World::Real => chance::of_thread(),
            World::ByHand(hand) => hand.random(),
        }
    }
}
