use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::schema::{OPERATION, RESULT, Schema};
use super::*;

/// `options-all` of the published notes, byte by byte.
const DOCUMENTED: &str = "81 F0 D8 FF 7F 01 0A 00 00 00 \
    81 F1 D8 FF 7F 3D 00 00 00 32 BA 5D 47 \
    81 70 54 E1 7F 53 05 00 00 00 02 00 00 00 01 61 \
    14 7B 22 69 64 22 3A 22 61 22 2C 22 70 6B 22 3A 22 70 31 22 7D \
    14 08 07 45 78 63 6C 75 64 65 14 09 03 22 6D 22 07 0B FF FF FF FF 03 0C";

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

fn read<'a>(body: &'a [u8], schema: &'static Schema) -> Result<Vec<Row<'a>>, HybridRowError> {
    Records::new(body, schema).collect()
}

fn write(rows: &[Row<'_>]) -> Vec<u8> {
    let mut out = RecordWriter::with_capacity(0);
    rows.iter().for_each(|row| out.push(row));
    out.finish()
}

/// A body whose one record holds these bytes, with their length and sum.
fn record(row: &[u8]) -> Vec<u8> {
    let mut out = write(&[]);
    out.extend_from_slice(&hex("81 F1 D8 FF 7F"));
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc::crc32(row).to_le_bytes());
    out.extend_from_slice(row);
    out
}

/// Rows with columns of every kind and place.
fn samples() -> Vec<(&'static Schema, Vec<u8>)> {
    let long = "x".repeat(300);
    let operations = [
        Row::new(&OPERATION)
            .with("operationType", Value::Int32(0))
            .with("resourceType", Value::Int32(2))
            .with("partitionKey", Value::Utf8("[\"\\u00e9\"]"))
            .with("resourceBody", Value::Binary(long.as_bytes()))
            .with("minimalReturnPreference", Value::Bool(true)),
        Row::new(&OPERATION)
            .with("operationType", Value::Int32(4))
            .with("resourceType", Value::Int32(2))
            .with("id", Value::Utf8("日本"))
            .with("ifNoneMatch", Value::Utf8("")),
    ];
    let results = [
        Row::new(&RESULT)
            .with("statusCode", Value::Int32(429))
            .with("subStatusCode", Value::Int32(3200))
            .with("retryAfterMilliseconds", Value::UInt32(41))
            .with("requestCharge", Value::Float64(0.5)),
        Row::new(&RESULT).with("statusCode", Value::Int32(201)).with("eTag", Value::Utf8("\"1\"")),
    ];
    vec![(&OPERATION, write(&operations)), (&RESULT, write(&results)), (&OPERATION, hex(DOCUMENTED))]
}

/// The lengths at which a body may end: after the segment, and after each record.
fn boundaries(body: &[u8]) -> Vec<usize> {
    let mut at = 10;
    let mut out = vec![at];
    while at < body.len() {
        let length = u32::from_le_bytes(body[at + 5..at + 9].try_into().expect("four bytes"));
        at += 13 + length as usize;
        out.push(at);
    }
    out
}

/// A shortened body is refused, unless it is a shorter body; a body with a wrong byte is refused.
fn assert_strict(name: &str, schema: &'static Schema, body: &[u8]) {
    let whole = boundaries(body);
    for length in 0..body.len() {
        let read = read(&body[..length], schema);
        match whole.iter().position(|end| *end == length) {
            Some(rows) => assert_eq!(read.map(|rows| rows.len()), Ok(rows), "{name}: {length} bytes"),
            None => assert!(read.is_err(), "{name}: {length} bytes"),
        }
    }
    let mut damaged = body.to_vec();
    for at in 0..body.len() {
        for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF] {
            damaged[at] = body[at] ^ flip;
            assert!(read(&damaged, schema).is_err(), "{name}: byte {at} with {flip:02X} turned");
        }
        damaged[at] = body[at];
    }
}

