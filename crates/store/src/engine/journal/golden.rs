//! The forms of the journal for `docs/format.md`.

use bytes::Bytes;

use super::head::{Format, Head};
use super::record::{self, END_BYTES, Record, Tags};
use super::{mark, old};
use crate::engine::Keyspace;
use crate::engine::batch::Write;
use crate::golden::Form;

const SEED: u64 = 0x0102_0304_0506_0708;
/// Where the record stands, and up to where its segment was durable before it.
const PLACE: (u64, u64) = (4096, 4096);

pub fn forms() -> Vec<Form> {
    vec![
        Form { name: "journal.head", bytes: head(Format::Current).copy().to_vec(), again: again_head },
        Form { name: "journal.head.old", bytes: head(Format::Old).encode_old(), again: again_head },
        Form { name: "journal.record", bytes: encode(3, &writes()), again: again_record },
        Form { name: "journal.record.old", bytes: encode_old(), again: again_old },
        Form { name: "mark", bytes: mark::golden().to_vec(), again: mark::again },
    ]
}

fn head(format: Format) -> Head {
    let length = if format == Format::Old { 0 } else { 0x10_0000 };
    Head { format, generation: 2, seed: SEED, previous: 3, length, floors: [4, 5, 6, 7, 8] }
}

fn again_head(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut page = vec![0; 4096];
    page[..bytes.len()].copy_from_slice(bytes);
    let head = Head::find(&page).ok()?.head;
    Some(if head.format == Format::Old { head.encode_old() } else { head.copy().to_vec() })
}

fn writes() -> Vec<Write> {
    let write = |keyspace, key: &'static str, value: Option<&'static str>| Write {
        keyspace,
        key: Bytes::from_static(key.as_bytes()),
        value: value.map(|value| Bytes::from_static(value.as_bytes())),
    };
    vec![write(Keyspace::Item, "key", Some("value")), write(Keyspace::Meta, "gone", None)]
}

fn encode(sequence: u64, writes: &[Write]) -> Vec<u8> {
    let mut buffer = Vec::new();
    record::encode(&mut buffer, (SEED, &Tags::of(SEED)), PLACE, sequence, writes).expect("it is short");
    buffer
}

fn again_record(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Bytes::copy_from_slice(bytes);
    let record = Record::take(&mut bytes, PLACE.0, SEED, &Tags::of(SEED))?;
    assert_eq!(bytes.len(), END_BYTES, "the end mark is left");
    Some(encode(record.sequence, &record.writes()?))
}

fn content() -> Vec<u8> {
    let mut content = Vec::new();
    record::encode_writes(&writes(), &mut content).expect("it is short");
    content
}

fn encode_old() -> Vec<u8> {
    old::encode(SEED, 3, &content())
}

fn again_old(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = old::take(&mut Bytes::copy_from_slice(bytes), SEED)?;
    Some(old::encode(SEED, record.sequence, &record.content))
}
