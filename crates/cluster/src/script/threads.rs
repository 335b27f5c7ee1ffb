//! Threads for scripts.
//!
//! A script may not run on a thread that serves requests, and it may overstay, so scripts have threads of their own,
//! below the priority of others. They are used again, the last one first: an engine takes and gives back megabytes,
//! which costs more on a thread whose memory is cold than many a script does.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;

use crate::memory::give_back_of_this_thread;
use crate::world::{ThreadPlan, World};

/// How long a thread waits for the next script before it ends.
const IDLE: Duration = Duration::from_secs(10);
/// The engine's own stack and a query of a script both fit.
const STACK_BYTES: usize = 4 << 20;
/// How much less a script's thread counts than others when processors are short.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

type Task = Box<dyn FnOnce() + Send>;

/// How many there may be is decided by the caller that hands in tasks.
#[derive(Default)]
pub(super) struct Threads {
    idle: Arc<Mutex<Idle>>,
}

/// Who waits for a task, the last to wait at the end.
#[derive(Default)]
struct Idle {
    waiting: Vec<(u64, Sender<Task>)>,
    named: u64,
}

impl Threads {
    /// Runs a task on a thread that waits, or on a new one.
    pub fn run(&self, world: &World, task: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut task: Task = Box::new(task);
        while let Some((_, thread)) = self.take() {
            match thread.send(task) {
                Ok(()) => return Ok(()),
                Err(SendError(back)) => task = back,
            }
        }
        let idle = self.idle.clone();
        let plan = ThreadPlan { name: "script", stack_bytes: Some(STACK_BYTES) };
        world.thread(plan, move || work(task, &idle)).map(drop)
    }

    fn take(&self) -> Option<(u64, Sender<Task>)> {
        self.idle.lock().waiting.pop()
    }
}

/// Does one task after the other, until none has come for a while. A task that panics takes its thread along.
fn work(first: Task, idle: &Mutex<Idle>) {
    give_way();
    let (sender, tasks) = channel();
    let name = {
        let mut idle = idle.lock();
        idle.named += 1;
        idle.named
    };
    let mut next = Some(first);
    while let Some(task) = next {
        task();
        give_back_of_this_thread();
        idle.lock().waiting.push((name, sender.clone()));
        next = wait(name, &tasks, idle);
    }
}

/// The next task; none when it is time to end. The caller that took this thread off the list is about to send one.
fn wait(name: u64, tasks: &Receiver<Task>, idle: &Mutex<Idle>) -> Option<Task> {
    // Beside the world: only how long an idle thread is kept depends on this time.
    match tasks.recv_timeout(IDLE) {
        Ok(task) => Some(task),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            let mut idle = idle.lock();
            match idle.waiting.iter().position(|(waiting, _)| *waiting == name) {
                Some(place) => {
                    idle.waiting.remove(place);
                    None
                }
                None => {
                    drop(idle);
                    tasks.recv().ok()
                }
            }
        }
    }
}

/// Lets the threads that serve requests go first. Other systems know priorities of whole processes only.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "the thread of a script keeps its priority");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;
    use std::thread;

    use orrery_testkit::eventually;

    use super::*;

    #[test]
    fn a_thread_that_waits_is_used_again_and_one_that_works_is_not_waited_for() {
        let threads = Threads::default();
        let (said, heard) = mpsc::channel();
        let tell = |wait: Option<mpsc::Receiver<()>>| {
            let said = said.clone();
            let task = move || {
                said.send(thread::current().id()).expect("the test listens");
                if let Some(wait) = wait {
                    let _ = wait.recv();
                }
            };
            threads.run(&World::Real, task).expect("a thread");
            heard.recv().expect("an answer")
        };
        let mut seen = HashSet::new();
        for _ in 0..50 {
            seen.insert(tell(None));
            eventually("the thread waits", || !threads.idle.lock().waiting.is_empty());
        }
        assert_eq!(seen.len(), 1, "one after the other, one is enough");
        let (done, busy) = mpsc::channel();
        let first = tell(Some(busy));
        let second = tell(None);
        assert_ne!(first, second);
        drop(done);
    }
}
