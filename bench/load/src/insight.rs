//! What the accounting of partitions and keys costs point reads: a server with it and one without, in turns.

use anyhow::Result;

use crate::load::Plan;
use crate::report::{Report, Wanted};
use crate::requests::Reads;
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::Ground;

const SECTION: &str = "Point reads with and without accounting, 32 clients";
const CLIENTS: usize = 32;
const ITEMS: u64 = 20_000;
/// The difference is small, so rounds are many and short, and the sides take turns in going first.
const TURNS: usize = 4;

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let grounds = [Ground::new(&settings.server)?, Ground::new(&settings.server)?];
    let sites = [grounds[0].start_with(&["--insight", "off"])?, grounds[1].start_with(&["--insight", "on"])?];
    let mut containers = Vec::new();
    for site in &sites {
        site.create_database()?;
        let container = site.create_container("reads", 1)?;
        site.load(&container, 0, ITEMS)?;
        containers.push(container);
    }
    sites.iter().for_each(|site| site.rest());
    let mut rounds = [Rounds::default(), Rounds::default()];
    let time = settings.round() / 2;
    for turn in 0..settings.rounds() * TURNS {
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let container = &containers[side];
            let plan = Plan { address: container.address, connections: CLIENTS, time };
            rounds[side].add(&sites[side].measure(plan, Reads::of_loaded(container, ITEMS, ITEMS))?);
        }
    }
    for site in sites {
        site.stop();
    }
    let [mut without, mut with] = rounds;
    let ratio = with.ratio_to(&without);
    let processor = with.processor_ratio_to(&without);
    report.add(without.line(SECTION, "without accounting"));
    report.add(with.line(SECTION, "with accounting").ratio("without", ratio, Wanted::AtLeast(0.97)).ratio(
        "without, by processor time of the server alone",
        processor,
        Wanted::AtLeast(0.97),
    ));
    Ok(())
}
