//! Queries over 1 KiB items in four physical partitions, beside PostgreSQL with the same items and fitting indexes.
//!
//! A query over all partitions is sent as SDKs send it: one request to each range. So what is called one query
//! here costs four requests, and one statement of PostgreSQL. Light queries are measured with many clients at
//! every size, to show that they cost what they find and not what there is; heavy ones, which look at
//! everything, one at a time at the last size. A small container shows what a page costs in the order of creation.

mod heavy;
mod light;
mod small;

use anyhow::Result;

use crate::load::Plan;
use crate::machine::mib;
use crate::postgres::{self, Postgres};
use crate::report::{Line, Report, Wanted};
use crate::requests::{Container, Reads};
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{Ground, Site};
pub(crate) use heavy::HEAVY;
pub(crate) use light::Kind;
pub(crate) use small::{ITEMS as SMALL_ITEMS, LINE as SMALL_LINE, NAME as SMALL_NAME, Small};

pub(crate) const SECTION: &str = "Queries, 1 KiB items in 4 partitions, default indexing";
const GROWTH: &str = "Growth of indexed queries";
pub(crate) const PARTITIONS: u32 = 4;
const CLIENTS: usize = 16;
const SIZES: [u64; 2] = [10_000, 100_000];
/// Reads signed beforehand.
const READS: u64 = 100_000;
/// How much more than a point read a lookup by a property may cost, by time and by processor.
const LOOKUP_TO_READ: f64 = 3.0;
const LOOKUP_TO_READ_BY_PROCESSOR: f64 = 1.7;
/// How much more than a page of items the first page of an order may look at.
const LOADED_TO_PAGE: f64 = 1.5;

/// A container under test, with the ids of its ranges.
pub(crate) struct Target<'s> {
    pub site: &'s Site,
    pub container: Container,
    pub ranges: Vec<String>,
    pub items: u64,
}

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start()?;
    site.create_database()?;
    site.create_container("queries", PARTITIONS)?;
    site.stop();
    small::run(settings, report, &ground)?;
    let (mut items, mut growth) = (0, Growth::default());
    let sizes =
        SIZES.into_iter().filter(|size| *size < settings.query_items()).chain([settings.query_items()]);
    for size in sizes {
        fill(&ground, items, size, report)?;
        items = size;
        let site = ground.start()?;
        let target = Target::new(&site, items)?;
        let peer = match size == settings.query_items() {
            true => start_peer(settings, items, report)?,
            false => None,
        };
        growth.measure(settings, report, &target, peer.as_ref())?;
        if size == settings.query_items() {
            heavy::run(settings, report, &target, peer.as_ref())?;
        }
        site.stop();
    }
    Ok(())
}

