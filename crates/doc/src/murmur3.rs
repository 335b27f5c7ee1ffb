//! MurmurHash3 in the two variants that place partition keys: 32 bits for version 1 keys and 128 bits
//! (the variant for 64-bit machines) for version 2, both with seed 0. The latter also hashes values, with seeds, and,
//! with a mistake that has become a rule, makes the tokens of Cassandra.

pub(crate) fn x86_32(data: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let scramble = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);

    let mut hash = 0u32;
    let (blocks, tail) = data.as_chunks::<4>();
    for block in blocks {
        hash ^= scramble(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash ^= scramble(u32::from_le_bytes(last));
    }
    hash ^= data.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The hash of 128 bits, the first half in the low bits, as is that of the seed.
pub fn murmur3_128(data: &[u8], seed: u128) -> u128 {
    let (h1, h2) = x64_128_from(data, seed as u64, (seed >> 64) as u64);
    u128::from(h2) << 64 | u128::from(h1)
}

/// The two halves, first half first.
pub(crate) fn x64_128(data: &[u8]) -> (u64, u64) {
    x64_128_from(data, 0, 0)
}

/// The token of a partition key as Cassandra has it, from its bytes.
///
/// Cassandra takes the bytes behind the last whole block of 16 for signed numbers, so that a byte of 80 or more turns
/// all bits above it. The lowest number is not a token: it stands for the start of the ring.
pub fn cassandra_token(key: &[u8]) -> i64 {
    let (state, tail) = X64::of_blocks(key, 0, 0);
    let word = |bytes: &[u8]| {
        let shifted = |(place, byte): (usize, &u8)| (i64::from(*byte as i8) as u64) << (8 * place);
        bytes.iter().enumerate().map(shifted).fold(0, |word, part| word ^ part)
    };
    let (first, second) = tail.split_at(tail.len().min(8));
    match state.finished((word(first), word(second)), key.len()).0 as i64 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

fn x64_128_from(data: &[u8], h1: u64, h2: u64) -> (u64, u64) {
    let (state, tail) = X64::of_blocks(data, h1, h2);
    // A tail shorter than a block is a block of zeros behind: scrambling zero changes nothing.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    state.finished(halves(&last), data.len())
}

/// The state of the 128-bit variant.
struct X64 {
    h1: u64,
    h2: u64,
}

impl X64 {
    /// The state behind all whole blocks, and what follows them.
    fn of_blocks(data: &[u8], mut h1: u64, mut h2: u64) -> (X64, &[u8]) {
        let (blocks, tail) = data.as_chunks::<16>();
        for block in blocks {
            let (k1, k2) = halves(block);
            h1 ^= scramble1(k1);
            h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
            h2 ^= scramble2(k2);
            h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
        }
        (X64 { h1, h2 }, tail)
    }

    fn finished(self, (k1, k2): (u64, u64), length: usize) -> (u64, u64) {
        let mut h1 = self.h1 ^ scramble1(k1) ^ length as u64;
        let mut h2 = self.h2 ^ scramble2(k2) ^ length as u64;
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        h1 = finish(h1);
        h2 = finish(h2);
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        (h1, h2)
    }
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

fn scramble1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn scramble2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}
