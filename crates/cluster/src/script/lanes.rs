//! Scripts of one logical partition, one after the other.
//!
//! Nothing depends on it for being right: a script that was overtaken is found out when it is committed. It saves
//! the work of running scripts again that were bound to meet.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_doc::Epk;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// The partition's number, and the logical partition.
type Place = (u32, Epk);

#[derive(Default)]
pub(super) struct Lanes {
    lanes: Arc<Mutex<HashMap<Place, Arc<tokio::sync::Mutex<()>>>>>,
}

/// Held by the script whose turn it is.
pub(super) struct Turn {
    lanes: Arc<Mutex<HashMap<Place, Arc<tokio::sync::Mutex<()>>>>>,
    place: Place,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Lanes {
    /// Waits until no other script runs here. Those who wait come in the order in which they asked.
    pub async fn enter(&self, partition: u32, epk: &Epk) -> Turn {
        let place = (partition, epk.clone());
        let lane = self.lanes.lock().entry(place.clone()).or_default().clone();
        // Made before the wait: a script that stops waiting leaves the lane as well.
        let mut turn = Turn { lanes: self.lanes.clone(), place, guard: None };
        turn.guard = Some(lane.lock_owned().await);
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock();
        self.guard.take();
        // Only the table knows it: nobody waits, and nobody can begin to while the table is locked.
        if lanes.get(&self.place).is_some_and(|lane| Arc::strong_count(lane) == 1) {
            lanes.remove(&self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_lane_is_for_one_and_is_gone_when_nobody_needs_it() {
        let lanes = Arc::new(Lanes::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let epk = |n: usize| Epk::from_hex(&format!("0{n}")).expect("an EPK");
        let tasks: Vec<_> = (0..40)
            .map(|n| {
                let (lanes, inside) = (lanes.clone(), inside.clone());
                tokio::spawn(async move {
                    let _turn = lanes.enter(0, &epk(n % 2)).await;
                    let others = inside.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    others
                })
            })
            .collect();
        for task in tasks {
            assert!(task.await.expect("no task fails") < 2, "there are two lanes");
        }
        assert!(lanes.lanes.lock().is_empty());
        let turn = lanes.enter(0, &epk(1)).await;
        assert!(tokio::time::timeout(Duration::from_millis(5), lanes.enter(0, &epk(1))).await.is_err());
        drop(turn);
        assert!(lanes.lanes.lock().is_empty(), "a script that gave up waiting left nothing behind");
    }
}
