//! A page of a query in a partition of few items, whose rows come in the order of creation: it has to cost what an index finds
//! there, not what a scan does.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use orrery_testkit::{EMULATOR_KEY, Signer};
use serde_json::json;

use super::light::{Asked, PAGE, loaded};
use super::{CLIENTS, LOADED_TO_PAGE, SECTION};
use crate::item;
use crate::load::Plan;
use crate::report::{Report, Wanted};
use crate::requests::Container;
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{Ground, Measured, Site};

pub(crate) const NAME: &str = "small";
/// As many as come in the order of creation, or nearly.
pub(crate) const ITEMS: u64 = 4_900;
pub(crate) const LINE: &str = "range in a partition of 4,900 items, 100 of 200 results";
/// Ages go from 0 to 89, so that about two hundred items are so old.
const AGES: u64 = 4;
const ALL_AGES: u64 = 90;

/// The container and its one range.
pub(crate) struct Small {
    container: Container,
    range: String,
}

impl Small {
    /// The container must have been filled.
    pub fn new(site: &Site) -> Result<Small> {
        let range = site.range_ids(NAME)?.swap_remove(0);
        Ok(Small { container: site.container(NAME), range })
    }

    /// Its requests, made beforehand.
    pub fn source(&self) -> Asked {
        let signer = Signer::new(EMULATOR_KEY);
        let place =
            format!("x-ms-documentdb-partitionkeyrangeid: {}\r\nx-ms-max-item-count: {PAGE}\r\n", self.range);
        let ages = 0..ALL_AGES - AGES;
        let requests = ages.map(|turn| self.container.query(&signer, &place, &body(item::mix(turn))));
        Asked::new(Rc::new(requests.collect()))
    }

    pub fn measure(&self, time: Duration, site: &Site, asked: Asked) -> Result<Measured> {
        let plan = Plan { address: self.container.address, connections: CLIENTS, time };
        site.measure(plan, asked)
    }
}

fn body(chance: u64) -> String {
    let low = chance % (ALL_AGES - AGES);
    let parameters = json!([{"name": "@low", "value": low}, {"name": "@high", "value": low + AGES}]);
    json!({"query": "SELECT * FROM c WHERE c.age >= @low AND c.age < @high", "parameters": parameters})
        .to_string()
}

pub(super) fn run(settings: &Settings, report: &mut Report, ground: &Ground) -> Result<()> {
    let site = ground.start()?;
    site.create_container(NAME, 1)?;
    site.load(&site.container(NAME), 0, ITEMS)?;
    let small = Small::new(&site)?;
    let asked = small.source();
    small.measure(settings.round(), &site, asked.clone())?;
    let mut rounds = Rounds::default();
    for _ in 0..settings.rounds() {
        rounds.add(&small.measure(settings.round(), &site, asked.clone())?);
    }
    let share = loaded(&small.container, &small.range, &body(0))? / PAGE as f64;
    let line = rounds.line(SECTION, format!("orrery: {LINE}"));
    report.add(line.ratio("a page of items looked at", share, Wanted::AtMost(LOADED_TO_PAGE)));
    site.stop();
    Ok(())
}
