//! Splitting a physical partition while it is in use.

use std::sync::Arc;

use orrery_store::SplitPlan;
use orrery_store::engine::Snapshot;
use orrery_store::limits::SPLIT_CHILDREN_MAX;

use crate::catalog::{Container, RangeIndexRecord, Succession};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::range::Range;
use crate::resource::ResourceKind;
use crate::rid::Rid;

/// Plans that may be overtaken by writes before the split waits for the writers instead.
const ATTEMPTS: usize = 4;

impl Db {
    /// Divides a range into so many, by stored bytes. Returns their ids in the order of the key space.
    pub async fn split(&self, container: &Arc<Container>, range_id: u32, children: u32) -> Result<Vec<u32>> {
        if !(2..=SPLIT_CHILDREN_MAX).contains(&children) {
            return Err(Error::invalid(format!(
                "A partition is split into 2 to {SPLIT_CHILDREN_MAX} partitions, not {children}."
            )));
        }
        let rid = container.resource.rid;
        self.carry(move |db| async move { db.split_range(rid, range_id, children).await }).await
    }

    async fn split_range(&self, rid: Rid, range_id: u32, children: u32) -> Result<Vec<u32>> {
        let _alone = self.inner.balance.turn().await;
        for attempt in 1..=ATTEMPTS {
            let container = self.catalog().container_by_rid(rid).cloned();
            let container = container.ok_or(ErrorKind::NotFound(ResourceKind::Container))?;
            let range = container.range_by_id(range_id).ok_or(ErrorKind::RangeGone)?.clone();
            // The last attempt plans while nobody writes: it takes longer, and cannot be overtaken.
            let held_early = attempt == ATTEMPTS;
            if held_early {
                range.hold().await?;
            }
            let split = match self.plan_split(&container, &range, children) {
                Ok((plan, before)) => self.cut_over(&container, &range, &plan, &before).await,
                Err(error) => Err(error),
            };
            let Some(ids) = split.inspect_err(|_| self.give_up(&range))? else {
                self.give_up(&range);
                continue;
            };
            tracing::info!(
                database = container.database_id,
                container = container.resource.id,
                range = range_id,
                children = ?ids,
                "a partition was split"
            );
            return Ok(ids);
        }
        Err(ErrorKind::Overloaded.into())
    }

    /// Leaves a range as it was before the split began.
    fn give_up(&self, range: &Arc<Range>) {
        range.replica.partition.forget_plan();
        range.release(&self.inner.committer);
    }

    fn plan_split(
        &self,
        container: &Container,
        range: &Range,
        children: u32,
    ) -> Result<(SplitPlan, Arc<Snapshot>)> {
        let planned = self.world().blocking(|| {
            let snapshot = || self.inner.committer.snapshot_owned();
            SplitPlan::make(&range.replica.partition, snapshot, &container.definition.key, children)
        });
        let (plan, before) = planned.map_err(ErrorKind::from)?;
        if plan.ranges(range.epk()).len() < 2 {
            return Err(Error::invalid(
                "The partition holds one logical partition only, which never splits.",
            ));
        }
        Ok((plan, before))
    }

    /// The moment in which nobody writes; `None` when too much was written since the plan was made. The caller lets
    /// writers go on when there are no children.
    async fn cut_over(
        &self,
        container: &Container,
        range: &Arc<Range>,
        plan: &SplitPlan,
        before: &Snapshot,
    ) -> Result<Option<Vec<u32>>> {
        let mut counters = self.inner.control.lock().await;
        let rid = container.resource.rid;
        let container = self.catalog().container_by_rid(rid).cloned().ok_or(ErrorKind::RangeGone)?;
        let is_there =
            container.range_by_id(range.descriptor.id).is_some_and(|current| Arc::ptr_eq(current, range));
        if !is_there {
            return Err(ErrorKind::RangeGone.into());
        }
        let parts = plan.ranges(range.epk());
        let reserved = self.reserve(&mut counters, parts.len()).await?;
        range.hold().await?;
        let after = self.inner.committer.snapshot_owned();
        let schema = range.replica.schema.load_full();
        let old = vec![range.clone()];
        let mut new = Vec::new();
        for (place, part) in parts.into_iter().enumerate() {
            let spec = Succession::child(&container, &old, place, part, &reserved);
            let index = RangeIndexRecord {
                id: spec.rid_prefix,
                active: schema.index.generation,
                building: Some(reserved.generations[place]),
                borrowed: true,
                merging: false,
            };
            new.push((spec, index));
        }
        let specs: Vec<_> = new.iter().map(|(spec, _)| spec.clone()).collect();
        let states = self.world().blocking(|| {
            orrery_store::split(
                &range.replica.partition,
                plan,
                (before, &after),
                schema.index.generation,
                &specs,
            )
        });
        let Some(states) = states.map_err(ErrorKind::from)? else {
            return Ok(None);
        };
        let ids = specs.iter().map(|spec| spec.rid_prefix).collect();
        let container = self.succeed(&mut counters, rid, Succession { old, new }, states).await?;
        drop(counters);
        self.build_index_later(&container);
        Ok(Some(ids))
    }
}
