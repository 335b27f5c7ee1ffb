//! The ceiling of creates: the storage engine alone, fed the batches that the server would feed it.
//!
//! The batches are made beforehand by the store's own transactions, over an engine in memory, so
//! that nothing but writing them is measured.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use orrery_doc::{EpkRange, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, epk, json};
use orrery_store::engine::{Batch, DiskOptions, Engine};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{JSON_DEPTH_MAX, PartitionLimits};
use orrery_store::{
    Action, Group, ItemId, Op, Partition, PartitionSpec, Precondition, Schema, TICKS_PER_SECOND, Target, Txn,
};

use crate::item;

/// The server's own default, so that both engines have the same.
const CACHE_BYTES: u64 = 256 << 20;
/// When the items are said to be written; the figure is of no consequence.
const NOW: u64 = 1_790_000_000 * TICKS_PER_SECOND;

pub struct Bench {
    disk: Engine,
    memory: Engine,
    partition: Partition,
    schema: Schema,
}

/// Batches ready to be committed.
pub struct Prepared {
    batches: Vec<Batch>,
    items: u64,
    /// How long it took to make them: parsing left out, evaluation and index terms included.
    pub evaluation: Duration,
}

impl Bench {
    pub fn open(folder: &Path) -> Result<Bench> {
        let mut options = DiskOptions::new(folder);
        options.cache_bytes = CACHE_BYTES;
        let (disk, memory) = (Engine::open(options)?, Engine::in_memory());
        let spec = PartitionSpec {
            number: 1,
            container: 1,
            rid_generation: 1,
            range: EpkRange::full(),
            rid_prefix: 1,
            sources: vec![],
        };
        let partition = Partition::open(spec, &memory.snapshot())?;
        let path = orrery_doc::Path::parse_property("/pk")?;
        let key = PartitionKeyDef {
            kind: PartitionKeyKind::Hash,
            version: PartitionKeyVersion::V2,
            paths: vec![path],
        };
        let schema = Schema::new(key, 2, IndexingPolicy::default());
        Ok(Bench { disk, memory, partition, schema })
    }

    /// Creates of the items `first` and following, so many to a group.
    pub fn prepare(&self, first: u64, count: u64, group_size: u64) -> Result<Prepared> {
        let mut prepared = Prepared { batches: Vec::new(), items: count, evaluation: Duration::ZERO };
        let mut next = first;
        while next < first + count {
            let end = (next + group_size).min(first + count);
            let txns = (next..end).map(|number| self.transaction(number)).collect::<Result<Vec<Txn>>>()?;
            let began = Instant::now();
            let snapshot = self.memory.snapshot();
            let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
            for txn in &txns {
                ensure!(group.run(txn).is_ok(), "an item was refused by the store");
            }
            let mut done = group.finish();
            let batch = std::mem::take(&mut done.batch);
            prepared.evaluation += began.elapsed();
            drop(snapshot);
            self.memory.commit(batch.clone())?;
            self.partition.publish(self.partition.apply(done));
            prepared.batches.push(batch);
            next = end;
        }
        Ok(prepared)
    }

    /// Commits one batch after the other, each on disk before the next; returns items a second.
    pub fn commit(&self, prepared: Prepared) -> Result<f64> {
        let began = Instant::now();
        for batch in prepared.batches {
            self.disk.commit(batch)?;
            self.disk.persist()?;
        }
        Ok(prepared.items as f64 / began.elapsed().as_secs_f64())
    }

    pub fn close(self) -> Result<()> {
        Ok(self.disk.close()?)
    }

    fn transaction(&self, number: u64) -> Result<Txn> {
        let address = item::created(number);
        let mut text = String::new();
        item::write_json(&address, number, &mut text);
        let doc = json::parse(text.as_bytes(), JSON_DEPTH_MAX)?;
        let key = PartitionKey::from_header(&format!("[\"{}\"]", address.key))?;
        let op = Op {
            target: Target::Id(ItemId::new(address.id)?),
            action: Action::Create(doc),
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        Ok(Txn { scope: epk(&self.schema.key, &key), key: None, ops: vec![op], now: NOW })
    }
}
