//! Checking that everything derived from the items agrees with them.
//!
//! Sizes, counts, feed entries and index terms are written in the same commit as the items, so any disagreement
//! means lost or torn data. Crash tests and operators ask this of a data directory.

use std::collections::HashMap;
use std::ops::Bound;

use orrery_doc::Epk;

use crate::build::{Build, Reached};
use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::index::PlaceRange;
use crate::indexing::IndexingPolicy;
use crate::limits::PATHS_COUNTED_MAX;
use crate::lineage::Sequence;
use crate::net_effect::{expiry_key, item_index_keys};
use crate::terms::Terms;
use crate::unique::{UniqueKeys, decode_holders, entry_keys};
use crate::view::{Scan, View};
use crate::{
    Fault, FeedCursor, Item, ItemId, ItemKey, Lifetimes, LogicalSize, Lsn, Owner, Partition, PartitionState,
    PathCounts, Schema, keys,
};

/// Findings beyond this many are only counted.
const FINDINGS_MAX: usize = 100;

#[derive(Debug, Default)]
pub struct Verification {
    pub items: u64,
    pub bytes: u64,
    pub logical_partitions: u64,
    pub findings: Vec<String>,
    pub findings_total: u64,
}

impl Verification {
    fn find(&mut self, text: impl FnOnce() -> String) {
        self.findings_total += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(text());
        }
    }
}

/// What an index should hold, gathered item by item.
struct IndexCheck<'a> {
    generation: u32,
    /// There are other entries in it too: those of other partitions, or, in the catalog, which has no index, the rids.
    is_shared: bool,
    policy: &'a IndexingPolicy,
    /// Which items it should hold.
    reached: Reached,
    entries: u64,
    stored: PathCounts,
    counted: HashMap<u64, u64>,
}

impl IndexCheck<'_> {
    /// Looks up each entry of an item, and counts them.
    fn item(
        &mut self,
        snapshot: &Snapshot,
        key: &ItemKey,
        item: &Item,
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        if !self.reached.holds(&keys::item(0, key)[4..]) {
            return Ok(());
        }
        let terms = Terms::of(item, self.policy);
        for entry in item_index_keys(self.generation, key, &terms) {
            self.entries += 1;
            if !snapshot.contains(Keyspace::Index, &entry)? {
                report.find(|| format!("{}: a term of index {} is missing", key.id, self.generation));
            }
        }
        terms.for_each(|term| {
            // Other paths are only missed while there is room for them.
            let is_due = self.stored.get(term.path_hash).is_some() || self.stored.len() < PATHS_COUNTED_MAX;
            if term.mark.counted && is_due {
                *self.counted.entry(term.path_hash).or_default() += 1;
            }
        });
        Ok(())
    }

    fn totals(&self, snapshot: &Snapshot, report: &mut Verification) -> Result<(), EngineError> {
        let entries = count(snapshot, Keyspace::Index, &self.generation.to_be_bytes())?;
        if entries != self.entries && !self.is_shared || entries < self.entries {
            report.find(|| {
                format!("index {} has {entries} entries, {} expected", self.generation, self.entries)
            });
        }
        let wrong = |(path, stored): &(u64, u64)| self.counted.get(path).copied().unwrap_or(0) != *stored;
        let uncounted = match self.is_shared {
            true => 0,
            false => self.counted.keys().filter(|path| self.stored.get(**path).is_none()).count(),
        };
        for (path, stored) in self.stored.iter().filter(wrong) {
            let counted = self.counted.get(&path).copied().unwrap_or(0);
            report.find(|| {
                let generation = self.generation;
                format!("{counted} items have path {path:016x} in index {generation}, accounted {stored}")
            });
        }
        if uncounted > 0 {
            report.find(|| format!("{uncounted} paths of index {} are not counted", self.generation));
        }
        Ok(())
    }
}

/// Entries that must be there besides those of indexes, gathered item by item.
#[derive(Default)]
struct OwnEntries {
    /// Items with a time to live of their own.
    ends: u64,
    /// Items named by the entries of unique keys.
    holders: u64,
}

