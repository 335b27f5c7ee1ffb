//! Queries: what one partition answers, and what the SDK merges from four.

use std::num::NonZeroU32;

use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use azure_data_cosmos::{ContainerClient, CosmosError, Query};
use futures::{StreamExt, TryStreamExt};
use orrery_sdk_scenario::{Outcome, container, database, status_of};
use serde_json::{Value, json};

const COUNT: i64 = 60;

fn made(n: i64) -> Value {
    let mut item = json!({
        "id": format!("{n:03}"), "pk": format!("k{}", n % 7), "n": n, "third": n % 3, "name": format!("Name {n:02}"),
        "tags": [format!("t{}", n % 5), format!("t{}", (n + 1) % 5)],
        "parts": [{"kind": "a", "size": n}, {"kind": "b", "size": n + 1}],
    });
    if n % 10 == 0 {
        item["rare"] = json!(n);
    }
    item
}

/// Runs a scenario on the same items in one and in four physical partitions.
async fn on_both<F>(label: &str, mut scenario: F) -> Outcome
where
    F: AsyncFnMut(&ContainerClient) -> Outcome,
{
    let database = database(label).await?;
    for (name, throughput) in [("one", 10_000), ("four", 24_000)] {
        let container = container(&database, name, "/pk", throughput).await?;
        for n in 0..COUNT {
            container.create_item(format!("k{}", n % 7), &format!("{n:03}"), made(n), None).await?;
        }
        scenario(&container).await?;
    }
    database.delete(None).await?;
    Ok(())
}

async fn rows(container: &ContainerClient, query: impl Into<Query>, scope: FeedScope) -> Result<Vec<Value>, CosmosError> {
    container.query_items(query, scope, None).await?.try_collect().await
}

async fn across(container: &ContainerClient, query: impl Into<Query>) -> Result<Vec<Value>, CosmosError> {
    rows(container, query, FeedScope::full_container()).await
}

async fn inside(container: &ContainerClient, query: impl Into<Query>) -> Result<Vec<Value>, CosmosError> {
    rows(container, query, FeedScope::partition("k1")).await
}

fn numbers(mut values: Vec<Value>) -> Vec<i64> {
    values.sort_by_key(|value| value.as_i64());
    values.iter().map(|value| value.as_i64().expect("a number")).collect()
}