impl<'s> Target<'s> {
    pub(crate) fn new(site: &'s Site, items: u64) -> Result<Target<'s>> {
        let container = site.container("queries");
        let ranges = site.range_ids("queries")?;
        Ok(Target { site, container, ranges, items })
    }

    fn plan(&self, settings: &Settings) -> Plan {
        Plan { address: self.container.address, connections: CLIENTS, time: settings.round() }
    }
}

fn fill(ground: &Ground, first: u64, end: u64, report: &mut Report) -> Result<()> {
    let site = ground.start_relaxed()?;
    let loaded = site.load(&site.container("queries"), first, end)?;
    site.stop();
    report.add(
        Line::new(SECTION, format!("loaded {first} to {end}, batches of 100"))
            .figure("/s", (end - first) as f64 / loaded.seconds)
            .figure("MiB on disk", mib(ground.bytes())),
    );
    Ok(())
}

fn start_peer(settings: &Settings, items: u64, report: &mut Report) -> Result<Option<Postgres>> {
    let Some(programs) = postgres::find(settings.postgres.as_deref()) else {
        report.add(
            Line::new(SECTION, "PostgreSQL")
                .note("not run: it is not installed (`apt-get install postgresql`, then run again)"),
        );
        return Ok(None);
    };
    let peer = Postgres::start_empty(&programs, CLIENTS)?;
    let seconds = peer.fill(items, light::PEER_INDEXES)?;
    report.add(Line::new(SECTION, "PostgreSQL: COPY, then its indexes").figure("/s", items as f64 / seconds));
    Ok(Some(peer))
}

/// What each kind of query cost at the smallest size: requests a second and processor time.
#[derive(Default)]
struct Growth {
    base: Option<(u64, Vec<(f64, f64)>)>,
}

impl Growth {
    fn measure(
        &mut self,
        settings: &Settings,
        report: &mut Report,
        target: &Target<'_>,
        peer: Option<&Postgres>,
    ) -> Result<()> {
        let mut reads = Rounds::default();
        let mut ours: Vec<Rounds> = Kind::ALL.iter().map(|_| Rounds::default()).collect();
        let mut theirs: Vec<Rounds> = Kind::ALL.iter().map(|_| Rounds::default()).collect();
        let points = Reads::of_loaded(&target.container, target.items, READS);
        warm_up(settings, target, peer)?;
        for _ in 0..settings.rounds() {
            reads.add(&target.site.measure(target.plan(settings), points.clone())?);
            for (place, kind) in Kind::ALL.into_iter().enumerate() {
                ours[place].add(&kind.measure(settings.round(), target, kind.source(target))?);
                if let Some(peer) = peer {
                    theirs[place].add(&kind.measure_peer(settings, peer, target.items)?);
                }
            }
        }
        let costs = ours.iter().map(|rounds| (rounds.rate(), rounds.server_micros())).collect();
        let base = self.base.get_or_insert((target.items, costs)).clone();
        if peer.is_some() || target.items == settings.query_items() {
            show(report, target, &mut reads, &mut ours, peer.map(|_| theirs.as_mut_slice()))?;
        }
        grown(report, target.items, &base, &ours);
        Ok(())
    }
}

/// A round of everything that does not count: both sides have just been loaded, and what is compared is what it
/// costs to run, not to start.
fn warm_up(settings: &Settings, target: &Target<'_>, peer: Option<&Postgres>) -> Result<()> {
    target.site.rest();
    for kind in Kind::ALL {
        kind.measure(settings.round(), target, kind.source(target))?;
        if let Some(peer) = peer {
            kind.measure_peer(settings, peer, target.items)?;
        }
    }
    Ok(())
}

/// The light queries at the last size, each beside its peer.
fn show(
    report: &mut Report,
    target: &Target<'_>,
    reads: &mut Rounds,
    ours: &mut [Rounds],
    mut theirs: Option<&mut [Rounds]>,
) -> Result<()> {
    report.add(reads.line(SECTION, "point reads, for comparison"));
    for (place, kind) in Kind::ALL.into_iter().enumerate() {
        if let Some(theirs) = &mut theirs {
            report.add(theirs[place].line(SECTION, format!("PostgreSQL: {}", kind.peer_name())));
        }
        let mut line = ours[place].line(SECTION, format!("orrery: {}", kind.name()));
        if let Some(theirs) = &theirs {
            line = line.ratio("PostgreSQL", ours[place].ratio_to(&theirs[place]), Wanted::AtLeast(1.0));
        }
        if kind.is_lookup() {
            let time = reads.rate() / ours[place].rate();
            line = line.ratio("the time of a point read", time, Wanted::AtMost(LOOKUP_TO_READ));
            report.add(processor_line(ours[place].server_micros(), reads.server_micros()));
        }
        if kind.is_order_by_range() {
            let loaded = light::loaded_for_a_page(target)?;
            let share = loaded / light::PAGE as f64;
            line = line.ratio(
                "a page of items looked at in each partition",
                share,
                Wanted::AtMost(LOADED_TO_PAGE),
            );
            line = line.note("every range answers a page, so clients get four times the rows of PostgreSQL");
        }
        report.add(line);
    }
    Ok(())
}

/// What a lookup costs beside a point read, in processor time of the server: unlike rates, that hardly depends on who
/// else uses the machine.
fn processor_line(lookup: f64, read: f64) -> Line {
    Line::new(SECTION, "equality lookup beside a point read, by processor")
        .figure("us a lookup", lookup)
        .figure("us a point read", read)
        .ratio(
            "the processor time of a point read",
            lookup / read,
            Wanted::AtMost(LOOKUP_TO_READ_BY_PROCESSOR),
        )
}

/// What log n allows is what any tree needs.
fn grown(report: &mut Report, items: u64, base: &(u64, Vec<(f64, f64)>), ours: &[Rounds]) {
    let allowed = (items as f64).ln() / (base.0 as f64).ln();
    for (place, kind) in Kind::ALL.into_iter().enumerate() {
        let (rate, micros) = base.1[place];
        let (now, processor) = (ours[place].rate(), ours[place].server_micros());
        let line = Line::new(GROWTH, format!("{}, {items} items", kind.name()))
            .figure("/s", now)
            .figure("us of server", processor);
        report.add(match items == base.0 {
            true => line,
            false => line
                .ratio(
                    format!("what log n allows over {} items", base.0),
                    rate / now / allowed,
                    Wanted::AtMost(1.0),
                )
                .ratio("the same by processor time", processor / micros / allowed, Wanted::AtMost(1.0)),
        });
    }
}
