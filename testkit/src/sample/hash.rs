//! The hash by which clients compare arrays with arrays and objects with objects, told again from its description, so
//! that the server's own can be wrong.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Compares two arrays or two objects as order keys.
pub fn by_hash(a: &Value, b: &Value) -> Ordering {
    let bytes = |value: &Value| hash(value, ROOT).to_le_bytes();
    bytes(a).cmp(&bytes(b))
}

const ROOT: u128 = 0x8846e00284c4cf1f_bfc2359eafc0e2b7;
const NULL: u128 = 0x156c918bf564ee48_1380f68bb3b0cfe4;
const FALSE: u128 = 0xe9fc8a4c531cd0dd_c1be517fe893b40c;
const TRUE: u128 = 0x788488365c8a985d_f86d4abf9a412e74;
const NUMBER: u128 = 0x790be1eabd7b9481_2400e8b894ce9c2a;
const STRING: u128 = 0x09481be8ef4b56dd_61f53f0a44204cfb;
const ARRAY: u128 = 0xa014512c858eb115_fa573b014c4dc18e;
const OBJECT: u128 = 0x3dcf187245822449_77b285ac511aef30;
const ARRAY_INDEX: u128 = 0x5b1cc3178bd9c593_fe057204216db999;
const PROPERTY_NAME: u128 = 0x7c8be2eba72e4634_c915dde058492a8a;

fn hash(value: &Value, seed: u128) -> u128 {
    let number = |value: u128, seed: u128| murmur3(&value.to_le_bytes(), seed);
    match value {
        Value::Null => number(NULL, seed),
        Value::Bool(false) => number(FALSE, seed),
        Value::Bool(true) => number(TRUE, seed),
        Value::Number(value) => murmur3(&long_double(value), number(NUMBER, seed)),
        Value::String(text) => murmur3(text.as_bytes(), number(STRING, seed)),
        Value::Array(items) => {
            let mut sum = number(ARRAY, seed);
            for (place, item) in items.iter().enumerate() {
                sum = number(hash(item, ARRAY_INDEX.wrapping_add(place as u128)), sum);
            }
            sum
        }
        Value::Object(fields) => {
            let names = number(STRING, PROPERTY_NAME);
            let all = fields
                .iter()
                .fold(0, |all, (name, value)| all ^ hash(value, murmur3(name.as_bytes(), names)));
            let own = number(OBJECT, seed);
            if all == 0 { own } else { number(all, own) }
        }
    }
}

/// A double, and two bytes for what it loses of an integer.
fn long_double(number: &Number) -> Vec<u8> {
    // To add zero takes the sign of zero away.
    let nearest = number.as_f64().expect("a number") + 0.0;
    let integer = number.as_i64().filter(|integer| *integer as f64 as i128 != i128::from(*integer));
    let (double, lost) = match integer {
        None => (nearest, 0),
        Some(integer) => {
            let size = integer.unsigned_abs();
            let exponent = 63 - size.leading_zeros();
            let mantissa =
                u64::try_from((u128::from(size) << (62 - exponent)) & ((1 << 62) - 1)).expect("62 bits");
            let sign = if integer < 0 { 1 << 63 } else { 0 };
            let bits = sign | (u64::from(exponent) + 1023) << 52 | mantissa >> 10;
            (f64::from_bits(bits), u16::try_from((mantissa & 0x3ff) << 6).expect("16 bits"))
        }
    };
    [double.to_le_bytes().as_slice(), &lost.to_le_bytes()].concat()
}

fn murmur3(data: &[u8], seed: u128) -> u128 {
    let (c1, c2) = (0x87c3_7b91_1142_53d5_u64, 0x4cf5_ad43_2745_937f_u64);
    let (mut h1, mut h2) = (seed as u64, (seed >> 64) as u64);
    let mut rest = data;
    loop {
        let mut block = [0; 16];
        let length = rest.len().min(16);
        block[..length].copy_from_slice(&rest[..length]);
        let block = u128::from_le_bytes(block);
        h1 ^= (block as u64).wrapping_mul(c1).rotate_left(31).wrapping_mul(c2);
        if length < 16 {
            h2 ^= ((block >> 64) as u64).wrapping_mul(c2).rotate_left(33).wrapping_mul(c1);
            break;
        }
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= ((block >> 64) as u64).wrapping_mul(c2).rotate_left(33).wrapping_mul(c1);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
        rest = &rest[16..];
    }
    let mix = |mut k: u64| {
        k = (k ^ k >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        k = (k ^ k >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        k ^ k >> 33
    };
    h1 ^= data.len() as u64;
    h2 ^= data.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (mix(h1), mix(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    u128::from(h2) << 64 | u128::from(h1)
}