/// The same within rows whose sums are right: nothing may panic, and what is read can be written to the same bytes.
fn assert_robust(schema: &'static Schema, row: &[u8]) {
    for length in 0..row.len() {
        assert_round(schema, &record(&row[..length]));
    }
    let mut damaged = row.to_vec();
    for at in 0..row.len() {
        for byte in [0, 1, row[at] ^ 1, row[at].wrapping_add(1), 0x7F, 0x80, 0xFF] {
            damaged[at] = byte;
            assert_round(schema, &record(&damaged));
        }
        damaged[at] = row[at];
    }
}

/// Rows that are read are read again from what is written of them, and take no more room than the body.
fn assert_round(schema: &'static Schema, body: &[u8]) {
    let Ok(rows) = read(body, schema) else { return };
    let written = write(&rows);
    assert!(written.len() <= body.len());
    let again = read(&written, schema).expect("what is written can be read");
    assert_eq!(format!("{again:?}"), format!("{rows:?}"));
}

#[test]
fn the_documented_request_is_read_and_written() {
    let body = hex(DOCUMENTED);
    let rows = read(&body, &OPERATION).expect("a request");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.int32("operationType"), row.int32("resourceType")), (Some(5), Some(2)));
    assert_eq!((row.text("id"), row.text("ifMatch")), (Some("a"), Some("\"m\"")));
    assert_eq!(row.binary("resourceBody"), Some(&br#"{"id":"a","pk":"p1"}"#[..]));
    assert_eq!((row.text("indexingDirective"), row.text("ifNoneMatch")), (Some("Exclude"), None));
    assert_eq!(
        (row.int32("timeToLiveInSeconds"), row.bool("minimalReturnPreference")),
        (Some(-1), Some(true))
    );
    assert_eq!(write(&rows), body);
}

#[test]
fn damaged_bodies_are_refused() {
    for (schema, body) in samples() {
        assert_strict("sample", schema, &body);
    }
}

#[test]
fn damaged_rows_under_good_sums_are_refused_or_read() {
    for (schema, body) in samples() {
        for pair in boundaries(&body).windows(2) {
            assert_robust(schema, &body[pair[0] + 13..pair[1]]);
        }
    }
}

#[test]
fn lying_lengths_are_refused() {
    let operation = "81 70 54 E1 7F";
    let fixed = "00 00 00 00 02 00 00 00";
    for (row, kind) in [
        // A body of four gigabytes, of more than there is, and with a length that does not end.
        (format!("{operation} 43 {fixed} FF FF FF FF 0F 41"), HybridRowErrorKind::UnexpectedEnd),
        (format!("{operation} 43 {fixed} 02 41"), HybridRowErrorKind::UnexpectedEnd),
        (format!("{operation} 43 {fixed} FF FF FF FF FF 0F 41"), HybridRowErrorKind::Varint),
        (format!("{operation} 43 {fixed} FF FF FF FF 7F 41"), HybridRowErrorKind::Varint),
        (format!("{operation} 43 {fixed} FF"), HybridRowErrorKind::UnexpectedEnd),
        // A sparse column whose name is longer than the row.
        (format!("{operation} 03 {fixed} 14 FF 01 41"), HybridRowErrorKind::UnexpectedEnd),
        (format!("{operation} 03 {fixed} 07 0B 00 00 00"), HybridRowErrorKind::UnexpectedEnd),
        (format!("{operation} 83 {fixed}"), HybridRowErrorKind::Presence),
        (format!("{operation} 13 {fixed} 01 FF"), HybridRowErrorKind::Text),
        (format!("{operation} 03 {fixed} 1E 08"), HybridRowErrorKind::Type),
        (format!("{operation} 03 {fixed} 07 08 00 00 00 00"), HybridRowErrorKind::ColumnType),
        (format!("{operation} 03 {fixed} 03 0C 03 0C"), HybridRowErrorKind::ColumnTwice),
        (format!("{operation} 03 {fixed} 07 01 00 00 00 00"), HybridRowErrorKind::ColumnTwice),
        ("81 71 54 E1 7F 03 00 00 00 00 00 00 00 00".to_owned(), HybridRowErrorKind::Schema),
        (String::new(), HybridRowErrorKind::UnexpectedEnd),
    ] {
        let body = record(&hex(&row));
        assert_eq!(read(&body, &OPERATION).expect_err(&row).kind, kind, "{row}");
    }
    let segment = "81 F0 D8 FF 7F 01";
    for (body, kind) in [
        (String::new(), HybridRowErrorKind::UnexpectedEnd),
        (format!("{segment} 09 00 00 00"), HybridRowErrorKind::SegmentLength),
        (format!("{segment} 00 00 00 00"), HybridRowErrorKind::SegmentLength),
        (format!("{segment} FF FF FF FF"), HybridRowErrorKind::UnexpectedEnd),
        (format!("{segment} 0B 00 00 00 81"), HybridRowErrorKind::UnexpectedEnd),
        ("81 F1 D8 FF 7F 00 00 00 00 00 00 00 00".to_owned(), HybridRowErrorKind::NoSegment),
        (
            format!("{segment} 0A 00 00 00 81 F1 D8 FF 7F FF FF FF FF 00 00 00 00"),
            HybridRowErrorKind::UnexpectedEnd,
        ),
        (format!("{segment} 0A 00 00 00 7B 7D"), HybridRowErrorKind::Version),
    ] {
        assert_eq!(read(&hex(&body), &OPERATION).expect_err(&body).kind, kind, "{body}");
    }
}

#[test]
fn segments_may_say_more_and_come_again() {
    let comment = hex("81 F0 D8 FF 7F 01 0F 00 00 00 14 02 02 68 69");
    let body = [comment, record(&hex("81 71 54 E1 7F 01 C8 00 00 00 00 00 00 00"))].concat();
    let rows = read(&body, &RESULT).expect("an answer");
    assert_eq!(rows.iter().map(|row| row.int32("statusCode")).collect::<Vec<_>>(), [Some(200)]);
}

#[test]
fn columns_that_are_not_known_are_kept() {
    // A name of its own, the empty name, a number of 64 bits, and a column that is named by its text.
    let row = "81 71 54 E1 7F 03 C8 00 00 00 00 00 00 00 08 08 6E 01 02 03 04 05 06 07 08 01 00 \
               10 14 72 65 71 75 65 73 74 43 68 61 72 67 65 00 00 00 00 00 00 F0 3F";
    let body = record(&hex(row));
    let rows = read(&body, &RESULT).expect("an answer");
    assert_eq!(rows[0].get("requestCharge"), Some(Value::Float64(1.0)));
    assert_eq!(write(&rows), body);
}

fn vectors() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/nosql-hybridrow");
    if !folder.is_dir() {
        println!("not run: the vectors of HybridRow are not there");
        return None;
    }
    Some(folder)
}

