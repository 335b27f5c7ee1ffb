use orrery_store::engine::Keyspace;

use super::*;

const READABLE: &str = "memory is readable";

/// A core with the time that its driver tells it.
struct Bench {
    core: Core,
    snapshots: Arc<Snapshots>,
    now: Instant,
}

/// What became of a batch so far.
struct Told {
    applied: oneshot::Receiver<Result<(), CommitError>>,
    durable: oneshot::Receiver<()>,
}

impl Told {
    fn is_applied(&mut self) -> bool {
        self.applied.try_recv() == Ok(Ok(()))
    }

    fn is_durable(&mut self) -> bool {
        self.durable.try_recv() == Ok(())
    }
}

impl Bench {
    fn new(durability: Durability) -> Bench {
        let engine = Arc::new(Engine::in_memory());
        let (snapshots, now) = (Arc::new(Snapshots::of(&engine)), Instant::now());
        let core = Core::new(engine, snapshots.clone(), Arc::default(), durability, now);
        Bench { core, snapshots, now }
    }

    /// A batch of a partition comes.
    fn comes(&mut self, from: u32, number: u32) -> (Next, Told) {
        let mut batch = Batch::new();
        batch.put(Keyspace::Meta, number.to_be_bytes().to_vec(), vec![1]);
        let (tells_applied, applied) = oneshot::channel();
        let (tells_durable, durable) = oneshot::channel();
        let waiting = Waiting { applied: tells_applied, durable: tells_durable };
        let next = self.core.step(Event::Came(Job { from: Some(from), batch, waiting }), self.now);
        (next, Told { applied, durable })
    }

    fn step(&mut self, event: Event) -> Next {
        self.core.step(event, self.now)
    }

    fn shows(&self, number: u32) -> (bool, bool) {
        let holds =
            |snapshot: &Snapshot| snapshot.contains(Keyspace::Meta, &number.to_be_bytes()).expect(READABLE);
        (holds(&self.snapshots.applied.load()), holds(&self.snapshots.published.load()))
    }

    /// One group from beginning to end.
    fn round(&mut self, from: &[u32]) {
        from.iter().for_each(|from| drop(self.comes(*from, 1_000)));
        assert_eq!(self.step(Event::Quiet), Next::Sync);
        assert_eq!(self.step(Event::Synced), Next::Wait(IDLE));
    }
}

#[test]
fn writers_are_told_before_the_sync_and_readers_see_it_afterwards() {
    let mut bench = Bench::new(Durability::Durable);
    let (next, mut told) = bench.comes(7, 1);
    assert_eq!(next, Next::Wait(Duration::ZERO), "nobody else has been writing");
    assert_eq!(bench.shows(1), (false, false));
    assert_eq!(bench.step(Event::Quiet), Next::Sync);
    assert!(told.is_applied() && !told.is_durable());
    assert_eq!(bench.shows(1), (true, false));
    assert_eq!(bench.step(Event::Synced), Next::Wait(IDLE));
    assert!(told.is_durable());
    assert_eq!(bench.shows(1), (true, true));
}

#[test]
fn a_group_waits_for_those_who_wrote_lately_and_no_longer_than_it_may() {
    let mut bench = Bench::new(Durability::Durable);
    bench.round(&[7, 8]);
    assert_eq!(bench.comes(7, 1).0, Next::Wait(GATHER_MAX));
    bench.now += GATHER_MAX / 3;
    assert_eq!(
        bench.comes(9, 2).0,
        Next::Wait(GATHER_MAX - GATHER_MAX / 3),
        "time passes for the whole group"
    );
    assert_eq!(bench.comes(8, 3).0, Next::Wait(Duration::ZERO), "all are there");
    assert_eq!(bench.step(Event::Quiet), Next::Sync);
    assert_eq!(bench.step(Event::Synced), Next::Wait(IDLE));
    // Two groups without one of them, and it is not waited for any more.
    bench.round(&[7, 9]);
    bench.round(&[7, 9]);
    bench.comes(7, 4);
    assert_eq!(bench.comes(9, 5).0, Next::Wait(Duration::ZERO));
}

#[test]
fn relaxed_writes_are_answered_at_once_and_synced_in_time() {
    let mut bench = Bench::new(Durability::Relaxed);
    let (next, mut told) = bench.comes(7, 1);
    assert_eq!(next, Next::Wait(Duration::ZERO));
    assert_eq!(bench.step(Event::Quiet), Next::Wait(RELAXED_SYNC_INTERVAL));
    assert!(told.is_applied() && told.is_durable());
    assert_eq!(bench.shows(1), (true, true));
    bench.now += RELAXED_SYNC_INTERVAL;
    assert_eq!(bench.step(Event::Quiet), Next::Sync);
    assert_eq!(bench.step(Event::Synced), Next::Wait(RELAXED_SYNC_INTERVAL));
    bench.now += RELAXED_SYNC_INTERVAL;
    assert_eq!(bench.step(Event::Quiet), Next::Wait(RELAXED_SYNC_INTERVAL), "nothing was written since");
}

#[test]
fn what_has_come_is_written_before_the_end() {
    let mut bench = Bench::new(Durability::Durable);
    let (_, mut told) = bench.comes(7, 1);
    assert_eq!(bench.step(Event::Closed), Next::Sync);
    assert_eq!(bench.step(Event::Synced), Next::Wait(IDLE));
    assert!(told.is_applied() && told.is_durable());
    assert_eq!(bench.step(Event::Closed), Next::End);
}
