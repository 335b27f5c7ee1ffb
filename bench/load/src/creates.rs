//! Durable creates against the bare engine and PostgreSQL, in turns; point reads against PostgreSQL too.

use anyhow::Result;

use crate::engine::Bench;
use crate::item;
use crate::latency::median;
use crate::load::{Outcome, Plan};
use crate::postgres::{self, Postgres, Work};
use crate::report::{Line, Report, Wanted};
use crate::requests::{Container, Creates, Reads};
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{GROUPS, Ground, Measured, Site};

const SECTION: &str = "Durable creates, default indexing, 64 clients, 1 KiB items of 12 properties";
const CLIENTS: usize = 64;

/// One side's figures, round by round.
#[derive(Default)]
struct Sides {
    ours: Rounds,
    engine: Vec<f64>,
    evaluation_micros: Vec<f64>,
    group_sizes: Vec<f64>,
    peer: Rounds,
    reads: Rounds,
    peer_reads: Rounds,
}

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let bare = Ground::new(&settings.server)?;
    let site = ground.start()?;
    site.create_database()?;
    let container = site.create_container("creates", 1)?;
    let engine = Bench::open(bare.folder())?;
    let programs = postgres::find(settings.postgres.as_deref());
    let peer = programs.map(|programs| Postgres::start(&programs, CLIENTS)).transpose()?;
    let (mut sides, mut created, mut inserted) = (Sides::default(), 0, 0);
    for _ in 0..settings.rounds() {
        let count = create(settings, &site, &container, created, &mut sides)?;
        let group_size = sides.group_sizes.last().map_or(1, |size| size.round().max(1.0) as u64);
        let prepared = engine.prepare(created, count, group_size)?;
        sides.evaluation_micros.push(prepared.evaluation.as_secs_f64() * 1e6 / count as f64);
        sides.engine.push(engine.commit(prepared)?);
        created += count;
        if let Some(peer) = &peer {
            inserted += insert(settings, peer, inserted, &mut sides)?;
        }
    }
    for _ in 0..settings.rounds() {
        read(settings, &site, &container, created, &mut sides)?;
        if let Some(peer) = &peer {
            let outcome = peer.measure(Work::Select(inserted), settings.round())?;
            sides.peer_reads.add(&uncounted(outcome));
        }
    }
    engine.close()?;
    site.stop();
    show(report, sides, peer.is_some());
    Ok(())
}

fn create(
    settings: &Settings,
    site: &Site,
    container: &Container,
    first: u64,
    sides: &mut Sides,
) -> Result<u64> {
    let plan = Plan { address: container.address, connections: CLIENTS, time: settings.round() };
    let groups = site.metric(GROUPS)?;
    let measured = site.measure(plan, Creates::new(container, first, u64::MAX))?;
    let groups = site.metric(GROUPS)? - groups;
    let count = measured.outcome.requests;
    sides.group_sizes.push(count as f64 / groups.max(1.0));
    sides.ours.add(&measured);
    Ok(count)
}

fn insert(settings: &Settings, peer: &Postgres, first: u64, sides: &mut Sides) -> Result<u64> {
    let outcome = peer.measure(Work::Insert(first), settings.round())?;
    let count = outcome.requests;
    sides.peer.add(&uncounted(outcome));
    Ok(count)
}

fn read(
    settings: &Settings,
    site: &Site,
    container: &Container,
    created: u64,
    sides: &mut Sides,
) -> Result<()> {
    let plan = Plan { address: container.address, connections: CLIENTS, time: settings.round() };
    let chosen = (0..created.min(20_000)).map(|turn| item::created(item::mix(turn) % created));
    sides.reads.add(&site.measure(plan, Reads::new(container, chosen))?);
    Ok(())
}

/// PostgreSQL is many processes; their time is not added up.
fn uncounted(outcome: Outcome) -> Measured {
    Measured { outcome, server_micros: 0.0 }
}

fn show(report: &mut Report, mut sides: Sides, has_peer: bool) {
    let ratios: Vec<f64> =
        sides.ours.rates.iter().zip(&sides.engine).map(|(ours, bare)| ours / bare).collect();
    report.add(
        Line::new(SECTION, "the engine alone, same batches, one thread")
            .figure("/s", median(&sides.engine))
            .figure("to a group", median(&sides.group_sizes)),
    );
    report.add(
        Line::new(SECTION, "the store's evaluation of one create")
            .figure("us", median(&sides.evaluation_micros)),
    );
    if !has_peer {
        report.add(sides.ours.line(SECTION, "orrery").ratio(
            "the engine alone",
            median(&ratios),
            Wanted::AtLeast(0.5),
        ));
        report.add(
            Line::new(SECTION, "PostgreSQL")
                .note("not run: it is not installed (`apt-get install postgresql`, then run again)"),
        );
        return;
    }
    report.add(sides.peer.line(SECTION, "PostgreSQL, jsonb with a GIN index"));
    let engine_to_peer: Vec<f64> =
        sides.engine.iter().zip(&sides.peer.rates).map(|(bare, peer)| bare / peer).collect();
    let to_peer = sides.ours.ratio_to(&sides.peer);
    report.add(
        sides
            .ours
            .line(SECTION, "orrery")
            .ratio("the engine alone", median(&ratios), Wanted::AtLeast(0.5))
            .ratio("PostgreSQL", to_peer, Wanted::AtLeast(1.0)),
    );
    report.add(Line::new(SECTION, "the engine alone").ratio(
        "PostgreSQL",
        median(&engine_to_peer),
        Wanted::AtLeast(1.0),
    ));
    report.add(sides.peer_reads.line(SECTION, "point reads: PostgreSQL, by primary key"));
    let reads = sides.reads.ratio_to(&sides.peer_reads);
    report.add(sides.reads.line(SECTION, "point reads: orrery").ratio(
        "PostgreSQL",
        reads,
        Wanted::AtLeast(1.0),
    ));
}