impl OwnEntries {
    fn item(
        &mut self,
        partition: &Partition,
        snapshot: &Snapshot,
        unique: &UniqueKeys,
        (key, item): (&ItemKey, &Item),
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        let spec = &partition.spec;
        if let Some(end) = item.header.own_end() {
            self.ends += 1;
            let place = &keys::item(spec.container, key)[4..];
            if !snapshot.contains(Keyspace::Index, &expiry_key(spec, end, place))? {
                report.find(|| format!("{}: its place in the expiry queue is missing", key.id));
            }
        }
        for entry in entry_keys(spec.rid_generation, &key.epk, &unique.claims(&item.doc)) {
            self.holders += 1;
            let stored = snapshot.get(Keyspace::Index, &entry)?;
            let holders = stored.as_deref().and_then(decode_holders).unwrap_or_default();
            let has_it = |id: &ItemId| *id == key.id;
            if holders.iter().filter(|id| has_it(id)).count() != 1 {
                report.find(|| format!("{}: an entry of a unique key does not name it once", key.id));
            }
            let others = holders.iter().filter(|id| !has_it(id));
            for other in others {
                partition.verify_holder(snapshot, unique, (key, item), other, report)?;
            }
        }
        Ok(())
    }

    fn totals(
        &self,
        partition: &Partition,
        snapshot: &Snapshot,
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        let ends = partition.count_own(snapshot, keys::EXPIRY_PATH, 8)?;
        if ends != self.ends {
            report.find(|| format!("{ends} entries of the expiry queue, {} expected", self.ends));
        }
        let mut holders = 0;
        partition.visit_own(snapshot, keys::UNIQUE_PATH, 0, |entry| {
            holders += decode_holders(entry).map_or(0, |holders| holders.len() as u64);
        })?;
        if holders != self.holders {
            report.find(|| format!("entries of unique keys name {holders} items, {} expected", self.holders));
        }
        Ok(())
    }
}

impl Partition {
    /// Reads the whole partition at one snapshot, which `schema` must belong to; memory grows with the number of
    /// logical partitions and of counted paths only.
    pub fn verify(&self, snapshot: &Snapshot, schema: &Schema) -> Result<Verification, Fault> {
        let mut report = Verification::default();
        let mut sizes = HashMap::<Epk, LogicalSize>::new();
        let mut indexes = self.index_checks(snapshot, schema)?;
        let mut entries = OwnEntries::default();
        let mut failure = None;
        let state = self.state_at(snapshot)?;
        let view = View::new(self, snapshot, state.lsn, Lifetimes::ENDLESS);
        view.scan(&self.spec.range, None, |key, item| {
            report.items += 1;
            report.bytes += u64::from(item.header.json_bytes);
            let size = sizes.entry(key.epk.clone()).or_default();
            size.admit(Owner::of_item(&schema.key, &item.doc));
            size.bytes += u64::from(item.header.json_bytes);
            size.items += 1;
            let mut checks = indexes.iter_mut().map(|index| index.item(snapshot, &key, &item, &mut report));
            let checked = checks
                .try_for_each(|checked| checked)
                .and_then(|()| entries.item(self, snapshot, &schema.unique, (&key, &item), &mut report));
            match checked.and_then(|()| self.verify_item(snapshot, state.lsn, &key, &item, &mut report)) {
                Ok(()) => Scan::Continue,
                Err(error) => {
                    failure = Some(error);
                    Scan::Stop
                }
            }
        })?;
        failure.map_or(Ok(()), |error| Err(Fault::from(error)))?;
        self.verify_totals(snapshot, &state, &sizes, &mut report)?;
        entries.totals(self, snapshot, &mut report)?;
        for index in &indexes {
            index.totals(snapshot, &mut report)?;
        }
        self.verify_history(&view, schema, |text| report.find(|| text))?;
        report.logical_partitions = sizes.len() as u64;
        Ok(report)
    }

