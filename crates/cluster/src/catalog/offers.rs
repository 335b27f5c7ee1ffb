//! Changing what throughput a resource has, and how it is divided.

use std::sync::Arc;
use std::time::Duration;

use orrery_store::Etag;
use orrery_store::limits::PartitionLimits;

use super::changes::{check_version, container_of};
use super::record::{HoursRecord, OfferRecord, Record, RecordId, ThroughputRecord};
use super::{Catalog, Container};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::offer::{self, Offer};
use crate::request::Throughput;
use crate::resource::ResourceKind;
use crate::rid::Rid;
use crate::throughput::{Redistribution, Settings};

/// How long the answer to a raised offer waits for partitions to split.
const SPLIT_PATIENCE: Duration = Duration::from_millis(500);
const SPLIT_PAUSE: Duration = Duration::from_millis(5);
/// Records of hours that one transaction stores.
const HOURS_AT_ONCE: usize = 32;

impl Db {
    /// Changes an offer. What the partitions can give holds at once; the rest when there are enough of them, which
    /// the status of the offer tells.
    pub async fn replace_offer(
        &self,
        rid: Rid,
        throughput: Throughput,
        if_match: Option<Etag>,
    ) -> Result<Arc<Offer>> {
        let offer =
            self.carry(move |db| async move { db.change_offer(rid, throughput, if_match).await }).await?;
        self.await_partitions(&offer).await;
        Ok(offer)
    }

    async fn change_offer(
        &self,
        rid: Rid,
        throughput: Throughput,
        if_match: Option<Etag>,
    ) -> Result<Arc<Offer>> {
        offer::check(throughput)?;
        let mut counters = self.inner.control.lock().await;
        let catalog = self.catalog();
        let current = catalog.offer(rid).cloned().ok_or(ErrorKind::NotFound(ResourceKind::Offer))?;
        check_version(if_match, current.etag)?;
        self.check_scale(&catalog, &current, throughput)?;
        let mut record = OfferRecord {
            rid,
            target: current.target,
            autoscale: false,
            throughput: 0,
            increment_percent: None,
            highest: current.highest,
        };
        record.set(throughput);
        let next = counters.clone();
        let catalog = self.change_catalog(&mut counters, next, vec![Record::Offer(record)], vec![]).await?;
        let offer = catalog.offer(rid).cloned().ok_or(ErrorKind::NotFound(ResourceKind::Offer))?;
        drop(counters);
        // Partitions may be too few, or more than needed, for what is provisioned now.
        self.rebalance_later();
        Ok(offer)
    }

    /// Splits usually take some milliseconds: the caller waits here so that its client need not ask again.
    async fn await_partitions(&self, offer: &Offer) {
        let began = self.world().monotonic();
        let is_pending = || self.catalog().is_pending(offer, &self.inner.options.limits);
        while self.world().since(began) < SPLIT_PATIENCE && is_pending() {
            self.world().sleep(SPLIT_PAUSE).await;
        }
    }

    fn check_scale(&self, catalog: &Catalog, offer: &Offer, asked: Throughput) -> Result<()> {
        let (units, least) = (asked.ceiling(), catalog.minimum(offer, asked));
        if units < least {
            return Err(Error::invalid(format!(
                "Requested throughput {units} is less than required minimum throughput {least}."
            )));
        }
        let Some(container) = catalog.container_by_rid(offer.target) else { return Ok(()) };
        let limits = &self.inner.options.limits;
        let needed = offer::least_partitions(units, limits) as usize;
        if catalog.is_pending(offer, limits) && needed > container.ranges.len() {
            return Err(ErrorKind::OfferReplacePending.into());
        }
        if container.throughput.is_custom() && units != offer.throughput.ceiling() {
            return Err(Error::invalid(
                "The throughput of the container is distributed over its physical partitions by hand. Set the \
                 throughput policy to Equal before changing it.",
            ));
        }
        Ok(())
    }

    /// Divides the throughput of a container over its physical partitions; nothing makes them equal again.
    pub async fn redistribute_throughput(
        &self,
        rid: Rid,
        change: Option<Redistribution>,
    ) -> Result<Arc<Container>> {
        self.change_settings(rid, move |container, offer, limits| {
            let shares = match &change {
                None => Vec::new(),
                Some(change) => {
                    let ceiling = f64::from(limits.partition_throughput);
                    let units = f64::from(offer.map_or(0, |offer| offer.throughput.ceiling()));
                    change.apply(&container.members(), &container.parts(), units, ceiling)?
                }
            };
            Ok(Settings { shares, ..Settings::clone(&container.throughput) })
        })
        .await
    }

    /// Changes what else an operator may set; the distribution stays.
    pub async fn replace_throughput_settings(&self, rid: Rid, settings: Settings) -> Result<Arc<Container>> {
        Settings::check_buckets(&settings.buckets)?;
        self.change_settings(rid, move |container, _, _| {
            Ok(Settings { shares: container.throughput.shares.clone(), ..settings })
        })
        .await
    }

    async fn change_settings(
        &self,
        rid: Rid,
        change: impl FnOnce(&Container, Option<&Offer>, &PartitionLimits) -> Result<Settings> + Send + 'static,
    ) -> Result<Arc<Container>> {
        self.carry(move |db| async move { db.put_settings(rid, change).await }).await
    }

    async fn put_settings(
        &self,
        rid: Rid,
        change: impl FnOnce(&Container, Option<&Offer>, &PartitionLimits) -> Result<Settings>,
    ) -> Result<Arc<Container>> {
        let mut counters = self.inner.control.lock().await;
        let catalog = self.catalog();
        let current = container_of(&catalog, rid)?;
        let offer = catalog.offer_of(rid).cloned();
        let settings = change(&current, offer.as_deref(), &self.inner.options.limits)?;
        if offer.is_none() && !(settings.shares.is_empty() && settings.buckets.is_empty()) {
            return Err(Error::invalid("The container has no throughput of its own that could be divided."));
        }
        let next = counters.clone();
        let (put, gone) = match (settings == Settings::default(), current.has_throughput_record()) {
            (true, false) => return Ok(current),
            (true, true) => (vec![], vec![RecordId::Throughput(rid)]),
            (false, _) => (vec![Record::Throughput(ThroughputRecord { rid, settings })], vec![]),
        };
        let catalog = self.change_catalog(&mut counters, next, put, gone).await?;
        container_of(&catalog, rid)
    }

    /// Stores the hours of some targets and forgets those of others.
    pub(crate) async fn store_hours_records(&self, records: Vec<HoursRecord>, gone: Vec<Rid>) -> Result<()> {
        let mut counters = self.inner.control.lock().await;
        let mut gone: Vec<RecordId> = gone.into_iter().map(RecordId::Hours).collect();
        let mut records = records.into_iter().map(Record::Hours).peekable();
        while records.peek().is_some() || !gone.is_empty() {
            let some: Vec<Record> = records.by_ref().take(HOURS_AT_ONCE).collect();
            let next = counters.clone();
            self.store(&mut counters, next, &some, &std::mem::take(&mut gone)).await?;
        }
        Ok(())
    }
}

impl Container {
    /// Nothing is stored for a container that is as it was made.
    pub(super) fn has_throughput_record(&self) -> bool {
        *self.throughput != Settings::default()
    }
}

#[cfg(test)]
mod tests;
