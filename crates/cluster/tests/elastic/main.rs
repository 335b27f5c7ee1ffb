//! Partitions that split and merge all the time, while clients write, read, query and follow the changes.
//!
//! Every client keeps a model of its own items: what was acknowledged is there, nothing else is, and each version is
//! seen by readers of the feed in its order. A client never knows of a split: if it is told of one, the test fails.
//! The seed is printed; `ORRERY_TEST_SEED` repeats a run as far as threads let it, `ORRERY_SPLITS` makes it longer.

mod follower;
mod world;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use follower::Follower;
use orrery_testkit::Random;
use world::World;
use writer::Writer;

const SPLITS: usize = 40;
const WRITERS: usize = 6;
/// Fewer writes among the splits would say little.
const WRITES_MIN: usize = 1_000;

fn splits() -> usize {
    std::env::var("ORRERY_SPLITS").ok().and_then(|text| text.parse().ok()).unwrap_or(SPLITS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_notices_splits_and_merges() {
    let mut random = Random::from_environment();
    let world = Arc::new(World::open().await);
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        let mut writer = Writer::new(world.clone(), Random::new(random.number()), number);
        let (stop, written) = (stop.clone(), written.clone());
        writers.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let before = writer.writes;
                writer.work().await;
                written.fetch_add(writer.writes - before, Ordering::Relaxed);
            }
            writer
        }));
    }
    let following = {
        let (world, stop) = (world.clone(), stop.clone());
        tokio::spawn(async move {
            let mut follower = Follower::new(world);
            while !stop.load(Ordering::Relaxed) {
                follower.read().await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            follower
        })
    };
    let (mut splits_done, mut merges_done) = (0, 0);
    let is_enough = |splits_done, merges_done| {
        splits_done >= splits() && merges_done > 0 && written.load(Ordering::Relaxed) > WRITES_MIN
    };
    while !is_enough(splits_done, merges_done) {
        assert!(splits_done < 20 * splits(), "only {} writes", written.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(random.below(30) as u64)).await;
        let ranges = world.ranges();
        if ranges.len() > 6 || ranges.len() > 2 && random.one_in(4) {
            let place = random.below(ranges.len() - 1);
            world.merge(ranges[place].id, ranges[place + 1].id).await;
            merges_done += 1;
        } else {
            world.split(random.pick(&ranges).id, 2 + random.below(3) as u32).await;
            splits_done += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut ended = Vec::new();
    for writer in writers {
        ended.push(writer.await.expect("no writer panics"));
    }
    let mut follower = following.await.expect("the follower does not panic");
    follower.read_to_the_end().await;
    let (mut writes, mut items) = (0, 0);
    for writer in ended {
        writes += writer.writes;
        items += writer.check(&follower).await;
    }
    world.check_counts(items).await;
    world.verify();
    println!(
        "{splits_done} splits, {merges_done} merges, {writes} writes, {items} items, {} changes",
        follower.seen
    );
    assert!(merges_done > 0 && writes > WRITES_MIN, "{merges_done} merges, {writes} writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn split_points_balance_bytes() {
    let world = World::open().await;
    for number in 0..400 {
        // All large items lie in the first eighth of the key space.
        world.put(number, if world.hash_part(number, 8) == 0 { 20_000 } else { 10 }).await;
    }
    let range = world.ranges()[0].id;
    world.split(range, 4).await;
    let bytes = world.bytes();
    let mean = bytes.iter().sum::<u64>() / bytes.len() as u64;
    assert_eq!(bytes.len(), 4);
    assert!(bytes.iter().all(|bytes| bytes.abs_diff(mean) < mean / 4), "{bytes:?}");
    world.verify();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_split_or_merged_is_so_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::on_disk(folder.path()).await;
    for number in 0..200 {
        world.put(number, 100).await;
    }
    world.split(world.ranges()[0].id, 3).await;
    let first = world.ranges()[0].clone();
    world.merge(first.id, world.ranges()[1].id).await;
    for number in 100..300 {
        world.put(number, 200).await;
    }
    let before: Vec<_> =
        world.ranges().iter().map(|range| (range.id, range.parents.clone(), range.lsn)).collect();
    assert_eq!(before.len(), 2);
    world.verify();
    world.close().await;
    let world = World::on_disk(folder.path()).await;
    let after: Vec<_> =
        world.ranges().iter().map(|range| (range.id, range.parents.clone(), range.lsn)).collect();
    assert_eq!(before, after);
    let container = world.now();
    let gone = container.gone_range(first.id).expect("clients may still name it");
    assert_eq!((&gone.range.min, &gone.range.max), (&first.range.min, &first.range.max));
    world.check_counts(300).await;
    world.verify();
    world.put(7, 300).await;
    world.split(world.ranges()[0].id, 2).await;
    world.check_counts(300).await;
    world.verify();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_group_of_large_items_has_no_room_for_comes_next() {
    let world = Arc::new(World::open().await);
    let writers = (0..12).map(|number| {
        let world = world.clone();
        tokio::spawn(async move { world.put(number, 1_000_000).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("every write is answered");
    }
    world.check_counts(12).await;
    world.verify();
}