#[tokio::test]
async fn conditions_find_what_they_name() -> Outcome {
    on_both("conditions", async |container| {
        let cases: [(&str, fn(i64) -> bool); 7] = [
            ("c.n >= 10 AND c.n < 20", |n| (10..20).contains(&n)),
            ("c.n IN (1, 2, 59) OR c.third = 2", |n| [1, 2, 59].contains(&n) || n % 3 == 2),
            ("STARTSWITH(c.name, 'Name 3')", |n| (30..40).contains(&n)),
            ("c.name LIKE '%7'", |n| n % 10 == 7),
            ("ARRAY_CONTAINS(c.tags, 't3')", |n| n % 5 == 3 || n % 5 == 2),
            ("NOT IS_DEFINED(c.rare)", |n| n % 10 != 0),
            ("EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.size = 31)", |n| n == 30 || n == 31),
        ];
        for (condition, wanted) in cases {
            let query = format!("SELECT VALUE c.n FROM c WHERE {condition}");
            let expected: Vec<i64> = (0..COUNT).filter(|n| wanted(*n)).collect();
            assert_eq!(numbers(across(container, query.as_str()).await?), expected, "{condition}");
            let expected: Vec<i64> = expected.into_iter().filter(|n| n % 7 == 1).collect();
            assert_eq!(numbers(inside(container, query.as_str()).await?), expected, "{condition}");
        }
        let named = Query::from("SELECT VALUE c.n FROM c WHERE c.name = @name").with_parameter("@name", "Name 17")?;
        assert_eq!(across(container, named).await?, [json!(17)]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn order_top_offset_and_distinct_hold_over_all_partitions() -> Outcome {
    on_both("order", async |container| {
        let up: Vec<Value> = (0..COUNT).map(|n| json!(n)).collect();
        let down: Vec<Value> = up.iter().rev().cloned().collect();
        assert_eq!(across(container, "SELECT VALUE c.n FROM c ORDER BY c.n").await?, up);
        assert_eq!(across(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC").await?, down);
        assert_eq!(across(container, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC").await?, down[..3]);
        assert_eq!(across(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 55 LIMIT 9").await?, up[55..]);
        assert_eq!(across(container, "SELECT TOP 11 * FROM c").await?.len(), 11);
        let keys: Vec<Value> = (0..7).map(|n| json!(format!("k{n}"))).collect();
        assert_eq!(across(container, "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk").await?, keys);
        assert_eq!(numbers(across(container, "SELECT DISTINCT TOP 10 VALUE c.third FROM c").await?), [0, 1, 2]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn one_partition_aggregates_groups_and_joins() -> Outcome {
    on_both("groups", async |container| {
        let of_key: Vec<i64> = (0..COUNT).filter(|n| n % 7 == 1).collect();
        for (call, wanted) in [
            ("COUNT(1)", json!(of_key.len())),
            ("SUM(c.n)", json!(of_key.iter().sum::<i64>())),
            ("MIN(c.n)", json!(1)),
            ("MAX(c.name)", json!("Name 57")),
            ("AVG(c.n)", json!(29)),
        ] {
            assert_eq!(inside(container, format!("SELECT VALUE {call} FROM c").as_str()).await?, [wanted], "{call}");
        }
        let groups = "SELECT c.third, COUNT(1) AS count FROM c GROUP BY c.third";
        let counted: i64 = inside(container, groups).await?.iter().filter_map(|row| row["count"].as_i64()).sum();
        assert_eq!(counted, of_key.len() as i64);
        let joined = "SELECT VALUE p.size FROM c JOIN p IN c.parts WHERE p.kind = 'b' AND p.size > 40";
        assert_eq!(numbers(inside(container, joined).await?), [44, 51, 58]);
        assert_eq!(status_of(inside(container, "SELECT nonsense( FROM c").await), 400);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pages_go_on_from_their_token() -> Outcome {
    on_both("pages", async |container| {
        for (query, scope) in [
            ("SELECT VALUE c.n FROM c WHERE c.n >= 10", FeedScope::full_container()),
            ("SELECT VALUE c.n FROM c WHERE c.n >= 10 ORDER BY c.n DESC", FeedScope::full_container()),
            ("SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::partition("k1")),
        ] {
            let whole = rows(container, query, scope.clone()).await?;
            let (mut seen, mut token) = (Vec::new(), None);
            for size in [1, 2, 7, 11, 5, 3, 50, 50, 50, 50, 50, 50] {
                let limit = MaxItemCountHint::Limit(NonZeroU32::new(size).expect("a size"));
                let mut options = QueryOptions::default().with_max_item_count(limit);
                if let Some(token) = token.take() {
                    options = options.with_continuation_token(token);
                }
                let mut pages =
                    container.query_items::<Value>(query, scope.clone(), Some(options)).await?.into_pages();
                let Some(page) = pages.next().await else { break };
                seen.extend(page?.into_items());
                token = Some(pages.to_continuation_token()?);
            }
            if query.contains("ORDER") {
                assert_eq!(seen, whole, "{query}");
            } else {
                assert_eq!(numbers(seen), numbers(whole), "{query}");
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn metrics_tell_what_a_query_did() -> Outcome {
    on_both("metrics", async |container| {
        let options =
            QueryOptions::default().with_populate_index_metrics(true).with_populate_query_metrics(true);
        let query = "SELECT * FROM c WHERE c.n = 8";
        let found = container.query_items::<Value>(query, FeedScope::partition("k1"), Some(options)).await?;
        let page = found.into_pages().next().await.expect("a page")?;
        assert_eq!(page.items().len(), 1);
        assert!(page.query_metrics().expect("query metrics").contains("retrievedDocumentCount=1;"));
        let index: Value = serde_json::from_str(page.index_metrics().expect("index metrics"))?;
        assert!(index.to_string().contains("/n/?"), "{index}");
        Ok(())
    })
    .await
}
