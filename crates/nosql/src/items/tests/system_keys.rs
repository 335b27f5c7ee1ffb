//! Containers that were made without a partition key.

use super::*;

const VERSION: &str = "x-ms-version";

/// Two items without a key and one that got one later.
async fn migrated() -> World {
    let world = World::new(r#""indexingPolicy":{}"#, 12_000).await;
    for id in ["a", "b"] {
        let body = format!("{{\"id\":\"{id}\",\"n\":1}}");
        assert_eq!(world.create("[]", &body).await.status, 201);
    }
    let keyed = world.create("[\"k\"]", r#"{"id":"c","n":1,"_partitionKey":"k"}"#).await;
    assert_eq!(keyed.status, 201, "{}", keyed.body);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_key_is_the_none_partition() {
    let world = migrated().await;
    let all = r#"{"query":"SELECT * FROM c"}"#;
    for key in ["[]", " [ ] ", "[{}]"] {
        let found = world.send(Method::POST, None, &[(QUERY, "True"), (KEY, key)], all).await;
        assert_eq!((found.status, found.ids()), (200, vec!["a".into(), "b".into()]), "{key} {}", found.body);
        let count = r#"{"query":"SELECT VALUE COUNT(1) FROM c WHERE c.n = 1"}"#;
        let count = world.send(Method::POST, None, &[(QUERY, "True"), (KEY, key)], count).await;
        assert!(count.body.contains("\"Documents\":[2]"), "{}", count.body);
        let feed = world.send(Method::GET, None, &[(KEY, key)], "").await;
        assert_eq!(feed.ids(), ["a", "b"], "{key}");
        let changes = world.send(Method::GET, None, &[(KEY, key), ("a-im", "Incremental feed")], "").await;
        assert_eq!(changes.ids(), ["a", "b"], "{key}");
    }
    let ordinary = World::simple().await;
    assert_eq!(ordinary.create("[1]", r#"{"id":"a","pk":1}"#).await.status, 201);
    let whole = ordinary.send(Method::GET, None, &[(KEY, "[]")], "").await;
    assert_eq!(whole.ids(), ["a"], "elsewhere an empty key limits nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_clients_need_not_name_the_none_partition() {
    let world = migrated().await;
    for version in ["2018-09-17", "2018-08-31", "2017-11-15"] {
        let old = [(VERSION, version)];
        let id = format!("of-{version}");
        let made = world.send(Method::POST, None, &old, &format!("{{\"id\":\"{id}\"}}")).await;
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(world.read("[]", &id).await.status, 200);
        assert_eq!(world.send(Method::GET, Some(&id), &old, "").await.status, 200);
        let replaced =
            world.send(Method::PUT, Some(&id), &old, &format!("{{\"id\":\"{id}\",\"x\":1}}")).await;
        assert_eq!(replaced.status, 200, "{}", replaced.body);
        let query = [(QUERY, "True"), (VERSION, version)];
        let found =
            world.send(Method::POST, None, &query, r#"{"query":"SELECT * FROM c ORDER BY c.id"}"#).await;
        assert_eq!(found.ids(), ["a".to_owned(), "b".to_owned(), id.clone()], "{}", found.body);
        assert_eq!(world.send(Method::GET, None, &old, "").await.ids().len(), 3);
        assert_eq!(world.send(Method::DELETE, Some(&id), &old, "").await.status, 204);
    }
    let new = world.send(Method::POST, None, &[(VERSION, "2018-12-31")], r#"{"id":"new"}"#).await;
    assert_eq!(new.status, 400, "later versions must name it");
    let ordinary = World::simple().await;
    let made = ordinary.send(Method::POST, None, &[(VERSION, "2018-09-17")], r#"{"id":"a","pk":1}"#).await;
    assert_eq!(made.status, 400, "{}", made.body);
}
