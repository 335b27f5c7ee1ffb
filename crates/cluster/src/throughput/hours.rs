//! The highest use of each hour, by offer.
//!
//! One task asks the budgets of all partitions for their highest second since it last came, and keeps the highest of
//! the running hour for each partition. At the end of an hour they add up to one line: what was used, and
//! what the service would bill, because autoscale bills each partition for its own highest second and a tenth of its
//! share at least. Lines are kept for thirty days. They are stored when an hour ends, when the running hour
//! has grown for a while, and when the database closes: a crash costs some minutes of the running hour.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use orrery_store::limits::THROUGHPUT_HOURS_MAX;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, HoursRecord};
use crate::db::Db;
use crate::error::Result;
use crate::offer::Offer;
use crate::range::{Lead, Range};
use crate::request::Throughput;
use crate::rid::Rid;

/// How often budgets are asked.
const INTERVAL: Duration = Duration::from_secs(20);
/// How many rounds may pass before the running hour is stored again.
const ROUNDS_UNSTORED_MAX: u32 = 30;
const SECONDS_PER_HOUR: u64 = 3_600;

/// What one hour used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hour {
    /// Seconds since 1970 when it began.
    pub begin: u64,
    /// The highest RU/s, summed over the partitions.
    pub highest: u32,
    /// RU/s that the service would bill for.
    pub billed: u32,
}

/// The hours of all offers.
#[derive(Default)]
pub struct Hours {
    accounts: Mutex<HashMap<Rid, Account>>,
}

#[derive(Default)]
struct Account {
    past: VecDeque<Hour>,
    running: Option<Running>,
    /// A record of it is in the catalog.
    is_stored: bool,
    /// Something is not in that record.
    has_changed: bool,
}

/// The hour that has not ended yet.
struct Running {
    begin: u64,
    /// What an earlier run of the server has stored of this hour.
    earlier: Option<Hour>,
    /// The highest second of each partition. A split adds partitions to the hour.
    partitions: BTreeMap<u32, Peak>,
    /// The highest that was provisioned in this hour.
    ceiling: u32,
    autoscale: bool,
}

#[derive(Clone, Copy, Default)]
struct Peak {
    highest: f64,
    /// Within a tenth of its share and all of it.
    billed: f64,
}

/// What a partition, or a database's shared budget, has used at most since the last round.
struct Sample {
    partition: u32,
    highest: f64,
    /// RU/s of its share of the offer.
    share: f64,
}

impl Hours {
    pub(crate) fn load(records: Vec<HoursRecord>) -> Hours {
        let account = |record: HoursRecord| {
            let past = record.hours.into_iter().take(THROUGHPUT_HOURS_MAX).collect();
            (record.rid, Account { past, is_stored: true, ..Account::default() })
        };
        Hours { accounts: Mutex::new(records.into_iter().map(account).collect()) }
    }

    /// The hours of an offer's target, the running one last.
    pub fn of(&self, target: Rid) -> Vec<Hour> {
        self.accounts.lock().get(&target).map(Account::lines).unwrap_or_default()
    }

    /// Answers whether an hour has ended.
    fn note(&self, offer: &Offer, samples: &[Sample], now: u64) -> bool {
        let begin = now - now % SECONDS_PER_HOUR;
        self.accounts.lock().entry(offer.target).or_default().note(offer.throughput, samples, begin)
    }

    /// Forgets what is gone and returns what is to be stored: records, and targets whose records go.
    fn take_unstored(&self, catalog: &Catalog) -> (Vec<HoursRecord>, Vec<Rid>) {
        let mut accounts = self.accounts.lock();
        let mut gone = Vec::new();
        accounts.retain(|target, account| {
            let stays = catalog.offer_of(*target).is_some();
            if !stays && account.is_stored {
                gone.push(*target);
            }
            stays
        });
        let mut records = Vec::new();
        for (target, account) in accounts.iter_mut().filter(|(_, account)| account.has_changed) {
            account.has_changed = false;
            account.is_stored = true;
            records.push(HoursRecord { rid: *target, hours: account.lines() });
        }
        (records, gone)
    }
}

