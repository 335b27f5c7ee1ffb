//! Recorded queries and results of the service.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod shared;

use std::collections::BTreeMap;

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::{
    Code, Context, Features, Parameters, QueryError, Room, Row, Rows, Run, compile, describe,
};
use serde_json::Value;

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap()
}

fn run(query: &str, parameters: &Parameters, docs: &[Doc]) -> Result<Vec<Value>, QueryError> {
    let rows = docs.iter().map(|doc| Row::plain(doc.as_ref()));
    let out = compile(query, parameters)?.run_all(rows, &Context::at(0, 0))?;
    Ok(out.iter().map(|row| serde_json::from_slice(row).unwrap()).collect())
}

/// As [`run`], with items that have numbers. Groups come in the order of their first items where they do so at the service.
fn run_numbered(query: &str, docs: &[Doc]) -> Result<Vec<Value>, QueryError> {
    let (program, cx) = (compile(query, &Parameters::new())?, Context::at(0, 0));
    let (mut run, mut out) = (Run::start(&program, &cx, Room::UNLIMITED, None)?, Rows::default());
    if program.groups_as_created() {
        run.order_groups_by_creation();
    }
    // Whatever the order in which they are looked at.
    for (number, doc) in docs.iter().enumerate().rev() {
        run.feed(&Row { place: &(number as u64).to_be_bytes(), ..Row::plain(doc.as_ref()) }, &mut out)?;
    }
    run.finish(&mut out)?;
    Ok(out.iter().map(|row| serde_json::from_slice(row).unwrap()).collect())
}

/// `@name='value'`, where the value is JSON or plain text.
fn corpus_parameters(case: &Value) -> Parameters {
    let mut parameters = Parameters::new();
    for raw in case["parameters_raw"].as_array().into_iter().flatten() {
        let (name, value) = raw.as_str().unwrap().split_once('=').unwrap_or(("@none", ""));
        let value = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')).unwrap_or(value);
        match json::parse(value.as_bytes(), 128) {
            Ok(doc) => parameters.set(name, doc.root()),
            Err(_) => parameters.set(name, orrery_doc::Value::Str(value)),
        }
    }
    parameters
}

#[test]
fn every_query_of_the_corpus_runs_and_gets_a_plan_or_a_documented_error() {
    let Some(corpus) = shared::vector("nosql-sql-corpus/queries.jsonl") else { return };
    let def = PartitionKeyDef {
        kind: PartitionKeyKind::Hash,
        version: PartitionKeyVersion::V2,
        paths: vec![Path::parse_property("/pk").unwrap()],
    };
    let (mut ran, mut refused, mut failures) = (0, 0, Vec::new());
    let mut plan_refusals: BTreeMap<String, usize> = BTreeMap::new();
    for line in corpus.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["query"].as_str().unwrap();
        if text.matches(')').count() > text.matches('(').count() {
            continue;
        }
        let parameters = corpus_parameters(&case);
        match run(text, &parameters, &[]) {
            Ok(_) => ran += 1,
            Err(QueryError::Unsupported(_) | QueryError::Ranked) => ran += 1,
            Err(error) if is_documented(&error) => refused += 1,
            Err(error) => failures.push(format!("{}: {text}\n    {error}", case["source"])),
        }
        if let Err(error) = describe(text, &parameters, &def, &Features::all()) {
            *plan_refusals.entry(error.to_string()).or_default() += 1;
        }
    }
    println!("{ran} queries run, {refused} refused as by the service, {} refused", failures.len());
    failures.iter().for_each(|failure| println!("{failure}"));
    println!("plans refused: {plan_refusals:#?}");
    assert!(failures.len() <= KNOWN_REFUSALS, "{} queries refused", failures.len());
}

/// An order by what has no path (2206) and an index that depends on the item (SC2990): the corpus has queries of the
/// LINQ baselines whose recorded answer is that refusal.
fn is_documented(error: &QueryError) -> bool {
    let QueryError::Invalid(list) = error else { return false };
    list.iter().all(|finding| matches!(finding.code, Code::Number(2206) | Code::Sc(2990)))
}

/// An aggregate over a subquery, which the service refuses too (SC2101).
const KNOWN_REFUSALS: usize = 1;

#[test]
fn group_by_gives_the_recorded_results() {
    let folder = "nosql-dotnet-baselines/QueryBaselineTest.TestGroupByQueries";
    let (Some(xml), Some(items)) =
        (shared::vector(&format!("{folder}.xml")), shared::vector(&format!("{folder}.documents.json")))
    else {
        return;
    };
    let items: Vec<Value> = serde_json::from_str(&items).unwrap();
    let docs: Vec<Doc> = items.iter().map(|item| doc(&item.to_string())).collect();
    let (mut cases, mut failures) = (0, Vec::new());
    for result in xml.split("<Result>").skip(1) {
        let query = shared::cdata(result, "Expression").unwrap();
        let Some(expected) = shared::cdata(result, "Results") else { continue };
        cases += 1;
        let expected: Vec<Value> = serde_json::from_str(expected).unwrap();
        let shown = |rows: &[Value]| rows.iter().map(normal).collect::<Vec<_>>();
        match run_numbered(query, &docs) {
            Ok(got) if shown(&got) == shown(&expected) => {}
            Ok(got) => {
                failures.push(format!("{query}\n  got  {:?}\n  want {:?}", shown(&got), shown(&expected)))
            }
            Err(error) => failures.push(format!("{query}\n  {error}")),
        }
    }
    println!("{cases} GROUP BY queries");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Text that is equal for equal values: numbers as doubles, members by name.
fn normal(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{:?}", number.as_f64().unwrap()),
        Value::Array(items) => format!("[{}]", items.iter().map(normal).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", normal(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn the_engine_baselines_agree() {
    for suite in ["aggregates", "order_by"] {
        let folder = "nosql-engine-baselines";
        let (Some(list), Some(data)) = (
            shared::vector(&format!("{folder}/queries/{suite}.json")),
            shared::vector(&format!("{folder}/testdata/sqlSampleData.json")),
        ) else {
            return;
        };
        let list: Value = serde_json::from_str(&list).unwrap();
        let data: Value = serde_json::from_str(&data).unwrap();
        let docs: Vec<Doc> =
            data["data"].as_array().unwrap().iter().map(|item| doc(&item.to_string())).collect();
        for case in list["queries"].as_array().unwrap() {
            let (name, query) = (case["name"].as_str().unwrap(), case["query"].as_str().unwrap());
            let expected = shared::vector(&format!("{folder}/queries/{suite}/{name}.results.json")).unwrap();
            let expected: Vec<Value> = serde_json::from_str(&expected).unwrap();
            let got = run(query, &Parameters::new(), &docs).unwrap();
            compare(name, &got, &expected);
        }
    }
}

/// Sums may differ in the last digits, because the order of adding does.
fn compare(name: &str, got: &[Value], expected: &[Value]) {
    assert_eq!(got.len(), expected.len(), "{name}");
    for (got, expected) in got.iter().zip(expected) {
        match (got.as_f64(), expected.as_f64()) {
            (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-9 * b.abs(), "{name}: {a} and {b}"),
            _ => assert_eq!(got["name"], expected["name"], "{name}"),
        }
    }
}
