//! Unique keys: combinations of values that no two items of a logical partition may share.
//!
//! Each item has one entry for each unique key, which names the values and, as its value, the item. It stands behind
//! the EPK, because uniqueness ends where the logical partition does. Looking an entry up is one read, and writing
//! it is part of the commit of the item, so two writers of one group see each other's entries as they see each other's
//! items.
//!
//! Short values stand in the entry as they are; long ones are represented by a digest. A writer that finds an entry
//! compares the values themselves before it calls them equal, so an entry may name several items whose values only
//! look alike. The same comparison tells two partition keys of one EPK apart.
//!
//! Values are compared as the service does: numbers as doubles, and what is missing as null.

use std::collections::HashMap;

use orrery_doc::{Doc, Epk, Path, Plain, TermOrder, Value, encode_key};
use sha2::{Digest, Sha256};

use crate::ItemId;
use crate::limits::JSON_DEPTH_MAX;

/// Values that take no more bytes stand in the entry themselves.
const EXACT_BYTES_MAX: usize = 255;

/// The unique keys of a container, each a list of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueKeys(Vec<Vec<Path>>);

/// What one item has at one unique key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    number: u8,
    values: Vec<u8>,
}

impl UniqueKeys {
    pub fn new(keys: Vec<Vec<Path>>) -> UniqueKeys {
        UniqueKeys(keys)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths of each key.
    pub fn paths(&self) -> &[Vec<Path>] {
        &self.0
    }

    /// What a document has at each of the keys.
    pub(crate) fn claims(&self, doc: &Doc) -> Vec<Claim> {
        let claim = |(number, paths): (usize, &Vec<Path>)| {
            let mut values = Vec::new();
            paths.iter().for_each(|path| write_value(doc.get(path), JSON_DEPTH_MAX, &mut values));
            Claim { number: number as u8, values }
        };
        self.0.iter().enumerate().map(claim).collect()
    }
}

impl Claim {
    /// What stands behind the EPK in the key of the entry.
    pub fn tail(&self) -> Vec<u8> {
        let mut tail = Vec::with_capacity(2 + self.values.len().min(EXACT_BYTES_MAX));
        tail.push(self.number);
        if self.values.len() <= EXACT_BYTES_MAX {
            tail.push(0);
            tail.extend_from_slice(&self.values);
        } else {
            tail.push(1);
            tail.extend_from_slice(&Sha256::digest(&self.values));
        }
        tail
    }
}

/// Writes a value so that two are equal exactly if their bytes are, also with others behind them.
fn write_value(value: Value<'_>, depth_left: usize, out: &mut Vec<u8>) {
    let number = |number: f64, out: &mut Vec<u8>| {
        out.push(3);
        // Both zeros are one number.
        out.extend_from_slice(&(number + 0.0).to_bits().to_be_bytes());
    };
    match value {
        Value::Undefined | Value::Null => out.push(0),
        Value::Bool(value) => out.push(1 + u8::from(value)),
        Value::Int(value) => number(value as f64, out),
        Value::Double(value) => number(value, out),
        Value::Str(text) => {
            out.push(4);
            write_blob(text.as_bytes(), out);
        }
        // No document is nested deeper.
        Value::Array(_) | Value::Object(_) if depth_left == 0 => out.push(8),
        Value::Array(array) => {
            out.push(5);
            out.extend_from_slice(&(array.len() as u32).to_be_bytes());
            array.iter().for_each(|element| write_value(element, depth_left - 1, out));
        }
        Value::Object(object) => {
            out.push(6);
            out.extend_from_slice(&(object.len() as u32).to_be_bytes());
            for (name, value) in object.iter_by_name() {
                write_blob(name.as_bytes(), out);
                write_value(value, depth_left - 1, out);
            }
        }
        Value::Typed(_) | Value::Map(_) => write_typed(value, number, out),
    }
}

/// Numbers meet those of JSON; all else is told apart by its type.
#[cold]
fn write_typed(value: Value<'_>, number: impl Fn(f64, &mut Vec<u8>), out: &mut Vec<u8>) {
    if let Value::Typed(typed) = value {
        match typed.plain() {
            Plain::Int(shown) => return number(shown as f64, out),
            Plain::Double(shown) => return number(shown, out),
            Plain::Null | Plain::Text(_) => {}
        }
    }
    let mut key = Vec::new();
    encode_key(value, TermOrder::Bson, &mut key);
    out.push(7);
    write_blob(&key, out);
}

fn write_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The items that an entry names, by their ids: one, but for values that only look alike.
pub(crate) type Holders = Vec<ItemId>;

pub(crate) fn encode_holders(holders: &Holders) -> Vec<u8> {
    let mut out = Vec::with_capacity(holders.iter().map(|id| 2 + id.len()).sum());
    for id in holders {
        out.extend_from_slice(&(id.len() as u16).to_be_bytes());
        out.extend_from_slice(id.as_bytes());
    }
    out
}

/// `None` when the bytes are not a list of ids.
pub(crate) fn decode_holders(mut bytes: &[u8]) -> Option<Holders> {
    let mut holders = Vec::with_capacity(1);
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (id, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        holders.push(ItemId::new(id).ok()?);
        bytes = rest;
    }
    bytes.is_empty().then_some(holders)
}

/// The entries that a group has looked at, with who holds them now and who did before the group.
#[derive(Default)]
pub(crate) struct EntryTable {
    entries: HashMap<Vec<u8>, (Holders, Holders)>,
}

impl EntryTable {
    pub fn get(&self, entry: &[u8]) -> Option<&Holders> {
        self.entries.get(entry).map(|(_, now)| now)
    }

