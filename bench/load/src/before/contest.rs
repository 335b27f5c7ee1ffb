//! Three servers up at once, and the rounds that they take turns in.

use std::path::Path;

use anyhow::Result;

use super::turns::{By, Score, Side, for_each};
use crate::load::{Plan, Source};
use crate::report::Report;
use crate::requests::Container;
use crate::settings::Settings;
use crate::site::{Ground, Measured, Site};

pub struct Contest<'s> {
    pub settings: &'s Settings,
    older: &'s Path,
    report: &'s mut Report,
}

/// A folder for each side.
pub struct Grounds([Ground; 3]);

/// A server on each of the folders.
pub struct Sites([Site; 3]);

impl<'s> Contest<'s> {
    pub fn new(settings: &'s Settings, older: &'s Path, report: &'s mut Report) -> Contest<'s> {
        Contest { settings, older, report }
    }

    pub fn ground(&self, side: Side) -> Result<Ground> {
        Ground::new(if side == Side::New { &self.settings.server } else { self.older })
    }

    pub fn grounds(&self) -> Result<Grounds> {
        for_each(|side| self.ground(side)).map(Grounds)
    }

    /// A line of load. A first round does not count: what is compared is what it costs to go on, not to begin.
    pub fn line(
        &mut self,
        section: &'static str,
        what: &str,
        mut measure: impl FnMut(Side) -> Result<Vec<(By, f64)>>,
    ) -> Result<()> {
        for side in Side::ALL {
            measure(side)?;
        }
        self.rounds(section, what, self.settings.rounds(), |side, _| measure(side))
    }

    /// A line of so many rounds, each of which measures one side after the other.
    pub fn rounds(
        &mut self,
        section: &'static str,
        what: &str,
        rounds: usize,
        mut measure: impl FnMut(Side, &Contest<'_>) -> Result<Vec<(By, f64)>>,
    ) -> Result<()> {
        let mut score = Score::default();
        for round in 0..rounds {
            for side in Side::order(round) {
                score.add(side, &measure(side, self)?);
            }
        }
        self.report.add(score.line(section, what));
        Ok(())
    }

    /// A line of load with so many connections.
    pub fn load<S: Source + 'static>(
        &mut self,
        section: &'static str,
        what: &str,
        (sites, connections): (&Sites, usize),
        mut source: impl FnMut(Side) -> (Container, S),
    ) -> Result<()> {
        let time = self.settings.round();
        self.line(section, what, |side| {
            let (container, source) = source(side);
            let plan = Plan { address: container.address, connections, time };
            Ok(figures(&sites.of(side).measure(plan, source)?))
        })
    }
}

impl Grounds {
    pub fn of(&self, side: Side) -> &Ground {
        &self.0[side as usize]
    }

    pub fn start(&self) -> Result<Sites> {
        for_each(|side| self.of(side).start()).map(Sites)
    }

    /// Servers that do not wait for the disk, for loading.
    pub fn start_relaxed(&self) -> Result<Sites> {
        for_each(|side| self.of(side).start_relaxed()).map(Sites)
    }
}

impl Sites {
    pub fn of(&self, side: Side) -> &Site {
        &self.0[side as usize]
    }

    /// A container of that name in each, with its database made first.
    pub fn create(&self, name: &str, partitions: u32) -> Result<[Container; 3]> {
        for_each(|side| {
            self.of(side).create_database()?;
            self.of(side).create_container(name, partitions)
        })
    }

    /// What loading and creating leave behind is done in the background; those measured next are not to pay for it.
    pub fn rest(&self) {
        for site in &self.0 {
            site.rest();
        }
    }

    pub fn stop(self) {
        for site in self.0 {
            site.stop();
        }
    }
}

/// What a load shows.
pub fn figures(measured: &Measured) -> Vec<(By, f64)> {
    vec![(By::Rate, measured.outcome.rate()), (By::Processor, measured.server_micros)]
}
