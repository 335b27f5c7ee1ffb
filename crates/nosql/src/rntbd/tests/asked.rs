//! What frames ask of their answers: it counts as it does in the headers of HTTP.

use super::*;

async fn with_items(count: u32) -> (Gateway, String, Client) {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    for n in 1..=count {
        let body = json!({"id": n.to_string(), "pk": "k", "city": format!("city{n}")}).to_string();
        client.ask(Asking::on_items(CREATE, "post", None, &rid).key().body(&body)).await.checked(201, 0);
    }
    (gateway, rid, client)
}

fn is_binary(heard: &Heard) -> bool {
    heard.body.first() == Some(&0x80)
}

/// As .NET sends it: a feed to read, signed as a POST, with a payload.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_of_changes_may_bring_a_query() {
    let (_gateway, rid, mut client) = with_items(4).await;
    let ask = |verb: &'static str| {
        let asking = Asking::on_items(READ_FEED, verb, None, &rid);
        asking.text(Asked::PartitionKeyRangeId, "0").text(Asked::AIm, "Incremental Feed")
    };
    let query =
        json!({"query": "select * from c where c.city = 'city3'", "enableQueryOnPreviousImage": true});
    let found = client.ask(ask("post").body(&query.to_string())).await.checked(200, 0);
    let items = found.json()["Documents"].as_array().expect("a list").clone();
    assert_eq!((items.len(), &items[0]["id"]), (1, &json!("3")), "{items:?}");
    let all = client.ask(ask("get")).await.checked(200, 0);
    assert_eq!(all.number(Told::ItemCount), 4);
    client.ask(ask("post").body(r#"{"query":"select c.id from c"}"#)).await.checked(400, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_is_not_read_is_refused() {
    let (_gateway, rid, mut client) = with_items(1).await;
    let body = r#"{"query":"select * from c where c.city = 'city9'"}"#;
    for asking in [
        Asking::on_items(READ_FEED, "get", None, &rid),
        Asking::on_items(READ_FEED, "post", None, &rid),
        Asking::on_items(READ, "get", Some("1"), &rid).key(),
    ] {
        let refused = client.ask(asking.body(body)).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.json()["message"].as_str().is_some_and(|text| text.contains("payload")));
    }
    client.ask(Asking::on_items(READ, "get", Some("1"), &rid).key()).await.checked(200, 0);
}

