//! The effective partition key (EPK): where a partition key lies in the key space.
//!
//! The space goes from the empty string to `FF`. Clients compute EPKs themselves, so every bit is given
//! by the service:
//!
//! - **Version 2** hashes all components together with 128 bits and clears the top two bits, so that
//!   keys use `00…` to `3F…`. Always 16 bytes.
//! - **MultiHash** puts the version 2 hashes of the components one behind the other. A prefix of a key
//!   is thus a prefix of its EPK, and the range of a prefix is `[epk, epk FF)`.
//! - **Version 1** hashes with 32 bits, writes the hash as a number in an order-preserving encoding, and
//!   puts the encoded components behind it. Strings count up to 100 UTF-16 code units: clients that cut
//!   at bytes instead disagree with the service.
//! - **Range** has only the encoded components, of strings the first 101 bytes.
//!
//! Two more are our own, for APIs whose clients do not compute them:
//!
//! - **Exact** hashes as version 2 does, from the exact bytes of typed values.
//! - **Token** has Cassandra's token of the key, behind two zero bits so that it fills the same space as a hash of
//!   version 2, and behind it the key. So a range of tokens is a range of EPKs, and no two keys share a place.
//!
//! So long strings of version 1 and Range may share an EPK, and so may any two keys that are hashed with 128 bits: the hash
//! can be computed backwards. [`PartitionKeyDef::may_share_place`] tells.
//!
//! Boundaries of partitions may be shorter or longer than the EPKs they divide. A boundary with zeros
//! behind it is the same boundary, so ranges compare their ends as if zeros went on for ever.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::murmur3;
use crate::partition_key::{
    ExactKey, KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion,
};

/// The bytes that need no allocation: a MultiHash EPK of three levels.
const INLINE_BYTES: usize = 48;
/// UTF-16 code units of a string that version 1 looks at.
const V1_STRING_UNITS: usize = 100;
/// UTF-8 bytes of a string that the order-preserving encoding writes in full.
const BINARY_STRING_BYTES: usize = 100;
/// The shortest string, in bytes, of which another can be the beginning at the same place: a code unit has a byte at least.
pub(crate) const CUT_BYTES_MIN: usize = 100;
/// The largest 128-bit hash after its top two bits are cleared.
const MAX_V2_HASH: u128 = u128::MAX >> 2;
/// Where a token stands in the first 128 bits of an EPK: behind two bits, as the hashes of version 2.
const TOKEN_SHIFT: u32 = 62;
/// The bytes that these two bits and a token take.
const TOKEN_BYTES: usize = 9;

/// An effective partition key, or a boundary between some. Ordered by its bytes.
#[derive(Clone)]
pub struct Epk(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

/// A range of the key space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EpkRange {
    /// The first EPK inside.
    pub min: Epk,
    /// The first EPK behind.
    pub max: Epk,
}

/// Computes the EPK of a key. The empty key gives the start of the space.
pub fn epk(def: &PartitionKeyDef, key: &PartitionKey) -> Epk {
    let components = key.components();
    if components.is_empty() {
        return Epk::MIN;
    }
    if components.contains(&KeyComponent::Infinity) {
        return Epk::max();
    }
    let mut bytes = Vec::with_capacity(64);
    match (def.kind, def.version) {
        (PartitionKeyKind::MultiHash, _) => {
            let mut hashes = Vec::with_capacity(INLINE_BYTES);
            for component in components {
                bytes.clear();
                put_hashed(component, None, 0xff, &mut bytes);
                hashes.extend_from_slice(&hash_v2(&bytes));
            }
            Epk::from_bytes(&hashes)
        }
        (PartitionKeyKind::Token, _) => token_epk(components),
        (PartitionKeyKind::Hash, PartitionKeyVersion::V2) | (PartitionKeyKind::Exact, _) => {
            for component in components {
                put_hashed(component, None, 0xff, &mut bytes);
            }
            Epk::from_bytes(&hash_v2(&bytes))
        }
        (PartitionKeyKind::Hash, PartitionKeyVersion::V1) => {
            for component in components {
                put_hashed(component, Some(V1_STRING_UNITS), 0, &mut bytes);
            }
            let hash = murmur3::x86_32(&bytes);
            bytes.clear();
            put_number(f64::from(hash), &mut bytes);
            for component in components {
                put_binary(component, Some(V1_STRING_UNITS), &mut bytes);
            }
            Epk::from_bytes(&bytes)
        }
        (PartitionKeyKind::Range, _) => {
            for component in components {
                put_binary(component, None, &mut bytes);
            }
            Epk::from_bytes(&bytes)
        }
    }
}

