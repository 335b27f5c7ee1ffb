use std::path::PathBuf;

use orrery_doc::{Doc, Value, json};
use proptest::prelude::*;

use super::BinaryJsonErrorKind::*;
use super::*;

const DEPTH: usize = 128;

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

fn read(hex: &str) -> Result<Doc, BinaryJsonError> {
    decode(&bytes(hex), DEPTH)
}

/// Each case is a body without its first byte, and the text that it stands for.
fn assert_reads(cases: &[(&str, &str)]) {
    for (hex, wanted) in cases {
        let doc = read(&format!("80 {hex}")).unwrap_or_else(|error| panic!("{hex}: {error}"));
        assert_eq!(format!("{:?}", doc.root()), *wanted, "{hex}");
    }
}

fn kind(hex: &str) -> Option<BinaryJsonErrorKind> {
    read(&format!("80 {hex}")).err().map(|error| error.kind)
}

fn assert_refused(cases: &[(&str, BinaryJsonErrorKind)]) {
    for (hex, wanted) in cases {
        assert_eq!(kind(hex), Some(*wanted), "{hex}");
    }
}

#[test]
fn the_first_byte_tells_binary_from_text() {
    for (body, wanted) in [(&b"\x80\xE8"[..], true), (b"\x80", true), (b"{}", false), (b"", false)] {
        assert_eq!(is_binary(body), wanted, "{body:?}");
    }
    let text = decode(b"{}", DEPTH).expect_err("text is refused");
    assert_eq!(text, BinaryJsonError { kind: NotBinary, offset: 0 });
}

#[test]
fn literals_and_numbers_are_read() {
    assert_reads(&[
        ("D0", "null"),
        ("D1", "false"),
        ("D2", "true"),
        ("07", "7"),
        ("1E", "30"),
        ("C8 FF", "255"),
        ("C9 FF FF", "-1"),
        ("CA 00 00 00 80", "-2147483648"),
        ("CB 00 00 00 00 00 00 00 80", "-9223372036854775808"),
        ("C7 2A 00 00 00 00 00 00 00", "42"),
        ("D7 80", "128"),
        ("D8 80", "-128"),
        ("D9 00 80", "-32768"),
        ("DA FF FF FF 7F", "2147483647"),
        ("DB FF FF FF FF FF FF FF 7F", "9223372036854775807"),
        ("DC FF FF FF FF", "4294967295"),
        ("CC 9A 99 99 99 99 99 F1 3F", "1.1"),
        ("CE 00 00 00 00 00 00 E0 BF", "-0.5"),
        ("CD 00 00 40 3E", "0.1875"),
    ]);
}

#[test]
fn half_precision_has_normal_subnormal_and_no_infinite_numbers() {
    for (half, wanted) in [
        (0x3C00, 1.0),
        (0xC000, -2.0),
        (0x3555, 0.333251953125),
        (0x7BFF, 65504.0),
        (0x0400, 2f64.powi(-14)),
        (0x0001, 2f64.powi(-24)),
        (0x83FF, -1023.0 * 2f64.powi(-24)),
    ] {
        let [low, high] = u16::to_le_bytes(half);
        let doc = decode(&[0x80, 0xCF, low, high], DEPTH).expect("a number");
        assert_eq!(doc.root(), Value::Double(wanted), "{half:#x}");
    }
    assert_refused(&[("CF 00 7C", InvalidNumber), ("CF 00 FC", InvalidNumber), ("CF 01 7E", InvalidNumber)]);
}

#[test]
fn whole_numbers_are_integers_in_every_form() {
    let is_int = |number: f64| {
        let body = [&[0x80, 0xCC][..], &number.to_le_bytes()].concat();
        match decode(&body, DEPTH).expect("a number").root() {
            Value::Int(int) => Some(int),
            Value::Double(double) if double.to_bits() == number.to_bits() => None,
            other => panic!("{number} became {other:?}"),
        }
    };
    let limit = 2f64.powi(63);
    assert_eq!(is_int(3.0), Some(3));
    assert_eq!(is_int(0.0), Some(0));
    assert_eq!(is_int(-limit), Some(i64::MIN));
    assert_eq!(is_int(limit - 1024.0), Some(i64::MAX - 1023));
    for number in [-0.0, 3.5, limit, -limit * 2.0, 1e300] {
        assert_eq!(is_int(number), None, "{number}");
    }
    let large = read("80 C7 00 00 00 00 00 00 00 80").expect("a number");
    assert!(matches!(large.root(), Value::Double(number) if number == limit));
    assert_refused(&[
        ("CC 00 00 00 00 00 00 F0 7F", InvalidNumber),
        ("CC 00 00 00 00 00 00 F8 7F", InvalidNumber),
        ("CD 00 00 80 FF", InvalidNumber),
    ]);
}

