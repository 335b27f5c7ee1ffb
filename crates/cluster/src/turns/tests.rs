use std::sync::atomic::AtomicU64;

use super::*;

/// Works until it has let others go first so often.
fn works(rests: usize) {
    for _ in 0..rests {
        let begun = Instant::now();
        while begun.elapsed() < LONG_SLICE {
            std::hint::spin_loop();
        }
        rest();
    }
}

#[test]
fn a_line_goes_round_between_parties_and_lets_fresh_work_pass() {
    let mut line = Line::default();
    for (party, is_fresh, name) in [
        (1, false, "1 old a"),
        (1, true, "1 a"),
        (1, true, "1 b"),
        (2, true, "2 a"),
        (1, true, "1 c"),
        (1, true, "1 d"),
        (3, false, "3 old a"),
    ] {
        line.push(party, is_fresh, name);
    }
    let order: Vec<_> = std::iter::from_fn(|| line.next(|_, _| true)).map(|(_, name)| name).collect();
    assert_eq!(order, ["1 a", "2 a", "3 old a", "1 b", "1 c", "1 old a", "1 d"]);
    assert_eq!(line.len(), 0);
}

#[test]
fn short_work_that_is_not_is_given_up() {
    assert_eq!(shortly(|| at_length(false, || Ok(1)).unwrap()), Some(1));
    assert!(shortly(|| at_length(true, || Ok(1))).is_none());
    assert_eq!(at_length(true, || Ok(1)).unwrap(), 1, "on a thread of its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn never_more_compute_at_once_than_there_are_turns() {
    let turns = Turns::new(2, World::Real);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..12u64)
        .map(|n| {
            let (turns, now, most) = (turns.clone(), now.clone(), most.clone());
            tokio::spawn(async move {
                let started = turns.start(n % 3).await.unwrap();
                tokio::task::block_in_place(|| {
                    started.run(|| {
                        for _ in 0..20 {
                            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::hint::spin_loop();
                            now.fetch_sub(1, Ordering::SeqCst);
                            works(1);
                        }
                    });
                });
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
    let state = turns.0.state.lock();
    assert_eq!((state.turns, state.starts.all, state.seats.len(), state.to_start.len()), (0, 0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_party_that_starts_all_it_can_leaves_room_for_others() {
    let turns = Turns::new(1, World::Real);
    let mut held = Vec::new();
    for _ in 0..LONG_STARTED_MAX / 2 {
        held.push(turns.start(1).await.unwrap());
    }
    let waits = tokio::time::timeout(Duration::from_millis(20), turns.start(1)).await;
    assert!(waits.is_err(), "one party has half of all");
    let other = tokio::time::timeout(Duration::from_secs(5), turns.start(2)).await;
    assert!(other.expect("it need not wait").is_ok());
    held.pop();
    let again = tokio::time::timeout(Duration::from_secs(5), turns.start(1)).await;
    assert!(again.expect("the one that went away is not waited for").is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_line_to_start_has_an_end() {
    let turns = Turns::new(1, World::Real);
    let mut held = Vec::new();
    for _ in 0..LONG_STARTED_MAX / 2 {
        held.push(turns.start(1).await.unwrap());
    }
    let waiting: Vec<_> = (0..LONG_WAITING_MAX)
        .map(|_| {
            let turns = turns.clone();
            tokio::spawn(async move { turns.start(1).await.is_ok() })
        })
        .collect();
    while turns.0.state.lock().to_start.len() < LONG_WAITING_MAX {
        tokio::task::yield_now().await;
    }
    let refused = turns.start(1).await.err().expect("one too many");
    assert!(matches!(refused.kind, ErrorKind::Overloaded));
    drop(held);
    for task in waiting {
        assert!(task.await.unwrap());
    }
    assert_eq!(turns.0.state.lock().starts.all, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn short_work_of_another_party_waits_for_a_slice_and_not_for_all_that_was_there_before() {
    let turns = Turns::new(1, World::Real);
    let slices = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let heavy: Vec<_> = (0..LONG_STARTED_MAX / 2)
        .map(|_| {
            let (turns, slices, stop) = (turns.clone(), slices.clone(), stop.clone());
            std::thread::spawn(move || {
                let started = turns.started_too(1);
                started.run(|| {
                    while !stop.load(Ordering::Relaxed) {
                        works(1);
                        slices.fetch_add(1, Ordering::Relaxed);
                    }
                });
            })
        })
        .collect();
    while slices.load(Ordering::Relaxed) < 2 * LONG_STARTED_MAX as u64 {
        tokio::task::yield_now().await;
    }
    let started = turns.start(2).await.unwrap();
    for _ in 0..10 {
        let before = slices.load(Ordering::Relaxed);
        let after = tokio::task::block_in_place(|| started.run(|| slices.load(Ordering::Relaxed)));
        assert!(after - before <= 3, "others had {} slices meanwhile", after - before);
    }
    stop.store(true, Ordering::Relaxed);
    for thread in heavy {
        thread.join().unwrap();
    }
}
