//! Time to live and unique keys as clients see them.

use super::*;

const KEY_A: &str = r#"["a"]"#;

async fn world(more: &str) -> World {
    World::new(&format!(r#""partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},{more}"#), 400).await
}

async fn put(world: &World, id: &str, body: &str) -> Answer {
    world.send(Method::PUT, Some(id), &[(KEY, KEY_A)], body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_illegal_time_to_live_is_refused_in_the_words_of_the_service() {
    for more in [r#""defaultTtl":10"#, r#""defaultTtl":null"#] {
        let world = world(more).await;
        for (ttl, shown) in
            [("0", "0"), ("null", "null"), ("-10", "-10"), ("\"x\"", "x"), ("2147483648", "2147483648")]
        {
            let refused = world.create(KEY_A, &format!(r#"{{"id":"1","pk":"a","ttl":{ttl}}}"#)).await;
            assert_eq!((refused.status, refused.substatus), (400, 0), "{ttl}");
            let words = format!(
                "The input ttl '{shown}' is invalid. Ensure to provide a nonzero positive integer less than or \
                 equal to '2147483647', or '-1' which means never expire."
            );
            assert!(refused.body.contains(&words), "{}", refused.body);
        }
        for ttl in ["-1", "1", "2147483647"] {
            let body = format!(r#"{{"id":"i{ttl}","pk":"a","ttl":{ttl}}}"#);
            assert_eq!(world.create(KEY_A, &body).await.status, 201, "{ttl}");
        }
    }
}

async fn create_for(world: &World, id: &str, ttl: u32) {
    let created = world.create(KEY_A, &format!(r#"{{"id":"{id}","pk":"a","ttl":{ttl}}}"#)).await;
    assert_eq!((created.status, created.field("ttl")), (201, ttl.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_item_is_not_found() {
    let (world, hand) = World::by_hand(r#","defaultTtl":-1"#).await;
    for id in ["long", "patched"] {
        create_for(&world, id, 1_000).await;
    }
    let patch = r#"{"operations":[{"op":"set","path":"/ttl","value":1}]}"#;
    let patched = world.send(Method::PATCH, Some("patched"), &[(KEY, KEY_A)], patch).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    let wrong = r#"{"operations":[{"op":"set","path":"/ttl","value":0}]}"#;
    assert_eq!(world.send(Method::PATCH, Some("long"), &[(KEY, KEY_A)], wrong).await.status, 400);
    let short = "short";
    create_for(&world, short, 1).await;
    hand.advance(Duration::from_millis(900));
    assert_eq!(world.read(KEY_A, short).await.status, 200, "it ended before its time");
    hand.advance(Duration::from_millis(200));
    assert_eq!(world.read(KEY_A, short).await.status, 404);
    assert_eq!(world.read(KEY_A, "patched").await.status, 404);
    assert_eq!(put(&world, short, &format!(r#"{{"id":"{short}","pk":"a"}}"#)).await.status, 404);
    assert_eq!(world.send(Method::DELETE, Some(short), &[(KEY, KEY_A)], "").await.status, 404);
    assert_eq!(world.send(Method::GET, None, &[(KEY, KEY_A)], "").await.ids(), ["long"]);
    let count = r#"{"query":"SELECT VALUE COUNT(1) FROM c"}"#;
    let counted = world.send(Method::POST, None, &[(KEY, KEY_A), (QUERY, "True")], count).await;
    assert_eq!(counted.field("Documents"), "[1]");
    let ops = format!(r#"[{{"operationType":"Read","id":"{short}"}}]"#);
    assert_eq!(world.batch(KEY_A, &ops).await.codes(), [404]);
    let created = world.create(KEY_A, &format!(r#"{{"id":"{short}","pk":"a"}}"#)).await;
    assert_eq!(created.status, 201);
    let upserted = r#"{"id":"patched","pk":"a"}"#;
    let upserted = world.send(Method::POST, None, &[(KEY, KEY_A), (UPSERT, "True")], upserted).await;
    assert_eq!(upserted.status, 201, "there is nothing to be replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unique_value_is_refused_in_the_words_of_the_service() {
    let world =
        world(r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]},{"paths":["/a/b","/c"]}]}"#).await;
    let first = r#"{"id":"1","pk":"a","email":"x@y","a":{"b":1},"c":1}"#;
    assert_eq!(world.create(KEY_A, first).await.status, 201);
    let second = r#"{"id":"2","pk":"a","email":"x@y"}"#;
    let refused = world.create(KEY_A, second).await;
    assert_eq!((refused.status, refused.substatus), (409, 3301));
    assert!(refused.body.contains("Unique index constraint violation."), "{}", refused.body);
    assert!(refused.charge > 0.0);
    let refused = world.send(Method::POST, None, &[(KEY, KEY_A), (UPSERT, "True")], second).await;
    assert_eq!((refused.status, refused.substatus), (409, 3301), "{}", refused.body);
    let taken = world.create(KEY_A, first).await;
    assert_eq!((taken.status, taken.substatus), (409, 0), "an id that is taken is another matter");
    assert_eq!(world.create(r#"["b"]"#, r#"{"id":"2","pk":"b","email":"x@y"}"#).await.status, 201);
    assert_eq!(put(&world, "1", r#"{"id":"1","pk":"a","email":"x@y","n":2}"#).await.status, 200);
    assert_eq!(world.create(KEY_A, r#"{"id":"3","pk":"a","c":7}"#).await.status, 201);
    for null in [r#"{"id":"4","pk":"a","c":8}"#, r#"{"id":"4","pk":"a","c":8,"email":null}"#] {
        assert_eq!(world.create(KEY_A, null).await.substatus, 3301, "only one item may lack the value");
    }
    let patch = r#"{"operations":[{"op":"set","path":"/email","value":"x@y"}]}"#;
    let patched = world.send(Method::PATCH, Some("3"), &[(KEY, KEY_A)], patch).await;
    assert_eq!((patched.status, patched.substatus), (409, 3301));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_takes_and_frees_unique_values_as_a_whole() {
    let world = world(r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#).await;
    assert_eq!(world.create(KEY_A, r#"{"id":"1","pk":"a","email":"x"}"#).await.status, 201);
    let create = |id: &str, email: &str| {
        format!(r#"{{"operationType":"Create","resourceBody":{{"id":"{id}","pk":"a","email":"{email}"}}}}"#)
    };
    let delete = |id: &str| format!(r#"{{"operationType":"Delete","id":"{id}"}}"#);
    let failing = format!("[{},{},{}]", delete("1"), create("2", "x"), create("3", "x"));
    let failed = world.batch(KEY_A, &failing).await;
    assert_eq!(failed.codes(), [424, 424, 409]);
    assert!(failed.body.contains("\"subStatusCode\":3301"), "{}", failed.body);
    let swapped = world.batch(KEY_A, &format!("[{},{}]", delete("1"), create("2", "x"))).await;
    assert_eq!(swapped.codes(), [204, 201]);
    assert_eq!(world.create(KEY_A, r#"{"id":"1","pk":"a","email":"x"}"#).await.substatus, 3301);
}
