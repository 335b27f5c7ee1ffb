//! The well-known examples: what the advisor says of each, word for word, and why it must say so.
//!
//! Workloads are those of the guides. `ORRERY_REWRITE_GOLDENS=1` writes the goldens anew.

use std::fs;
use std::path::{Path, PathBuf};

use orrery_advisor::{CandidateReport, Chance, Report, Settings, Verdict, Workload, advise, html, table};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn workload(name: &str) -> Workload {
    let path = folder("../../docs/guides/workloads").join(format!("{name}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Workload::from_json(&text).expect("the example is a workload")
}

/// The report on an example, after it was compared with its goldens.
fn report(name: &str) -> Report {
    golden(name, advise(&workload(name), &[], &Settings::default()).expect("there is advice"))
}

fn golden(name: &str, report: Report) -> Report {
    let json = serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n";
    for (ending, text) in [("txt", table(&report)), ("json", json)] {
        let path = folder("tests/golden").join(format!("{name}.{ending}"));
        if std::env::var_os("ORRERY_REWRITE_GOLDENS").is_some() {
            fs::write(&path, text).expect("the golden can be written");
            continue;
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{} differs; it would be:\n{text}", path.display());
    }
    report
}

fn candidate<'a>(report: &'a Report, key: &str) -> &'a CandidateReport {
    report.candidates.iter().find(|candidate| candidate.key == key).expect(key)
}

fn verdicts(report: &Report) -> Vec<(&str, Verdict)> {
    report.candidates.iter().map(|candidate| (candidate.key.as_str(), candidate.verdict)).collect()
}

#[test]
fn connected_cars_want_the_device_and_the_month() {
    let report = report("connected-cars");
    assert_eq!(candidate(&report, "/vehicleModel").verdict, Verdict::Hot);
    assert_eq!(candidate(&report, "/month").verdict, Verdict::HotNow);
    let device = candidate(&report, "/deviceId");
    assert_eq!(device.verdict, Verdict::GoodUntil);
    let gigabytes = device.largest.bytes_per_year / (1u64 << 30) as f64;
    assert!((gigabytes - 7.5).abs() < 0.1, "an hourly driver writes {gigabytes} GB a year");
    let days = device.largest.days_until_full.expect("the limit is met");
    assert!((900.0..1000.0).contains(&days), "after {days} days");
    assert!(device.largest.key.as_ref().is_some_and(|key| key.starts_with("hourly-driver-")));
    assert_eq!(report.recommended, "/deviceId+/month");
    assert_eq!(candidate(&report, "/deviceId+/month").verdict, Verdict::Best);
}

#[test]
fn a_huge_tenant_wants_a_hierarchical_key() {
    let report = report("multi-tenant");
    assert_eq!(candidate(&report, "/tenantId").verdict, Verdict::TooLarge);
    let best = candidate(&report, "/tenantId,/userId");
    assert_eq!((report.recommended.as_str(), best.verdict), ("/tenantId,/userId", Verdict::Best));
    let list = best.operations.iter().find(|operation| operation.name.starts_with("an administrator"));
    let asked = list.expect("the list is there").partitions;
    assert!(asked < best.partitions.len() as f64, "a prefix asks {asked} partitions");
    assert_eq!(candidate(&report, "/tenantId,/userId,/id").verdict, Verdict::SplitsTransactions);
}

#[test]
fn a_time_series_must_not_be_keyed_by_its_time_alone() {
    let report = report("time-series");
    for key in ["/date", "/timestamp"] {
        assert!(matches!(candidate(&report, key).verdict, Verdict::HotNow | Verdict::TooLarge), "{key}");
        assert!(candidate(&report, key).findings.iter().any(|finding| finding.code == "hot-now"), "{key}");
    }
    assert_eq!(candidate(&report, "/service").verdict, Verdict::TooLarge);
    assert!(report.recommended.contains("/service") && report.recommended.contains("/date"));
    assert!(candidate(&report, &report.recommended).verdict.is_good());
}

#[test]
fn user_profiles_want_their_id() {
    let report = report("user-profiles");
    assert_eq!((report.recommended.as_str(), report.candidates[0].verdict), ("/id", Verdict::Best));
    assert_eq!(candidate(&report, "/email").verdict, Verdict::Scattered);
    assert!(!candidate(&report, "/country").verdict.is_good());
    assert!(candidate(&report, "/created").measures.routing < 0.5);
}

#[test]
fn food_groups_share_what_their_partition_has() {
    let report = report("food-groups");
    let groups = candidate(&report, "/foodGroup");
    assert_eq!(groups.partitions.len(), 3);
    assert_eq!(groups.load.budget, 6_000.0);
    assert!(groups.partitions.iter().all(|partition| partition.keys.len() == 3), "each has several groups");
    assert!(groups.measures.throughput < candidate(&report, "/id").measures.throughput);
}

#[test]
fn orders_stay_whole() {
    let report = report("orders");
    assert!(report.recommended.starts_with("/customerId"), "{:?}", verdicts(&report));
    assert_eq!(candidate(&report, "/id").measures.transactions, 0.0);
    assert!(!candidate(&report, "/status").verdict.is_good());
    assert!(candidate(&report, "/created").findings.iter().any(|finding| finding.code == "hot-now"));
}

#[test]
fn the_page_needs_nothing_else_and_has_three_charts_for_each_candidate() {
    let mut workload = workload("food-groups");
    workload.name = "</title><script>alert(1)</script>".to_owned();
    let report = advise(&workload, &[], &Settings::default()).expect("there is advice");
    let page = html(&report);
    assert_eq!(page.matches("<svg").count(), 3 * report.candidates.len());
    for outside in ["<script", "http:", "https:", "@import", "url("] {
        assert!(!page.contains(outside), "the page has {outside}");
    }
}

#[test]
fn a_sample_is_enough_and_candidates_are_proposed() {
    let item = |n: u32| {
        serde_json::json!({
            "id": format!("{n}"), "tenant": format!("t{}", n % 7), "user": format!("u{}", n % 300),
            "at": "2026-01-15T08:30:00Z", "_ts": 20_468 * 86_400 + n,
        })
    };
    let sample: Vec<serde_json::Value> = (0..3000).map(item).collect();
    let workload = r#"{"items":{"stored":1000000},"operations":[
        {"name":"write","kind":"create","perSecond":10},
        {"name":"mine","kind":"query","perSecond":100,"filters":["/tenant","/user"]}]}"#;
    let workload = Workload::from_json(workload.as_bytes()).expect("a workload");
    let settings = Settings { today: 20_470.0, partitions: Some(4), ..Settings::default() };
    let report = advise(&workload, &sample, &settings).expect("there is advice");
    let keys: Vec<&str> = report.candidates.iter().map(|candidate| candidate.key.as_str()).collect();
    for expected in ["/user", "/tenant", "/tenant,/user", "/id", "/tenant+month(/at)"] {
        assert!(keys.contains(&expected), "{expected} is not among {keys:?}");
    }
    assert_eq!(
        serde_json::to_string(&report).ok(),
        serde_json::to_string(&advise(&workload, &sample, &settings).expect("again")).ok()
    );
}

