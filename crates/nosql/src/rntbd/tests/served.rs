//! What a request asks for over the wire is served as over HTTP, or refused by name.

use super::*;

/// Clients ask partition by partition, and no frame says that it is about several.
#[tokio::test]
async fn conflicts_are_asked_for_by_range() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let conflicts = |operation, verb, range: Option<&str>| {
        let asking = Asking::new(8, operation).signed(verb, "conflicts", "dbs/d/colls/c");
        let asking = asking.text(Asked::DatabaseName, "d").text(Asked::CollectionName, "c");
        let asking = asking.text(Asked::ReplicaPath, &path_of(&rid, 0)).text(Asked::CollectionRid, &rid);
        match range {
            Some(range) => asking.text(Asked::PartitionKeyRangeId, range),
            None => asking,
        }
    };
    let query = |range| conflicts(QUERY, "post", range).body(r#"{"query":"SELECT * FROM c"}"#);
    let behind_rid = format!("{rid},0");
    for range in [None, Some("0"), Some(behind_rid.as_str())] {
        for asking in [query(range), conflicts(READ_FEED, "get", range)] {
            let page = client.ask(asking).await.checked(200, 0);
            assert_eq!((&page.json()["Conflicts"], page.number(Told::ItemCount)), (&json!([]), 0));
        }
    }
    for asking in [query(Some("7")), conflicts(READ_FEED, "get", Some("7"))] {
        client.ask(asking).await.checked(410, 1002);
    }
    client.ask(query(Some("x"))).await.checked(400, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_about_a_query_is_told() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let query = Asking::on_items(QUERY, "post", None, &rid).text(Asked::PartitionKeyRangeId, "0");
    let query = query.body(r#"{"query":"SELECT * FROM c WHERE CONTAINS(c.name, 'd')"}"#);
    assert_eq!(client.ask(query.clone()).await.checked(200, 0).token(Told::QueryAdvice), None);
    let advised = client.ask(query.token(Asked::PopulateQueryAdvice, &[1])).await.checked(200, 0);
    assert_eq!(advised.text(Told::QueryAdvice), r#"[{"Id":"QA1002","Params":[]}]"#);
}

/// What would change the rows, or the item, and is not served here is refused by name, in whatever type it comes.
#[tokio::test]
async fn tokens_that_would_change_the_answer_are_refused() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let read = || Asking::on_items(READ, "get", Some("a"), &rid).key();
    let of_java = |mut asking: Asking| {
        asking.tokens.extend_from_slice(&[0x59, 0, Kind::Long as u8, 60, 0, 0, 0]);
        asking
    };
    for (asking, words) in [
        (read().text(Asked::FilterBySchemaRid, "AAAA"), "x-ms-documentdb-filterby-schema-rid"),
        (read().token(Asked::StartId, b"a"), "x-ms-start-id"),
        (read().token(Asked::EndId, b"a"), "x-ms-end-id"),
        (read().token(Asked::EffectivePartitionKey, &[1, 2]), "effective partition key"),
        (read().token(Asked::BinaryId, &[1]), "binary id"),
        (read().token(Asked::TimeToLiveInSeconds, &60u32.to_le_bytes()), "time to live"),
        (of_java(read()), "time to live"),
    ] {
        let refused = client.ask(asking).await.checked(400, 0);
        let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// A proxy that ends TLS takes nothing but HTTP, so that a client which was told an address would wait for its time to be up.
#[tokio::test]
async fn addresses_are_not_told_through_a_proxy() {
    let (shared, own) = (gateway(Direct::SamePort), gateway(Direct::Port(10_251)));
    let ask = async |gateway: &Gateway, peer: Peer| {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let signature = sign(KEY, &Method::GET, "dbs", "", &date).expect("a key");
        let request = Request::get("//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd")
            .header("host", "db.example.test")
            .header("x-ms-date", &date)
            .header("authorization", signature)
            .body(Full::<Bytes>::default());
        let (parts, body) = gateway.handle(request.expect("a request"), peer).await.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        (parts.status.as_u16(), String::from_utf8_lossy(&bytes).into_owned())
    };
    let proxied = Peer { ends_tls: false, ..peer(Scheme::Https) };
    let (status, text) = ask(&shared, proxied).await;
    assert!(status == 400 && text.contains("proxy") && text.contains("gateway mode"), "{status} {text}");
    assert_eq!(ask(&shared, peer(Scheme::Https)).await.0, 200);
    // A port of its own is dialled past a proxy of HTTP.
    let (status, text) = ask(&own, proxied).await;
    assert!(status == 200 && text.contains("rntbd://db.example.test:10251/"), "{status} {text}");
}
