//! Cursors against plain sets.

use std::collections::{BTreeMap, BTreeSet};

use orrery_doc::{Epk, EpkRange, TermOrder, Value, encode_term, json};
use proptest::prelude::*;

use super::places::{PlaceRange, place_of};
use super::reader::IndexReader;
use super::{Candidates, EntryList, ItemLoader, TermRange};
use crate::engine::{Batch, Engine, Keyspace};
use crate::limits::INDEX_COLLECTED_MAX;
use crate::{Etag, Item, ItemHeader, ItemId, ItemKey, Lsn, keys};

const GENERATION: u32 = 7;
const RIDS: u32 = 3;
const CONTAINER: u32 = 5;
const PATHS: u64 = 3;
const VALUES: u8 = 6;
const ITEMS: u8 = 48;

/// Which items have which values at which paths; paths are numbers from one on.
type Entries = BTreeSet<(u64, u8, u8)>;

fn item_key(item: u8) -> ItemKey {
    // Several items in each logical partition, and zeros in some of the keys.
    let epk = Epk::from_bytes(&[item / 5 * 16, 0, item / 5]);
    ItemKey { epk, id: ItemId::new(format!("item{:02}", item % 5)).expect("a short id") }
}

/// Values of several types, in their order.
fn term(value: u8) -> Vec<u8> {
    let long = "x".repeat(200);
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::Int(-3),
        Value::Double(2.5),
        Value::Str("a\0b"),
        Value::Str(&long),
    ];
    let mut out = Vec::new();
    encode_term(values[usize::from(value)], TermOrder::Sql, &mut out);
    out
}

fn stored_item(item: u8) -> Item {
    let header = ItemHeader {
        flags: 0,
        lsn: Lsn(1),
        place: 0,
        time: 1,
        etag: Etag(1),
        ttl: 0,
        rid: 1000 - u64::from(item),
        json_bytes: 10,
        origin: None,
    };
    Item { header, doc: json::parse(format!("{{\"n\":{item}}}").as_bytes(), 8).expect("JSON") }
}

fn engine(entries: &Entries) -> Engine {
    let engine = Engine::in_memory();
    let mut batch = Batch::default();
    for (path, value, item) in entries {
        batch.put(
            Keyspace::Index,
            keys::index(GENERATION, *path, &term(*value), &item_key(*item)),
            Vec::new(),
        );
        // Neighbours that must never be seen.
        batch.put(
            Keyspace::Index,
            keys::index(GENERATION + 1, *path, &term(*value), &item_key(*item)),
            Vec::new(),
        );
    }
    for item in 0..ITEMS {
        let stored = stored_item(item);
        let rid = stored.header.rid.to_be_bytes();
        batch.put(Keyspace::Index, keys::index(RIDS, keys::RID_PATH, &rid, &item_key(item)), Vec::new());
        batch.put(Keyspace::Item, keys::item(CONTAINER, &item_key(item)), stored.encode());
    }
    engine.commit(batch).expect("memory does not fail");
    engine
}

#[derive(Clone, Debug)]
struct Cut {
    lower: u8,
    upper: u8,
    after: Option<u8>,
}

impl Cut {
    fn range(&self) -> PlaceRange {
        let min = if self.lower == 0 { Epk::MIN } else { item_key(self.lower).epk };
        let max = if self.upper >= ITEMS { Epk::max() } else { item_key(self.upper).epk };
        PlaceRange::new(&EpkRange { min, max }, self.after.map(item_key).as_ref())
    }

    fn holds(&self, item: u8) -> bool {
        let key = item_key(item);
        let above = self.lower == 0 || key.epk >= item_key(self.lower).epk;
        let below = self.upper >= ITEMS || key.epk < item_key(self.upper).epk;
        above && below && self.after.is_none_or(|after| key > item_key(after))
    }
}

/// A tree of conditions, and what it means.
#[derive(Clone, Debug)]
enum Wanted {
    Values(u64, Vec<u8>),
    Between(u64, u8, u8),
    All(Vec<Wanted>),
    Any(Vec<Wanted>),
}

impl Wanted {
    fn candidates(&self) -> Candidates {
        match self {
            Wanted::Values(path, values) if values.len() == 1 => {
                Candidates::Term { path_hash: *path, term: term(values[0]) }
            }
            Wanted::Values(path, values) => {
                let ranges = values.iter().map(|value| single(*value)).collect();
                Candidates::Collected { list: EntryList::of_path(*path), ranges }
            }
            Wanted::Between(path, low, high) => {
                Candidates::Collected { list: EntryList::of_path(*path), ranges: vec![between(*low, *high)] }
            }
            Wanted::All(list) => Candidates::All(list.iter().map(Wanted::candidates).collect()),
            Wanted::Any(list) => Candidates::Any(list.iter().map(Wanted::candidates).collect()),
        }
    }

