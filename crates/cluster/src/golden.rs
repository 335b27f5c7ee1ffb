//! Records of the catalog, held against `docs/format.md`: what the page says reads back to the same text.

use std::collections::BTreeSet;

use orrery_testkit::golden;

use crate::catalog::Record;

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
