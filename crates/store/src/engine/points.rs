//! The sequence numbers that snapshots may read at.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

/// A moment in the life of the data: a reader sees the batches with smaller sequence numbers.
pub(super) struct Point {
    pub sequence: u64,
    live: Arc<Live>,
}

/// How many points there are at each sequence number.
#[derive(Default)]
struct Live(Mutex<BTreeMap<u64, usize>>);

impl Drop for Point {
    fn drop(&mut self) {
        let mut live = self.live.0.lock();
        if let Some(count) = live.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.sequence);
            }
        }
    }
}

/// The newest point, which every reader shares until the next commit, and those that older readers
/// still hold.
pub(super) struct Points {
    live: Arc<Live>,
    latest: RwLock<Arc<Point>>,
}

impl Points {
    pub fn new(sequence: u64) -> Points {
        let live = Arc::new(Live::default());
        let latest = RwLock::new(Arc::new(open(&live, sequence)));
        Points { live, latest }
    }

    pub fn latest(&self) -> Arc<Point> {
        Arc::clone(&self.latest.read())
    }

    /// Lets readers that come from now on see all batches below a sequence number.
    pub fn advance(&self, sequence: u64) {
        let point = Arc::new(open(&self.live, sequence));
        let previous = std::mem::replace(&mut *self.latest.write(), point);
        drop(previous);
    }

    /// The oldest sequence number that a snapshot reads at.
    pub fn oldest(&self) -> u64 {
        self.live.0.lock().first_key_value().map_or(0, |(sequence, _)| *sequence)
    }
}

fn open(live: &Arc<Live>, sequence: u64) -> Point {
    *live.0.lock().entry(sequence).or_default() += 1;
    Point { sequence, live: Arc::clone(live) }
}
