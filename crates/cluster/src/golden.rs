//! Records of the catalog, session tokens and ids, held against `docs/format.md`: what the page says reads back to the same text.

use std::collections::BTreeSet;

use orrery_store::{Etag, ItemRid, Lsn};
use orrery_testkit::golden;

use crate::catalog::Record;
use crate::resource::ResourceKind;
use crate::rid::Rid;
use crate::session::RangeToken;

/// What the page calls a record, by its kind; a new kind is a new line.
fn kind(record: &Record) -> &'static str {
    match record {
        Record::Counters(_) => "counters",
        Record::Account(_) => "account",
        Record::Database(_) => "database",
        Record::Container(_) => "container",
        Record::Ranges(_) => "ranges",
        Record::Index(_) => "index",
        Record::Retired(_) => "retired",
        Record::Offer(_) => "offer",
        Record::Throughput(_) => "throughput",
        Record::Hours(_) => "hours",
        Record::Child(_) => "child",
        Record::Job(_) => "job",
        Record::Dropped(_) => "dropped",
    }
}

#[test]
fn the_format_page_tells_every_record_of_the_catalog() {
    let page = golden::texts_of_formats("catalog");
    for (name, text) in &page {
        let record: Record = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(name.split('.').next(), Some(kind(&record)));
        assert_eq!(serde_json::to_string(&record).expect("plain data"), *text);
        let stored = Record::from_doc(&record.to_doc()).expect("a record");
        assert_eq!(serde_json::to_string(&stored).expect("plain data"), *text, "{name} as it is stored");
    }
    const KINDS: usize = 13;
    let kinds: BTreeSet<&str> = page.iter().filter_map(|(name, _)| name.split('.').next()).collect();
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
}

#[test]
fn the_format_page_tells_tokens_and_ids() {
    let token = |range, version, lsn, regions: &[(u64, i64)]| {
        RangeToken { range, version, lsn: Lsn(lsn), regions: regions.to_vec() }.to_string()
    };
    let database = Rid::database(1);
    let container = Rid::container(database, 1);
    let item = ItemRid { partition: 2, region: 0, count: 0x0304 }.encode();
    let wanted: Vec<(String, String)> = [
        ("token", token(0, Some(-1), 12, &[])),
        ("token.regions", token(3, Some(1), 12, &[(2, 5), (4, -1)])),
        ("token.old", token(0, None, 12, &[])),
        ("etag.header", Etag::of(0x0102, 3, 0x66B3_F4D1).to_header()),
        ("rid.database", database.to_string()),
        ("rid.container", container.to_string()),
        ("rid.document", Rid::child(container, ResourceKind::Item, item).to_string()),
        ("rid.user", Rid::user(database, 1).to_string()),
        ("rid.offer", Rid::offer(1).to_string()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec();
    assert_eq!(golden::texts_of_formats("tokens and ids"), wanted);
    let rids = wanted.iter().filter(|(name, _)| name.starts_with("rid."));
    for (name, text) in rids {
        assert_eq!(Rid::parse(text).map(|rid| rid.to_string()).as_ref(), Some(text), "{name}");
    }
}