#[test]
fn plain_and_well_known_strings_are_read() {
    assert_reads(&[
        ("24", "\"_etag\""),
        ("35", "\"name\""),
        ("3E", "\"FeatureCollection\""),
        ("83 E2 82 AC", "\"€\""),
        ("C0 03 61 62 63", "\"abc\""),
        ("C1 01 00 61", "\"a\""),
        ("C2 02 00 00 00 61 62", "\"ab\""),
        ("C2 00 00 00 00", "\"\""),
    ]);
    let longest = [vec![0x80, 0xBF], vec![b'x'; 63]].concat();
    assert_eq!(decode(&longest, DEPTH).expect("a string").root().as_str(), Some(&*"x".repeat(63)));
    assert_refused(&[("81 FF", InvalidText), ("C0 02 C3 28", InvalidText), ("83 ED A0 80", InvalidText)]);
}

#[test]
fn user_strings_are_refused_by_their_number() {
    assert_refused(&[
        ("40", UserString(0)),
        ("5F", UserString(31)),
        ("60 00", UserString(32)),
        ("67 FF", UserString(2079)),
        ("E9 41 00", UserString(1)),
    ]);
    let error = read("80 61 02").expect_err("it is refused");
    assert_eq!(error.to_string(), "unknown user string 290 at byte 3");
}

#[test]
fn packed_strings_are_read() {
    assert_reads(&[
        // Two digits a byte.
        ("78 05 EF DB 0A", "\"febda\""),
        ("79 02 FE", "\"EF\""),
        ("78 00", "\"\""),
        ("7A 0A 13 53 2C C3 41", "\"2024-12-03\""),
        // Letters from a base, in 4, 5 and 6 bits, and ASCII in 7.
        ("7B 03 41 10 02", "\"ABC\""),
        ("7C 08 61 20 88 41 8A 39", "\"abcdefgh\""),
        ("7D 04 20 A1 98 EB", "\"ABYZ\""),
        ("7E 03 61 F1 18", "\"abc\""),
        ("7F 01 00 41", "\"A\""),
        ("7E 00", "\"\""),
    ]);
    assert_refused(&[("78 01 F0", InvalidText), ("7B 01 7F 01", InvalidText), ("7D 01 FF 3F", InvalidText)]);
}

/// Packs text as senders do, so that every length and every bit position is met.
fn packed(text: &[u8], bits: usize, base: u8) -> Vec<u8> {
    let mut out = vec![0; (text.len() * bits).div_ceil(8)];
    for (i, letter) in text.iter().enumerate() {
        for bit in (0..bits).filter(|bit| (letter - base) >> bit & 1 == 1) {
            out[(i * bits + bit) / 8] |= 1 << ((i * bits + bit) % 8);
        }
    }
    out
}

proptest! {
    #[test]
    fn packed_text_of_all_widths_comes_back(bits in 4usize..=7, seed in proptest::collection::vec(any::<u8>(), 0..250)) {
        let base = if bits == 7 { 0 } else { b'0' };
        let text: Vec<u8> = seed.iter().map(|byte| base + byte % (1 << bits)).collect();
        let length = u8::try_from(text.len()).expect("a short text");
        let head = if bits == 7 { vec![0x80, 0x7E, length] } else { vec![0x80, 0x77 + bits as u8, length, base] };
        let doc = decode(&[head, packed(&text, bits, base)].concat(), DEPTH).expect("a string");
        prop_assert_eq!(doc.root().as_str().map(str::as_bytes), Some(&text[..]));
    }
}

