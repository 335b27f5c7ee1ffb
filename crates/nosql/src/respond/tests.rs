use std::time::Instant;

use orrery_cluster::store::Lsn;

use super::*;
use orrery_gateway::ActivityId;
use orrery_gateway::Scheme;

fn respond(method: Method, explain_charge: bool, result: Result<Reply, Refusal>) -> Response<Full<Bytes>> {
    let trace = Trace {
        method: &method,
        path: "/dbs/d",
        host: "localhost:8081",
        scheme: Scheme::Https,
        activity: ActivityId::choose(Some("05f918e3-621c-451f-afa3-ac5d698a9331")),
        started: Instant::now(),
        explain_charge,
    };
    Responder::new().respond(&trace, result)
}

fn header<'r>(response: &'r Response<Full<Bytes>>, name: &str) -> Option<&'r str> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
}

fn receipt() -> Receipt {
    Receipt {
        charge: Charge::default().line("point read by size", 1.0, 1.04).line("index terms", 3.0, 0.2),
        served: Some(Served { range_id: 2, lsn: Lsn(17), item_lsn: Some(Lsn(9)) }),
    }
}

#[test]
fn answers_carry_the_standard_headers() {
    let reply =
        Reply::ok("{}").receipt(receipt()).etag(orrery_cluster::store::Etag(1)).page(3, Some("next".into()));
    let response = respond(Method::GET, false, Ok(reply));
    for (name, expected) in [
        ("x-ms-activity-id", "05f918e3-621c-451f-afa3-ac5d698a9331"),
        ("x-ms-request-charge", "1.64"),
        ("x-ms-session-token", "2:-1#17"),
        ("x-ms-documentdb-partitionkeyrangeid", "2"),
        ("lsn", "17"),
        ("x-ms-item-lsn", "9"),
        ("x-ms-item-count", "3"),
        ("x-ms-continuation", "next"),
        ("etag", "\"00000000-0000-0700-0000-000000010000\""),
        ("content-type", "application/json"),
        ("content-location", "https://localhost:8081/dbs/d"),
        ("x-ms-number-of-read-regions", "0"),
    ] {
        assert_eq!(header(&response, name), Some(expected), "{name}");
    }
    for name in ["x-ms-request-duration-ms", "x-ms-last-state-change-utc", "x-ms-transport-request-id"] {
        assert!(header(&response, name).is_some(), "{name}");
    }
    assert_eq!(header(&response, "x-orrery-charge"), None);
}

#[test]
fn the_charge_is_explained_on_request() {
    let response = respond(Method::GET, true, Ok(Reply::ok("").receipt(receipt())));
    let json: serde_json::Value =
        serde_json::from_str(header(&response, "x-orrery-charge").expect("it was asked for")).expect("JSON");
    assert_eq!(json["total"], 1.64);
    assert_eq!(json["lines"][1]["what"], "index terms");
    assert_eq!(json["lines"][1]["units"], 0.6);
}

#[test]
fn refusals_carry_charge_session_and_substatus() {
    let error = orrery_cluster::Error::from(orrery_cluster::ErrorKind::Throttled {
        retry_after_ms: 12,
        cause: orrery_cluster::ThrottleCause::Rate,
    });
    let response = respond(Method::POST, false, Err(error.with(receipt()).into()));
    assert_eq!(response.status(), 429);
    for (name, expected) in [
        ("x-ms-substatus", "3200"),
        ("x-ms-retry-after-ms", "12"),
        ("x-ms-request-charge", "1.64"),
        ("x-ms-session-token", "2:-1#17"),
    ] {
        assert_eq!(header(&response, name), Some(expected), "{name}");
    }
}

#[test]
fn a_value_that_no_header_may_carry_is_left_out() {
    let reply = Reply::ok("").page(1, Some("line\nbreak".into()));
    let response = respond(Method::GET, false, Ok(reply));
    assert_eq!(header(&response, "x-ms-continuation"), None);
    assert_eq!(header(&response, "x-ms-item-count"), Some("1"));
}

#[test]
fn names_in_headers_are_plain_or_percent_encoded() {
    for (name, expected) in [("a b", "a b"), ("é", "%C3%A9"), ("a\nb", "a%0Ab"), ("100%", "100%")] {
        let mut out = String::new();
        push_path_text(&mut out, name);
        assert_eq!(out, expected);
    }
}

#[test]
fn units_are_written_as_the_formatter_writes_them() {
    for units in [0.0, 1.0, 5.35, 5.3, 0.05, 10.0, 1234.5, 99_999.99, 1.0 / 3.0, 1e18] {
        let mut text = String::new();
        super::push_units(&mut text, units).expect("memory takes it");
        assert_eq!(text, units.to_string());
    }
}
