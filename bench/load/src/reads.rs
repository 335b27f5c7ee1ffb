//! Point reads against bare hyper, in turns.

use std::net::SocketAddr;

use anyhow::Result;

use crate::bare::Bare;
use crate::item;
use crate::load::Plan;
use crate::report::{Report, Wanted};
use crate::requests::Reads;
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{self, Ground};

const SECTION: &str = "Point reads of 1 KiB items, keep-alive HTTP/1.1";
const ITEMS: u64 = 20_000;

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start()?;
    site.create_database()?;
    let container = site.create_container("reads", 1)?;
    site.load(&container, 0, ITEMS)?;
    // Loading leaves work behind that is done in the background; reads are not to pay for it.
    site.rest();
    let answer = site.read(&container, &item::loaded(7))?;
    let bare = Bare::start(&answer)?;
    let reads = Reads::of_loaded(&container, ITEMS, ITEMS);
    for connections in [16, 64] {
        let plan = |address: SocketAddr| Plan { address, connections, time: settings.round() };
        let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
        for _ in 0..settings.rounds() {
            theirs.add(&site::measure(bare.id(), plan(bare.address), reads.clone())?);
            ours.add(&site.measure(plan(container.address), reads.clone())?);
        }
        let headers = answer.headers.len();
        let bytes = answer.body.len();
        report.add(theirs.line(
            SECTION,
            format!("bare hyper, {connections} connections, {headers} headers, {bytes} bytes"),
        ));
        let ratio = ours.ratio_to(&theirs);
        let processor = theirs.server_micros() / ours.server_micros();
        report.add(
            ours.line(SECTION, format!("orrery, {connections} connections"))
                .ratio("bare hyper", ratio, Wanted::AtLeast(0.5))
                .ratio("bare hyper, by processor time of the server alone", processor, None),
        );
    }
    site.stop();
    Ok(())
}
