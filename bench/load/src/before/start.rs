//! Starts: in an empty folder, with few and with many containers, and after a kill.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::contest::{Contest, Grounds};
use super::turns::{By, Side};
use crate::machine::mib;
use crate::site::Ground;

const SECTION: &str = "Start, from exec to the first answer, and idle memory";
/// An idle server is one that has had time to finish what its start began.
const IDLE: Duration = Duration::from_secs(1);
/// Items that the journal holds when a server is killed, a multiple of a batch.
const UNFLUSHED: u64 = 5_000;

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let rounds = contest.settings.rounds();
    contest.rounds(SECTION, "first start, in an empty folder", rounds, |side, contest| {
        start(&contest.ground(side)?)
    })?;
    let grounds = contest.grounds()?;
    let sites = grounds.start()?;
    sites.create("c0", 1)?;
    sites.stop();
    again(contest, &grounds, "1 container")?;
    let sites = grounds.start()?;
    let containers = contest.settings.containers;
    for side in Side::ALL {
        for number in 1..containers {
            sites.of(side).create_container(&format!("c{number}"), 1)?;
        }
    }
    sites.stop();
    again(contest, &grounds, &format!("{containers} containers"))?;
    killed(contest)
}

fn again(contest: &mut Contest<'_>, grounds: &Grounds, what: &str) -> Result<()> {
    let rounds = contest.settings.rounds();
    contest.rounds(SECTION, what, rounds, |side, _| start(grounds.of(side)))?;
    // Memory differs little from one start to the next.
    contest.rounds(SECTION, &format!("{what}, idle"), fewer(contest, 5), |side, _| {
        let site = grounds.of(side).start()?;
        thread::sleep(IDLE);
        let memory = mib(site.memory_bytes());
        site.stop();
        Ok(vec![(By::Memory, memory)])
    })
}

/// Each round adds items and kills the server before they are anywhere but in its journal.
fn killed(contest: &mut Contest<'_>) -> Result<()> {
    let grounds = contest.grounds()?;
    let sites = grounds.start()?;
    sites.create("killed", 1)?;
    sites.stop();
    let mut loaded = [0; 3];
    let what = format!("after SIGKILL, {UNFLUSHED} items of 1 KiB in the journal");
    contest.rounds(SECTION, &what, fewer(contest, 3), |side, _| {
        let mut site = grounds.of(side).start()?;
        let first = loaded[side as usize];
        loaded[side as usize] += UNFLUSHED;
        site.load(&site.container("killed"), first, first + UNFLUSHED)?;
        site.kill_and_start(grounds.of(side))?;
        let millis = site.first_answer.as_secs_f64() * 1000.0;
        site.stop();
        Ok(vec![(By::Time, millis)])
    })
}

/// A part of the rounds, for those that take long.
pub fn fewer(contest: &Contest<'_>, divisor: usize) -> usize {
    (contest.settings.rounds() / divisor).max(super::ROUNDS_MIN)
}

/// One start. The server is stopped before the next one, so nothing that it does later is in its way.
pub fn start(ground: &Ground) -> Result<Vec<(By, f64)>> {
    let site = ground.start()?;
    let millis = site.first_answer.as_secs_f64() * 1000.0;
    site.stop();
    Ok(vec![(By::Time, millis)])
}
