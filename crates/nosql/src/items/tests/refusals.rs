//! What refusals cost and how they are worded.

use super::*;

const X: (&str, &str) = (KEY, r#"["x"]"#);

async fn with_one_item() -> World {
    let world = World::simple().await;
    assert_eq!(world.create(X.1, r#"{"id":"a","pk":"x","n":5,"o":{},"l":[1]}"#).await.status, 201);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_refused_by_what_is_stored_is_charged() {
    let world = with_one_item().await;
    let body = r#"{"id":"a","pk":"x"}"#;
    let stale = ("if-match", "stale");
    let set = r#"[{"op":"set","path":"/n","value":1}]"#;
    let unmet = r#"{"condition":"from c where c.n = 9","operations":[{"op":"set","path":"/n","value":1}]}"#;
    let nowhere = r#"[{"op":"set","path":"/none/n","value":1}]"#;
    for (method, item, headers, body, wanted) in [
        (Method::POST, None, vec![X], body, 409),
        (Method::POST, None, vec![X, (UPSERT, "True"), stale], body, 412),
        (Method::POST, None, vec![X, (UPSERT, "True"), ("if-none-match", "*")], body, 412),
        (Method::PUT, Some("a"), vec![X, stale], body, 412),
        (Method::PUT, Some("b"), vec![X], r#"{"id":"b","pk":"x"}"#, 404),
        (Method::PATCH, Some("a"), vec![X, stale], set, 412),
        (Method::PATCH, Some("a"), vec![X], unmet, 412),
        (Method::PATCH, Some("a"), vec![X], nowhere, 400),
        (Method::PATCH, Some("b"), vec![X], set, 404),
        (Method::DELETE, Some("a"), vec![X, stale], "", 412),
        (Method::DELETE, Some("b"), vec![X], "", 404),
        (Method::GET, Some("b"), vec![X], "", 404),
    ] {
        let refused = world.send(method.clone(), item, &headers, body).await;
        assert_eq!(refused.status, wanted, "{method} {headers:?} {}", refused.body);
        assert_eq!(refused.charge, 1.0, "{method} {item:?} {headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_precondition_says_where_to_read_more() {
    let world = with_one_item().await;
    let words = "One of the specified pre-condition is not met. \
                 Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed\\\"]}";
    let deleted = world.send(Method::DELETE, Some("a"), &[X, ("if-match", "stale")], "").await;
    assert!(deleted.body.contains(words), "{}", deleted.body);
    let unmet = r#"{"condition":"from c where c.n = 9","operations":[{"op":"set","path":"/n","value":1}]}"#;
    let patched = world.send(Method::PATCH, Some("a"), &[X], unmet).await;
    assert!(patched.body.contains(words), "{}", patched.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_patches_say_where_to_read_more() {
    let world = with_one_item().await;
    for (operation, words) in [
        (r#"{"op":"add","path":"/gone/b/c","value":1}"#, "no path found beyond: 'gone'"),
        (r#"{"op":"add","path":"/o/gone/c","value":1}"#, "no path found beyond: 'gone'"),
        (r#"{"op":"replace","path":"/o/gone/c","value":1}"#, "no path found beyond: 'gone'"),
        (r#"{"op":"set","path":"/n/c","value":1}"#, "no path found beyond: 'n'"),
        (
            r#"{"op":"remove","path":"/l/7"}"#,
            "For Operation(1): Index(7) to operate on is out of array bounds",
        ),
        (r#"{"op":"replace","path":"/gone","value":1}"#, "to be replaced is absent"),
        (r#"{"op":"set","path":"/id","value":"b"}"#, "Cannot patch system property id"),
        (
            r#"{"op":"fly","path":"/n"}"#,
            "check syntax of patch specification. Operation(1): 'op' is not known",
        ),
    ] {
        let refused = world.send(Method::PATCH, Some("a"), &[X], &format!("[{operation}]")).await;
        let end = format!("{words}. Learn more: https://aka.ms/cosmosdbpatchdocs\\\"]}}");
        assert!(refused.status == 400 && refused.body.contains(&end), "{operation} {}", refused.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_ahead_is_named_as_the_service_names_it() {
    let world = with_one_item().await;
    let ahead = world.send(Method::GET, Some("a"), &[X, (SESSION, "0:-1#2000")], "").await;
    assert_eq!((ahead.status, ahead.substatus), (404, 1002));
    assert!(ahead.body.contains("The read/write session is not available"), "{}", ahead.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_nothing_is_not_found_whatever_key_the_document_has() {
    let world = with_one_item().await;
    let elsewhere = r#"{"id":"a","pk":"other"}"#;
    let put = |item: &'static str| world.send(Method::PUT, Some(item), &[X], elsewhere);
    let missing = put("b").await;
    assert_eq!((missing.status, missing.substatus), (404, 0), "{}", missing.body);
    assert!(missing.charge > 0.0 && missing.range.is_some());
    let misplaced = put("a").await;
    assert_eq!((misplaced.status, misplaced.substatus), (400, 1001), "{}", misplaced.body);
    assert!(misplaced.charge > 0.0);
    let incomplete = world.send(Method::PUT, Some("b"), &[(KEY, "[1,2]")], elsewhere).await;
    assert_eq!((incomplete.status, incomplete.substatus), (400, 1001), "{}", incomplete.body);
    let in_batch = |id: &str| {
        let body = format!(
            r#"[{{"operationType":"Replace","id":"{id}","partitionKey":"[\"x\"]","resourceBody":{elsewhere}}}]"#
        );
        let world = &world;
        async move {
            let bulk = [(BATCH, "true"), (ATOMIC, "false"), (CONTINUE, "true"), (RANGE, "0")];
            let bulk = world.send(Method::POST, None, &bulk, &body).await.codes();
            (world.batch(X.1, &body).await.codes(), bulk)
        }
    };
    assert_eq!(in_batch("b").await, (vec![404], vec![404]));
    assert_eq!(in_batch("a").await, (vec![400], vec![400]));
    assert_eq!(world.read(X.1, "a").await.field("n"), "5", "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_encrypt_does_not_insist_on_the_container() {
    let world = with_one_item().await;
    let stale = ("x-ms-cosmos-intended-collection-rid", "AAAAAIAAAAA=");
    let encrypted = |text| ("x-ms-cosmos-is-client-encrypted", text);
    for (headers, wanted) in [
        (vec![X, stale], (400, 1024)),
        (vec![X, stale, encrypted("True")], (400, 1024)),
        (vec![X, stale, encrypted("False")], (200, 0)),
    ] {
        let read = world.send(Method::GET, Some("a"), &headers, "").await;
        assert_eq!((read.status, read.substatus), wanted, "{headers:?}");
    }
}
