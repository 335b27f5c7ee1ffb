//! Terms and places of values, as golden scripts: `scripts/*.txt`.

use std::path::Path as File;

use orrery_doc::{
    Doc, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, TermOrder, divide,
    encode_term, epk, json,
};
use orrery_testkit::script::{self, Runner};

/// The JSON values of a line, one after the other.
fn values(text: &str) -> Vec<(&str, Doc)> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    words.map(|word| (word, json::parse(word.as_bytes(), 8).expect("a script has JSON"))).collect()
}

fn order(name: &str) -> TermOrder {
    match name {
        "sql" => TermOrder::Sql,
        "bson" => TermOrder::Bson,
        "cql" => TermOrder::Cql,
        other => panic!("no order {other}"),
    }
}

fn definition(name: &str, levels: usize) -> PartitionKeyDef {
    let (kind, version) = match name {
        "hash1" => (PartitionKeyKind::Hash, PartitionKeyVersion::V1),
        "hash2" => (PartitionKeyKind::Hash, PartitionKeyVersion::V2),
        "multihash" => (PartitionKeyKind::MultiHash, PartitionKeyVersion::V2),
        "exact" => (PartitionKeyKind::Exact, PartitionKeyVersion::V2),
        "token" => (PartitionKeyKind::Token, PartitionKeyVersion::V2),
        other => panic!("no kind of key {other}"),
    };
    let path = |level| Path::parse_property(&format!("/k{level}")).expect("a path");
    PartitionKeyDef { kind, version, paths: (0..levels).map(path).collect() }
}

fn term(value: &Doc, order: TermOrder) -> Vec<u8> {
    let mut term = Vec::new();
    encode_term(value.root(), order, &mut term);
    term
}

fn line(line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (command, name, rest) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    match command {
        "terms" => {
            let order = order(name);
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            values(rest)
                .iter()
                .map(|(text, value)| format!("{text} = {}\n", hex(&term(value, order))))
                .collect()
        }
        "sorted" => {
            let order = order(name);
            let mut values = values(rest);
            values.sort_by_key(|(_, value)| term(value, order));
            values.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(" ")
        }
        "place" => {
            let values = values(rest);
            let def = definition(name, values.len());
            let key = PartitionKey::of_values(&def, values.iter().map(|(_, value)| value.root()));
            format!("{rest} at {}\n", epk(&def, &key).to_hex())
        }
        "divide" => {
            let parts = rest.parse().expect("a number of parts");
            let cuts = divide(&definition(name, 1), &orrery_doc::EpkRange::full(), parts);
            cuts.iter().map(|cut| format!("cut at {}\n", cut.to_hex())).collect()
        }
        other => panic!("no command {other}"),
    }
}

#[test]
fn terms_and_places_are_those_of_the_scripts() {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let begin = || -> Runner { Box::new(|step: &str| step.lines().map(line).collect()) };
    assert!(script::run(&folder, begin) >= 9);
}