/// Every case that has a request: its name, its description, its request and its answer.
fn cases(folder: &Path) -> Vec<(String, Json, Vec<u8>, Vec<u8>)> {
    let mut cases = Vec::new();
    for folder in [folder.to_owned(), folder.join("sdk-3.37.0"), folder.join("sdk-3.27.2")] {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Ok(request) = std::fs::read(path.with_extension("bin")) else { continue };
            let text = std::fs::read(&path).expect("a description");
            let answer = std::fs::read(path.with_extension("response.bin")).expect("an answer");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            cases.push((name, serde_json::from_slice(&text).expect("JSON"), request, answer));
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    cases
}

/// Whether a row has exactly the columns of a description. Long texts are described by their hash.
fn assert_described(name: &str, row: &Row<'_>, schema: &Schema, described: &Json) {
    use base64::Engine as _;
    let text_of = |bytes: &[u8], is_text: bool| match std::str::from_utf8(bytes) {
        Ok(text) if is_text => text.to_owned(),
        _ => format!("base64:{}", base64::engine::general_purpose::STANDARD.encode(bytes)),
    };
    for column in schema.columns {
        let found = match row.get(column.name) {
            None | Some(Value::Null | Value::Other(..)) => Json::Null,
            Some(Value::Bool(value)) => json!(value),
            Some(Value::Int32(number)) => json!(number),
            Some(Value::UInt32(number)) => json!(number),
            Some(Value::Float64(number)) => json!(number),
            Some(Value::Utf8(text)) => json!(text),
            Some(Value::Binary(bytes)) => json!(text_of(bytes, column.name == "resourceBody")),
        };
        let wanted = &described[column.name];
        let is_same = match (wanted.get("sha256").and_then(Json::as_str), found.as_str()) {
            (Some(sum), Some(text)) => {
                let digest = Sha256::digest(text.as_bytes());
                digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == sum
            }
            _ => match (wanted.as_f64(), found.as_f64()) {
                (Some(wanted), Some(found)) => wanted == found,
                _ => *wanted == found,
            },
        };
        assert!(is_same, "{name}: {} is {found}, not {wanted}", column.name);
    }
    let columns = described.as_object().expect("an object").keys();
    columns.for_each(|column| assert!(schema.index(column).is_some(), "{name}: {column}"));
}

#[test]
fn published_requests_are_what_their_descriptions_say() {
    let Some(folder) = vectors() else { return };
    for (name, case, request, _) in cases(&folder) {
        let rows = read(&request, &OPERATION).unwrap_or_else(|error| panic!("{name}: {error}"));
        let described = case["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), described.len(), "{name}");
        for (row, described) in rows.iter().zip(described) {
            assert_described(&name, row, &OPERATION, described);
        }
        assert!(write(&rows) == request, "{name} is written with other bytes");
    }
}

#[test]
fn published_answers_are_written_to_the_same_bytes() {
    let Some(folder) = vectors() else { return };
    let mut count = 0;
    for (name, case, _, answer) in cases(&folder) {
        let is_broken = name.starts_with("broken-") && !name.contains("count") && !name.contains("status");
        if is_broken || !is_hybrid_row(&answer) {
            continue;
        }
        let rows = read(&answer, &RESULT).unwrap_or_else(|error| panic!("{name}: {error}"));
        let results = case["answer"]["results"].as_array().expect("results");
        assert_eq!(rows.len(), results.len(), "{name}");
        for (row, result) in rows.iter().zip(results) {
            assert_described(&name, row, &RESULT, result);
        }
        assert!(write(&rows) == answer, "{name} is written with other bytes");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn published_bodies_are_refused_when_damaged() {
    let Some(folder) = vectors() else { return };
    let broken = ["broken-crc", "broken-trailing", "broken-truncated"];
    for (name, _, request, answer) in cases(&folder) {
        if broken.contains(&name.as_str()) {
            assert!(read(&answer, &RESULT).is_err(), "{name}");
        }
        // Nine flips of each byte of each: what is larger adds nothing but time.
        if request.len() < 400 {
            assert_strict(&name, &OPERATION, &request);
        }
        if answer.len() < 400 && is_hybrid_row(&answer) && !name.starts_with("broken-") {
            assert_strict(&name, &RESULT, &answer);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&body, &OPERATION);
        assert_round(&OPERATION, &record(&body));
        assert_round(&RESULT, &record(&[hex("81 71 54 E1 7F"), body].concat()));
    }

    #[test]
    fn rows_that_look_right_never_panic(columns in proptest::collection::vec(
        prop_oneof![0u8..26, Just(0x80), Just(0xFF)], 0..120)) {
        let row = [hex("81 70 54 E1 7F 03 00 00 00 00 02 00 00 00"), columns].concat();
        assert_round(&OPERATION, &record(&row));
    }
}