    /// The active index, and the one that is being built as far as it should be there.
    fn index_checks<'a>(
        &self,
        snapshot: &Snapshot,
        schema: &'a Schema,
    ) -> Result<Vec<IndexCheck<'a>>, EngineError> {
        let check = |generation,
                     is_shared,
                     policy: &'a IndexingPolicy,
                     reached|
         -> Result<IndexCheck<'a>, EngineError> {
            // What is stored, not what is remembered of it.
            let stored = PathCounts::read(snapshot, self.spec.number, generation)?;
            Ok(IndexCheck {
                generation,
                is_shared: is_shared || generation == self.spec.rid_generation,
                policy,
                reached,
                entries: 0,
                stored,
                counted: HashMap::new(),
            })
        };
        let active = &schema.index;
        let mut checks =
            vec![check(active.generation, active.is_borrowed, &active.policy, Reached::Everything)?];
        if let Some(index) = &schema.building {
            let build = Build::read(snapshot, self.spec.number)?;
            let build = build.filter(|build| build.generation == index.generation);
            let reached = build.map_or(Reached::Nothing, |build| build.reached);
            checks.push(check(index.generation, index.is_shared, &index.policy, reached)?);
        }
        Ok(checks)
    }

    /// Another item that an entry of a unique key names: its values may only look alike.
    fn verify_holder(
        &self,
        snapshot: &Snapshot,
        unique: &UniqueKeys,
        (key, item): (&ItemKey, &Item),
        other: &ItemId,
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        let other = ItemKey { epk: key.epk.clone(), id: other.clone() };
        let stored = snapshot.get(Keyspace::Item, &keys::item(self.spec.container, &other))?;
        let Some(stored) = stored.and_then(|bytes| Item::decode(&bytes).ok()) else {
            report.find(|| format!("{}: an entry of a unique key names it, and it is not there", other.id));
            return Ok(());
        };
        let theirs = unique.claims(&stored.doc);
        if unique.claims(&item.doc).iter().any(|claim| theirs.contains(claim)) {
            report.find(|| format!("{} and {} have the same values at a unique key", key.id, other.id));
        }
        Ok(())
    }

    /// The feed entry and the rid term of one item.
    fn verify_item(
        &self,
        snapshot: &Snapshot,
        lsn: Lsn,
        key: &ItemKey,
        item: &Item,
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        if item.header.lsn > lsn {
            report.find(|| {
                format!("{}: written at {:?}, but the partition is at {lsn:?}", key.id, item.header.lsn)
            });
        }
        let number = self.spec.number_of(&key.epk, item.header.lsn);
        let feed = snapshot.get(Keyspace::Feed, &keys::feed(number, item.header.lsn.0, item.header.place))?;
        let expected = &keys::item(self.spec.container, key)[4..];
        if feed.as_deref() != Some(expected) {
            report.find(|| format!("{}: its feed entry is missing or names another item", key.id));
        }
        let rid = item.header.rid.to_be_bytes();
        if !snapshot
            .contains(Keyspace::Index, &keys::index(self.spec.rid_generation, keys::RID_PATH, &rid, key))?
        {
            report.find(|| format!("{}: its rid term is missing", key.id));
        }
        Ok(())
    }

    /// The entries of the rid generation at one path that lie in this partition's range, behind so many bytes.
    fn count_own(&self, snapshot: &Snapshot, path: u64, bytes: usize) -> Result<u64, EngineError> {
        let mut own = 0;
        self.visit_own(snapshot, path, bytes, |_| own += 1)?;
        Ok(own)
    }

    fn visit_own(
        &self,
        snapshot: &Snapshot,
        path: u64,
        bytes: usize,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<(), EngineError> {
        let prefix = keys::index_prefix(self.spec.rid_generation, path, &[]);
        let upper = keys::after_prefix(&prefix);
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let scope = PlaceRange::new(&self.spec.range, None);
        for entry in snapshot.range(Keyspace::Index, Bound::Included(&prefix), upper, false) {
            let (key, value) = entry?;
            if key.get(prefix.len() + bytes..).is_some_and(|place| scope.contains(place)) {
                visit(&value);
            }
        }
        Ok(())
    }

    fn verify_totals(
        &self,
        snapshot: &Snapshot,
        state: &PartitionState,
        sizes: &HashMap<Epk, LogicalSize>,
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        if (state.items, state.bytes) != (report.items, report.bytes) {
            let found = (report.items, report.bytes);
            report.find(|| {
                format!("items and bytes are {found:?}, accounted {:?}", (state.items, state.bytes))
            });
        }
        for (epk, size) in sizes {
            let stored = snapshot.get(Keyspace::Meta, &keys::logical_size(self.spec.container, epk))?;
            let stored = stored.as_ref().and_then(LogicalSize::decode).unwrap_or_default();
            let is_owned = stored.owner == Owner::Unknown || stored.owner == size.owner;
            if (stored.bytes, stored.items) != (size.bytes, size.items) || !is_owned {
                report.find(|| format!("logical partition {epk}: {size:?}, accounted {stored:?}"));
            }
        }
        let start = FeedCursor::after(Lsn(0));
        let feed = self.spec.entries(snapshot, Sequence::Latest, start, Lsn(u64::MAX));
        let feed = feed.fold(0, |sum, entry| sum + u64::from(entry.is_ok()));
        if feed != report.items {
            report.find(|| format!("{feed} feed entries do not fit the items"));
        }
        let rids = self.count_own(snapshot, keys::RID_PATH, 8)?;
        if rids != report.items {
            report.find(|| format!("{rids} rid terms do not fit the items"));
        }
        Ok(())
    }
}

fn count(snapshot: &Snapshot, keyspace: Keyspace, prefix: &[u8]) -> Result<u64, EngineError> {
    let upper = keys::after_prefix(prefix);
    let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    snapshot
        .keys(keyspace, Bound::Included(prefix), upper, false)
        .try_fold(0, |sum, key| key.map(|_| sum + 1))
}
