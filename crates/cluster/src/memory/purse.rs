//! The share of one consumer: what is used of it, and who waits for more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orrery_store::limits::{MEMORY_KEPT_FOR_NEWCOMERS, MEMORY_WAITING_MAX};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Consumer, MemoryUse};
use crate::world::World;

#[derive(Debug)]
pub(super) struct Purse {
    share: u64,
    used: AtomicU64,
    highest: AtomicU64,
    /// How many wait that asked for little, whom nobody passes, and how many in all. For those who need not lock the queues. A waiter adds itself before it looks at `used` for the last
    /// time, and those who give back look here afterwards: one of the two sees the other.
    waiting_little: AtomicU64,
    waiting: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    queues: Mutex<Queues>,
    world: World,
}

/// For what one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Little,
    /// What others may grow into, and no more.
    Much,
}

#[derive(Debug, Default)]
struct Queues {
    little: VecDeque<Waiter>,
    much: VecDeque<Waiter>,
}

impl Queues {
    fn of(&mut self, asks: Asks) -> &mut VecDeque<Waiter> {
        match asks {
            Asks::Little => &mut self.little,
            Asks::Much => &mut self.much,
        }
    }
}

#[derive(Debug)]
struct Waiter {
    bytes: u64,
    /// Told when the bytes were taken for it.
    told: oneshot::Sender<Taken>,
}

/// Bytes that were taken for a waiter, until it knows. A waiter that went away never does, so they go back by themselves.
#[derive(Debug)]
struct Taken {
    purse: Option<Arc<Purse>>,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(purse) = self.purse.take() {
            purse.give_back(self.bytes);
        }
    }
}

impl Purse {
    pub fn new(share: u64, world: World) -> Purse {
        Purse {
            share,
            used: AtomicU64::new(0),
            highest: AtomicU64::new(0),
            waiting_little: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            queues: Mutex::default(),
            world,
        }
    }

    pub fn try_take(&self, bytes: u64) -> bool {
        self.waiting_little.load(Ordering::Relaxed) == 0 && self.add(bytes, self.share)
    }

    pub fn free(&self) -> u64 {
        self.share.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub fn try_grow(&self, bytes: u64) -> bool {
        let grown = self.add(bytes, self.most(Asks::Much));
        if !grown {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        grown
    }

    fn most(&self, asks: Asks) -> u64 {
        match asks {
            Asks::Little => self.share,
            Asks::Much => self.share - self.share / MEMORY_KEPT_FOR_NEWCOMERS,
        }
    }

    fn add(&self, bytes: u64, most: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= most);
        let Ok(before) = self.used.fetch_update(Ordering::SeqCst, Ordering::Relaxed, more) else {
            return false;
        };
        let now = before + bytes;
        if now > self.highest.load(Ordering::Relaxed) {
            self.highest.fetch_max(now, Ordering::Relaxed);
        }
        true
    }

    pub fn give_back(self: &Arc<Self>, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.serve_queue();
        }
    }

    pub async fn wait(self: &Arc<Self>, bytes: u64, asks: Asks, patience: Duration) -> bool {
        let refuse = || {
            self.refused.fetch_add(1, Ordering::Relaxed);
            false
        };
        if bytes > self.most(asks) {
            return refuse();
        }
        let (told, hears) = oneshot::channel();
        {
            let mut queues = self.queues.lock();
            let queue = queues.of(asks);
            if queue.len() >= MEMORY_WAITING_MAX {
                drop(queues);
                return refuse();
            }
            queue.push_back(Waiter { bytes, told });
            self.show(&queues);
        }
        self.waited.fetch_add(1, Ordering::Relaxed);
        // What was given back in between was given back unseen.
        self.serve_queue();
        // A waiter that leaves may have been the one that those behind it had to wait for.
        let leaving = Leaving(self);
        let heard = self.world.timeout(patience, hears).await;
        match heard {
            Some(Ok(mut taken)) => {
                std::mem::forget(leaving);
                taken.purse = None;
                true
            }
            _ => refuse(),
        }
    }

    /// Gives the first in the queue what they wait for, as long as there is enough.
    fn serve_queue(self: &Arc<Self>) {
        let mut served = Vec::new();
        let mut queues = self.queues.lock();
        for asks in [Asks::Little, Asks::Much] {
            let queue = queues.of(asks);
            while let Some(Waiter { bytes, told }) = queue.pop_front() {
                if told.is_closed() {
                    continue;
                }
                if !self.add(bytes, self.most(asks)) {
                    queue.push_front(Waiter { bytes, told });
                    break;
                }
                served.push((told, Taken { purse: Some(Arc::clone(self)), bytes }));
            }
        }
        self.show(&queues);
        drop(queues);
        // Not under the lock: what cannot be handed over is given back, and that may serve the queue again.
        for (told, taken) in served {
            drop(told.send(taken));
        }
    }

    fn show(&self, queues: &Queues) {
        self.waiting_little.store(queues.little.len() as u64, Ordering::SeqCst);
        self.waiting.store((queues.little.len() + queues.much.len()) as u64, Ordering::SeqCst);
    }

    pub fn usage(&self, consumer: Consumer) -> MemoryUse {
        MemoryUse {
            consumer,
            share_bytes: self.share,
            used_bytes: self.used.load(Ordering::Relaxed),
            highest_bytes: self.highest.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            waited: self.waited.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

/// A waiter that leaves, because its time is over or nobody polls it any more.
struct Leaving<'a>(&'a Arc<Purse>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.serve_queue();
    }
}