    /// Remembers an entry as it is stored.
    pub fn load(&mut self, entry: Vec<u8>, stored: Holders) {
        self.entries.insert(entry, (stored.clone(), stored));
    }

    /// Takes over what a transaction changed; it has loaded each entry before.
    pub fn apply(&mut self, changed: HashMap<Vec<u8>, Holders>) {
        for (entry, holders) in changed {
            self.entries.entry(entry).or_default().1 = holders;
        }
    }

    /// Entries whose holders the group changed, in their order.
    pub fn changed(&self) -> Vec<(&[u8], &Holders)> {
        let is_changed = |(_, (before, now)): &(&Vec<u8>, &(Holders, Holders))| before != now;
        let changed = self.entries.iter().filter(is_changed);
        let mut changed: Vec<_> = changed.map(|(entry, (_, now))| (entry.as_slice(), now)).collect();
        changed.sort_unstable_by_key(|(entry, _)| *entry);
        changed
    }
}

/// The keys of all entries that an item must have.
pub(crate) fn entry_keys(generation: u32, epk: &Epk, claims: &[Claim]) -> Vec<Vec<u8>> {
    claims.iter().map(|claim| crate::keys::unique(generation, epk, &claim.tail())).collect()
}

#[cfg(test)]
mod tests {
    use orrery_doc::json;

    use super::*;

    fn claims(keys: &[&[&str]], text: &str) -> Vec<Claim> {
        let path = |text: &&str| Path::parse_property(text).expect("a path");
        let keys = keys.iter().map(|paths| paths.iter().map(path).collect()).collect();
        UniqueKeys::new(keys).claims(&json::parse(text.as_bytes(), 128).expect("JSON"))
    }

    fn are_equal(a: &str, b: &str) -> bool {
        let of = |text: &str| claims(&[&["/a", "/b/c"]], text);
        assert_eq!(of(a) == of(b), of(a)[0].tail() == of(b)[0].tail(), "{a} {b}");
        of(a) == of(b)
    }

    #[test]
    fn values_are_equal_as_the_service_sees_them() {
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"a":1.0,"x":2}"#),
            (r#"{"a":0}"#, r#"{"a":-0.0}"#),
            (r#"{"a":9007199254740992}"#, r#"{"a":9007199254740993}"#),
            (r#"{"a":null,"b":{"c":1}}"#, r#"{"b":{"c":1}}"#),
            (r#"{}"#, r#"{"a":null,"b":{"c":null}}"#),
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
        ] {
            assert!(are_equal(a, b), "{a} {b}");
        }
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":""}"#, r#"{"a":null}"#),
            (r#"{"a":false}"#, r#"{"a":null}"#),
            (r#"{"a":"x","b":{"c":"y"}}"#, r#"{"a":"xy","b":{"c":""}}"#),
            (r#"{"a":"x","b":{"c":"y"}}"#, r#"{"a":"y","b":{"c":"x"}}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":[]}"#, r#"{"a":{}}"#),
            (r#"{"a":"A"}"#, r#"{"a":"a"}"#),
        ] {
            assert!(!are_equal(a, b), "{a} {b}");
        }
    }

    #[test]
    fn each_key_has_an_entry_of_its_own_and_long_values_make_short_keys() {
        let long = "x".repeat(1_000_000);
        let claims = claims(&[&["/a"], &["/b"], &["/c"]], &format!(r#"{{"a":"{long}","b":"{long}","c":1}}"#));
        assert_eq!(claims.len(), 3);
        assert_ne!(claims[0].tail(), claims[1].tail());
        assert!(claims.iter().all(|claim| claim.tail().len() < 300));
    }

    #[test]
    fn holders_read_back() {
        let id = |bytes: &dyn AsRef<[u8]>| ItemId::new(bytes).expect("a short id");
        for holders in [vec![], vec![ItemId::from("a")], vec![id(&"é".repeat(500)), id(&[0xFF, 0x00])]] {
            assert_eq!(decode_holders(&encode_holders(&holders)), Some(holders));
        }
        for bytes in [&[0][..], &[0, 2, b'a'], &[0xFF, 0xFF, 0xFF]] {
            assert_eq!(decode_holders(bytes), None, "{bytes:?}");
        }
    }
}
