//! Recorded requests whose recorded answers were made up, or were those of a translator that could not do what was asked:
//! here the server has to come to the same outcome by itself, or to do it.

use super::*;

impl World {
    /// Sends a recorded request, and nothing is compared.
    async fn send(&mut self, name: &str) -> Heard {
        let asking = self.translate(&Case::read(name).expect("recorded"));
        self.client.ask(asking).await
    }

    /// Whether the answer is of the recorded kind, in words of its own.
    async fn ends_as_recorded(&mut self, name: &str) {
        let case = Case::read(name).expect("recorded");
        let heard = self.send(name).await;
        let recorded = (case.described["response"]["status"].as_u64(), case.token("response", "SubStatus"));
        let here = (Some(u64::from(heard.status)), Some(json!(heard.number(Told::SubStatus))));
        assert_eq!(here, recorded, "{name}: {heard:?}");
    }

    async fn delete_c1(&self) {
        let (asked, signed) = (("DELETE", "/dbs/db1/colls/c1"), ("colls", "dbs/db1/colls/c1"));
        let gone =
            http_with(EMULATOR_KEY, &self.gateway, Scheme::Https, asked, signed, &[], Json::Null).await;
        assert_eq!(gone.0, 204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_that_were_refused_then_are_carried_out() {
    if Case::read("bulk-hybridrow").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    world.replay("item-create-binary").await;
    for name in ["batch-hybridrow", "bulk-hybridrow"] {
        let done = world.send(name).await.checked(200, 0);
        assert_eq!(done.body.first(), Some(&0x81), "{name}: {done:?}");
    }
    // What they were to write is there.
    for (id, key) in [("b1", "b1"), ("b2", "b1"), ("x9", "k9"), ("x15", "k15")] {
        let path = format!("/dbs/db1/colls/c1/docs/{id}");
        let key = json!([key]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        let signed = ("docs", path.trim_start_matches('/'));
        let asked = ("GET", path.as_str());
        let read =
            http_with(EMULATOR_KEY, &world.gateway, Scheme::Https, asked, signed, &headers, Json::Null);
        assert_eq!(read.await.0, 200, "{id}");
    }
}

/// The recorded page was that of a server which did not look at the filter.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_order_goes_on_behind_what_was_seen() {
    if Case::read("query-order-by-resumed").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    fill(&world).await;
    let page = world.send("query-order-by-resumed").await.checked(200, 0);
    let rows = document(&page.body)["Documents"].as_array().expect("rows").clone();
    let numbers: Vec<Option<u64>> = rows.iter().map(|row| row["payload"]["n"].as_u64()).collect();
    assert!(numbers.len() <= 50 && numbers.is_sorted(), "{numbers:?}");
    assert!(!numbers.is_empty() && numbers.iter().all(|n| *n >= Some(47)), "{numbers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_feed_with_nothing_new_is_not_modified() {
    if Case::read("change-feed-not-modified").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    fill(&world).await;
    world.instead.insert("Match", "*".to_owned());
    let now = world.send("change-feed-not-modified").await.checked(304, 0).text(Told::Etag);
    world.instead.insert("Match", now.clone());
    let none = world.replay("change-feed-not-modified").await.expect("recorded");
    assert_eq!(none.text(Told::Etag), now);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_reads_ahead_of_their_partition_find_no_session() {
    if Case::read("read-session-not-available").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    let recorded = Case::read("read-session-not-available").and_then(|case| case.text("SessionToken"));
    world.instead.insert("SessionToken", recorded.expect("a token"));
    world.ends_as_recorded("read-session-not-available").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_to_what_is_gone_are_sent_to_look_anew() {
    if Case::read("gone").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    let rid = orrery_cluster::Rid::parse(&world.rid("AAAAAYAAAAE=")).expect("a RID");
    let container = world.gateway.db().catalog().container_by_rid(rid).expect("a container").clone();
    for range in [0, 1] {
        world.gateway.db().split(&container, range, 2).await.expect("it can be split");
    }
    world.ends_as_recorded("gone-completing-split").await;
    world.ends_as_recorded("gone-range-gone-query").await;
    world.delete_c1().await;
    world.ends_as_recorded("gone").await;
    // The clients go on with the RID of the one that they knew.
    let body = json!({"id": "c1", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
    world.make("/dbs/db1/colls", "colls", &[], body).await;
    world.ends_as_recorded("gone-name-cache-stale").await;
}

/// A connection is answered as the recorded ones were: with the version of its client.
#[tokio::test]
async fn recorded_greetings_are_welcomed() {
    let gateway = gateway(Direct::SamePort);
    for name in ["context", "v2-context"] {
        let Some(case) = Case::read(name) else { return };
        let mut client = Client::silent(&gateway);
        client.send(&case.frame).await;
        let mut head = [0; HEAD_BYTES];
        timeout(LONG, client.stream.read_exact(&mut head)).await.expect("in time").expect("an answer");
        assert_eq!(
            (head[4..8].to_vec(), &head[8..]),
            (200u32.to_le_bytes().to_vec(), &case.frame[8..24]),
            "{name}"
        );
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes")) as usize;
        let mut tokens = vec![0; length - HEAD_BYTES];
        client.stream.read_exact(&mut tokens).await.expect("tokens");
        let told: BTreeMap<u16, String> = Tokens::of(&tokens)
            .map(|token| token.expect("well-formed"))
            .map(|token| (token.id, value(&token)))
            .collect();
        assert_eq!(told.get(&Welcome::ProtocolVersion.id()), Some(&"1".to_owned()));
        assert_eq!(told.get(&Welcome::ClientVersion.id()), case.text("ClientVersion").as_ref(), "{name}");
        for wanted in case.described["response"]["tokens"].as_array().expect("tokens") {
            let id = wanted["id"].as_str().expect("an id").trim_start_matches("0x");
            let id = u16::from_str_radix(id, 16).expect("a number");
            assert!(told.get(&id).is_some_and(|text| !text.is_empty()), "{name}: {wanted}");
        }
    }
}
