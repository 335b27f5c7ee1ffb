//! The keys that a group of writes puts and deletes.
//!
//! Each item is seen once, from the version before the group to the version after it, so no key stands twice in the batch.
//! Every index that the partition keeps up is written from the same two versions.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use orrery_doc::Epk;

use crate::build::Build;
use crate::engine::{Batch, Keyspace};
use crate::indexing::IndexingPolicy;
use crate::path_counts::{PathCountChange, PathCounts, PathDeltas};
use crate::schema::IndexGeneration;
use crate::terms::Terms;
use crate::{Item, ItemKey, PartitionSpec, Schema, keys};

/// Places for more entries than this are counted before they are filled, so that no more are made than are needed.
const ENTRIES_RESERVED: u64 = 1_024;

/// What a group does to one item: from the snapshot's version to the last one.
pub(crate) struct Change {
    pub before: Option<Version>,
    pub after: Option<Version>,
}

/// An item with the terms that the active index has for it, which are worked out once.
#[derive(Clone)]
pub(crate) struct Version(Arc<(Item, Terms)>);

impl Version {
    pub fn new(item: Item, policy: &IndexingPolicy) -> Version {
        let terms = Terms::of(&item, policy);
        Version(Arc::new((item, terms)))
    }

    pub fn item(&self) -> &Item {
        &self.0.0
    }

    pub fn terms(&self) -> &Terms {
        &self.0.1
    }
}

/// How a group moves the index that is being built: where it stood, where it stands, and the items in between.
pub(crate) struct BuildMove {
    pub from: Build,
    pub to: Build,
    pub items: Vec<(ItemKey, Item)>,
}

pub(crate) struct NetEffect<'a> {
    spec: &'a PartitionSpec,
    batch: Batch,
    active: IndexWriter,
    building: Option<(IndexWriter, &'a IndexGeneration, &'a BuildMove)>,
}

/// The entries of one index.
struct IndexWriter {
    generation: u32,
    /// Whether paths that come up for the first time may be counted; not where older items may have them too.
    counts_new: bool,
    deltas: PathDeltas,
}

impl IndexWriter {
    fn new(generation: u32, counts_new: bool) -> IndexWriter {
        IndexWriter { generation, counts_new, deltas: PathDeltas::default() }
    }

    fn change(&mut self, place: &[u8], before: &Terms, after: &Terms, batch: &mut Batch) {
        if before.size().entries + after.size().entries > ENTRIES_RESERVED {
            let mut changed = 0;
            Terms::diff(before, after, |_| changed += 1);
            batch.reserve(changed);
        }
        Terms::diff(before, after, |difference| {
            let key = keys::index_at(self.generation, difference.path_hash, difference.term, place);
            if difference.mark.counted {
                self.deltas.add(difference.path_hash, if difference.added { 1 } else { -1 });
            }
            match difference.added {
                true => batch.put(Keyspace::Index, key, Bytes::new()),
                false => batch.delete(Keyspace::Index, key),
            }
        });
    }

    fn count(
        &self,
        // In no order: it is looked up only.
        counts: &HashMap<u32, Arc<PathCounts>>,
        partition: u32,
        batch: &mut Batch,
    ) -> (u32, PathCountChange) {
        let none = PathCounts::default();
        let counts = counts.get(&self.generation).map_or(&none, Arc::as_ref);
        (self.generation, counts.change(&self.deltas, self.counts_new, partition, self.generation, batch))
    }
}

