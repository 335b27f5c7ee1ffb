use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::super::token::{Asked, Hello, Told, Welcome};
use super::*;
use orrery_gateway::ActivityId;

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

const ACTIVITY: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// Writes tokens as they were read.
fn write(tokens: &[Token<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    tokens.iter().for_each(|token| token.write(&mut out));
    out
}

fn all(bytes: &[u8]) -> Result<Vec<Token<'_>>, Malformed> {
    Tokens::of(bytes).collect()
}

#[test]
fn an_answer_is_these_bytes() {
    let mut out = Writer::new(201, &ACTIVITY);
    out.byte(Told::PayloadPresent, 1);
    out.number(Told::TransportRequestId, 7);
    out.position(Told::Lsn, 300);
    out.float(Told::RequestCharge, 1.5);
    out.text(Told::SessionToken, "-1#300");
    out.text(Welcome::ServerAgent, "O");
    let wanted = "50 00 00 00 C9 00 00 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 10 \
                  00 00 00 01 \
                  35 00 02 07 00 00 00 \
                  13 00 05 2C 01 00 00 00 00 00 00 \
                  15 00 0E 00 00 00 00 00 00 F8 3F \
                  3E 00 08 06 00 2D 31 23 33 30 30 \
                  02 00 07 01 4F \
                  05 00 00 00";
    let mut wanted = hex(wanted);
    let length = (wanted.len() - LENGTH_BYTES) as u32;
    wanted[..4].copy_from_slice(&length.to_le_bytes());
    assert_eq!(out.finish(Some(5)), wanted);
}

#[test]
fn a_text_that_is_too_long_for_its_token_is_left_out() {
    let without = Writer::new(200, &ACTIVITY).finish(None);
    let mut out = Writer::new(200, &ACTIVITY);
    out.text(Welcome::ServerAgent, &"x".repeat(256));
    out.text(Told::ContinuationToken, &"x".repeat(65_536));
    assert_eq!(out.finish(None), without);
    let mut out = Writer::new(200, &ACTIVITY);
    out.text(Told::ContinuationToken, &"x".repeat(65_535));
    assert_eq!(out.finish(None).len(), without.len() + 5 + 65_535);
}

#[test]
fn a_head_says_how_long_its_frame_is() {
    let mut bytes = [0u8; HEAD_BYTES];
    bytes[8..].copy_from_slice(&ACTIVITY);
    bytes[4..8].copy_from_slice(&[3, 0, 0x25, 0]);
    for (length, is_legal) in
        [(0u32, false), (23, false), (24, true), (100, true), (101, false), (u32::MAX, false)]
    {
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let head = Head::read(&bytes, 100);
        assert_eq!(head.is_ok(), is_legal, "{length}");
        if let Ok(head) = head {
            assert_eq!((head.length, head.resource, head.operation), (length as usize, 3, 0x25));
            assert_eq!(ActivityId::of_guid(&head.activity).as_str(), "04030201-0605-0807-090a-0b0c0d0e0f10");
        }
    }
}

#[test]
fn every_kind_is_read_and_no_other() {
    let bytes = hex(
        "01 00 00 FF  02 00 01 01 02  03 00 02 01 02 03 04  04 00 06 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 10 \
                     05 00 07 02 68 69  06 00 08 02 00 68 69  07 00 09 02 00 00 00 68 69  08 00 0A 01 FF  09 00 0B 01 00 FF \
                     0A 00 0C 01 00 00 00 FF",
    );
    let tokens = all(&bytes).expect("well-formed");
    assert_eq!(tokens.len(), 10);
    assert_eq!((tokens[0].byte(), tokens[2].number()), (Ok(0xFF), Ok(0x0403_0201)));
    assert_eq!(tokens[3].guid(), Ok(ACTIVITY));
    for text in &tokens[4..7] {
        assert_eq!(text.text(), Ok("hi"));
        assert_eq!(text.byte(), Err(Malformed::OtherKind));
    }
    for bytes in &tokens[7..] {
        assert_eq!(bytes.bytes(), Ok(&[0xFF][..]));
        assert_eq!(bytes.text(), Err(Malformed::OtherKind));
    }
    assert_eq!(write(&tokens), bytes);
    assert_eq!(all(&hex("01 00 0F 00")), Err(Malformed::Kind));
    assert_eq!(all(&hex("01 00 09 FF FF FF FF 00")), Err(Malformed::Truncated));
}

#[test]
fn a_known_number_has_one_type() {
    let bytes = hex("03 00 08 01 00 78");
    let token = Tokens::of(&bytes).next().expect("one").expect("well-formed");
    assert_eq!(token.meaning::<Asked>(), Err(Malformed::OtherKind), "a date is a short string");
    let bytes = hex("FF 7F 00 01");
    let token = Tokens::of(&bytes).next().expect("one").expect("well-formed");
    assert_eq!(token.meaning::<Asked>(), Ok(None));
}

proptest! {
    #[test]
    fn no_bytes_panic_and_what_is_read_is_a_part_of_them(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut total = 0;
        for token in Tokens::of(&bytes) {
            let Ok(token) = token else { break };
            total += token.bytes.len() + 3;
            prop_assert!(total <= bytes.len());
            let _ = (token.byte(), token.flag(), token.number(), token.guid(), token.text(), token.bytes());
        }
    }
}

