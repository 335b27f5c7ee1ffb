//! The worst mix of clients, in control groups of several sizes, and a healthy client beside it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use orrery_testkit::{Client, Server};
use serde_json::json;

use crate::Worst;
use crate::attackers::{self, Answers, Attack, KEY, QUERIES};
use crate::gauge::{Figures, MIB, used};
use crate::group::Group;
use crate::healthy::{self, Report};
use crate::site;
use crate::writers;

/// Clients of each kind.
const QUERIERS: usize = QUERIES.len() * 4;
const SCRIPTERS: usize = 6;
const IMPORTERS: usize = 8;
const WRITERS: usize = 4;
const HOLDERS: usize = 200;
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub fn run(worst: &Worst) -> anyhow::Result<bool> {
    let mut is_good = true;
    for limit in &worst.limits_mib {
        is_good &= round(worst, *limit)?;
    }
    Ok(is_good)
}

/// What happened under one limit.
struct Outcome {
    highest: u64,
    is_alive: bool,
    healthy: Report,
}

fn round(worst: &Worst, limit_mib: u64) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let group = Group::new("orrery-memory", limit_mib * MIB)?;
    let options: Vec<&str> = worst.options.iter().map(String::as_str).collect();
    let mut server = Server::start_as(group.command(&worst.server)?, folder.path(), &options);
    furnish(server.port())?;
    println!(
        "limit {limit_mib} MiB, budget {} MiB",
        Figures::of(server.port()).mib("orrery_memory_budget_bytes")
    );
    let (stop, answers) = (AtomicBool::new(false), Answers::default());
    let mut outcome = attack(worst, &mut server, &stop, &answers);
    let kills = group.kills();
    println!(
        "limit {limit_mib} MiB: highest anonymous {} MiB, group {} MiB with pages of files, killed {kills}",
        outcome.highest / MIB,
        group.highest_bytes() / MIB
    );
    let healthy = &mut outcome.healthy;
    let [half, most, all] = [0.5, 0.99, 1.0].map(|part| healthy.percentile_ms(part));
    println!(
        "  healthy: {} requests, {} sent again, {} errors; p50 {half:.1} ms, p99 {most:.1} ms, longest {all:.0} ms",
        healthy.requests,
        healthy.retried,
        healthy.errors.len(),
    );
    healthy.errors.iter().take(5).for_each(|error| println!("  healthy: {error}"));
    println!("  others: {}", answers.line());
    let is_good = outcome.is_alive && kills == 0 && outcome.healthy.errors.is_empty();
    if outcome.is_alive {
        server.stop();
    }
    Ok(is_good)
}

fn attack(worst: &Worst, server: &mut Server, stop: &AtomicBool, answers: &Answers) -> Outcome {
    let port = server.port();
    let part = |kind: Attack, count: usize| match worst.without.contains(&kind) {
        true => 0,
        false => (count * worst.clients_percent / 100).max(1),
    };
    let highest = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..QUERIERS * worst.clients_percent.max(1) / 100 {
            if part(QUERIES[number % QUERIES.len()].0, 1) > 0 {
                scope.spawn(move || attackers::query(port, number, stop, answers));
            }
        }
        for _ in 0..part(Attack::Scripts, SCRIPTERS) {
            scope.spawn(move || attackers::script(port, stop, answers));
        }
        for number in 0..part(Attack::Imports, IMPORTERS) {
            scope.spawn(move || attackers::import(port, number, stop, answers));
        }
        for kind in writers::KINDS {
            for number in 0..part(kind, WRITERS) {
                scope.spawn(move || writers::write(kind, port, number, stop, answers));
            }
        }
        for kind in [Attack::Uploads, Attack::Readers] {
            let count = part(kind, HOLDERS);
            scope.spawn(move || attackers::hold(port, count, kind == Attack::Uploads, stop));
        }
        let healthy = scope.spawn(|| healthy::run(port, stop));
        let is_alive = watch(worst.minutes, server, &highest);
        stop.store(true, Ordering::Relaxed);
        let healthy = healthy.join().expect("the healthy client does not panic");
        Outcome { highest: highest.load(Ordering::Relaxed), is_alive, healthy }
    })
}

/// Looks at the server until the time is over, and says whether it lived to see it.
fn watch(minutes: u64, server: &mut Server, highest: &AtomicU64) -> bool {
    let began = Instant::now();
    let mut minute = 1;
    while began.elapsed() < Duration::from_secs(60 * minutes) {
        if !server.is_alive() {
            println!("the server ended after {:?}", began.elapsed());
            return false;
        }
        let used = used(server.id());
        highest.fetch_max(used.anonymous, Ordering::Relaxed);
        if began.elapsed() >= Duration::from_secs(60 * minute) {
            println!(
                "  minute {minute}: resident {} MiB, anonymous {} MiB, highest {} MiB",
                used.resident / MIB,
                used.anonymous / MIB,
                highest.load(Ordering::Relaxed) / MIB
            );
            minute += 1;
        }
        thread::sleep(LOOK_EVERY);
    }
    true
}

/// Items with much to join and to group by, a function and a procedure that hold memory.
fn furnish(port: u16) -> anyhow::Result<()> {
    let mut client = Client::new(port);
    site::create(&mut client, "/dbs", &[], &json!({"id": "db"}))?;
    for (name, throughput) in [("wide", 10_000), ("imports", 10_000), ("healthy", 10_000)] {
        site::container(&mut client, name, throughput)?;
    }
    writers::furnish(&mut client)?;
    let function = json!({"id": "wide", "body": "function (c) { let all = []; for (let i = 0; i < 200; i++) { \
        all.push(c.text + i); } return all.join(' ').length; }"});
    site::create(&mut client, "/dbs/db/colls/wide/udfs", &[], &function)?;
    let procedure = json!({"id": "hold", "body": "function () { let all = []; for (let i = 0; i < 100; i++) { \
        all.push(new Array(5000).fill(i)); } getContext().getResponse().setBody(all.length); }"});
    site::create(&mut client, "/dbs/db/colls/wide/sprocs", &[], &procedure)?;
    let tags: Vec<_> = (0..40).map(|tag| json!({"name": format!("tag-{tag}"), "weight": tag})).collect();
    for number in 0..300 {
        let item = json!({"id": number.to_string(), "key": KEY, "number": number * 7919 % 300, "tags": tags,
            "text": format!("{number} ").repeat(300), "unindexed": {"deep": number % 17}});
        site::load(&mut client, "wide", KEY, &item)?;
    }
    for number in 0..40 {
        let item = json!({"id": format!("page-{number}"), "key": KEY, "text": "p".repeat(100_000)});
        site::load(&mut client, "wide", KEY, &item)?;
    }
    Ok(())
}
