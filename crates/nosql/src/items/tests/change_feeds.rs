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