    fn holds(&self, entries: &Entries, item: u8) -> bool {
        match self {
            Wanted::Values(path, values) => values.iter().any(|v| entries.contains(&(*path, *v, item))),
            Wanted::Between(path, low, high) => (*low..*high).any(|v| entries.contains(&(*path, v, item))),
            Wanted::All(list) => !list.is_empty() && list.iter().all(|part| part.holds(entries, item)),
            Wanted::Any(list) => list.iter().any(|part| part.holds(entries, item)),
        }
    }
}

fn single(value: u8) -> TermRange {
    let term = term(value);
    let end = keys::after_prefix(&term).expect("terms are not all ones");
    term..end
}

fn between(low: u8, high: u8) -> TermRange {
    let end = if high >= VALUES { vec![0xff] } else { term(high) };
    term(low)..end
}

fn entries() -> impl Strategy<Value = Entries> {
    prop::collection::btree_set((1..=PATHS, 0..VALUES, 0..ITEMS), 0..200)
}

fn cut() -> impl Strategy<Value = Cut> {
    (0..ITEMS, 0..=ITEMS, prop::option::of(0..ITEMS)).prop_map(|(lower, upper, after)| {
        // Most of the time everything, so that there is something to find.
        if lower % 3 == 0 { Cut { lower: 0, upper: ITEMS, after } } else { Cut { lower, upper, after } }
    })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let leaf = prop_oneof![
        (1..=PATHS, 0..VALUES).prop_map(|(path, value)| Wanted::Values(path, vec![value])),
        (1..=PATHS, prop::collection::btree_set(0..VALUES, 0..4))
            .prop_map(|(path, values)| Wanted::Values(path, values.into_iter().collect())),
        (1..=PATHS, 0..VALUES - 1, 1..=VALUES).prop_map(|(path, low, high)| Wanted::Between(
            path,
            low,
            high.max(low + 1)
        )),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Wanted::All),
            prop::collection::vec(inner, 0..4).prop_map(Wanted::Any),
        ]
    })
}

fn places(entries: impl Iterator<Item = u8>) -> Vec<Vec<u8>> {
    let mut places: Vec<Vec<u8>> = entries.map(|item| place_of(&item_key(item))).collect();
    places.sort();
    places
}

