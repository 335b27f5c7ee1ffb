use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value")))
        .collect()
}

fn one(name: &'static str, value: &str) -> Result<RequestHeaders<'static>, String> {
    let map: &'static HeaderMap = Box::leak(Box::new(map(&[(name, value)])));
    RequestHeaders::parse(map).map_err(|refusal| format!("{:?}", refusal.wire().voice))
}

#[test]
fn booleans_are_read_in_any_case() {
    for (value, expected) in
        [("True", true), ("true", true), ("TRUE", true), ("False", false), ("false", false)]
    {
        let headers = one("x-ms-documentdb-isquery", value).expect("a boolean");
        assert_eq!(headers.is_query, expected, "{value}");
    }
    assert!(one("x-ms-documentdb-is-upsert", "yes").is_err());
}

#[test]
fn the_go_client_s_query_header_counts_too() {
    assert!(one("x-ms-documentdb-query", "True").expect("a boolean").is_query);
}

#[test]
fn types_that_name_queries_are_read_in_any_case() {
    for (value, expected) in [
        ("application/query+json", true),
        ("Application/Query+JSON", true),
        (" application/query+json ; charset=utf-8", true),
        ("application/query+jsonp", false),
        ("application/json", false),
        (";application/query+json", false),
    ] {
        assert_eq!(one("content-type", value).expect("any text").is_query, expected, "{value}");
    }
}

#[test]
fn page_sizes_are_positive_or_left_to_the_server() {
    for (value, expected) in [
        ("-1", Some(MaxItemCount::Server)),
        ("0", Some(MaxItemCount::Server)),
        ("1", Some(MaxItemCount::AtMost(1))),
        ("99999999999", Some(MaxItemCount::AtMost(u32::MAX))),
        ("-2", None),
        ("ten", None),
        ("1.5", None),
    ] {
        let read = one("x-ms-max-item-count", value).ok().map(|headers| headers.max_item_count);
        assert_eq!(read, expected, "{value}");
    }
    assert_eq!(MaxItemCount::AtMost(70_000).or(1000, 10_000), 10_000);
    assert_eq!(MaxItemCount::Server.or(1000, 10_000), 1000);
}

#[test]
fn indexing_directives_may_be_the_numbers_of_the_python_sdk() {
    for (value, expected) in [
        ("0", Some(IndexingDirective::Default)),
        ("1", Some(IndexingDirective::Exclude)),
        ("2", Some(IndexingDirective::Include)),
        ("3", None),
    ] {
        let read = one("x-ms-indexing-directive", value).ok().map(|headers| headers.indexing_directive);
        assert_eq!(read, expected, "{value}");
    }
}

#[test]
fn words_are_checked() {
    assert_eq!(
        one("x-ms-consistency-level", "Strong").expect("known").consistency,
        Some(Consistency::Strong)
    );
    assert_eq!(
        one("x-ms-consistency-level", "session").expect("known").consistency,
        Some(Consistency::Session)
    );
    assert_eq!(
        one("x-ms-indexing-directive", "Exclude").expect("known").indexing_directive,
        IndexingDirective::Exclude
    );
    assert_eq!(one("x-ms-cosmos-priority-level", "Low").expect("known").lane.priority, Some(Priority::Low));
    for (name, value) in [
        ("x-ms-consistency-level", "Stronger"),
        ("x-ms-indexing-directive", "Maybe"),
        ("x-ms-cosmos-priority-level", "Medium"),
        ("x-ms-cosmos-read-consistency-strategy", "Sometimes"),
        ("x-ms-cosmos-throughput-bucket", "6"),
        ("x-ms-cosmos-throughput-bucket", "0"),
        ("content-length", "many"),
    ] {
        let message = one(name, value).expect_err("unknown");
        assert!(message.contains(name) && message.contains(value), "{message}");
    }
}

#[test]
fn minimal_answers_are_asked_for_in_two_ways() {
    for (name, value, expected) in [
        ("prefer", "return=minimal", true),
        ("prefer", "respond-async, Return = Minimal", true),
        ("prefer", "return=representation", false),
        ("x-ms-cosmos-populate-content-response-on-write", "False", true),
        ("x-ms-cosmos-populate-content-response-on-write", "True", false),
    ] {
        assert_eq!(one(name, value).expect("well formed").minimal_response, expected, "{name}: {value}");
    }
}

#[test]
fn a_level_and_a_strategy_may_come_together() {
    for strategy in ["Eventual", "Default"] {
        let both =
            [("x-ms-consistency-level", "Session"), ("x-ms-cosmos-read-consistency-strategy", strategy)];
        assert!(RequestHeaders::parse(&map(&both)).is_ok(), "{strategy}");
    }
}

#[test]
fn empty_values_count_as_absent_and_the_first_of_several_counts() {
    assert_eq!(one("x-ms-continuation", "").expect("absent").continuation, None);
    let mut several = HeaderMap::new();
    several.append("if-match", HeaderValue::from_static("\"a\""));
    several.append("if-match", HeaderValue::from_static("\"b\""));
    assert_eq!(RequestHeaders::parse(&several).expect("legal").if_match, Some("\"a\""));
}

#[test]
fn binary_answers_are_offered_by_name() {
    for (value, expected) in [("CosmosBinary", true), ("JsonText, CosmosBinary", true), ("JsonText", false)] {
        let headers = one("x-ms-cosmos-supported-serialization-formats", value).expect("a list");
        assert_eq!(headers.accepts_binary, expected, "{value}");
        assert_eq!(headers.wants_binary_rows(), expected, "{value}");
        assert!(!headers.wants_binary_feed(), "feeds are asked for by name only");
    }
    let both = |format| {
        let mut headers = HeaderMap::new();
        headers
            .append("x-ms-cosmos-supported-serialization-formats", HeaderValue::from_static("CosmosBinary"));
        headers.append("x-ms-documentdb-content-serialization-format", HeaderValue::from_static(format));
        let headers = RequestHeaders::parse(&headers).expect("known formats");
        (headers.wants_binary_rows(), headers.wants_binary_feed())
    };
    assert_eq!(both("JsonText"), (false, false), "what is named counts");
    assert_eq!(both("cosmosbinary"), (true, true));
}

#[test]
fn broken_utf_8_is_refused_where_it_matters() {
    let broken = || HeaderValue::from_bytes(b"[\"\xff\xfe\"]").expect("bytes that a header may carry");
    let mut map = HeaderMap::new();
    map.insert("x-ms-documentdb-partitionkey", broken());
    assert!(RequestHeaders::parse(&map).is_err());
    let mut map = HeaderMap::new();
    map.insert("user-agent", broken());
    map.insert("x-unknown", broken());
    assert!(RequestHeaders::parse(&map).is_ok());
}

#[test]
fn index_metrics_are_asked_for_in_two_forms() {
    const V1: &str = "x-ms-cosmos-populateindexmetrics";
    const V2: &str = "x-ms-cosmos-populateindexmetrics-v2";
    for (pairs, wanted) in [
        (vec![], IndexMetrics::None),
        (vec![(V1, "True")], IndexMetrics::V1),
        (vec![(V1, "False")], IndexMetrics::None),
        (vec![(V2, "true")], IndexMetrics::V2),
        (vec![(V1, "true"), (V2, "true")], IndexMetrics::V2),
        (vec![(V1, "true"), (V2, "false")], IndexMetrics::V1),
    ] {
        let map = map(&pairs);
        assert_eq!(RequestHeaders::parse(&map).expect("booleans").index_metrics, wanted, "{pairs:?}");
    }
}

#[test]
fn queries_may_be_told_how_to_find_items() {
    let access = |value| one("x-orrery-query-access", value).map(|headers| headers.query_access);
    assert_eq!(access("scan"), Ok(AccessChoice::ScanOnly));
    assert_eq!(access("index"), Ok(AccessChoice::IndexAlways));
    assert_eq!(access("Auto"), Ok(AccessChoice::Auto));
    assert!(access("guess").is_err());
    let headers = one("x-orrery-explain", "true").expect("a boolean");
    assert!(headers.explain && !headers.explain_charge && !headers.merge_here);
}

const NAMES: [&str; 27] = [
    "authorization",
    "date",
    "host",
    "content-type",
    "content-length",
    "if-match",
    "prefer",
    "a-im",
    "x-ms-date",
    "x-ms-max-item-count",
    "x-ms-consistency-level",
    "x-ms-indexing-directive",
    "x-ms-offer-throughput",
    "x-ms-session-token",
    "x-ms-documentdb-partitionkey",
    "x-ms-documentdb-partitionkeyrangeid",
    "x-ms-documentdb-isquery",
    "x-ms-documentdb-responsecontinuationtokenlimitinkb",
    "x-ms-cosmos-batch-atomic",
    "x-ms-cosmos-priority-level",
    "x-ms-cosmos-throughput-bucket",
    "x-ms-cosmos-supported-serialization-formats",
    "x-ms-cosmos-read-consistency-strategy",
    "x-ms-cosmos-populateindexmetrics",
    "x-orrery-explain-charge",
    "x-orrery-query-access",
    "x-orrery-query-merge",
];

proptest! {
    #[test]
    fn no_header_panics(values in proptest::collection::vec((0..NAMES.len(), any::<Vec<u8>>()), 0..12)) {
        let mut map = HeaderMap::new();
        for (name, value) in values {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                map.append(HeaderName::from_static(NAMES[name]), value);
            }
        }
        if let Err(refusal) = RequestHeaders::parse(&map) {
            prop_assert_eq!(refusal.wire().status.as_u16(), 400);
        }
    }
}
