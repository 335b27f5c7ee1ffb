//! What ORDER BY compares arrays and objects by.
//!
//! The service orders arrays among themselves by a hash of 128 bits, and objects likewise. Clients have to know it:
//! they merge the rows of several partitions by the same hash, and name it when a query goes on behind an array.
//! So a key that is an array or object is replaced by one that holds nothing but its hash and is of the same type.
//! That keeps keys short too, whatever is ordered by.

use orrery_doc::murmur3_128;

use crate::value::{Text, Val};

/// The key by which a value is sorted.
pub(crate) fn sort_key(value: Val<'_>) -> Val<'_> {
    match value {
        Val::Array(_) => hashed_array(hash(&value, ROOT)),
        Val::Object(_) => hashed_object(hash(&value, ROOT)),
        scalar => scalar,
    }
}

/// The key of an array that has this hash.
pub(crate) fn hashed_array(hash: u128) -> Val<'static> {
    Val::array(vec![digits(hash)])
}

pub(crate) fn hashed_object(hash: u128) -> Val<'static> {
    Val::object(vec![(Text::Made("".into()), digits(hash))])
}

/// Hashes are compared byte by byte, the lowest byte first.
fn digits(hash: u128) -> Val<'static> {
    Val::text(format!("{:032x}", u128::from_be_bytes(hash.to_le_bytes())))
}