#[test]
fn base64_text_keeps_its_alphabet_and_padding() {
    assert_reads(&[
        ("71 01 00 00 00 00", "\"AAAA\""),
        ("71 01 01 FB F0", "\"+/A=\""),
        ("72 01 00 02 FF", "\"/w==\""),
        ("73 01 01 FB F0", "\"-_A=\""),
        ("74 01 00 FD FF", "\"_w\""),
        ("73 02 FE 01 02 03 04 05", "\"AQIDBAU\""),
        ("71 00 00", "\"\""),
        ("71 01 FF 01 02 03", "\"AQID\""),
    ]);
    assert_refused(&[
        ("71 00 01", InvalidText),
        ("71 01 03 00 00 00", InvalidText),
        ("71 01 FC 00", InvalidText),
        ("72 FF FF 00 00", UnexpectedEnd),
    ]);
}

#[test]
fn guids_and_bytes_become_text() {
    let digits = "10 32 54 76 98 BA DC FE 10 32 54 76 98 BA DC FE";
    for (marker, wanted) in [
        ("75", "01234567-89ab-cdef-0123-456789abcdef"),
        ("76", "01234567-89AB-CDEF-0123-456789ABCDEF"),
        ("77", "\"01234567-89ab-cdef-0123-456789abcdef\""),
        ("D3", "76543210-ba98-fedc-1032-547698badcfe"),
    ] {
        let doc = read(&format!("80 {marker} {digits}")).expect("a string");
        assert_eq!(doc.root().as_str(), Some(wanted), "{marker}");
    }
    assert_reads(&[("DD 00", "\"\""), ("DE 01 00 FF", "\"/w==\""), ("DF 03 00 00 00 61 62 63", "\"YWJj\"")]);
}

#[test]
fn references_name_earlier_strings() {
    assert_reads(&[
        ("E2 05 82 68 69 C3 03", "[\"hi\",\"hi\"]"),
        ("E2 06 82 68 69 C4 03 00", "[\"hi\",\"hi\"]"),
        ("E2 08 82 68 69 C6 03 00 00 00", "[\"hi\",\"hi\"]"),
        // A name, a well-known string and a packed one as targets.
        ("EA 05 82 68 69 C3 03", "{\"hi\":\"hi\"}"),
        ("E5 03 02 2C C3 04", "[\"id\",\"id\"]"),
        ("E2 06 78 03 AB 0C C3 03", "[\"bac\",\"bac\"]"),
    ]);
    assert_refused(&[
        // Itself, ahead, outside, the first byte, a number, a reference, a GUID value.
        ("C3 01", InvalidReference),
        ("E2 04 C3 05 81 61", InvalidReference),
        ("C6 FF FF FF FF", InvalidReference),
        ("E2 04 81 61 C3 00", InvalidReference),
        ("E2 03 01 C3 03", InvalidReference),
        ("E2 06 81 61 C3 03 C3 05", InvalidReference),
        ("E2 13 D3 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 C3 03", InvalidReference),
        // A payload that looks like a string which runs over the reference.
        ("E2 04 D7 8F C3 04", UnexpectedEnd),
        ("E2 05 D9 78 02 C3 04", InvalidReference),
    ]);
}

#[test]
fn containers_of_all_forms_are_read() {
    assert_reads(&[
        ("E0", "[]"),
        ("E1 E1 E0", "[[[]]]"),
        ("E2 00", "[]"),
        ("E3 02 00 05 06", "[5,6]"),
        ("E4 01 00 00 00 D1", "[false]"),
        ("E5 02 02 05 06", "[5,6]"),
        ("E6 02 00 02 00 05 06", "[5,6]"),
        ("E7 00 00 00 00 00 00 00 00", "[]"),
        ("E8", "{}"),
        ("E9 81 61 E9 81 62 E8", "{\"a\":{\"b\":{}}}"),
        ("EA 03 81 61 09", "{\"a\":9}"),
        ("EB 03 00 81 61 09", "{\"a\":9}"),
        ("EC 03 00 00 00 81 61 09", "{\"a\":9}"),
        ("ED 06 02 81 61 09 81 62 D0", "{\"a\":9,\"b\":null}"),
        ("EE 03 00 01 00 81 61 09", "{\"a\":9}"),
        ("EF 03 00 00 00 01 00 00 00 81 61 09", "{\"a\":9}"),
        ("ED 06 02 81 61 09 81 61 08", "{\"a\":8}"),
    ]);
    assert_refused(&[
        ("E2 01 00 00", TrailingBytes),
        ("E2 02 05 C9 00 00", InvalidFrame),
        ("E2 02 E2 02 00 00", InvalidFrame),
        ("E5 02 01 05 06", InvalidFrame),
        ("E5 02 03 05 06", InvalidFrame),
        ("E5 00 01", InvalidFrame),
        ("EA 02 81 61 09", InvalidFrame),
        ("E9 05 05", NameExpected),
        ("E9 D3 05", NameExpected),
        ("E9 E0 05", NameExpected),
    ]);
}

