//! A copy of a range: its place in the engine of this node, and how far that is.
//!
//! A follower has this and nothing else, so who reads a snapshot asks the replica only. What was published stays readable, whoever
//! leads the range, and also when nobody does.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use orrery_store::engine::Snapshot;
use orrery_store::{DefaultTtl, Lifetimes, Lsn, Partition, Schema, View};

use super::{Range, Totals};
use crate::committer::Committer;
use crate::error::ErrorKind;
use crate::world::World;

pub struct Replica {
    pub partition: Partition,
    pub schema: ArcSwap<Schema>,
    /// What all partitions of the container hold together.
    pub(crate) totals: Arc<Totals>,
    pub(super) world: World,
    /// Those that took its place, once it is gone.
    pub(super) successors: OnceLock<Vec<Arc<Range>>>,
}

impl Replica {
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Which items are there now. Where nothing expires, the clock is not asked.
    pub fn lifetimes(&self) -> Lifetimes {
        match self.schema.load().ttl {
            DefaultTtl::Off => Lifetimes::ENDLESS,
            ttl => Lifetimes::at(ttl, self.world.now()),
        }
    }

    /// What a snapshot shows of the partition now. It must hold all that is durable up to the LSN.
    pub fn view<'a>(&'a self, snapshot: &'a Snapshot, lsn: Lsn) -> View<'a> {
        View::new(&self.partition, snapshot, lsn, self.lifetimes())
    }

    /// The index that readers may use; see [`Replica::schema_point`] for the snapshot to use it with.
    #[cfg(test)]
    pub fn index(&self) -> Arc<orrery_store::ActiveIndex> {
        self.schema.load().index.clone()
    }

    /// A snapshot, the schema that it follows, and an LSN that it holds at least.
    ///
    /// The active index may change at any time, and the old one is erased soon after. Seeing the same schema before and
    /// after the snapshot was taken proves that its index was complete before and untouched until then. A range that
    /// others have succeeded has nobody who looks after its index.
    pub fn schema_point(
        &self,
        committer: &Committer,
    ) -> Result<(Lsn, Arc<Snapshot>, Arc<Schema>), ErrorKind> {
        loop {
            let schema = self.schema.load_full();
            let lsn = self.partition.lsn();
            let snapshot = committer.snapshot_owned();
            self.check_there()?;
            if Arc::ptr_eq(&self.schema.load(), &schema) {
                return Ok((lsn, snapshot, schema));
            }
        }
    }

    /// Refuses when others have taken this range's place.
    pub fn check_there(&self) -> Result<(), ErrorKind> {
        if self.successors.get().is_some() { Err(ErrorKind::RangeGone) } else { Ok(()) }
    }

    /// Refuses when the container of this range was exchanged for another: what is stored here is being erased, which a
    /// snapshot that was taken before this was asked does not see yet. Items of a range that was split stay, so
    /// a request that reads them need not ask again.
    pub fn check_kept(&self) -> Result<(), ErrorKind> {
        match self.successors.get() {
            Some(successors) if successors.is_empty() => Err(ErrorKind::RangeGone),
            _ => Ok(()),
        }
    }
}
