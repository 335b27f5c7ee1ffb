//! The Table API: in turns with Azurite and with our own NoSQL API, and what its port costs when nobody uses it.

mod azurite;
mod idle;
mod requests;

use anyhow::{Result, ensure};

use crate::load::{self, Plan, Source};
use crate::report::{Line, Report, Wanted};
use crate::requests::Reads;
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{self, Ground, Site};
use azurite::Azurite;
use requests::{Batches, Inserts, Table};

const SECTION: &str = "Tables, durable, 64 clients, entities of 1 KiB without metadata";
const CLIENTS: usize = 64;
/// Entities that reads and scans find, 100 to a partition.
const LOADED: u64 = 10_000;
/// How many times the peer each load has to be.
const PEER: f64 = 10.0;
/// The share of our own NoSQL reads that reads of entities have to reach.
const OWN_READS: f64 = 0.9;

/// The kinds of load, in the order in which they run.
const LOADS: [&str; 4] =
    ["point reads", "scans of partitions of 100 entities", "inserts", "batches of 100 inserts"];

/// A server under load.
struct Side {
    process: u32,
    table: Table,
    /// The number of the next entity that nobody has inserted.
    next: u64,
}

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start_with(&["--table-port", "0"])?;
    let mut ours = Side::new(site.id(), site.table_port()?)?;
    let peer =
        azurite::find(settings.azurite.as_deref()).map(|program| Azurite::start(&program)).transpose()?;
    let mut theirs = peer.as_ref().map(|peer| Side::new(peer.id(), peer.port())).transpose()?;
    site.rest();
    for (place, name) in LOADS.into_iter().enumerate() {
        let (mut our_rounds, mut their_rounds) = (Rounds::default(), Rounds::default());
        for _ in 0..settings.rounds() {
            if let Some(theirs) = &mut theirs {
                theirs.measure(place, settings, &mut their_rounds)?;
            }
            ours.measure(place, settings, &mut our_rounds)?;
        }
        let mut line = our_rounds.line(SECTION, format!("orrery, {name}"));
        if theirs.is_some() {
            report.add(their_rounds.line(SECTION, format!("Azurite, {name}")));
            line = line.ratio("Azurite", our_rounds.ratio_to(&their_rounds), Wanted::AtLeast(PEER));
        } else {
            line = line.note("Azurite is not there: npm install --prefix .cache/azurite azurite@3.35.0");
        }
        report.add(line);
    }
    drop(peer);
    beside_items(settings, &site, &ours, report)?;
    site.stop();
    idle::run(settings, report)
}

/// Point reads of entities in turns with those of items of the same size.
fn beside_items(settings: &Settings, site: &Site, ours: &Side, report: &mut Report) -> Result<()> {
    site.create_database()?;
    let container = site.create_container("items", 1)?;
    site.load(&container, 0, LOADED)?;
    site.rest();
    let of_items = Reads::of_loaded(&container, LOADED, LOADED);
    let of_entities = ours.table.reads(LOADED);
    let (mut items, mut entities) = (Rounds::default(), Rounds::default());
    for _ in 0..settings.rounds() {
        let plan = Plan { address: container.address, connections: CLIENTS, time: settings.round() };
        items.add(&site.measure(plan, of_items.clone())?);
        let plan = Plan { address: ours.table.address, ..plan };
        entities.add(&site.measure(plan, of_entities.clone())?);
    }
    report.add(items.line(SECTION, "orrery, point reads of items by NoSQL"));
    let line: Line = entities
        .line(SECTION, "orrery, point reads of entities")
        .ratio("our NoSQL reads", entities.ratio_to(&items), Wanted::AtLeast(OWN_READS))
        .ratio("our NoSQL reads, by processor", entities.processor_ratio_to(&items), None);
    report.add(line);
    Ok(())
}

impl Side {
    /// Makes the table and puts entities there.
    fn new(process: u32, port: u16) -> Result<Side> {
        let table = Table::create(port, "bench")?;
        let plan = Plan { address: table.address, connections: 4, time: std::time::Duration::from_secs(600) };
        load::run(plan, Batches::new(&table, 0, LOADED))?;
        let found = table.count_of_partition(7)?;
        ensure!(found == 100, "a partition of {found} entities");
        Ok(Side { process, table, next: LOADED })
    }

    fn measure(&mut self, load: usize, settings: &Settings, rounds: &mut Rounds) -> Result<()> {
        let (next, table) = (self.next, self.table.clone());
        let count = match load {
            0 => self.run(settings, rounds, table.reads(LOADED))?,
            1 => self.run(settings, rounds, table.scans(LOADED))?,
            2 => self.run(settings, rounds, Inserts::new(&table, next))?,
            _ => 100 * self.run(settings, rounds, Batches::new(&table, next, u64::MAX))?,
        };
        if load >= 2 {
            // Batches begin with a whole partition.
            self.next = (next + count).next_multiple_of(100);
        }
        Ok(())
    }

    fn run(&self, settings: &Settings, rounds: &mut Rounds, source: impl Source + 'static) -> Result<u64> {
        let plan = Plan { address: self.table.address, connections: CLIENTS, time: settings.round() };
        let measured = site::measure(self.process, plan, source)?;
        rounds.add(&measured);
        // One more for each client: what was sent last may have been done although nobody waited for the answer.
        Ok(measured.outcome.requests + CLIENTS as u64)
    }
}