/// Items of some tenants, of which one has seven of ten. The others number their items from 0, and a few items have no region.
fn tenants() -> Vec<serde_json::Value> {
    let item = |n: u64| {
        let (tenant, id) = match n % 10 < 7 {
            true => ("giant".to_owned(), format!("g{n}")),
            false => (format!("t{}", n % 97), format!("{}", n / 97)),
        };
        let mut item = serde_json::json!({
            "id": id, "tenant": tenant, "user": format!("u{}", n * 7919 % 900), "status": format!("s{}", n % 23),
            "_ts": 20_468 * 86_400 + n,
        });
        if !n.is_multiple_of(400) {
            item["region"] = format!("r{}", n % 31).into();
        }
        item
    };
    (0..4_000).map(item).collect()
}

#[test]
fn a_sample_of_a_hot_tenant_tells_what_would_go_wrong() {
    let workload = r#"{"name":"tenants","operations":[
        {"name":"place","kind":"create","perSecond":40},
        {"name":"mine","kind":"query","perSecond":200,"filters":["/tenant","/user"],"returns":5}]}"#;
    let workload = Workload::from_json(workload.as_bytes()).expect("a workload");
    let keys = ["/tenant", "/tenant,/user", "/status", "/region"];
    let settings = Settings {
        today: 20_470.0,
        partitions: Some(8),
        candidates: keys.map(str::to_owned).to_vec(),
        ..Settings::default()
    };
    let sample = tenants();
    let report = golden("hot-tenant", advise(&workload, &sample, &settings).expect("there is advice"));
    assert_eq!(candidate(&report, "/tenant").verdict, Verdict::Hot);
    assert_eq!(candidate(&report, "/status").verdict, Verdict::Collides);
    let missing = candidate(&report, "/region").findings.iter().find(|finding| finding.code == "missing");
    assert!(missing.is_some_and(|finding| finding.words.contains("/region")), "few, but told");
    let pairs: std::collections::HashSet<String> =
        sample.iter().map(|item| format!("{}/{}", item["tenant"], item["user"])).collect();
    let distinct = candidate(&report, "/tenant,/user").distinct.expect("a number");
    assert!((distinct / pairs.len() as f64 - 1.0).abs() < 0.01, "{distinct} of {}", pairs.len());
}

