//! Large values are packed before they are written.
//!
//! The tree compresses blocks of its lower levels, and unpacks them to read and to merge. A block of many small items is small
//! either way; one large item is a block of its own, and LZ4 may make it 255 times smaller. Then a table that is small on
//! disk is huge in memory while it is merged (`shape`), and the client that sends such items decides how much memory that is.
//!
//! So items, and the versions of items in the history, are packed one by one when they are put into a batch, if that makes them
//! smaller: all that comes after, journal, write buffers, tables and cached blocks, holds them packed, and the tree finds
//! little left to compress. What is packed well may be packed again, since a long run of one byte becomes a run of length bytes.
//! Readers of this engine never see packed values.
//!
//! A packed value is `L`, the length that it stands for (4 bytes, big-endian), and an LZ4 block. All stored forms of items begin
//! with the number of their format, which is never `L`; a value that begins with it all the same is stored behind
//! `L` and a length of `ffffffff`.

use bytes::Bytes;

use super::{EngineError, Keyspace};

const MARK: u8 = b'L';
const HEAD_BYTES: usize = 5;
const AS_IT_IS: u32 = u32::MAX;
/// Values from this size on are packed. Less than a block of the tree has, so that what is larger than a block was looked at.
const BYTES_MIN: usize = 2 * 1024;
/// Packing has to spare one part in so many.
const GAIN: usize = 8;
/// How often a value is packed at most. Each time it becomes 255 times smaller at best.
const TIMES_MAX: usize = 4;
/// No LZ4 block stands for more than so many times its own length, and a little.
const EXPANSION_MAX: usize = 256;

/// Numbers from which partitions in the feed's keyspace are sequences of versions, not of places (`keys`).
const FIRST_SEQUENCE: [u8; 4] = [0xff, 0xff, 0xff, 0xfe];

/// Whether values under a key may be packed.
fn may_be_packed(keyspace: Keyspace, key: &[u8]) -> bool {
    match keyspace {
        Keyspace::Item => true,
        Keyspace::Feed => key >= &FIRST_SEQUENCE[..],
        Keyspace::Index | Keyspace::Log | Keyspace::Meta => false,
    }
}

/// A value as it is stored.
pub(super) fn pack(keyspace: Keyspace, key: &[u8], value: Bytes) -> Bytes {
    if !may_be_packed(keyspace, key) {
        return value;
    }
    let mut value = if value.first() == Some(&MARK) { marked(AS_IT_IS, &value) } else { value };
    for _ in 0..TIMES_MAX {
        match smaller(&value) {
            Some(packed) => value = packed,
            None => break,
        }
    }
    value
}

/// A value as it was put.
pub(super) fn unpack(keyspace: Keyspace, key: &[u8], value: Bytes) -> Result<Bytes, EngineError> {
    if value.first() != Some(&MARK) || !may_be_packed(keyspace, key) {
        return Ok(value);
    }
    let mut value = value;
    for _ in 0..=TIMES_MAX {
        let Some((head, rest)) = value.split_first_chunk::<HEAD_BYTES>() else { break };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        if length == AS_IT_IS {
            return Ok(value.slice(HEAD_BYTES..));
        }
        value = unpacked(rest, length as usize)?;
        if value.first() != Some(&MARK) {
            return Ok(value);
        }
    }
    Err(damaged())
}

fn smaller(value: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(value.len()).ok().filter(|_| value.len() >= BYTES_MIN)?;
    let packed = marked(length, &lz4_flex::block::compress(value));
    (packed.len() <= value.len() - value.len() / GAIN).then_some(packed)
}

fn marked(length: u32, rest: &[u8]) -> Bytes {
    let mut marked = Vec::with_capacity(HEAD_BYTES + rest.len());
    marked.push(MARK);
    marked.extend_from_slice(&length.to_be_bytes());
    marked.extend_from_slice(rest);
    marked.into()
}