const fn seed(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

// The seeds that tell types and places apart are those of the service's clients.
const ROOT: u128 = seed(0xbfc2_359e_afc0_e2b7, 0x8846_e002_84c4_cf1f);
const NULL: u128 = seed(0x1380_f68b_b3b0_cfe4, 0x156c_918b_f564_ee48);
const FALSE: u128 = seed(0xc1be_517f_e893_b40c, 0xe9fc_8a4c_531c_d0dd);
const TRUE: u128 = seed(0xf86d_4abf_9a41_2e74, 0x7884_8836_5c8a_985d);
const NUMBER: u128 = seed(0x2400_e8b8_94ce_9c2a, 0x790b_e1ea_bd7b_9481);
const STRING: u128 = seed(0x61f5_3f0a_4420_4cfb, 0x0948_1be8_ef4b_56dd);
const ARRAY: u128 = seed(0xfa57_3b01_4c4d_c18e, 0xa014_512c_858e_b115);
const OBJECT: u128 = seed(0x77b2_85ac_511a_ef30, 0x3dcf_1872_4582_2449);
const ARRAY_INDEX: u128 = seed(0xfe05_7204_216d_b999, 0x5b1c_c317_8bd9_c593);
const PROPERTY_NAME: u128 = seed(0xc915_dde0_5849_2a8a, 0x7c8b_e2eb_a72e_4634);

/// The hash of a value at the place that the seed stands for.
fn hash(value: &Val<'_>, seed: u128) -> u128 {
    let typed = |mark: u128| mixed(mark, seed);
    match value {
        Val::Undefined => seed,
        Val::Null => typed(NULL),
        Val::Bool(false) => typed(FALSE),
        Val::Bool(true) => typed(TRUE),
        Val::Int(number) => murmur3_128(&integer(*number), typed(NUMBER)),
        Val::Double(number) => murmur3_128(&extended(*number, 0), typed(NUMBER)),
        Val::Str(text) => murmur3_128(text.as_str().as_bytes(), typed(STRING)),
        Val::Array(list) => (0u128..).zip(list.iter()).fold(typed(ARRAY), |sum, (place, item)| match item {
            Val::Undefined => sum,
            item => mixed(hash(&item, ARRAY_INDEX.wrapping_add(place)), sum),
        }),
        Val::Object(fields) => {
            let names = mixed(STRING, PROPERTY_NAME);
            // The order of properties does not count.
            let mut all = 0;
            fields.for_each(|name, value| {
                if !value.is_undefined() {
                    all ^= hash(value, murmur3_128(name.as_bytes(), names));
                }
            });
            if all == 0 { typed(OBJECT) } else { mixed(all, typed(OBJECT)) }
        }
    }
}

fn mixed(value: u128, seed: u128) -> u128 {
    murmur3_128(&value.to_le_bytes(), seed)
}

/// A double, and behind it the bits of a long integer that did not fit. Zero has no sign, as in every comparison: clients
/// read `-0` as the integer.
fn extended(number: f64, bits: u16) -> [u8; 10] {
    let mut bytes = [0; 10];
    let unsigned_zero = number + 0.0;
    bytes[..8].copy_from_slice(&unsigned_zero.to_le_bytes());
    bytes[8..].copy_from_slice(&bits.to_le_bytes());
    bytes
}

fn integer(number: i64) -> [u8; 10] {
    let magnitude = number.unsigned_abs();
    let highest = 63u32.saturating_sub(magnitude.leading_zeros());
    let is_exact = highest <= 52 || highest - magnitude.trailing_zeros() <= 52;
    if number == i64::MIN || is_exact {
        return extended(number as f64, 0);
    }
    // Cut, not rounded: a mantissa of 62 bits, of which a double holds the first 52.
    let mantissa = (magnitude << (62 - highest)) & 0x3fff_ffff_ffff_ffff;
    let sign = u64::from(number < 0) << 63;
    let double = f64::from_bits(sign | (u64::from(highest) + 1023) << 52 | mantissa >> 10);
    extended(double, ((mantissa & 0x3ff) << 6) as u16)
}

#[cfg(test)]
mod tests {
    use orrery_doc::json;

    use super::*;

    /// The hash as one number, which is how the .NET SDK's own baselines show it.
    fn shown(text: &str) -> String {
        let doc = json::parse(text.as_bytes(), 16).expect("JSON");
        format!("{:032X}", hash(&Val::from(doc.root()), ROOT))
    }

    #[test]
    fn values_hash_as_they_do_in_clients() {
        for (value, wanted) in [
            ("null", "898EFBF2680DAEA39E24D6AE6653417D"),
            ("false", "6E88AA4242F017B7705F12581A61118F"),
            ("true", "CD4D51AB869F071FF019C3E4A55C0125"),
            ("1234", "A94BF61335C9FBA42C28D7D9895D1434"),
            ("1234.0", "A94BF61335C9FBA42C28D7D9895D1434"),
            ("\"\"", "A78446CF287029A585B395A161A2A9A1"),
            ("\"asdfasdfasdfasdfasdfasdf\"", "8F124368401E0B91AD580CA542E035DB"),
            ("[]", "7D54F729FF4A63FFA2EF3CA359538082"),
            ("[null,false,true,1234,\"asdfasdfasdfasdfasdfasdf\"]", "A9407916DE27F316CC5A8E4EB9AFD5E6"),
            ("{}", "14B86A60AA01A7381438743E80B965D8"),
            (
                "{\"true\":true,\"null\":null,\"false\":false,\"cosmosString\":\"asdfasdfasdfasdfasdfasdf\",\
                 \"cosmosNumber\":1234}",
                "3B6AA9F4F43AAEC0E48EBE2BC020D55C",
            ),
        ] {
            assert_eq!(shown(value), wanted, "{value}");
        }
    }

    #[test]
    fn long_integers_keep_all_their_bits() {
        let digits = ["9007199254740993", "9007199254740992", "-9007199254740993", "9223372036854775807"];
        let hashes: std::collections::HashSet<String> = digits.iter().map(|text| shown(text)).collect();
        assert_eq!(hashes.len(), digits.len());
        assert_eq!(shown("-9223372036854775808"), shown("-9.223372036854775808e18"));
    }

    /// DISTINCT takes the two for one value, so they must have one place in an order.
    #[test]
    fn zero_has_one_hash_whatever_its_sign() {
        for (plain, signed) in [("0", "-0.0"), ("[0]", "[-0.0]"), ("{\"x\":0}", "{\"x\":-0.0}")] {
            assert_eq!(shown(plain), shown(signed), "{signed}");
        }
    }

    #[test]
    fn keys_order_by_hash_within_their_type() {
        let key = |text: &str| {
            let doc = json::parse(text.as_bytes(), 16).expect("JSON");
            sort_key(Val::from(doc.root())).to_owned_val()
        };
        // The lowest bytes are 82 and E6. Every array is below every object.
        let (empty, longer) = (key("[]"), key("[null,false,true,1234,\"asdfasdfasdfasdfasdfasdf\"]"));
        assert!(empty.order(&longer).is_lt());
        assert!(longer.order(&key("{}")).is_lt());
        assert!(key("\"text\"").order(&empty).is_lt());
        assert_eq!(key("[1,{\"a\":1,\"b\":2}]"), key("[1.0,{\"b\":2,\"a\":1}]"));
    }
}