/// The range that holds exactly the items of a key: one logical partition for a full key, all that
/// start with it for a prefix of a hierarchical one, everything for the empty key.
pub fn prefix_range(def: &PartitionKeyDef, key: &PartitionKey) -> EpkRange {
    if key.is_empty() {
        return EpkRange::full();
    }
    let min = epk(def, key);
    let hashed = match def.kind {
        PartitionKeyKind::Hash | PartitionKeyKind::MultiHash => def.version == PartitionKeyVersion::V2,
        PartitionKeyKind::Exact | PartitionKeyKind::Token => true,
        PartitionKeyKind::Range => false,
    };
    let next = (hashed && key.is_full(def)).then(|| min.next()).flatten();
    let max = next.unwrap_or_else(|| {
        // Keys of the older encodings end themselves, so none goes on behind another.
        let mut bytes = min.as_bytes().to_vec();
        bytes.push(0xff);
        Epk::from_bytes(&bytes)
    });
    EpkRange { min, max }
}

/// The inner boundaries that divide the key space into `n` even ranges.
pub fn boundaries(def: &PartitionKeyDef, n: u32) -> Vec<Epk> {
    let n = n.max(1);
    let boundary = |i: u32| match (def.kind, def.version) {
        (PartitionKeyKind::MultiHash | PartitionKeyKind::Exact | PartitionKeyKind::Token, _)
        | (_, PartitionKeyVersion::V2) => {
            let step = MAX_V2_HASH / u128::from(n);
            hash_boundary(def, step * u128::from(i))
        }
        (_, PartitionKeyVersion::V1) => {
            let mut bytes = Vec::with_capacity(16);
            put_number(f64::from(u32::MAX / n * i), &mut bytes);
            Epk::from_bytes(&bytes)
        }
    };
    (1..n).map(boundary).collect()
}

/// The inner boundaries that divide a part of the key space into `n` even ranges; fewer when it is too narrow.
pub fn divide(def: &PartitionKeyDef, range: &EpkRange, n: u32) -> Vec<Epk> {
    let n = n.max(1);
    let is_hashed_v1 = def.kind == PartitionKeyKind::Hash && def.version == PartitionKeyVersion::V1;
    let mut found: Vec<Epk> = Vec::new();
    for i in 1..n {
        let boundary = if is_hashed_v1 {
            let (low, high) = (first_hash(&range.min), first_hash(&range.max));
            v1_boundary(low + (high - low) * u64::from(i) / u64::from(n))
        } else {
            let end =
                if range.max.as_bytes().first() >= Some(&0x40) { MAX_V2_HASH } else { padded(&range.max) };
            let low = padded(&range.min).min(end);
            hash_boundary(def, low + (end - low) / u128::from(n) * u128::from(i))
        };
        let last = found.last().unwrap_or(&range.min);
        if *last < boundary && boundary < range.max {
            found.push(boundary);
        }
    }
    found
}

/// The shortest boundary that lies behind one EPK and not behind another, which is greater.
pub fn boundary_between(below: &Epk, above: &Epk) -> Epk {
    let (low, high) = (below.as_bytes(), above.as_bytes());
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    Epk::from_bytes(&high[..high.len().min(same + 1)])
}

