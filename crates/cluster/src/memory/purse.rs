//! The share of one consumer: what is used of it, and who waits for more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orrery_store::limits::{MEMORY_KEPT_FOR_NEWCOMERS, MEMORY_WAITING_MAX};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Consumer, MemoryUse};

#[derive(Debug)]
pub(super) struct Purse {
    share: u64,
    used: AtomicU64,
    highest: AtomicU64,
    /// The length of the queue, for those who need not lock it. A waiter adds itself before it looks at `used` for the last
    /// time, and those who give back look here afterwards: one of the two sees the other.
    waiting: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    queue: Mutex<VecDeque<Waiter>>,
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
    pub fn new(share: u64) -> Purse {
        Purse {
            share,
            used: AtomicU64::new(0),
            highest: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    pub fn try_take(&self, bytes: u64) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0 && self.add(bytes, self.share)
    }

    pub fn try_grow(&self, bytes: u64) -> bool {
        let grown = self.add(bytes, self.share - self.share / MEMORY_KEPT_FOR_NEWCOMERS);
        if !grown {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        grown
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

    pub async fn wait(self: &Arc<Self>, bytes: u64, patience: Duration) -> bool {
        let refuse = || {
            self.refused.fetch_add(1, Ordering::Relaxed);
            false
        };
        if bytes > self.share {
            return refuse();
        }
        let (told, hears) = oneshot::channel();
        {
            let mut queue = self.queue.lock();
            if queue.len() >= MEMORY_WAITING_MAX {
                drop(queue);
                return refuse();
            }
            queue.push_back(Waiter { bytes, told });
            self.waiting.store(queue.len() as u64, Ordering::SeqCst);
        }
        self.waited.fetch_add(1, Ordering::Relaxed);
        // What was given back in between was given back unseen.
        self.serve_queue();
        // Whoever stops waiting may have been the one that those behind it had to wait for.
        let leaving = Leaving(self);
        let heard = tokio::time::timeout(patience, hears).await;
        match heard {
            Ok(Ok(mut taken)) => {
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
        let mut queue = self.queue.lock();
        while let Some(first) = queue.front() {
            // Looked at once: a waiter that leaves after its bytes were taken for it gives them back by dropping them.
            let is_gone = first.told.is_closed();
            if !is_gone && !self.add(first.bytes, self.share) {
                break;
            }
            let Some(Waiter { bytes, told }) = queue.pop_front() else { break };
            if !is_gone {
                served.push((told, Taken { purse: Some(Arc::clone(self)), bytes }));
            }
        }
        self.waiting.store(queue.len() as u64, Ordering::SeqCst);
        drop(queue);
        // Not under the lock: what cannot be handed over is given back, and that may serve the queue again.
        for (told, taken) in served {
            drop(told.send(taken));
        }
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

/// Somebody stops waiting, or is no longer polled.
struct Leaving<'a>(&'a Arc<Purse>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.serve_queue();
    }
}
