//! A look at all items, for what a sample cannot tell: a few items that could not lie under a key among a great many that
//! can, and how many values a key has.
//!
//! Whoever holds the items shows them twice. First only their ids: two items meet under a key only if they have the same id,
//! and where each id is there once nothing else has to be remembered. Then the items themselves: those whose
//! id was there more than once are told apart by a hash of id and key, for each candidate, and the values of
//! unique keys by a hash of key and values. There is room for so many hashes; what was found until then is true anyway.
//!
//! Only keys that take properties as they are can be looked for in items.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use orrery_doc::{
    DocRef, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, TermOrder, Value,
    encode_key, epk, murmur3_128,
};

use crate::candidate::{Candidate, Part};
use crate::limits;
use crate::population::label;

pub struct Census {
    candidates: Vec<Counted>,
    /// The unique keys of the container, each a list of paths.
    unique: Vec<Vec<Path>>,
    ids: Hashes,
    /// Hashes that there is room for, and of these what is left.
    most: usize,
    room: usize,
    items: u64,
    is_whole: bool,
}

/// What was found of one candidate.
struct Counted {
    candidate: Candidate,
    definition: PartitionKeyDef,
    places: Hashes,
    values: Distinct,
    found: Found,
}

/// What a rekey to a key would refuse.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Items that were looked at.
    pub of: u64,
    pub same_id: Option<Clash>,
    pub unique_key: Option<Clash>,
    /// Bytes of the longest key.
    pub longest: usize,
    /// Values of the key, if all items were looked at.
    pub distinct: Option<f64>,
}

/// Items that cannot lie beside each other, and one of them.
#[derive(Clone, Debug)]
pub struct Clash {
    pub items: u64,
    pub id: String,
    pub key: String,
}

impl Census {
    pub(crate) fn new(candidates: &[Candidate], unique: Vec<Vec<Path>>) -> Census {
        Census {
            candidates: candidates.iter().filter_map(Counted::new).collect(),
            unique,
            ids: Hashes::default(),
            most: limits::CENSUS_HASHES_MAX,
            room: limits::CENSUS_HASHES_MAX,
            items: 0,
            is_whole: true,
        }
    }

    /// To be said before the first look: there is memory for so many hashes, if these are fewer than usual.
    pub fn hold_at_most(&mut self, hashes: usize) {
        self.most = self.most.min(hashes);
        self.room = self.most;
    }

    /// The first look: one id of an item.
    pub fn note_id(&mut self, id: &[u8]) {
        self.is_whole &= self.ids.meet(hash(&[id]), &mut self.room).is_some();
    }

    /// The first look is over; so is the whole census if it did not come to its end.
    pub fn end_of_ids(&mut self, all_were_seen: bool) {
        self.is_whole &= all_were_seen;
        self.ids.keep_met();
        self.room = self.most.saturating_sub(self.ids.0.len());
    }

    /// The second look: an item.
    pub fn look_at(&mut self, id: &[u8], doc: DocRef<'_>) {
        self.items += 1;
        // Where not all ids were seen, any may be there again.
        let may_clash = !self.is_whole || self.ids.was_met(hash(&[id]));
        let unique: Vec<Vec<u8>> = self.unique.iter().map(|paths| values_at(paths, doc)).collect();
        for counted in &mut self.candidates {
            let all_fit = counted.look_at(id, doc, may_clash, &unique, &mut self.room);
            self.is_whole &= all_fit;
        }
    }

    /// The second look is over.
    pub fn end_of_items(&mut self, all_were_seen: bool) {
        self.is_whole &= all_were_seen;
    }

    /// Whether all items were looked at, so that what was not found is not there.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    pub(crate) fn found(&self, candidate: &Candidate) -> Option<Found> {
        let counted = self.candidates.iter().find(|counted| counted.candidate == *candidate)?;
        let distinct = self.is_whole.then(|| counted.values.estimate());
        Some(Found { of: self.items, distinct, ..counted.found.clone() })
    }
}

impl Counted {
    /// None where the application would have to compute the key.
    fn new(candidate: &Candidate) -> Option<Counted> {
        let path = |level: &crate::Level| match level.parts.as_slice() {
            [Part::Path(path)] => Path::parse_property(path).ok(),
            _ => None,
        };
        let paths: Vec<Path> = candidate.levels.iter().map(path).collect::<Option<_>>()?;
        let kind = if paths.len() == 1 { PartitionKeyKind::Hash } else { PartitionKeyKind::MultiHash };
        Some(Counted {
            candidate: candidate.clone(),
            definition: PartitionKeyDef { kind, version: PartitionKeyVersion::V2, paths },
            places: Hashes::default(),
            values: Distinct::new(),
            found: Found::default(),
        })
    }