impl<'a> NetEffect<'a> {
    pub fn new(spec: &'a PartitionSpec, schema: &'a Schema, build: Option<&'a BuildMove>) -> NetEffect<'a> {
        let building = schema.building.as_ref().zip(build);
        NetEffect {
            spec,
            batch: Batch::new(),
            active: IndexWriter::new(schema.index.generation, !schema.index.is_borrowed),
            building: building.map(|(index, build)| (IndexWriter::new(index.generation, true), index, build)),
        }
    }

    pub fn change(&mut self, key: &ItemKey, change: &Change) {
        let none = Terms::default();
        let item_key = keys::item(self.spec.container, key);
        let place = &item_key[4..];
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        self.active.change(
            place,
            before.map_or(&none, Version::terms),
            after.map_or(&none, Version::terms),
            &mut self.batch,
        );
        if let Some((writer, index, build)) = &mut self.building {
            let terms = |version: Option<&Version>, build: &Build| match version {
                Some(version) if build.reached.holds(place) => Terms::of(version.item(), &index.policy),
                _ => Terms::default(),
            };
            let (before, after) = (terms(before, &build.from), terms(after, &build.to));
            writer.change(place, &before, &after, &mut self.batch);
        }
        self.change_rid(place, before, after);
        self.change_expiry(place, before, after);
        self.change_item(&key.epk, &item_key, before, after);
    }

    fn change_rid(&mut self, place: &[u8], before: Option<&Version>, after: Option<&Version>) {
        let rid = |version: Option<&Version>| version.map(|version| version.item().header.rid);
        let (before, after) = (rid(before), rid(after));
        if before == after {
            return;
        }
        let key =
            |rid: u64| keys::index_at(self.spec.rid_generation, keys::RID_PATH, &rid.to_be_bytes(), place);
        if let Some(rid) = before {
            self.batch.delete(Keyspace::Index, key(rid));
        }
        if let Some(rid) = after {
            self.batch.put(Keyspace::Index, key(rid), Bytes::new());
        }
    }

    /// Moves the entry under which an item with a time to live of its own waits for its end.
    fn change_expiry(&mut self, place: &[u8], before: Option<&Version>, after: Option<&Version>) {
        let end = |version: Option<&Version>| version.and_then(|version| version.item().header.own_end());
        let (before, after) = (end(before), end(after));
        if before == after {
            return;
        }
        let key = |end: u64| expiry_key(self.spec, end, place);
        if let Some(end) = before {
            self.batch.delete(Keyspace::Index, key(end));
        }
        if let Some(end) = after {
            self.batch.put(Keyspace::Index, key(end), Bytes::new());
        }
    }

    fn change_item(&mut self, epk: &Epk, item_key: &[u8], before: Option<&Version>, after: Option<&Version>) {
        let feed_key = |version: &Version| {
            let header = &version.item().header;
            keys::feed(self.spec.number_of(epk, header.lsn), header.lsn.0, header.place).to_vec()
        };
        if let Some(version) = before {
            self.batch.delete(Keyspace::Feed, feed_key(version));
        }
        match after {
            Some(version) => {
                self.batch.put(Keyspace::Feed, feed_key(version), item_key[4..].to_vec());
                self.batch.put(Keyspace::Item, item_key.to_vec(), version.item().encode());
            }
            None if before.is_some() => self.batch.delete(Keyspace::Item, item_key.to_vec()),
            None => {}
        }
    }

    /// Writes the items that the build came to. Those that the group changed as well are left to their change.
    // In no order: it is looked up only.
    pub fn build(&mut self, changes: &HashMap<ItemKey, Change>) {
        let Some((writer, index, build)) = &mut self.building else { return };
        let none = Terms::default();
        for (key, item) in build.items.iter().filter(|(key, _)| !changes.contains_key(key)) {
            let item_key = keys::item(self.spec.container, key);
            let terms = Terms::of(item, &index.policy);
            writer.change(&item_key[4..], &none, &terms, &mut self.batch);
        }
        if build.from != build.to {
            self.batch.put(Keyspace::Meta, keys::build(self.spec.number).to_vec(), build.to.encode());
        }
    }

    /// The batch, and the new counts of each index.
    // In no order: it is looked up only.
    pub fn finish(mut self, counts: &HashMap<u32, Arc<PathCounts>>) -> (Batch, Vec<(u32, PathCountChange)>) {
        let mut writers = vec![&self.active];
        writers.extend(self.building.as_ref().map(|(writer, ..)| writer));
        let batch = &mut self.batch;
        let changes =
            writers.into_iter().map(|writer| writer.count(counts, self.spec.number, batch)).collect();
        (self.batch, changes)
    }
}

/// The entry of an item that expires by what it says itself.
pub(crate) fn expiry_key(spec: &PartitionSpec, end: u64, place: &[u8]) -> Vec<u8> {
    keys::index_at(spec.rid_generation, keys::EXPIRY_PATH, &end.to_be_bytes(), place)
}

/// All entries that a stored item must have in an index.
pub(crate) fn item_index_keys(generation: u32, key: &ItemKey, terms: &Terms) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    terms.for_each(|term| entries.push(keys::index(generation, term.path_hash, term.term, key)));
    entries
}
