//! Where a key lies in the space of hashes, on one scale for all kinds of partition keys.
//!
//! Bytes of EPKs sort rightly, but they do not lie evenly: version 1 writes its 32-bit hash as a floating-point number,
//! version 2 clears the top bits of its 128. Here the first hash is the lowest number of 64 bits, and the last one the
//! highest, so that a picture of the key space shows equal shares of it as equally wide.

use orrery_doc::{Epk, EpkRange, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion};

/// Which scale a container's keys are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// 128 bits of which the top two are clear.
    Hash,
    /// 32 bits in the form of an order-preserving number.
    Number,
    /// Not hashed: the bytes are all there is.
    Bytes,
}

/// A part of the key space, divided into equal buckets.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    scale: Scale,
    min: u64,
    max: u64,
    width: u64,
}

/// Buckets of one physical partition.
pub const BUCKETS: usize = 16;

impl Scale {
    pub fn of(def: &PartitionKeyDef) -> Scale {
        match (def.kind, def.version) {
            (PartitionKeyKind::Range, _) => Scale::Bytes,
            (PartitionKeyKind::MultiHash, _) | (_, PartitionKeyVersion::V2) => Scale::Hash,
            (_, PartitionKeyVersion::V1) => Scale::Number,
        }
    }

    /// The place of a key, or of a boundary. Boundaries are shorter than keys: what is missing counts as zero.
    pub fn place(self, epk: &Epk) -> u64 {
        let bytes = epk.as_bytes();
        match bytes.first() {
            None => 0,
            Some(0xff) => u64::MAX,
            Some(_) => match self {
                Scale::Hash => leading(bytes).saturating_mul(4),
                Scale::Number => number(bytes),
                Scale::Bytes => leading(bytes),
            },
        }
    }
}

fn leading(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(first)
}

/// Reads the number back: eight bits, then groups of seven that end with one whose last bit is clear.
fn number(bytes: &[u8]) -> u64 {
    const SIGN: u64 = 1 << 63;
    let Some((&high, rest)) = bytes.get(1..).and_then(<[u8]>::split_first) else { return 0 };
    let mut ordered = u64::from(high) << 56;
    let mut shift = 48i32;
    for &group in rest.iter().take(8) {
        let bits = u64::from(group & 0xfe);
        ordered |= if shift >= 0 { bits << shift } else { bits >> -shift };
        shift -= 7;
        if group & 1 == 0 {
            break;
        }
    }
    let hash = f64::from_bits(ordered ^ SIGN);
    if hash.is_finite() { (hash / f64::from(u32::MAX) * u64::MAX as f64) as u64 } else { 0 }
}

impl Span {
    pub fn new(scale: Scale, range: &EpkRange) -> Span {
        let (min, max) = (scale.place(&range.min), scale.place(&range.max));
        let width = (max.saturating_sub(min) / BUCKETS as u64).max(1);
        Span { scale, min, max, width }
    }

    pub fn bucket(&self, epk: &Epk) -> usize {
        let behind = self.scale.place(epk).saturating_sub(self.min);
        ((behind / self.width) as usize).min(BUCKETS - 1)
    }

    /// The shares of the whole key space at which the span begins and ends.
    pub fn share(&self) -> (f64, f64) {
        let share = |place: u64| place as f64 / u64::MAX as f64;
        (share(self.min), share(self.max))
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::{KeyComponent, PartitionKey, Path, boundaries, epk};

    use super::*;

    fn def(kind: PartitionKeyKind, version: PartitionKeyVersion) -> PartitionKeyDef {
        PartitionKeyDef { kind, version, paths: vec![Path::parse_property("/k").expect("a path")] }
    }

    #[test]
    fn even_boundaries_lie_at_even_places() {
        for def in [
            def(PartitionKeyKind::Hash, PartitionKeyVersion::V1),
            def(PartitionKeyKind::Hash, PartitionKeyVersion::V2),
            def(PartitionKeyKind::MultiHash, PartitionKeyVersion::V2),
        ] {
            let scale = Scale::of(&def);
            for (place, boundary) in boundaries(&def, 10).iter().enumerate() {
                let share = scale.place(boundary) as f64 / u64::MAX as f64;
                assert!((share - (place + 1) as f64 / 10.0).abs() < 1e-6, "{scale:?} {place}: {share}");
            }
        }
    }

    #[test]
    fn keys_spread_over_all_buckets_of_every_range() {
        for version in [PartitionKeyVersion::V1, PartitionKeyVersion::V2] {
            let def = def(PartitionKeyKind::Hash, version);
            let middle = boundaries(&def, 2).remove(0);
            for range in [EpkRange::full(), EpkRange::new(middle.clone(), Epk::max())] {
                let span = Span::new(Scale::of(&def), &range);
                let mut counts = [0u32; BUCKETS];
                let keys = (0..16_000).map(|n| PartitionKey(vec![KeyComponent::Str(format!("key-{n}"))]));
                for key in keys.map(|key| epk(&def, &key)).filter(|key| range.contains(key)) {
                    counts[span.bucket(&key)] += 1;
                }
                let (least, most) = (counts.iter().min(), counts.iter().max());
                let expected = counts.iter().sum::<u32>() / BUCKETS as u32;
                assert!(least > Some(&(expected * 3 / 4)), "{version:?}: {counts:?}");
                assert!(most < Some(&(expected * 5 / 4)), "{version:?}: {counts:?}");
            }
        }
    }
}