    /// False where there was no room for what would have to be remembered.
    fn look_at(
        &mut self,
        id: &[u8],
        doc: DocRef<'_>,
        may_clash: bool,
        unique: &[Vec<u8>],
        room: &mut usize,
    ) -> bool {
        let key = PartitionKey::extract(&self.definition, doc);
        self.found.longest = self.found.longest.max(key.byte_length());
        let place = epk(&self.definition, &key);
        self.values.add(hash(&[place.as_bytes()]));
        let clash = || Clash { items: 0, id: String::from_utf8_lossy(id).into_owned(), key: label(&key) };
        let mut all_fit = true;
        if may_clash {
            let met = self.places.meet(hash(&[place.as_bytes(), b"id", id]), room);
            all_fit &= met.is_some();
            note(&mut self.found.same_id, met, clash);
        }
        for (number, values) in unique.iter().enumerate() {
            let parts = [place.as_bytes(), b"unique", &number.to_be_bytes(), values];
            let met = self.places.meet(hash(&parts), room);
            all_fit &= met.is_some();
            note(&mut self.found.unique_key, met, clash);
        }
        all_fit
    }
}

fn note(found: &mut Option<Clash>, met: Option<u64>, clash: impl FnOnce() -> Clash) {
    if let Some(items) = met.filter(|items| *items > 0) {
        found.get_or_insert_with(clash).items += items;
    }
}

/// What a document has at the paths of a unique key; what is missing counts as null.
fn values_at(paths: &[Path], doc: DocRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        let value = doc.get(path);
        let value = if matches!(value, Value::Undefined) { Value::Null } else { value };
        encode_key(value, TermOrder::Sql, &mut bytes);
    }
    bytes
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u32).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    murmur3_128(&bytes, 0) as u64
}

/// Hashes that were met. The lowest bit tells those that were met more than once.
#[derive(Default)]
struct Hashes(HashSet<u64, BuildHasherDefault<AsItIs>>);

impl Hashes {
    /// How many items are known by this to share the hash with another one: none at first, then two at once, then
    /// each further one. Nothing where there is no room.
    fn meet(&mut self, hash: u64, room: &mut usize) -> Option<u64> {
        let (once, again) = (hash & !1, hash | 1);
        if self.0.contains(&once) {
            return Some(if self.0.insert(again) { 2 } else { 1 });
        }
        *room = room.checked_sub(1)?;
        self.0.insert(once);
        Some(0)
    }

    fn was_met(&self, hash: u64) -> bool {
        self.0.contains(&(hash | 1))
    }

    /// Forgets what was met once.
    fn keep_met(&mut self) {
        self.0.retain(|hash| hash & 1 == 1);
        self.0.shrink_to_fit();
    }
}

/// A hash need not be hashed again. Its low bits choose the place, and the lowest one says something else.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0.rotate_right(1)
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers of 64 bits are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// How many different hashes there were, within some hundredths (HyperLogLog: Flajolet and others, 2007).
struct Distinct(Vec<u8>);

impl Distinct {
    /// Places are chosen by so many bits; the error is about 1.04 over the root of their number.
    const BITS: u32 = 14;

    fn new() -> Distinct {
        Distinct(vec![0; 1 << Distinct::BITS])
    }

    fn add(&mut self, hash: u64) {
        let place = (hash >> (u64::BITS - Distinct::BITS)) as usize;
        let rest = hash << Distinct::BITS | 1 << (Distinct::BITS - 1);
        self.0[place] = self.0[place].max(rest.leading_zeros() as u8 + 1);
    }