fn unpacked(packed: &[u8], length: usize) -> Result<Bytes, EngineError> {
    if length > (packed.len() + 1) * EXPANSION_MAX {
        return Err(damaged());
    }
    let value = lz4_flex::block::decompress(packed, length).map_err(|_| damaged())?;
    if value.len() == length { Ok(value.into()) } else { Err(damaged()) }
}

fn damaged() -> EngineError {
    EngineError::Corrupt("a packed value cannot be unpacked".into())
}

/// For `docs/format.md`.
#[cfg(test)]
pub(super) fn golden() -> Vec<crate::golden::Form> {
    let again = |bytes: &[u8]| {
        let value = unpack(Keyspace::Item, b"key", Bytes::copy_from_slice(bytes)).ok()?;
        Some(pack(Keyspace::Item, b"key", value).to_vec())
    };
    let form = |name, value: Vec<u8>| crate::golden::Form {
        name,
        bytes: pack(Keyspace::Item, b"key", value.into()).to_vec(),
        again,
    };
    vec![form("packed", vec![1; 2_048]), form("packed.not", b"London".to_vec())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"key";

    fn packed(value: &[u8]) -> Bytes {
        pack(Keyspace::Item, KEY, Bytes::copy_from_slice(value))
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252_u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn every_value_is_read_as_it_was_put() {
        let texts = [0, 1, 4, 5, 100, 2_047, 2_048, 5_000, 2_000_000].map(|length| vec![b'x'; length]);
        let marks = [1, 5, 3_000].map(|length| vec![MARK; length]);
        let noises = [10, 5_000, 2_000_000].map(noise);
        for value in texts.iter().chain(&marks).chain(&noises) {
            let stored = packed(value);
            let read = unpack(Keyspace::Item, KEY, stored).expect("it was packed just now");
            assert_eq!(read.len(), value.len());
            assert!(read == value[..]);
        }
        let twice = packed(&packed(&vec![b'x'; 2_000_000]));
        assert_eq!(unpack(Keyspace::Item, KEY, twice).expect("packed"), packed(&vec![b'x'; 2_000_000]));
    }

    #[test]
    fn what_is_larger_than_a_block_is_not_made_much_smaller_once_more() {
        let json =
            (0..20_000).map(|number| format!(r#"{{"n":{number},"name":"some name"}},"#)).collect::<String>();
        for value in [vec![b'x'; 2_000_000], json.into_bytes(), noise(100_000), vec![MARK; 500_000]] {
            let stored = packed(&value);
            let again = lz4_flex::block::compress(&stored).len();
            assert!(
                stored.len() < BYTES_MIN || again + HEAD_BYTES > stored.len() / 8 * 7,
                "{} {again}",
                stored.len()
            );
        }
    }

    #[test]
    fn places_in_the_feed_and_index_entries_are_left_alone() {
        let value = Bytes::from(vec![MARK; 5_000]);
        for (keyspace, key) in
            [(Keyspace::Feed, &[0, 0, 0, 7][..]), (Keyspace::Meta, KEY), (Keyspace::Index, KEY)]
        {
            assert_eq!(pack(keyspace, key, value.clone()), value);
            assert_eq!(unpack(keyspace, key, value.clone()).expect("as it is"), value);
        }
        let history = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 7];
        assert!(pack(Keyspace::Feed, &history, value.clone()).len() < 100);
    }

    #[test]
    fn damage_is_told_and_takes_no_memory() {
        let stored = packed(&vec![b'x'; 100_000]);
        for at in 0..stored.len() {
            for bit in 0..8 {
                let mut damaged = stored.to_vec();
                damaged[at] ^= 1 << bit;
                let read = unpack(Keyspace::Item, KEY, damaged.into());
                assert!(
                    read.is_err()
                        || read.is_ok_and(|read| read.len() <= stored.len() * EXPANSION_MAX * EXPANSION_MAX)
                );
            }
        }
        for bytes in
            [&[MARK][..], &[MARK, 0, 0], &[MARK, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3], &[MARK, 0, 0, 0, 9, 1, 2]]
        {
            assert!(unpack(Keyspace::Item, KEY, Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