#[test]
fn arrays_of_bare_numbers_are_read() {
    assert_reads(&[
        ("F0 D7 03 01 FF 00", "[1,255,0]"),
        ("F1 D9 02 00 FF FF 00 80", "[-1,-32768]"),
        ("F0 CD 02 00 00 00 3F 00 00 80 3F", "[0.5,1]"),
        ("F0 CE 01 00 00 00 00 00 00 E0 3F", "[0.5]"),
        ("F0 CF 02 00 38 00 3C", "[0.5,1]"),
        ("F0 DB 00", "[]"),
        ("F2 F0 D8 02 03 01 02 03 04 05 FF", "[[1,2],[3,4],[5,-1]]"),
        ("F3 F1 D7 01 00 02 00 07 08", "[[7],[8]]"),
        ("F2 F0 D7 00 02", "[[],[]]"),
        ("E2 07 F0 D7 02 01 02 03 E0", "[[1,2],3,[]]"),
    ]);
    assert_refused(&[
        ("F0 C8 01 00", UnknownMarker),
        ("F0 CC 00", UnknownMarker),
        ("F0 05 01", UnknownMarker),
        ("F2 F1 D7 01 01 00", UnknownMarker),
        ("F3 F0 D7 01 00 01 00 00", UnknownMarker),
        ("F0 DA 02 00 00 00 00 01", UnexpectedEnd),
    ]);
}

#[test]
fn markers_without_a_meaning_are_refused_where_they_stand() {
    for marker in (0x68..=0x70).chain(0xD4..=0xD6).chain(0xF4..=0xFF) {
        let error = decode(&[0x80, 0xE1, marker], DEPTH).expect_err("it is refused");
        assert_eq!(error, BinaryJsonError { kind: UnknownMarker, offset: 2 }, "{marker:#x}");
        assert_eq!(error.to_string(), "unknown type marker at byte 2");
    }
}

#[test]
fn every_truncation_of_a_body_is_refused() {
    let body = bytes(
        "80 EC 4C 00 00 00 2C C0 02 61 62 81 61 EE 10 00 01 00 C1 01 00 62 E3 09 00 CB 01 02 03 04 05 06 07 08 \
         81 63 F3 F1 D9 01 00 02 00 01 00 02 00 81 64 75 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 10 \
         81 65 71 01 00 01 02 03 81 66 C4 06 00 81 67 7C 02 61 20 00 81 68 E1 CC 00 00 00 00 00 00 E0 3F",
    );
    let body =
        [&body[..2], &u32::try_from(body.len() - 6).expect("short").to_le_bytes(), &body[6..]].concat();
    decode(&body, DEPTH).unwrap_or_else(|error| panic!("the whole body is read: {error}"));
    for length in 0..body.len() {
        let error = decode(&body[..length], DEPTH).expect_err("a part is refused");
        assert_eq!(error.kind, UnexpectedEnd, "{length}");
        assert!(error.offset <= length, "{length}");
    }
}

#[test]
fn nesting_has_a_limit_in_all_forms_of_containers() {
    let nested = |levels: usize, core: &[u8]| [&[0x80], &vec![0xE1; levels][..], core].concat();
    for (core, levels) in
        [(&[0xE0][..], 1), (&[0xE8], 1), (&[0xF0, 0xD7, 0], 1), (&[0xF2, 0xF0, 0xD7, 0, 0], 2)]
    {
        assert!(decode(&nested(128 - levels, core), 128).is_ok(), "{core:?}");
        let error = decode(&nested(129 - levels, core), 128).expect_err("it is too deep");
        assert_eq!(error, BinaryJsonError { kind: TooDeep, offset: 130 - levels }, "{core:?}");
    }
    assert!(decode(&nested(0, &[0x05]), 0).is_ok());
    // Nobody can ask for more than documents may have.
    let hostile = decode(&nested(3_000_000, &[0xE0]), usize::MAX).expect_err("it is too deep");
    assert_eq!(hostile.kind, TooDeep);
}