/// `ValidateJsonSerializationFormatRntbd` of .NET.
#[tokio::test(flavor = "multi_thread")]
async fn pages_have_the_form_that_is_named() {
    let (_gateway, rid, mut client) = with_items(2).await;
    let feed = || Asking::on_items(READ_FEED, "get", None, &rid);
    let changes = || feed().text(Asked::AIm, "Incremental Feed");
    let query = || {
        let asking = Asking::on_items(QUERY, "post", None, &rid).body(r#"{"query":"SELECT * FROM c"}"#);
        asking.text(Asked::PartitionKeyRangeId, "0")
    };
    let (text, binary, hybrid_row, both) = (0, 1, 2, 3);
    for (format, listed, feeds, queries) in [
        (None, None, false, false),
        (None, Some(both), false, true),
        (Some(text), Some(both), false, false),
        (Some(binary), None, true, true),
        (Some(binary), Some(both), true, true),
        (Some(hybrid_row), Some(both), false, false),
    ] {
        for (asking, wanted) in [(feed(), feeds), (changes(), feeds), (query(), queries)] {
            let asking = match format {
                Some(format) => asking.token(Asked::ContentSerializationFormat, &[format]),
                None => asking,
            };
            let asking = match listed {
                Some(listed) => asking.token(Asked::SupportedSerializationFormats, &[listed]),
                None => asking,
            };
            let heard = client.ask(asking).await.checked(200, 0);
            assert_eq!(is_binary(&heard), wanted, "{format:?} {listed:?}");
        }
    }
    let unknown = client.ask(feed().token(Asked::ContentSerializationFormat, &[3])).await;
    assert_eq!(unknown.status, 400);
}

#[tokio::test]
async fn single_items_have_the_form_that_is_listed() {
    let (_gateway, rid, mut client) = with_items(1).await;
    let read = || Asking::on_items(READ, "get", Some("1"), &rid).key();
    for (listed, wanted) in [(1, false), (2, true), (3, true)] {
        let asking = read().token(Asked::SupportedSerializationFormats, &[listed]);
        assert_eq!(is_binary(&client.ask(asking).await.checked(200, 0)), wanted, "{listed}");
    }
}

#[tokio::test]
async fn links_are_left_out_of_items_that_were_written_without() {
    let (_gateway, rid, mut client) = with_items(1).await;
    let exclude = |asking: Asking| asking.token(Asked::ExcludeSystemProperties, &[1]);
    let create = Asking::on_items(CREATE, "post", None, &rid).key().body(r#"{"id":"bare","pk":"k"}"#);
    client.ask(exclude(create)).await.checked(201, 0);
    for (id, is_linked) in [("1", true), ("bare", false)] {
        let read = || Asking::on_items(READ, "get", Some(id), &rid).key();
        let shown = client.ask(exclude(read())).await.checked(200, 0).json();
        assert_eq!(shown.get("_self").is_some(), is_linked, "{shown}");
        assert!(client.ask(read()).await.checked(200, 0).json()["_self"].is_string());
    }
}

#[tokio::test]
async fn the_progress_of_an_index_is_told_who_asks_for_quotas() {
    let (_gateway, rid, mut client) = with_items(0).await;
    let read = || {
        let asking =
            Asking::new(2, READ).signed("get", "colls", "dbs/d/colls/c").text(Asked::DatabaseName, "d");
        asking.text(Asked::CollectionName, "c").text(Asked::ReplicaPath, &path_of(&rid, 0))
    };
    assert_eq!(client.ask(read()).await.checked(200, 0).token(Told::CollectionUpdateProgress), None);
    let asked = client.ask(read().token(Asked::PopulateQuotaInfo, &[1])).await.checked(200, 0);
    assert_eq!(asked.number(Told::CollectionUpdateProgress), 100);
    assert!(asked.text(Told::StorageMaxResourceQuota).contains("collectionSize="));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_names_its_owner_unless_it_failed() {
    let (_gateway, rid, mut client) = with_items(1).await;
    let batch = |operations: Json| {
        let asking = Asking::on_items(BATCH, "post", None, &rid).key().body(&operations.to_string());
        asking.token(Asked::IsBatchAtomic, &[1])
    };
    let read = |id: &str| json!({"operationType": "Read", "id": id});
    let done = client.ask(batch(json!([read("1")]))).await.checked(200, 0);
    assert_eq!(done.text(Told::OwnerId), rid);
    let failed = client.ask(batch(json!([read("1"), read("none")]))).await.checked(207, 0);
    assert_eq!((failed.text(Told::OwnerId), failed.text(Told::OwnerFullName)), Default::default());
}

/// Clients ask for addresses then, are told 404, and set sub-status 1003 by themselves (`performBulkOnDeletedContainer` of Java).
#[tokio::test]
async fn batches_and_bulks_on_a_container_that_is_gone_are_sent_to_look_anew() {
    let (gateway, rid, mut client) = with_items(1).await;
    let deleted = ("DELETE", "/dbs/d/colls/c");
    let signed = ("colls", "dbs/d/colls/c");
    assert_eq!(http(&gateway, Scheme::Https, deleted, signed, &[], Json::Null).await.0, 204);
    for atomic in [0, 1] {
        let operations = json!([{"operationType": "Read", "id": "1", "partitionKey": "[\"k\"]"}]).to_string();
        let asking = Asking::on_items(BATCH, "post", None, &rid).body(&operations);
        let gone = client.ask(asking.token(Asked::IsBatchAtomic, &[atomic])).await;
        assert_eq!((gone.status, gone.number(Told::SubStatus)), (410, 0), "{gone:?}");
    }
    let addresses =
        format!("//addresses/?$resolveFor=dbs%2fd%2fcolls%2f{rid}%2fdocs&$partitionKeyRangeIds=0");
    let signed = rid.to_lowercase();
    assert_eq!(
        http(&gateway, Scheme::Https, ("GET", &addresses), ("docs", &signed), &[], Json::Null).await.0,
        404
    );
}
