//! All item operations, with one and with four physical partitions and with hierarchical keys.

use azure_core::http::Etag;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{PartitionKeyValue, PatchInstructions, PatchOperation};
use azure_data_cosmos::options::{
    ItemReadOptions, ItemWriteOptions, MaxItemCountHint, PatchItemOptions, PatchStrategy, Precondition,
    QueryOptions,
};
use azure_data_cosmos::{ContainerClient, PartitionKey, Query, TransactionalBatch};
use futures::{StreamExt, TryStreamExt};
use orrery_sdk_scenario::{Outcome, container, database, status_of, with_content};
use serde_json::{Value, json};

/// Runs a scenario twice: on a container with one and on one with four physical partitions.
async fn on_both<F>(label: &str, mut scenario: F) -> Outcome
where
    F: AsyncFnMut(&ContainerClient) -> Outcome,
{
    let database = database(label).await?;
    for (name, throughput) in [("one", 10_000), ("four", 24_000)] {
        let container = container(&database, name, "/pk", throughput).await?;
        scenario(&container).await?;
    }
    database.delete(None).await?;
    Ok(())
}

async fn ids(
    container: &ContainerClient,
    query: Query,
    scope: FeedScope,
) -> Result<Vec<String>, azure_data_cosmos::CosmosError> {
    let items: Vec<Value> = container.query_items(query, scope, None).await?.try_collect().await?;
    let mut ids: Vec<String> =
        items.iter().map(|item| item["id"].as_str().unwrap_or_default().to_owned()).collect();
    ids.sort();
    Ok(ids)
}