/// A boundary among hashes of 128 bits, or the token below it: keys of one token stay together.
fn hash_boundary(def: &PartitionKeyDef, hash: u128) -> Epk {
    match def.kind {
        PartitionKeyKind::Token => Epk::at_token((hash >> TOKEN_SHIFT) as i64 ^ i64::MIN),
        _ => Epk::from_bytes(&hash.to_be_bytes()),
    }
}

/// The token of a key, its length and the key. With the length in front no EPK goes on behind another.
fn token_epk(components: &[KeyComponent]) -> Epk {
    let key = token_key(components);
    let mut bytes = Epk::at_token(murmur3::cassandra_token(&key)).as_bytes().to_vec();
    bytes.extend_from_slice(&(key.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&key);
    Epk::from_bytes(&bytes)
}

/// The bytes that Cassandra makes a token of: those of the one column, or of several, each behind its length and with a
/// zero behind it.
fn token_key(components: &[KeyComponent]) -> Vec<u8> {
    let mut key = Vec::new();
    if let [component] = components {
        put_cql(component, &mut key);
        return key;
    }
    for component in components {
        let start = key.len();
        key.extend_from_slice(&[0, 0]);
        put_cql(component, &mut key);
        let length = (key.len() - start - 2) as u16;
        key[start..start + 2].copy_from_slice(&length.to_be_bytes());
        key.push(0);
    }
    key
}

fn put_cql(component: &KeyComponent, out: &mut Vec<u8>) {
    match component {
        KeyComponent::Exact(key) => out.extend_from_slice(key.bytes()),
        // A part that has no value has no bytes.
        other => {
            crate::cql::write(other.as_value(), out);
        }
    }
}

fn v1_boundary(hash: u64) -> Epk {
    let mut bytes = Vec::with_capacity(16);
    put_number(hash as f64, &mut bytes);
    Epk::from_bytes(&bytes)
}

/// The first hash of version 1 that is not below a boundary.
fn first_hash(boundary: &Epk) -> u64 {
    let (mut low, mut high) = (0, 1u64 << 32);
    while low < high {
        let middle = low + (high - low) / 2;
        if v1_boundary(middle) < *boundary { low = middle + 1 } else { high = middle }
    }
    low
}

/// The first 16 bytes as a number, as if zeros followed.
fn padded(epk: &Epk) -> u128 {
    let mut bytes = [0; 16];
    let count = epk.as_bytes().len().min(16);
    bytes[..count].copy_from_slice(&epk.as_bytes()[..count]);
    u128::from_be_bytes(bytes)
}

impl Epk {
    /// The start of the key space.
    pub const MIN: Epk = Epk(Repr::Inline { len: 0, bytes: [0; INLINE_BYTES] });

    /// The first place at which keys with this token of Cassandra lie.
    pub fn at_token(token: i64) -> Epk {
        let unsigned = (token ^ i64::MIN) as u64;
        Epk::from_bytes(&(u128::from(unsigned) << TOKEN_SHIFT).to_be_bytes()[..TOKEN_BYTES])
    }

    /// The end of the key space; no key lies there.
    pub fn max() -> Epk {
        Epk::from_bytes(&[0xff])
    }

    pub fn from_bytes(bytes: &[u8]) -> Epk {
        if bytes.len() > INLINE_BYTES {
            return Epk(Repr::Heap(bytes.into()));
        }
        let mut inline = [0; INLINE_BYTES];
        inline[..bytes.len()].copy_from_slice(bytes);
        Epk(Repr::Inline { len: bytes.len() as u8, bytes: inline })
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Heap(bytes) => bytes,
        }
    }

    /// Upper-case hexadecimal digits, as on the wire.
    pub fn to_hex(&self) -> String {
        let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
        self.as_bytes().iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Reads hexadecimal digits of either case. Texts longer than any EPK are refused.
    pub fn from_hex(text: &str) -> Option<Epk> {
        if !text.len().is_multiple_of(2) || text.len() > 8192 {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .chunks_exact(2)
            .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
            .collect();
        bytes.map(|bytes| Epk::from_bytes(&bytes))
    }

    /// The next EPK of the same length, or none behind the last.
    pub fn next(&self) -> Option<Epk> {
        let mut bytes = self.as_bytes().to_vec();
        for byte in bytes.iter_mut().rev() {
            let (sum, carried) = byte.overflowing_add(1);
            *byte = sum;
            if !carried {
                return Some(Epk::from_bytes(&bytes));
            }
        }
        None
    }

    /// Compares places in the key space, where zeros at the end change nothing.
    pub fn compare_place(&self, other: &Epk) -> Ordering {
        trimmed(self.as_bytes()).cmp(trimmed(other.as_bytes()))
    }

    /// Appends the EPK as part of a storage key: a zero byte becomes `00 FF` and `00 00` ends it, so that
    /// keys sort exactly by EPK and those of one logical partition share a prefix that no other has.
    pub fn encode_key(&self, out: &mut Vec<u8>) {
        for &byte in self.as_bytes() {
            out.push(byte);
            if byte == 0 {
                out.push(0xff);
            }
        }
        out.extend_from_slice(&[0, 0]);
    }

    /// Reads what [`Epk::encode_key`] wrote and gives what follows it.
    pub fn decode_key(key: &[u8]) -> Option<(Epk, &[u8])> {
        let mut inline = [0; INLINE_BYTES];
        let mut heap = Vec::new();
        let mut len = 0;
        let mut at = 0;
        loop {
            let byte = *key.get(at)?;
            at += 1;
            if byte == 0 {
                match *key.get(at)? {
                    0 => break,
                    0xff => at += 1,
                    _ => return None,
                }
            }
            if len < INLINE_BYTES {
                inline[len] = byte;
            } else {
                if heap.is_empty() {
                    heap.extend_from_slice(&inline);
                }
                heap.push(byte);
            }
            len += 1;
        }
        let epk = match len > INLINE_BYTES {
            true => Epk(Repr::Heap(heap.into())),
            false => Epk(Repr::Inline { len: len as u8, bytes: inline }),
        };
        Some((epk, &key[at + 1..]))
    }
}

impl PartialEq for Epk {
    fn eq(&self, other: &Epk) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Epk {}

impl PartialOrd for Epk {
    fn partial_cmp(&self, other: &Epk) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Epk {
    fn cmp(&self, other: &Epk) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Epk {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.to_hex())
    }
}

impl fmt::Display for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl EpkRange {
    pub fn new(min: Epk, max: Epk) -> EpkRange {
        EpkRange { min, max }
    }

    /// The whole key space.
    pub fn full() -> EpkRange {
        EpkRange { min: Epk::MIN, max: Epk::max() }
    }

    pub fn is_empty(&self) -> bool {
        self.min.compare_place(&self.max) != Ordering::Less
    }

    pub fn contains(&self, epk: &Epk) -> bool {
        self.min.compare_place(epk) != Ordering::Greater && epk.compare_place(&self.max) == Ordering::Less
    }

    pub fn contains_range(&self, other: &EpkRange) -> bool {
        self.min.compare_place(&other.min) != Ordering::Greater
            && other.max.compare_place(&self.max) != Ordering::Greater
    }

    pub fn overlaps(&self, other: &EpkRange) -> bool {
        !self.intersection(other).is_empty()
    }

    /// What both ranges hold; may be empty.
    pub fn intersection(&self, other: &EpkRange) -> EpkRange {
        let min = match self.min.compare_place(&other.min) {
            Ordering::Less => &other.min,
            _ => &self.min,
        };
        let max = match self.max.compare_place(&other.max) {
            Ordering::Greater => &other.max,
            _ => &self.max,
        };
        EpkRange { min: min.clone(), max: max.clone() }
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

impl PartitionKey {
    /// Bytes that no other key has: its components as they are hashed, each of which ends itself.
    pub fn identity(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        for component in self.components() {
            put_hashed(component, None, 0xff, &mut bytes);
        }
        bytes
    }
}

/// The 128-bit hash with its top two bits cleared, most significant byte first.
fn hash_v2(bytes: &[u8]) -> [u8; 16] {
    let (h1, h2) = murmur3::x64_128(bytes);
    // Clients reverse the little-endian output: the second half comes first.
    let hash = u128::from(h2) << 64 | u128::from(h1);
    (hash & MAX_V2_HASH).to_be_bytes()
}

/// Appends a component as it is hashed.
fn put_hashed(component: &KeyComponent, limit: Option<usize>, end: u8, out: &mut Vec<u8>) {
    match component {
        KeyComponent::Number(number) => {
            out.push(0x05);
            out.extend_from_slice(&number.to_le_bytes());
        }
        KeyComponent::Str(text) => {
            out.push(0x08);
            out.extend_from_slice(cut(text, limit).as_bytes());
            out.push(end);
        }
        KeyComponent::Exact(key) => put_exact(key, out),
        other => out.push(mark(other)),
    }
}

/// Appends a component in the order-preserving encoding.
fn put_binary(component: &KeyComponent, limit: Option<usize>, out: &mut Vec<u8>) {
    match component {
        KeyComponent::Number(number) => put_number(*number, out),
        KeyComponent::Str(text) => {
            out.push(0x08);
            let bytes = cut(text, limit).as_bytes();
            // UTF-8 has no byte FF, so adding one cannot overflow, and leaves zero to end the string.
            out.extend(bytes.iter().take(BINARY_STRING_BYTES + 1).map(|byte| byte.wrapping_add(1)));
            if bytes.len() <= BINARY_STRING_BYTES {
                out.push(0);
            }
        }
        KeyComponent::Exact(key) => put_exact(key, out),
        other => out.push(mark(other)),
    }
}

/// Appends a typed value behind its length, so that what follows it cannot be taken for its end.
fn put_exact(key: &ExactKey, out: &mut Vec<u8>) {
    out.push(0x20);
    out.extend_from_slice(&(key.bytes().len() as u32).to_le_bytes());
    out.extend_from_slice(key.bytes());
}

/// Appends a number so that bytes sort as numbers: the bits of the double made unsigned, the first
/// eight as they are, the rest in groups of seven whose lowest bit says that another follows.
fn put_number(number: f64, out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    let bits = number.to_bits();
    let ordered = if bits < SIGN { bits ^ SIGN } else { (!bits).wrapping_add(1) };
    out.push(0x05);
    out.push((ordered >> 56) as u8);
    let mut rest = ordered << 8;
    loop {
        let group = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            out.push(group & 0xfe);
            return;
        }
        out.push(group | 1);
    }
}

fn mark(component: &KeyComponent) -> u8 {
    match component {
        KeyComponent::Undefined => 0x00,
        KeyComponent::Null => 0x01,
        KeyComponent::Bool(false) => 0x02,
        KeyComponent::Bool(true) => 0x03,
        KeyComponent::Number(_) => 0x05,
        KeyComponent::Str(_) => 0x08,
        KeyComponent::Exact(_) => 0x20,
        KeyComponent::Infinity => 0xff,
    }
}

/// The string up to so many UTF-16 code units. A character that needs two and has room for one is left
/// out: half of it has no UTF-8.
fn cut(text: &str, units: Option<usize>) -> &str {
    let Some(units) = units else { return text };
    if text.len() <= units {
        return text;
    }
    let mut taken = 0;
    for (at, character) in text.char_indices() {
        taken += character.len_utf16();
        if taken > units {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests;