    fn estimate(&self) -> f64 {
        let places = self.0.len() as f64;
        let sum: f64 = self.0.iter().map(|zeros| f64::from(*zeros).exp2().recip()).sum();
        let guess = 0.7213 / (1.0 + 1.079 / places) * places * places / sum;
        let empty = self.0.iter().filter(|zeros| **zeros == 0).count() as f64;
        // Few are counted better by the places that nothing fell into.
        if guess <= 2.5 * places && empty > 0.0 {
            (places * (places / empty).ln()).round()
        } else {
            guess.round()
        }
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::Doc;
    use serde_json::json;

    use super::*;

    fn census(items: &[Doc], key: &str, unique: &[&str]) -> Census {
        let path = |text: &&str| Path::parse_property(text).expect("a path");
        let candidate = Candidate::parse(key).expect("a candidate");
        let mut census = Census::new(&[candidate], vec![unique.iter().map(path).collect()]);
        if unique.is_empty() {
            census.unique.clear();
        }
        let id = |doc: &Doc| match doc.get(&Path::parse_property("/id").expect("a path")) {
            Value::Str(text) => text.to_owned(),
            other => panic!("{other:?} is no id"),
        };
        items.iter().for_each(|doc| census.note_id(id(doc).as_bytes()));
        census.end_of_ids(true);
        items.iter().for_each(|doc| census.look_at(id(doc).as_bytes(), doc.as_ref()));
        census.end_of_items(true);
        census
    }

    fn items(count: u32, item: impl Fn(u32) -> serde_json::Value) -> Vec<Doc> {
        let parse = |n| orrery_doc::json::parse(item(n).to_string().as_bytes(), 64).expect("JSON");
        (0..count).map(parse).collect()
    }

    fn found(census: &Census, key: &str) -> Found {
        census.found(&Candidate::parse(key).expect("a candidate")).expect("it was looked for")
    }

    #[test]
    fn two_of_many_items_that_share_an_id_are_found() {
        let all = items(5_000, |n| json!({"id": (n % 4_999).to_string(), "shop": n / 4_999, "kind": n % 3}));
        let clash = |key: &str| found(&census(&all, key, &[]), key).same_id.map(|clash| clash.items);
        assert_eq!([clash("/shop"), clash("/kind"), clash("/id")], [None, None, Some(2)]);
        // 4,999 is 1 more than a multiple of 3.
        let all = items(5_002, |n| json!({"id": (n % 5_001).to_string(), "kind": n % 3}));
        let clash =
            found(&census(&all, "/kind", &[]), "/kind").same_id.expect("they share their key as well");
        assert_eq!((clash.items, clash.id.as_str(), clash.key.as_str()), (2, "0", "0"));
    }

    #[test]
    fn unique_keys_hold_within_a_key() {
        let item = |n: u32| json!({"id": n.to_string(), "mail": n % 999, "country": n % 2, "city": n / 999});
        let all = items(1_000, item);
        let clash =
            |key: &str| found(&census(&all, key, &["/mail"]), key).unique_key.map(|clash| clash.items);
        assert_eq!([clash("/country"), clash("/city"), clash("/mail")], [None, None, Some(2)]);
        let nothing = items(10, |n| json!({"id": n.to_string(), "country": "x"}));
        let clash = found(&census(&nothing, "/country", &["/mail"]), "/country").unique_key;
        assert_eq!(clash.map(|clash| clash.items), Some(10), "what is missing is null");
    }

    #[test]
    fn a_census_holds_no_more_than_there_is_memory_for() {
        let all = items(100, |n| json!({"id": n.to_string(), "kind": n % 3}));
        for (hashes, is_whole) in [(100, true), (99, false)] {
            let mut census = Census::new(&[Candidate::parse("/kind").expect("a candidate")], Vec::new());
            census.hold_at_most(hashes);
            (0..all.len()).for_each(|n| census.note_id(n.to_string().as_bytes()));
            assert!(census.ids.0.len() <= hashes);
            census.end_of_ids(true);
            assert_eq!(census.is_whole, is_whole, "{hashes}");
            assert!(census.room <= hashes);
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_not_called_whole() {
        let all = items(100, |n| json!({"id": (n % 50).to_string()}));
        let mut census = census(&all, "/id", &[]);
        assert!(census.is_whole());
        census.room = 0;
        census.look_at(b"another", all[0].as_ref());
        assert!(census.is_whole(), "an id that is there once needs no room");
        let more = items(1, |_| json!({"id": "new"}));
        census.look_at(b"7", more[0].as_ref());
        assert!(!census.is_whole());
        assert_eq!(
            found(&census, "/id").same_id.map(|clash| clash.items),
            Some(100),
            "what was found is true"
        );
    }

    #[test]
    fn values_are_counted_within_some_hundredths() {
        for values in [1, 10, 1_000, 20_000, 100_000] {
            let mut distinct = Distinct::new();
            (0..values * 2).for_each(|n: u32| distinct.add(hash(&[&(n % values).to_be_bytes()])));
            let off = distinct.estimate() / f64::from(values);
            assert!((0.94..1.06).contains(&off), "{values}: {}", distinct.estimate());
        }
    }
}
