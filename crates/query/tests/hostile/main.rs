//! Noise, malice and bad luck: whatever the text, the parameters and the items, the language answers
//! or refuses, soon, and within a bounded memory and stack.
//!
//! Every run uses the same seed, so that a failure in CI can be had again; `ORRERY_FUZZ_SEED` and
//! `ORRERY_FUZZ_ROUNDS` ask for other runs and longer ones.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod bounds;
mod depth;
mod noise;
mod random;
#[path = "../shared/mod.rs"]
mod shared;
mod words;

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::parse::parse;
use orrery_query::print::{Layout, print};
use orrery_query::{Context, Features, Geospatial, Parameters, QueryError, Row, Rows, compile, describe};

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap()
}

fn definition() -> PartitionKeyDef {
    PartitionKeyDef {
        kind: PartitionKeyKind::MultiHash,
        version: PartitionKeyVersion::V2,
        paths: vec![Path::parse_property("/pk").unwrap(), Path::parse_property("/a/b").unwrap()],
    }
}

/// Does with a text all that can be done with one.
fn exercise(text: &str, parameters: &Parameters, docs: &[Doc]) -> Result<Rows, QueryError> {
    let parsed = parse(text);
    if let Ok(query) = &parsed {
        for layout in [Layout::Line, Layout::Clauses] {
            let printed = print(query, layout);
            // Printed text has more parentheses, so near the limit of depth it may be refused.
            if let Ok(again) = parse(&printed) {
                assert_eq!(again, *query, "{text}\n  printed as {printed}");
            }
        }
    }
    let _ = describe(text, parameters, &definition(), &Features::all());
    let program = compile(text, parameters).inspect_err(|error| {
        serde_json::from_str::<serde_json::Value>(&error.to_json()).expect("errors are JSON");
    })?;
    assert!(parsed.is_ok());
    let rows = docs.iter().map(|doc| Row::plain(doc.as_ref()));
    let cx = Context { geospatial: Geospatial::Geometry, ..Context::at(17_092_100_967_890_123, 7) };
    let all = program.run_all(rows, &cx)?;
    for row in all.iter().take(20) {
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(row) {
            assert!(error.to_string().contains("recursion limit"), "{text} answers no JSON: {error}");
        }
    }
    Ok(all)
}