#[tokio::test]
async fn create_read_replace_upsert_delete() -> Outcome {
    on_both("life", async |container| {
        let mut item = json!({"id": "life", "pk": "a", "n": 1, "deep": {"list": [1, "two", null, true, 1.5]}, "text": "é\u{2028} 😀"});
        let created = container.create_item("a", "life", &item, None).await?;
        assert_eq!(u16::from(created.status().status_code()), 201);
        assert!(created.headers().request_charge().expect("a charge").value() > 0.0);
        assert!(created.headers().etag().is_some() && created.into_body().is_empty());
        assert_eq!(status_of(container.create_item("a", "life", &item, None).await), 409);
        let read: Value = container.read_item("a", "life", None).await?.into_model()?;
        assert_eq!((&read["deep"], &read["text"]), (&item["deep"], &item["text"]));
        assert_eq!(status_of(container.read_item("b", "life", None).await), 404);
        item["n"] = json!(2);
        let replaced: Value = container.replace_item("a", "life", &item, Some(with_content())).await?.into_model()?;
        assert_eq!(replaced["n"], 2);
        assert_eq!(u16::from(container.upsert_item("a", "life", &item, None).await?.status().status_code()), 200);
        let fresh = json!({"id": "fresh", "pk": "a"});
        assert_eq!(u16::from(container.upsert_item("a", "fresh", &fresh, None).await?.status().status_code()), 201);
        assert_eq!(u16::from(container.delete_item("a", "life", None).await?.status().status_code()), 204);
        assert_eq!(status_of(container.delete_item("a", "life", None).await), 404);
        assert_eq!(status_of(container.replace_item("a", "life", &item, None).await), 404);
        let wrong = json!({"id": "wrong", "pk": "b"});
        assert_eq!(status_of(container.create_item("a", "wrong", &wrong, None).await), 400);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn keys_of_every_scalar_type() -> Outcome {
    on_both("types", async |container| {
        let keys: [(&str, PartitionKey, Value); 6] = [
            ("text", "text".into(), json!("text")),
            ("empty", "".into(), json!("")),
            ("number", 42.into(), json!(42)),
            ("fraction", PartitionKeyValue::try_from(-1.5)?.into(), json!(-1.5)),
            ("truth", true.into(), json!(true)),
            ("null", PartitionKey::NULL.into(), Value::Null),
        ];
        for (id, key, value) in keys {
            container.create_item(key.clone(), id, &json!({"id": id, "pk": value}), None).await?;
            let read: Value = container.read_item(key, id, None).await?.into_model()?;
            assert_eq!(read["pk"], value, "{id}");
        }
        container.create_item(PartitionKey::UNDEFINED, "hole", &json!({"id": "hole"}), None).await?;
        let read: Value = container.read_item(PartitionKey::UNDEFINED, "hole", None).await?.into_model()?;
        assert!(read.get("pk").is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_etag_decides_between_writers() -> Outcome {
    on_both("etag", async |container| {
        let item = json!({"id": "etag", "pk": "e", "n": 0});
        let first = container.create_item("e", "etag", &item, None).await?;
        let etag = first.headers().etag().expect("an etag").clone();
        let condition =
            || Some(ItemWriteOptions::default().with_precondition(Precondition::IfMatch(etag.clone())));
        container.replace_item("e", "etag", &json!({"id": "etag", "pk": "e", "n": 1}), condition()).await?;
        assert_eq!(status_of(container.replace_item("e", "etag", &item, condition()).await), 412);
        assert_eq!(status_of(container.upsert_item("e", "etag", &item, condition()).await), 412);
        assert_eq!(status_of(container.delete_item("e", "etag", condition()).await), 412);
        let now = container.read_item("e", "etag", None).await?;
        let newest: Etag = now.headers().etag().expect("an etag").clone();
        let unchanged = ItemReadOptions::default().with_precondition(Precondition::IfNoneMatch(newest));
        let status = match container.read_item("e", "etag", Some(unchanged)).await {
            Ok(answer) => u16::from(answer.status().status_code()),
            Err(error) => u16::from(error.status().status_code()),
        };
        assert_eq!(status, 304);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn patch_applies_all_operations() -> Outcome {
    on_both("patch", async |container| {
        let item =
            json!({"id": "patch", "pk": "p", "n": 5, "old": 1, "gone": true, "from": "here", "list": [1, 3]});
        container.create_item("p", "patch", &item, None).await?;
        let server_side = || PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide);
        let all = PatchInstructions::from(vec![
            PatchOperation::add("/list/1", json!(2)),
            PatchOperation::set("/old", json!("new")),
            PatchOperation::replace("/n", json!(6)),
            PatchOperation::remove("/gone"),
            PatchOperation::increment("/n", 2i64),
            PatchOperation::move_value("/from", "/to"),
        ]);
        let patched: Value =
            container.patch_item("p", "patch", all, Some(server_side())).await?.into_model()?;
        assert_eq!(patched["list"], json!([1, 2, 3]));
        assert_eq!(
            (&patched["old"], &patched["n"], &patched["to"]),
            (&json!("new"), &json!(8), &json!("here"))
        );
        assert!(patched.get("gone").is_none() && patched.get("from").is_none());
        let one = |operation| PatchInstructions::from(vec![operation]);
        let absent = one(PatchOperation::replace("/absent", json!(1)));
        assert_eq!(status_of(container.patch_item("p", "patch", absent, Some(server_side())).await), 400);
        let word = one(PatchOperation::increment("/to", 1i64));
        assert_eq!(status_of(container.patch_item("p", "patch", word, Some(server_side())).await), 400);
        let stale = server_side().with_precondition(Precondition::IfMatch(Etag::from("\"stale\"")));
        let set = one(PatchOperation::set("/seen", json!(true)));
        assert_eq!(status_of(container.patch_item("p", "patch", set.clone(), Some(stale)).await), 412);
        assert_eq!(status_of(container.patch_item("p", "nobody", set, Some(server_side())).await), 404);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_transactional_batch_is_all_or_nothing() -> Outcome {
    on_both("batch", async |container| {
        let good = TransactionalBatch::new("batch")
            .create_item(json!({"id": "b1", "pk": "batch", "n": 1}))?
            .upsert_item(json!({"id": "b2", "pk": "batch", "n": 1}), None)?
            .replace_item("b1", json!({"id": "b1", "pk": "batch", "n": 2}), None)?
            .read_item("b1", None)
            .delete_item("b1", None);
        let answer = container.execute_transactional_batch(good, None).await?;
        assert_eq!(u16::from(answer.status().status_code()), 200);
        let results = answer.into_model()?;
        let codes: Vec<u16> = results.results().iter().map(|result| result.status_code()).collect();
        assert_eq!(codes, [201, 201, 200, 200, 204]);
        let bad = TransactionalBatch::new("batch")
            .create_item(json!({"id": "b3", "pk": "batch"}))?
            .create_item(json!({"id": "b2", "pk": "batch"}))?
            .create_item(json!({"id": "b4", "pk": "batch"}))?;
        let answer = container.execute_transactional_batch(bad, None).await?;
        assert_eq!(u16::from(answer.status().status_code()), 207);
        let results = answer.into_model()?;
        let codes: Vec<u16> = results.results().iter().map(|result| result.status_code()).collect();
        assert_eq!(codes, [424, 409, 424]);
        assert_eq!(status_of(container.read_item("batch", "b3", None).await), 404);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn many_writers_at_once() -> Outcome {
    // This SDK has no bulk mode; concurrent point writes are how it loads data.
    on_both("load", async |container| {
        let keys: Vec<String> = (0..60).map(|index| format!("load-{index}")).collect();
        futures::stream::iter(&keys)
            .map(|pk| async move {
                container.create_item(pk.clone(), "load", &json!({"id": "load", "pk": pk}), None).await
            })
            .buffer_unordered(16)
            .try_collect::<Vec<_>>()
            .await?;
        let query = Query::from("SELECT * FROM c WHERE c.id = @id").with_parameter("@id", "load")?;
        assert_eq!(ids(container, query, FeedScope::full_container()).await?.len(), keys.len());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn queries_page_and_stay_in_their_scope() -> Outcome {
    on_both("query", async |container| {
        for index in 0..12 {
            let (id, pk) = (format!("q-{index:02}"), format!("query-{}", index % 3));
            container.create_item(pk.clone(), &id, &json!({"id": id, "pk": pk, "n": index}), None).await?;
        }
        let inside = Query::from("SELECT * FROM c WHERE c.pk = @pk").with_parameter("@pk", "query-1")?;
        let found = ids(container, inside, FeedScope::partition("query-1")).await?;
        assert_eq!(found, ["q-01", "q-04", "q-07", "q-10"]);
        let limit = MaxItemCountHint::Limit(5.try_into()?);
        let options = QueryOptions::default().with_max_item_count(limit);
        let mut pages = container
            .query_items::<Value>(Query::from("SELECT * FROM c"), FeedScope::full_container(), Some(options))
            .await?
            .into_pages();
        let (mut total, mut count) = (0, 0);
        while let Some(page) = pages.next().await {
            let items = page?.into_items();
            assert!(items.len() <= 5);
            total += items.len();
            count += 1;
        }
        assert_eq!(total, 12);
        assert!(count >= 3);
        let mut spread = 0;
        for range in container.read_feed_ranges(None).await? {
            spread += ids(container, Query::from("SELECT * FROM c"), FeedScope::range(range)).await?.len();
        }
        assert_eq!(spread, 12);
        let broken = ids(container, Query::from("SELEC nonsense"), FeedScope::partition("query-1")).await;
        assert_eq!(status_of(broken), 400);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn session_tokens_move_forward() -> Outcome {
    on_both("session", async |container| {
        let mut previous = 0;
        for id in ["s1", "s2", "s3"] {
            let answer =
                container.create_item("session", id, &json!({"id": id, "pk": "session"}), None).await?;
            let token = answer.headers().session_token().expect("a token").clone();
            let lsn = answer.headers().lsn().expect("an LSN");
            assert!(lsn > previous);
            previous = lsn;
            let own = ItemReadOptions::default().with_session_token(token);
            let read = container.read_item("session", id, Some(own)).await?;
            assert_eq!(read.headers().item_lsn(), Some(lsn));
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn hierarchical_keys_address_items_and_prefixes_address_ranges() -> Outcome {
    let database = database("levels").await?;
    let levels = container(&database, "levels", ("/tenant", "/user", "/session"), 24_000).await?;
    let rows = [("t1", "u1", "s1"), ("t1", "u1", "s2"), ("t1", "u2", "s1"), ("t2", "u1", "s1")];
    for (tenant, user, session) in rows {
        let item =
            json!({"id": format!("{user}{session}"), "tenant": tenant, "user": user, "session": session});
        let id = format!("{user}{session}");
        levels.create_item((tenant, user, session), &id, &item, None).await?;
    }
    let read: Value = levels.read_item(("t1", "u2", "s1"), "u2s1", None).await?.into_model()?;
    assert_eq!(read["user"], "u2");
    let all = || Query::from("SELECT * FROM c");
    assert_eq!(ids(&levels, all(), FeedScope::partition(("t1", "u1", "s1"))).await?.len(), 1);
    for (prefix, expected) in
        [(PartitionKey::from("t1"), 3), (PartitionKey::from(("t1", "u1")), 2), (PartitionKey::from("t3"), 0)]
    {
        assert_eq!(ids(&levels, all(), FeedScope::partition(prefix)).await?.len(), expected);
    }
    assert_eq!(status_of(levels.read_item(("t1", "u1"), "u1s1", None).await), 400);
    levels.delete_item(("t1", "u1", "s2"), "u1s2", None).await?;
    assert_eq!(ids(&levels, all(), FeedScope::partition("t1")).await?.len(), 2);
    database.delete(None).await?;
    Ok(())
}
