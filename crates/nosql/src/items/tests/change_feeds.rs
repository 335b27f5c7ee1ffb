//! Change feeds as clients read them to their end.

use super::*;

const MODE: &str = "a-im";
const SEEN: &str = "if-none-match";

/// Two levels of a key, and every version is kept.
async fn recorded() -> World {
    let definition = r#""partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2},
        "changeFeedPolicy":{"retentionDuration":5}"#;
    World::new(definition, 400).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_change_feed_says_that_it_has_no_items() {
    let world = recorded().await;
    assert_eq!(world.create("[1,2]", r#"{"id":"0","a":1,"b":2}"#).await.status, 201);
    let full = ("x-ms-end-epk", "FF");
    for mode in ["Incremental feed", "Full-Fidelity Feed"] {
        for scope in [(RANGE, "0"), full, (KEY, "[1,2]"), (KEY, "[1]"), (KEY, r#"["nobody"]"#)] {
            let end = world.send(Method::GET, None, &[(MODE, mode), (SEEN, "*"), scope], "").await;
            assert_eq!((end.status, end.count), (304, Some(0)), "{mode} {scope:?} {}", end.body);
            assert_eq!((end.body.as_str(), &end.continuation), ("", &None));
            assert!(end.header("etag").is_some(), "{mode} {scope:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_by_time_has_what_was_written_after_that_second() {
    let (world, hand) = World::by_hand("").await;
    let created = world.create("[1]", r#"{"id":"first","pk":1}"#).await;
    let written: u64 = created.field("_ts").parse().expect("a number");
    hand.advance(Duration::from_millis(1_100));
    world.create("[1]", r#"{"id":"second","pk":1}"#).await;
    let since = |seconds: u64| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let headers =
            [(MODE, "Incremental feed".to_owned()), ("if-modified-since", httpdate::fmt_http_date(time))];
        let world = &world;
        async move {
            let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
            let page = world.send(Method::GET, None, &headers, "").await;
            if page.status == 304 { vec![] } else { page.ids() }
        }
    };
    assert_eq!(since(written - 1).await, ["first", "second"]);
    assert_eq!(since(written).await, ["second"], "the second of the first write is left out");
    assert_eq!(since(written + 100).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_versions_are_not_there_from_the_beginning() {
    let world = recorded().await;
    let time = ("if-modified-since", "Thu, 01 Jan 2026 00:00:00 GMT");
    for headers in [vec![(MODE, "Full-Fidelity Feed")], vec![(MODE, "Full-Fidelity Feed"), time]] {
        let refused = world.send(Method::GET, None, &headers, "").await;
        assert_eq!(refused.status, 400);
        let words = "You must read the change feed from within the retention period.";
        assert!(refused.body.contains(words), "{}", refused.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_says_which_changes_are_shown() {
    let world = recorded().await;
    let start = world.send(Method::GET, None, &[(MODE, "Full-Fidelity Feed"), (SEEN, "*")], "").await;
    let start = start.header("etag").expect("a continuation").to_owned();
    for n in 1..5 {
        world.create("[1,2]", &format!("{{\"id\":\"{n}\",\"a\":1,\"b\":2,\"city\":\"city{n}\"}}")).await;
    }
    let ask = |mode: &'static str, text: &str, rest: &str| {
        let headers =
            [(QUERY, "True"), ("content-type", "application/query+json"), (MODE, mode), (RANGE, "0")];
        let body = format!("{{\"query\":\"{text}\"{rest}}}");
        let (world, start) = (&world, &start);
        async move {
            let headers = [headers.as_slice(), &[(SEEN, start.as_str())]].concat();
            world.send(Method::POST, None, &headers, &body).await
        }
    };
    let third = "SELECT * FROM c WHERE c.city = 'city3'";
    let latest = ask("Incremental feed", third, "").await;
    assert_eq!((latest.status, latest.count, latest.ids()), (200, Some(1), vec!["3".to_owned()]));
    let all = ask("Full-Fidelity Feed", third, "").await;
    assert_eq!((all.status, all.count), (200, Some(1)), "{}", all.body);
    assert!(all.body.contains("\"current\":{\"id\":\"3\""), "{}", all.body);
    let none = ask("Incremental feed", "SELECT * FROM c WHERE c.city = 'city9'", "").await;
    assert_eq!((none.status, none.count), (304, Some(0)));
    assert_eq!(none.header("etag"), latest.header("etag"), "a reader moves on past what it does not want");

    world.send(Method::DELETE, Some("3"), &[(KEY, "[1,2]")], "").await;
    world.send(Method::DELETE, Some("2"), &[(KEY, "[1,2]")], "").await;
    let without = ask("Full-Fidelity Feed", third, "").await;
    let with = ask("Full-Fidelity Feed", third, r#","enableQueryOnPreviousImage":true"#).await;
    assert_eq!((without.count, with.count), (Some(1), Some(2)), "{}", with.body);
    assert!(with.body.contains("\"operationType\":\"delete\""), "{}", with.body);
    for (text, rest) in [
        ("SELECT c.id FROM c", ""),
        ("SELECT VALUE COUNT(1) FROM c", ""),
        ("SELECT * FROM c ORDER BY c.id", ""),
        ("SELECT * FROM", ""),
        (third, r#","enableQueryOnPreviousImage":1"#),
        (third, r#","somethingElse":1"#),
    ] {
        assert_eq!(ask("Incremental feed", text, rest).await.status, 400, "{text} {rest}");
    }
}