/// What clients of the service were seen to send, and what they accepted.
fn recorded() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/nosql-rntbd");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("not run: the recorded frames (shared/vectors/nosql-rntbd) are not here");
    None
}

fn shown(token: &Token<'_>) -> Json {
    match token.kind {
        Kind::Byte => token.bytes[0].into(),
        Kind::UShort => u16::from_le_bytes(array(token.bytes)).into(),
        Kind::ULong => token.number().expect("a number").into(),
        Kind::Long => i32::from_le_bytes(array(token.bytes)).into(),
        Kind::ULongLong => u64::from_le_bytes(array(token.bytes)).to_string().into(),
        Kind::LongLong => i64::from_le_bytes(array(token.bytes)).to_string().into(),
        Kind::Float => f32::from_le_bytes(array(token.bytes)).into(),
        Kind::Double => f64::from_le_bytes(array(token.bytes)).into(),
        Kind::Guid => ActivityId::of_guid(&token.guid().expect("an id")).as_str().into(),
        Kind::SmallString | Kind::String | Kind::ULongString => token.text().expect("a text").into(),
        Kind::SmallBytes | Kind::Bytes | Kind::ULongBytes => {
            let digits: String = token.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("hex:{digits}").into()
        }
    }
}

/// Whether two values are the same but for the way in which a number is written.
fn same(left: &Json, right: &Json) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

/// A frame as it is written from what was read of it.
fn again(bytes: &[u8], head: &Head, tokens: &[Token<'_>], is_answer: bool) -> Vec<u8> {
    let kind = match is_answer {
        true => u32::from_le_bytes(array(&bytes[4..8])),
        false => u32::from(head.resource) | u32::from(head.operation) << 16,
    };
    let mut out = Writer::new(0, &head.activity);
    out.out[4..8].copy_from_slice(&kind.to_le_bytes());
    out.out.extend_from_slice(&write(tokens));
    let payload = bytes.get(head.length + LENGTH_BYTES..);
    let mut frame = out.finish(payload.map(<[u8]>::len));
    frame.extend_from_slice(payload.unwrap_or_default());
    frame
}

#[test]
fn recorded_frames_say_what_was_recorded_and_are_written_as_they_were() {
    let Some(folder) = recorded() else { return };
    let mut frames = 0;
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let Some((case, direction)) = name.strip_suffix(".bin").and_then(|name| name.rsplit_once('.')) else {
            continue;
        };
        let text = std::fs::read(folder.join(format!("{case}.json"))).expect("a description");
        let recorded: Json = serde_json::from_slice(&text).expect("JSON");
        let bytes = std::fs::read(&path).expect("a frame");
        let head = Head::read(&array(&bytes[..HEAD_BYTES]), bytes.len()).expect("a head");
        let tokens = all(&bytes[HEAD_BYTES..head.length]).expect("well-formed");
        let wanted = recorded[direction]["tokens"].as_array().expect("tokens");
        assert_eq!(tokens.len(), wanted.len(), "{name}");
        for (token, wanted) in tokens.iter().zip(wanted) {
            assert_eq!(format!("0x{:04X}", token.id), wanted["id"].as_str().expect("an id"), "{name}");
            // A description shortens what is long.
            let is_whole = wanted["value"].as_str().is_none_or(|text| !text.contains('…'));
            assert!(!is_whole || same(&shown(token), &wanted["value"]), "{name}: {} {wanted}", shown(token));
            let is_context = case.ends_with("context");
            let known = match (direction, is_context) {
                ("request", false) => token.meaning::<Asked>().map(|known| known.is_some()),
                ("request", true) => token.meaning::<Hello>().map(|known| known.is_some()),
                (_, false) => token.meaning::<Told>().map(|known| known.is_some()),
                (_, true) => token.meaning::<Welcome>().map(|known| known.is_some()),
            };
            assert_eq!(known, Ok(true), "{name}: {wanted}");
        }
        assert_eq!(recorded[direction]["headerLength"], head.length, "{name}");
        // An answer has the activity of its request.
        assert_eq!(recorded["request"]["activityId"], ActivityId::of_guid(&head.activity).as_str(), "{name}");
        assert_eq!(again(&bytes, &head, &tokens, direction == "response"), bytes, "{name}");
        frames += 1;
    }
    assert!(frames > 150, "{frames} frames");
}

#[test]
fn the_table_of_tokens_is_the_recorded_one() {
    let Some(folder) = recorded() else { return };
    let text = std::fs::read(folder.join("tokens.json")).expect("a table");
    let recorded: Json = serde_json::from_slice(&text).expect("JSON");
    fn check<T: Numbered>(recorded: &Json, least: usize) {
        let known = recorded.as_array().expect("a list").iter().filter(|token| {
            let id = token["id"].as_u64().expect("an id") as u16;
            let Some(known) = T::of(id) else { return false };
            let kind = format!("{:?}", known.kind());
            assert!(token["type"].is_null() || token["type"] == kind.as_str(), "{token}: {kind}");
            true
        });
        assert!(known.count() >= least);
    }
    check::<Hello>(&recorded["contextRequest"], 8);
    check::<Welcome>(&recorded["contextResponse"], 6);
    check::<Asked>(&recorded["request"], 80);
    check::<Told>(&recorded["response"], 45);
}