#[test]
fn a_tenant_with_few_items_and_most_of_the_requests_is_hot() {
    let item = |n: u64| {
        serde_json::json!({"id": format!("i{n}"), "tenant": format!("t{}", n % 100), "user": format!("u{}", n % 1_000),
            "_ts": 20_468 * 86_400 + n})
    };
    let sample: Vec<serde_json::Value> = (0..4_000).map(item).collect();
    let touched = |tenant: u64, times: u32| serde_json::json!({"times": times, "item": item(tenant)});
    let asked: Vec<serde_json::Value> = (0..100).map(|n| touched(n, if n == 7 { 400 } else { 1 })).collect();
    let mut settings = Settings { today: 20_470.0, partitions: Some(8), ..Settings::default() };
    settings.candidates = ["/tenant", "/tenant,/user", "/id"].map(str::to_owned).to_vec();
    let about = |touched: &[serde_json::Value]| {
        let workload = serde_json::json!({"name": "requests", "operations": [
            {"name": "mine", "kind": "query", "perSecond": 200, "filters": ["/tenant"], "returns": 5, "touched": touched}]});
        let workload = Workload::from_json(workload.to_string().as_bytes()).expect("a workload");
        advise(&workload, &sample, &settings).expect("there is advice")
    };
    let even = about(&[]);
    assert!(candidate(&even, "/tenant").verdict.is_good(), "{:?}", verdicts(&even));
    let hot = golden("hot-requests", about(&asked));
    let tenant = candidate(&hot, "/tenant");
    assert_eq!(tenant.verdict, Verdict::Hot);
    let busiest = tenant.load.busiest_key.as_ref().expect("one is the busiest");
    assert!(busiest.key == "t7" && busiest.units_per_second > 0.75 * tenant.load.total, "{busiest:?}");
}

#[test]
fn a_million_items_of_a_hundred_thousand_values_are_not_taken_for_two_thousand() {
    let item = |n: &u64| serde_json::json!({"id": format!("i{n}"), "user": format!("u{}", n % 100_000)});
    let mut chance = Chance::new(9);
    let mut drawn = std::collections::BTreeSet::new();
    while drawn.len() < 10_000 {
        drawn.insert(chance.below(1_000_000));
    }
    let sample: Vec<serde_json::Value> = drawn.iter().map(item).collect();
    let distinct = |stored: Option<u32>| {
        let workload = serde_json::json!({"items": {"stored": stored}}).to_string();
        let workload = Workload::from_json(workload.as_bytes()).expect("a workload");
        let settings = Settings { candidates: vec!["/user".to_owned()], ..Settings::default() };
        let report = advise(&workload, &sample, &settings).expect("there is advice");
        candidate(&report, "/user").distinct.expect("a number")
    };
    let told = distinct(Some(1_000_000));
    assert!((66_000.0..150_000.0).contains(&told), "{told}");
    assert!(distinct(None) < 10_000.0, "a sample that is everything has no more");
}

#[test]
fn of_keys_that_are_equally_good_the_one_comes_first_that_nobody_has_to_compute() {
    let (synthetic, plain) = ("/tenant+/user".to_owned(), "/tenant,/user".to_owned());
    for candidates in [vec![synthetic.clone(), plain.clone()], vec![plain.clone(), synthetic.clone()]] {
        let workload = r#"{"items":{"stored":1000000,"fields":{
            "/tenant":{"kind":"values","groups":[{"count":20000}]},"/user":{"kind":"values","groups":[{"count":20000}]}}},
            "operations":[{"name":"mine","kind":"query","perSecond":100,"filters":["/tenant","/user"]}]}"#;
        let workload = Workload::from_json(workload.as_bytes()).expect("a workload");
        let settings = Settings { partitions: Some(4), candidates, ..Settings::default() };
        let report = advise(&workload, &[], &settings).expect("there is advice");
        assert_eq!(
            (report.recommended.as_str(), report.candidates[0].verdict),
            (plain.as_str(), Verdict::Best)
        );
    }
}

#[test]
fn storage_alone_is_enough_to_tell_a_key_that_is_uneven() {
    let workload = Workload::from_json(b"{}").expect("a workload");
    let settings = Settings {
        today: 20_470.0,
        partitions: Some(8),
        candidates: vec!["/tenant".to_owned()],
        ..Settings::default()
    };
    let report = advise(&workload, &tenants(), &settings).expect("there is advice");
    assert_eq!(report.candidates[0].verdict, Verdict::Uneven, "{}", report.candidates[0].words);
}

#[test]
fn hopeless_questions_get_an_answer_and_not_a_panic() {
    let odd = |text: &str, sample: &[serde_json::Value], candidate: &str| {
        let workload = Workload::from_json(text.as_bytes()).expect(text);
        let candidates = if candidate.is_empty() { Vec::new() } else { vec![candidate.to_owned()] };
        let settings = Settings { candidates, partitions: Some(u32::MAX), ..Settings::default() };
        advise(&workload, sample, &settings).map(|report| table(&report) + &html(&report))
    };
    assert!(odd("{}", &[], "").is_err());
    assert!(odd("{}", &[serde_json::json!({})], "").is_err());
    assert!(odd("{}", &[serde_json::json!({"a": 1})], "/a").is_ok());
    assert!(odd("{}", &[serde_json::json!({"a": 1})], "/b").is_ok(), "a path that no item has");
    assert!(odd(r#"{"items":{"fields":{"/a":{"kind":"unique"}}}}"#, &[], "/b").is_err());
    let much = r#"{"throughput":0,"items":{"stored":1e18,"bytes":2097152,"horizonDays":36500,"perDay":1e15,
        "fields":{"/a":{"kind":"values","groups":[{"count":18446744073709551615}]}}},
        "operations":[{"name":"q","kind":"query","perSecond":1e9,"returns":1e6,"filters":["/a"]}]}"#;
    assert!(odd(much, &[], "/a").is_ok());
}
