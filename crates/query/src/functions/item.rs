//! DOCUMENTID, the number of an item in its partition, and two functions of ours for other protocols: WRITTENAT, the time of
//! its last write, which `_ts` tells in seconds only, and ORDERKEY (`eval/order_key.rs`), the place of a value in another order.

use super::{Function, function};
use crate::value::{Fields, Val};

pub(super) static FUNCTIONS: [Function; 3] = [
    function("DOCUMENTID", 1, 1, |args| Some(Val::Int(document_number(args.get(0).get("_rid").as_str()?)?))),
    function("WRITTENAT", 1, 1, |args| match args.get(0) {
        Val::Object(Fields::Row(row)) => Some(Val::Int(i64::try_from(row.system?.written_at()?).ok()?)),
        _ => None,
    }),
    // The compiler makes a node of its own of it: arguments have lost the types that JSON does not have.
    function("ORDERKEY", 2, 2, |_| None),
];

/// A resource id is base64 with `-` for `/`: four bytes for the database, four for the container, and
/// eight for the document, low byte first.
fn document_number(rid: &str) -> Option<i64> {
    let digits = rid.trim_end_matches('=');
    (digits.len() == 22).then_some(())?;
    let mut bits: u128 = 0;
    for digit in digits.bytes().take(21) {
        bits = bits << 6 | u128::from(sextet(digit)?);
    }
    // The last digit holds the two bits that are left of 128.
    bits = bits << 2 | u128::from(sextet(digits.as_bytes()[21])? >> 4);
    let document = u64::from_be_bytes(*bits.to_be_bytes().last_chunk()?).swap_bytes();
    i64::try_from(document).ok()
}

pub(super) fn sextet(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' | b'-' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Parameters, Row, SystemField, SystemProperties, SystemValue};

    struct Written(u64);

    impl SystemProperties for Written {
        fn read(&self, _: SystemField) -> SystemValue {
            SystemValue::Absent
        }

        fn written_at(&self) -> Option<u64> {
            Some(self.0)
        }
    }

    #[test]
    fn the_time_of_the_last_write_is_that_of_an_item_and_of_nothing_else() {
        let passes = |condition: &str| {
            let program =
                crate::compile(&format!("SELECT VALUE c FROM c WHERE {condition}"), &Parameters::default());
            let doc = orrery_doc::json::parse(br#"{"a":{}}"#, 8).expect("JSON");
            let row = Row { doc: doc.as_ref(), system: Some(&Written(16_517_980_679_267_336)), place: &[] };
            program.expect(condition).accepts(&row, &Context::at(0, 0)).expect("it tells")
        };
        assert!(passes("WRITTENAT(c) = 16517980679267336"));
        assert!(!passes("WRITTENAT(c) < 16517980679267336"));
        assert!(passes("NOT IS_DEFINED(WRITTENAT(c.a))") && passes("NOT IS_DEFINED(WRITTENAT(5))"));
    }

    #[test]
    fn the_last_eight_bytes_are_the_document() {
        // The service's own example.
        assert_eq!(document_number("36ZyAPW+uN8NAAAAAAAAAA=="), Some(13));
        for bad in ["", "36ZyAPW+uN8=", "36ZyAPW+uN8NAAAAAAAA!A==", "////////////////////////", "é"] {
            assert_eq!(document_number(bad), None, "{bad}");
        }
    }
}