/// An array with a length of four bytes around the entries.
fn array_of(entries: &[u8]) -> Vec<u8> {
    let length = u32::try_from(entries.len()).expect("a short body");
    [&[0x80, 0xE4], &length.to_le_bytes()[..], entries].concat()
}

#[test]
fn small_bodies_cannot_stand_for_large_documents() {
    let mut references = vec![0xC1, 0xFF, 0xFF];
    references.extend([b'a'; 0xFFFF]);
    references.extend([0xC3, 6].repeat(60));
    assert!(decode(&array_of(&references), DEPTH).is_ok());
    references.extend([0xC3, 6].repeat(100_000));
    assert_eq!(decode(&array_of(&references), DEPTH).err().map(|error| error.kind), Some(TooLarge));

    let empty_arrays = [0xF3, 0xF1, 0xD7, 0, 0, 0xFF, 0xFF];
    assert!(decode(&array_of(&empty_arrays.repeat(10)), DEPTH).is_ok());
    let many = decode(&array_of(&empty_arrays.repeat(100_000)), DEPTH);
    assert_eq!(many.err().map(|error| error.kind), Some(TooLarge));

    let lengths = ["C2 FF FF FF FF", "E4 FF FF FF FF", "EF FF FF FF FF FF FF FF FF", "DF FF FF FF 7F"];
    for hex in lengths {
        assert!(matches!(kind(hex), Some(UnexpectedEnd | TooLarge)), "{hex}");
    }
}

/// A document at the limit of what an item may have as text is never refused for its size.
#[test]
fn documents_of_two_mebibytes_of_text_are_read_in_any_shape() {
    for entry in [&[0x05][..], &[0xE0], &[0xE9, 0x80, 0x00]] {
        let once = decode(&array_of(entry), DEPTH).expect("a document");
        let text_of_entry = json::size(once.root()) - 1;
        let body = array_of(&entry.repeat((2 << 20) / text_of_entry));
        assert!(decode(&body, DEPTH).is_ok(), "{entry:?}");
    }
}

#[test]
fn published_vectors_are_read() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/vectors/nosql-rust-fixtures/binary_json_vectors.json");
    let Ok(text) = std::fs::read(&path) else {
        println!("not run: the vectors of binary JSON are not there");
        return;
    };
    let vectors = json::parse(&text, DEPTH).expect("the vectors are JSON");
    let vectors = vectors.root().as_array().expect("a list");
    assert!(vectors.len() >= 40);
    for vector in vectors.iter() {
        let name = vector.get("name").as_str().expect("a name");
        let doc = read(vector.get("binary").as_str().expect("hex"));
        let doc = doc.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(doc.root(), vector.get("json"), "{name}");
    }
}

/// Whatever is read must be a document that can be written and read again.
fn assert_sound(body: &[u8]) {
    if let Ok(doc) = decode(body, DEPTH) {
        let mut text = Vec::new();
        json::write(doc.root(), &mut text);
        let again = json::parse(&text, DEPTH).expect("what is written is JSON");
        assert_eq!(again.root(), doc.root());
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        assert_sound(&body);
        assert_sound(&[vec![0x80], body].concat());
    }

    #[test]
    fn bytes_that_look_like_bodies_never_panic(body in proptest::collection::vec(
        prop_oneof![0xE0u8..0xF4, 0x71u8..0x84, 0xC0u8..0xE0, 0u8..8], 0..300)) {
        assert_sound(&[vec![0x80], body].concat());
    }

    #[test]
    fn damaged_bodies_never_panic(place in 0usize..40, byte in any::<u8>()) {
        let mut body = bytes("80 EA 24 2C C0 02 61 62 81 61 E2 05 C9 01 00 78 01 0A 81 62 F0 D7 02 01 02 \
                              81 63 C3 04 81 64 7C 02 61 20 00 81 65 DD 01");
        if let Some(target) = body.get_mut(place) {
            *target = byte;
        }
        assert_sound(&body);
    }
}
