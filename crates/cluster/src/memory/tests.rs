use std::time::Duration;

use orrery_store::limits::{MEMORY_BASE_BYTES, MEMORY_BYTES_MIN, MEMORY_WAITING_MAX};

use super::*;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// A budget in which queries have so many bytes.
fn memory(queries: u64) -> Memory {
    Memory::new(MemoryShares { queries, ..MemoryShares::default() })
}

fn used(memory: &Memory) -> u64 {
    memory.usage()[Consumer::Queries as usize].used_bytes
}

#[test]
fn shares_never_add_up_to_more_than_the_budget() {
    for budget in [0, MEMORY_BYTES_MIN, 192 << 20, 384 << 20, 768 << 20, 4 << 30, 64 << 30, 1 << 40] {
        let shares = MemoryShares::of(budget);
        let sum: u64 = Consumer::ALL.iter().map(|consumer| shares.of_consumer(*consumer)).sum();
        let sum = sum + shares.merges;
        assert!(MEMORY_BASE_BYTES + sum <= budget.max(MEMORY_BYTES_MIN), "{shares:?}");
        assert!(Consumer::ALL.iter().all(|consumer| shares.of_consumer(*consumer) >= 4 << 20), "{shares:?}");
    }
}

#[test]
fn a_consumer_never_holds_more_than_its_share_and_leaves_the_others_alone() {
    let memory = memory(1_000);
    let all = memory.try_take(Consumer::Queries, 1_000).expect("the whole share");
    assert!(memory.try_take(Consumer::Queries, 1).is_none());
    let other = memory.try_take(Consumer::Bodies, 1_000);
    assert!(other.is_some());
    drop(all);
    assert_eq!(used(&memory), 0);
    assert!(memory.try_take(Consumer::Queries, 1).is_some());
}

#[test]
fn what_grows_leaves_room_for_newcomers() {
    let memory = memory(1_000);
    let mut hold = memory.try_take(Consumer::Queries, 100).expect("little");
    assert!(hold.try_grow(650));
    assert!(!hold.try_grow(1), "a quarter is kept for newcomers");
    let newcomer = memory.try_take(Consumer::Queries, 250).expect("what was kept");
    assert_eq!((hold.bytes(), newcomer.bytes(), used(&memory)), (750, 250, 1_000));
    hold.shrink_to(50);
    assert_eq!(used(&memory), 300);
    let part = hold.split_off(20);
    drop(hold);
    assert_eq!(used(&memory), 270);
    drop((part, newcomer));
    assert_eq!(used(&memory), 0);
}

#[tokio::test]
async fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    let memory = memory(100);
    let first = memory.try_take(Consumer::Queries, 100).expect("all");
    let waits = |bytes| {
        let memory = memory.clone();
        tokio::spawn(async move { memory.take(Consumer::Queries, bytes, LONG).await })
    };
    let large = waits(90);
    while memory.usage()[Consumer::Queries as usize].waiting < 1 {
        tokio::task::yield_now().await;
    }
    let small = waits(20);
    while memory.usage()[Consumer::Queries as usize].waiting < 2 {
        tokio::task::yield_now().await;
    }
    let mut first = first;
    first.shrink_to(50);
    assert!(memory.try_take(Consumer::Queries, 1).is_none(), "nobody passes the queue");
    tokio::task::yield_now().await;
    assert!(!small.is_finished(), "the small one came later");
    drop(first);
    let large = large.await.expect("it runs").expect("memory");
    assert_eq!(large.bytes(), 90);
    drop(large);
    assert_eq!(small.await.expect("it runs").expect("memory").bytes(), 20);
    assert_eq!(used(&memory), 0);
}

#[tokio::test]
async fn patience_ends_and_those_behind_are_served() {
    let memory = memory(100);
    let half = memory.try_take(Consumer::Queries, 50).expect("half");
    let behind = {
        let memory = memory.clone();
        async move {
            while memory.usage()[Consumer::Queries as usize].waiting == 0 {
                tokio::task::yield_now().await;
            }
            memory.take(Consumer::Queries, 10, LONG).await.is_some()
        }
    };
    let (impatient, behind) = tokio::join!(memory.take(Consumer::Queries, 100, SHORT), behind);
    assert!(impatient.is_none());
    assert!(behind, "it fits as soon as the one in front has left");
    drop(half);
    assert_eq!(used(&memory), 0);
}

#[tokio::test]
async fn a_waiter_that_is_dropped_takes_nothing_along() {
    let memory = memory(100);
    let all = memory.try_take(Consumer::Queries, 100).expect("all");
    for _ in 0..10 {
        let waits = memory.take(Consumer::Queries, 60, LONG);
        assert!(tokio::time::timeout(Duration::from_millis(1), waits).await.is_err());
    }
    drop(all);
    assert_eq!(used(&memory), 0);
    assert_eq!(memory.usage()[Consumer::Queries as usize].waiting, 0);
    assert!(memory.try_take(Consumer::Queries, 100).is_some());
}

#[tokio::test]
async fn the_queue_has_an_end_and_the_impossible_is_refused_at_once() {
    let memory = memory(100);
    assert!(memory.take(Consumer::Queries, 101, LONG).await.is_none());
    let all = memory.try_take(Consumer::Queries, 100).expect("all");
    let waiting: Vec<_> = (0..MEMORY_WAITING_MAX)
        .map(|_| {
            let memory = memory.clone();
            tokio::spawn(async move { memory.take(Consumer::Queries, 1, LONG).await.is_some() })
        })
        .collect();
    while memory.usage()[Consumer::Queries as usize].waiting < MEMORY_WAITING_MAX as u64 {
        tokio::task::yield_now().await;
    }
    assert!(memory.take(Consumer::Queries, 1, LONG).await.is_none(), "the queue is full");
    drop(all);
    for waiter in waiting {
        assert!(waiter.await.expect("it runs"));
    }
    assert_eq!(used(&memory), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_contention_the_share_holds_and_nobody_is_forgotten() {
    let memory = memory(1_000);
    let tasks: Vec<_> = (0..16u64)
        .map(|task| {
            let memory = memory.clone();
            tokio::spawn(async move {
                for round in 0..500 {
                    let bytes = 1 + (task * 7 + round * 13) % 600;
                    let hold = memory.take(Consumer::Queries, bytes, LONG).await.expect("its turn comes");
                    assert!(used(&memory) <= 1_000);
                    if round % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                    drop(hold);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no task fails");
    }
    assert_eq!(used(&memory), 0);
    assert!(memory.usage()[Consumer::Queries as usize].highest_bytes <= 1_000);
}