proptest! {
    #[test]
    fn cursors_find_what_sets_hold(entries in entries(), cut in cut(), wanted in wanted()) {
        let snapshot = engine(&entries).snapshot();
        let reader = IndexReader::new(&snapshot, GENERATION, RIDS, cut.range());
        let mut cursor = reader.places(wanted.candidates(), INDEX_COLLECTED_MAX).unwrap().unwrap();
        let mut found = Vec::new();
        while let Some(place) = cursor.current() {
            found.push(place.to_vec());
            cursor.advance().unwrap();
        }
        let expected = places((0..ITEMS).filter(|&i| cut.holds(i) && wanted.holds(&entries, i)));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn seeking_skips_and_never_goes_back(
        entries in entries(),
        wanted in wanted(),
        goals in prop::collection::vec(0..ITEMS, 1..12),
    ) {
        let snapshot = engine(&entries).snapshot();
        let cut = Cut { lower: 0, upper: ITEMS, after: None };
        let reader = IndexReader::new(&snapshot, GENERATION, RIDS, cut.range());
        let mut cursor = reader.places(wanted.candidates(), INDEX_COLLECTED_MAX).unwrap().unwrap();
        let all = places((0..ITEMS).filter(|&item| wanted.holds(&entries, item)));
        let mut from = Vec::new();
        for goal in goals {
            let goal = place_of(&item_key(goal));
            cursor.seek(&goal).unwrap();
            from = from.max(goal);
            let expected = all.iter().find(|place| **place >= from).map(Vec::as_slice);
            prop_assert_eq!(cursor.current(), expected);
            if let Some(place) = expected {
                from = place.to_vec();
            }
        }
    }

    #[test]
    fn term_order_is_the_order_of_values(
        entries in entries(),
        cut in cut(),
        path in 1..=PATHS,
        bounds in prop::collection::btree_set(0..=VALUES, 2..5),
        from in prop::option::of(0..VALUES),
        backward: bool,
    ) {
        let snapshot = engine(&entries).snapshot();
        let reader = IndexReader::new(&snapshot, GENERATION, RIDS, cut.range());
        let bounds: Vec<u8> = bounds.into_iter().collect();
        let pairs: Vec<(u8, u8)> = bounds.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let ranges: Vec<TermRange> = pairs.iter().map(|&(low, high)| between(low, high)).collect();
        let start = from.map(term);
        let mut cursor = reader.ordered(path, &[false], &ranges, start.as_deref(), backward);
        let mut found = Vec::new();
        while let Some(entry) = cursor.next_entry().unwrap() {
            found.push((entry.run().to_vec(), entry.place().to_vec()));
            prop_assert_eq!(entry.is_cut(), entry.run() == term(VALUES - 1).as_slice());
        }
        let mut runs = Vec::new();
        let mut cursor = reader.ordered(path, &[false], &ranges, start.as_deref(), backward);
        while let Some(entry) = cursor.next_entry().unwrap() {
            runs.push(entry.run().to_vec());
            cursor.skip_run(&entry);
        }
        let mut distinct: Vec<_> = found.iter().map(|(run, _)| run.clone()).collect();
        distinct.dedup();
        prop_assert_eq!(runs, distinct);
        let mut expected: Vec<_> = entries
            .iter()
            .filter(|(p, value, item)| {
                *p == path
                    && cut.holds(*item)
                    && pairs.iter().any(|(low, high)| low <= value && value < high)
                    && from.is_none_or(|from| if backward { *value <= from } else { *value >= from })
            })
            .map(|(_, value, item)| (term(*value), place_of(&item_key(*item))))
            .collect();
        expected.sort();
        if backward {
            expected.reverse();
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn counts_stop_at_their_cap(entries in entries(), path in 1..=PATHS, low in 0..VALUES - 1, most in 0usize..60) {
        let snapshot = engine(&entries).snapshot();
        let cut = Cut { lower: 0, upper: ITEMS, after: None };
        let reader = IndexReader::new(&snapshot, GENERATION, RIDS, cut.range());
        let ranges = [between(low, VALUES)];
        let there = entries.iter().filter(|(p, value, _)| *p == path && *value >= low).count();
        prop_assert_eq!(reader.find_up_to(&EntryList::of_path(path), &ranges, most).unwrap().is_some(), there <= most);
        let counted = reader.count(&EntryList::of_path(path), &ranges, most).unwrap();
        prop_assert_eq!(counted, (there <= most).then_some(there as u64));
        let fits = reader.places(Candidates::Collected { list: EntryList::of_path(path), ranges: ranges.into() }, most);
        prop_assert_eq!(fits.unwrap().is_some(), there <= most);
    }

    #[test]
    fn the_loader_finds_every_item(wanted in prop::collection::btree_set(0..ITEMS, 0..48)) {
        let snapshot = engine(&Entries::new()).snapshot();
        let mut loader = ItemLoader::new(&snapshot, CONTAINER);
        let by_place: BTreeMap<_, _> = wanted.iter().map(|i| (place_of(&item_key(*i)), *i)).collect();
        for (place, item) in by_place {
            prop_assert_eq!(loader.load(&place).unwrap().header.rid, stored_item(item).header.rid);
        }
        prop_assert!(loader.load(b"nowhere").is_err());
    }
}

#[test]
fn rids_come_in_the_order_of_creation() {
    let snapshot = engine(&Entries::new()).snapshot();
    let cut = Cut { lower: 5, upper: 20, after: None };
    let reader = IndexReader::new(&snapshot, GENERATION, RIDS, cut.range());
    let rids = |from: Option<u8>, backward: bool| {
        let mut cursor = reader.rids(from.map(|item| stored_item(item).header.rid), backward);
        let mut found = Vec::new();
        while let Some(entry) = cursor.next_entry().unwrap() {
            found.push((1000 - entry.rid()) as u8);
        }
        found
    };
    // Later items have smaller rids here.
    assert_eq!(rids(None, false), (5..20).rev().collect::<Vec<u8>>());
    assert_eq!(rids(None, true), (5..20).collect::<Vec<u8>>());
    assert_eq!(rids(Some(7), false), [7, 6, 5]);
    assert_eq!(rids(Some(17), true), [17, 18, 19]);
}

#[test]
fn composite_entries_end_where_their_terms_do() {
    let turned = |mut bytes: Vec<u8>| {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        bytes
    };
    let cases = [
        (vec![term(2), turned(term(4))], false),
        (vec![term(4), turned(term(2))], false),
        // What follows a cut term is not there.
        (vec![term(5)], true),
        (vec![term(0), turned(term(5))], true),
    ];
    for (terms, cut) in cases {
        let mut bytes = terms.concat();
        let length = bytes.len();
        bytes.extend_from_slice(&place_of(&item_key(9)));
        let measured = super::term::measure(&bytes, &[false, true]).expect("terms");
        assert_eq!((measured.bytes, measured.cut), (length, cut));
    }
    assert_eq!(super::term::measure(&[0x50, b'a'], &[false]), None);
    assert_eq!(super::term::measure(&[], &[false]), None);
}
