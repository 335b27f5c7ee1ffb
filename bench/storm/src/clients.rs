//! Clients that each wait for their write, and the one committer that merges what has queued up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use orrery_store::engine::{Batch, Engine, Keyspace};

use crate::histogram::Histogram;
use crate::process;
use crate::workload::{self, Random};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Insert,
    Update,
}

#[derive(Clone, Copy)]
pub struct Plan {
    pub kind: Kind,
    pub clients: u64,
    pub seconds: u64,
    /// Stop after this many writes.
    pub writes: u64,
    /// Writes a second over all clients; 0 lets them go as fast as they can.
    pub rate: u64,
    /// Acknowledge before the disk has it.
    pub relaxed: bool,
    /// Items and log sequence numbers below these exist.
    pub items: u64,
    pub lsn: u64,
    /// Print each acknowledged log sequence number, for the process that will kill us.
    pub announce: bool,
}

pub struct Outcome {
    pub latency: Histogram,
    pub reads: Histogram,
    pub groups: u64,
    pub seconds: f64,
    /// Seconds of processor time, and bytes to disk.
    pub processor: f64,
    pub written: u64,
    /// The longest times between two acknowledged groups: milliseconds, and when it was.
    pub stalls: Vec<(f64, f64)>,
    pub items: u64,
    pub lsn: u64,
}

struct Request {
    batch: Batch,
    lsn: u64,
    done: SyncSender<()>,
}

struct Shared {
    engine: Arc<Engine>,
    plan: Plan,
    start: Instant,
    items: AtomicU64,
    lsn: AtomicU64,
    issued: AtomicU64,
    stop: AtomicBool,
}

/// Runs one phase of the storm to its end.
pub fn run(engine: &Arc<Engine>, plan: Plan) -> Outcome {
    let shared = Arc::new(Shared {
        engine: Arc::clone(engine),
        plan,
        start: Instant::now(),
        items: AtomicU64::new(plan.items),
        lsn: AtomicU64::new(plan.lsn),
        issued: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    let (processor, written) = (process::processor(), process::written());
    let (requests, queue) = channel();
    let reader = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || read(&shared))
    };
    let clients: Vec<_> = (0..plan.clients)
        .map(|client| {
            let (shared, requests) = (Arc::clone(&shared), requests.clone());
            thread::spawn(move || client_loop(&shared, client, &requests))
        })
        .collect();
    drop(requests);
    let (groups, stalls) = commit_loop(&shared, &queue);
    let mut latency = Histogram::default();
    for client in clients {
        latency.merge(&client.join().expect("a client ends"));
    }
    shared.stop.store(true, Ordering::Relaxed);
    Outcome {
        latency,
        reads: reader.join().expect("the reader ends"),
        groups,
        seconds: shared.start.elapsed().as_secs_f64(),
        processor: process::processor() - processor,
        written: process::written() - written,
        stalls,
        items: shared.items.load(Ordering::Relaxed),
        lsn: shared.lsn.load(Ordering::Relaxed),
    }
}

fn client_loop(shared: &Shared, client: u64, requests: &Sender<Request>) -> Histogram {
    let plan = &shared.plan;
    let mut random = Random(client ^ shared.plan.lsn);
    let mut latency = Histogram::default();
    let (done, acknowledged) = sync_channel(1);
    loop {
        let issued = shared.issued.fetch_add(1, Ordering::Relaxed);
        if issued >= plan.writes || shared.start.elapsed().as_secs() >= plan.seconds {
            return latency;
        }
        if plan.rate > 0 {
            let due = Duration::from_secs_f64(issued as f64 / plan.rate as f64);
            thread::sleep(due.saturating_sub(shared.start.elapsed()));
        }
        let began = Instant::now();
        let lsn = shared.lsn.fetch_add(1, Ordering::Relaxed);
        let batch = match plan.kind {
            Kind::Insert => {
                let item = shared.items.fetch_add(1, Ordering::Relaxed);
                workload::insert(&mut random, item, lsn)
            }
            Kind::Update => {
                // Each client has items of its own, so that two updates of one item never race.
                let item = random.next() % (plan.items / plan.clients) * plan.clients + client;
                let snapshot = shared.engine.snapshot();
                match workload::update(&snapshot, &mut random, item, lsn) {
                    Some(batch) => batch,
                    None => continue,
                }
            }
        };
        let request = Request { batch, lsn, done: done.clone() };
        requests.send(request).expect("the committer listens");
        acknowledged.recv().expect("the committer answers");
        latency.record(began.elapsed());
    }
}

fn commit_loop(shared: &Shared, queue: &Receiver<Request>) -> (u64, Vec<(f64, f64)>) {
    let mut groups = 0;
    let mut stalls: Vec<(f64, f64)> = Vec::new();
    let mut last_ack: Option<Instant> = None;
    while let Ok(first) = queue.recv() {
        // An idle queue is not a stall; waiting for the engine is.
        let began = Instant::now();
        let mut batch = first.batch;
        let mut waiting = vec![(first.lsn, first.done)];
        while let Ok(next) = queue.try_recv() {
            batch.merge(next.batch);
            waiting.push((next.lsn, next.done));
        }
        shared.engine.commit(batch).expect("a commit succeeds");
        if !shared.plan.relaxed {
            shared.engine.persist().expect("a sync succeeds");
        }
        let now = Instant::now();
        if shared.plan.announce {
            let lsns: Vec<_> = waiting.iter().map(|(lsn, _)| lsn.to_string()).collect();
            println!("ack {} .", lsns.join(" "));
        }
        for (_, done) in waiting {
            done.send(()).expect("the client waits");
        }
        groups += 1;
        let since = match last_ack {
            Some(last) if shared.plan.rate == 0 => last,
            _ => began,
        };
        let gap = now.duration_since(since).as_secs_f64() * 1000.0;
        last_ack = Some(now);
        if gap > 20.0 {
            stalls.push((gap, shared.start.elapsed().as_secs_f64()));
        }
    }
    stalls.sort_by(|a, b| b.0.total_cmp(&a.0));
    (groups, stalls)
}

/// One paced reader, to see what a point read waits for while the storm goes on.
fn read(shared: &Shared) -> Histogram {
    let mut random = Random(42);
    let mut reads = Histogram::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let items = shared.items.load(Ordering::Relaxed).max(1);
        let key = workload::item_key(random.next() % items);
        let began = Instant::now();
        let snapshot = shared.engine.snapshot();
        let found = snapshot.get(Keyspace::Item, &key);
        found.expect("a point read succeeds");
        reads.record(began.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    reads
}
