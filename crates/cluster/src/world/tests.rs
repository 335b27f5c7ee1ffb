use super::*;

const DAY: Duration = Duration::from_secs(20_000 * 86_400);

#[test]
fn both_clocks_stand_still_until_they_are_moved() {
    let (world, hand) = World::by_hand(DAY, 1);
    let (then, now) = (world.monotonic(), world.now());
    assert_eq!((world.since(then), world.now()), (Duration::ZERO, now));
    hand.advance(Duration::from_millis(1_500));
    assert_eq!(world.since(then), Duration::from_millis(1_500));
    assert_eq!(world.now() - now, TICKS_PER_SECOND * 3 / 2);
    assert!(world.is_past(then + Duration::from_secs(1)) && !world.is_past(then + Duration::from_secs(2)));
    assert_eq!(world.until(then + Duration::from_secs(2)), Duration::from_millis(500));
    assert_eq!(world.until(then), Duration::ZERO);
}

#[tokio::test]
async fn sleepers_wake_when_their_time_has_come() {
    let (world, hand) = World::by_hand(DAY, 1);
    let sleeps = |seconds| {
        let world = world.clone();
        tokio::spawn(async move { world.sleep(Duration::from_secs(seconds)).await })
    };
    let (soon, late) = (sleeps(1), sleeps(3));
    while hand.sleepers() < 2 {
        tokio::task::yield_now().await;
    }
    hand.advance(Duration::from_millis(999));
    assert_eq!(hand.sleepers(), 2);
    hand.advance(Duration::from_millis(1));
    assert_eq!(hand.sleepers(), 1);
    soon.await.expect("it was woken");
    hand.advance(Duration::from_secs(2));
    late.await.expect("it was woken");
}

#[tokio::test]
async fn patience_ends_when_the_clock_says_so() {
    let (world, hand) = World::by_hand(DAY, 1);
    assert_eq!(world.timeout(Duration::ZERO, async { 7 }).await, Some(7), "what is there is not waited for");
    let waits = {
        let world = world.clone();
        tokio::spawn(async move { world.timeout(Duration::from_secs(5), std::future::pending::<()>()).await })
    };
    while hand.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    hand.advance(Duration::from_secs(5));
    assert_eq!(waits.await.expect("no task fails"), None);
    assert_eq!(hand.sleepers(), 0);
}

#[tokio::test]
async fn one_thread_is_enough_for_a_world_by_hand() {
    let (world, _) = World::by_hand(DAY, 1);
    assert_eq!(world.blocking(|| 7), 7);
}

#[test]
fn chance_is_its_seed() {
    let draws = |seed| {
        let (world, _) = World::by_hand(DAY, seed);
        [world.random(), world.random(), world.random()]
    };
    assert_eq!(draws(7), draws(7));
    assert_ne!(draws(7), draws(9));
}