impl Account {
    fn note(&mut self, throughput: Throughput, samples: &[Sample], begin: u64) -> bool {
        let has_ended = self.running.as_ref().is_some_and(|running| running.begin != begin);
        if has_ended {
            self.end_hour();
        }
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                let earlier = self.past.pop_back();
                self.past.extend(earlier.filter(|hour| hour.begin != begin));
                let earlier = earlier.filter(|hour| hour.begin == begin);
                self.running.insert(Running::new(begin, earlier))
            }
        };
        running.autoscale = matches!(throughput, Throughput::Autoscale { .. });
        running.ceiling = running.ceiling.max(throughput.ceiling());
        for sample in samples {
            let peak = running.partitions.entry(sample.partition).or_default();
            self.has_changed |= sample.highest > peak.highest;
            peak.highest = peak.highest.max(sample.highest);
            peak.billed = peak.billed.max(sample.highest.clamp(sample.share / 10.0, sample.share));
        }
        has_ended
    }

    fn end_hour(&mut self) {
        if let Some(running) = self.running.take() {
            self.past.push_back(running.line());
            while self.past.len() > THROUGHPUT_HOURS_MAX {
                self.past.pop_front();
            }
            self.has_changed = true;
        }
    }

    fn lines(&self) -> Vec<Hour> {
        self.past.iter().copied().chain(self.running.as_ref().map(Running::line)).collect()
    }
}

impl Running {
    fn new(begin: u64, earlier: Option<Hour>) -> Running {
        Running { begin, earlier, partitions: BTreeMap::new(), ceiling: 0, autoscale: false }
    }

    fn line(&self) -> Hour {
        let sum = self.partitions.values().fold(Peak::default(), |sum, peak| Peak {
            highest: sum.highest + peak.highest,
            billed: sum.billed + peak.billed,
        });
        let (highest, billed) = self.earlier.map_or((0, 0), |hour| (hour.highest, hour.billed));
        let billed = match self.autoscale {
            true => billed.max(sum.billed.ceil() as u32).clamp(self.ceiling / 10, self.ceiling),
            false => billed.max(self.ceiling),
        };
        Hour { begin: self.begin, highest: highest.max(sum.highest.ceil() as u32), billed }
    }
}

impl Db {
    /// The hours of a database's or container's own throughput, up to this moment.
    pub fn throughput_hours(&self, target: Rid) -> Vec<Hour> {
        let catalog = self.catalog();
        if let Some(offer) = catalog.offer_of(target) {
            self.note_use(&catalog, offer);
        }
        self.inner.hours.of(target)
    }

    /// Starts the task that looks at the budgets; it ends with the database.
    pub(crate) fn note_hours_later(&self) {
        let inner = Arc::downgrade(&self.inner);
        let world = self.world().clone();
        self.world().spawn(async move {
            let mut round = 0;
            loop {
                world.sleep(INTERVAL).await;
                let Some(db) = Db::alive(&inner) else { return };
                round += 1;
                let hour_ended = db.note_hours();
                if (hour_ended || round % ROUNDS_UNSTORED_MAX == 0) && db.store_hours().await.is_err() {
                    tracing::warn!("the use of the last hours was not stored");
                }
            }
        });
    }

    /// One round over all offers; answers whether an hour has ended.
    fn note_hours(&self) -> bool {
        let catalog = self.catalog();
        let mut has_ended = false;
        for offer in catalog.offers() {
            has_ended |= self.note_use(&catalog, offer);
        }
        has_ended
    }

    fn note_use(&self, catalog: &Catalog, offer: &Offer) -> bool {
        let ceiling = f64::from(offer.throughput.ceiling());
        let samples: Vec<Sample> = match catalog.container_by_rid(offer.target) {
            Some(container) => {
                let sample = |(range, lead, part): (&Arc<Range>, &Lead, f64)| Sample {
                    partition: range.descriptor.id,
                    highest: lead.budget.take_peak(),
                    share: ceiling * part,
                };
                container.led_parts().map(sample).collect()
            }
            None => {
                let budget = catalog.database_by_rid(offer.target).and_then(|owner| owner.budget.as_ref());
                let sample = |budget: &Arc<crate::throttle::Budget>| Sample {
                    partition: 0,
                    highest: budget.take_peak(),
                    share: ceiling,
                };
                budget.map(sample).into_iter().collect()
            }
        };
        self.inner.hours.note(offer, &samples, self.world().unix_time().as_secs())
    }

    /// Before the database closes.
    pub(crate) async fn close_hours(&self) {
        self.note_hours();
        if self.store_hours().await.is_err() {
            tracing::warn!("the use of the last hour was not stored");
        }
    }

    /// Makes durable what is known of the hours.
    async fn store_hours(&self) -> Result<()> {
        let (records, gone) = self.inner.hours.take_unstored(&self.catalog());
        self.store_hours_records(records, gone).await
    }
}

#[cfg(test)]
mod tests;
