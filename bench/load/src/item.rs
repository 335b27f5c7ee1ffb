//! The items that everybody stores: 1 KiB of JSON in twelve properties, different for each number.
//!
//! Most of an item is text that cannot be compressed, so the figures owe nothing to the generator.

use std::fmt::Write;

/// Items of one logical partition among those that were loaded in batches.
pub const ITEMS_PER_KEY: u64 = 100;
/// Logical partitions over which single creates are spread.
const CREATE_KEYS: u64 = 4096;
const ITEM_BYTES: usize = 1024;

/// Who is where: its partition key and its id.
#[derive(Clone, Debug)]
pub struct Address {
    pub key: String,
    pub id: String,
}

/// An item that loading in batches puts there: neighbours share a key.
pub fn loaded(number: u64) -> Address {
    Address { key: format!("k{:08}", number / ITEMS_PER_KEY), id: format!("i{number:012}") }
}

/// An item that a single create puts there: neighbours are strangers.
pub fn created(number: u64) -> Address {
    Address { key: format!("c{:08}", mix(number) % CREATE_KEYS), id: format!("n{number:012}") }
}

/// Appends so many bytes of text that cannot be made shorter.
pub fn write_text(seed: u64, bytes: usize, out: &mut String) {
    let (mut filler, end) = (seed, out.len() + bytes);
    while out.len() + 16 <= end {
        filler = mix(filler);
        write!(out, "{filler:016x}").expect("writing to memory does not fail");
    }
    out.extend(std::iter::repeat_n('.', end - out.len()));
}

/// Appends the JSON of an item.
pub fn write_json(address: &Address, number: u64, out: &mut String) {
    let start = out.len();
    let seed = mix(number);
    write!(
        out,
        "{{\"id\":\"{}\",\"pk\":\"{}\",\"name\":\"name {:x}\",\"mail\":\"{:x}@example.org\",\"city\":\"city {}\",\
         \"age\":{},\"score\":{:.3},\"active\":{},\"visits\":{},\"since\":\"2026-{:02}-{:02}T00:00:00Z\",\
         \"place\":\"{:016x}\",\"text\":\"",
        address.id,
        address.key,
        seed,
        mix(seed),
        seed % 1000,
        seed % 90,
        (seed % 1_000_000) as f64 / 1000.0,
        seed & 1 == 0,
        seed % 100_000,
        seed % 12 + 1,
        seed % 28 + 1,
        mix(seed ^ 1),
    )
    .expect("writing to memory does not fail");
    let end = start + ITEM_BYTES - 2;
    write_text(seed, end - out.len(), out);
    out.push_str("\"}");
}

/// The finaliser of SplitMix64: the same number always makes the same item.
pub fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_a_kibibyte_of_twelve_properties() {
        for number in [0, 1, 999_999, 123_456_789] {
            for address in [loaded(number), created(number)] {
                let mut text = String::new();
                write_json(&address, number, &mut text);
                assert_eq!(text.len(), ITEM_BYTES);
                let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                assert_eq!(value.as_object().map(|object| object.len()), Some(12));
            }
        }
    }
}
