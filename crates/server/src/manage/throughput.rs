//! Throughput beyond the offer: how it is divided over partitions, buckets and priorities, and what hours have used.

use std::sync::Arc;

use http::Method;
use orrery_cluster::throughput::{BucketLimit, Hour, PartitionBudget, Redistribution, Settings};
use orrery_cluster::{Container, Priority, Rid, Throughput};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::{Answer, Call, bad_request, not_found};

/// Hours of an answer when the request does not say how many.
const HOURS_DEFAULT: usize = 24;

pub async fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::GET, Method::POST])?;
    if *call.method == Method::GET {
        return show(call, container);
    }
    let change: Change = call.json()?;
    let changed = change.apply(call, container).await?;
    show(call, &changed)
}

/// What containers of a database share.
pub fn shared(call: &Call<'_>, database: &str) -> Result<Answer, Denial> {
    call.only(&[Method::GET])?;
    let catalog = call.db.catalog();
    let found = catalog.database(database);
    let found = found.ok_or_else(|| not_found(format!("There is no database {database}.")))?;
    let mut answer = Map::new();
    answer.insert("database".into(), found.resource.id.clone().into());
    put_offer(call, found.resource.rid, &mut answer)?;
    Ok(Answer::json(answer.into()))
}

fn show(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    let settings = &container.throughput;
    let mut answer = Map::new();
    answer.insert("database".into(), container.database_id.clone().into());
    answer.insert("container".into(), container.resource.id.clone().into());
    put_offer(call, container.resource.rid, &mut answer)?;
    let policy = if settings.is_custom() { "Custom" } else { "Equal" };
    answer.insert("throughputPolicy".into(), policy.into());
    let partitions: Vec<Value> = container.partition_budgets().iter().map(partition).collect();
    answer.insert("physicalPartitionThroughputInfo".into(), partitions.into());
    answer.insert("throughputBuckets".into(), json!(settings.buckets));
    answer.insert("defaultPriorityLevel".into(), json!(settings.default_priority));
    Ok(Answer::json(answer.into()))
}

fn put_offer(call: &Call<'_>, target: Rid, answer: &mut Map<String, Value>) -> Result<(), Denial> {
    let catalog = call.db.catalog();
    let Some(offer) = catalog.offer_of(target) else {
        answer.insert("offer".into(), Value::Null);
        return Ok(());
    };
    let status = call.db.offer_status(&catalog, offer);
    answer.insert(
        "offer".into(),
        json!({
            "kind": match offer.throughput {
                Throughput::Manual(_) => "manual",
                Throughput::Autoscale { .. } => "autoscale",
            },
            "throughput": offer.throughput.ceiling(),
            "current": status.current,
            "minimum": status.minimum,
            "highest": offer.highest,
            "pending": status.is_pending,
        }),
    );
    let count = call.number("hours", HOURS_DEFAULT, orrery_cluster::limits::THROUGHPUT_HOURS_MAX)?;
    let hours = call.db.throughput_hours(target);
    let last = &hours[hours.len().saturating_sub(count)..];
    answer.insert("hours".into(), last.iter().map(hour).collect::<Vec<Value>>().into());
    Ok(())
}

fn hour(hour: &Hour) -> Value {
    json!({ "begin": hour.begin, "highest": hour.highest, "billed": hour.billed })
}

fn partition(budget: &PartitionBudget) -> Value {
    let usage = &budget.usage;
    json!({
        "id": budget.id.to_string(),
        "throughput": (budget.rate * 100.0).round() / 100.0,
        "fraction": budget.part,
        "throttled": {
            "all": usage.throttled,
            "lowPriority": usage.throttled_low,
            "bucket": usage.throttled_bucket,
            "hotKey": usage.throttled_hot,
        },
    })
}

/// What is left out stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Change {
    throughput_policy: Option<Policy>,
    #[serde(default)]
    target_physical_partition_throughput_info: Vec<PartitionThroughput>,
    #[serde(default)]
    source_physical_partition_throughput_info: Vec<PartitionThroughput>,
    throughput_buckets: Option<Vec<BucketLimit>>,
    default_priority_level: Option<Priority>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
enum Policy {
    Equal,
    Custom,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionThroughput {
    id: String,
    throughput: Option<f64>,
}

impl PartitionThroughput {
    fn id(&self) -> Result<u32, Denial> {
        self.id.parse().map_err(|_| bad_request(format!("{:?} is not the id of a partition.", self.id)))
    }
}

impl Change {
    async fn apply(self, call: &Call<'_>, container: &Arc<Container>) -> Result<Arc<Container>, Denial> {
        let rid = container.resource.rid;
        let mut changed = container.clone();
        let redistribution = self.redistribution()?;
        if self.throughput_buckets.is_some() || self.default_priority_level.is_some() {
            let current = &container.throughput;
            let settings = Settings {
                shares: vec![],
                buckets: self.throughput_buckets.unwrap_or_else(|| current.buckets.clone()),
                default_priority: self.default_priority_level.unwrap_or(current.default_priority),
            };
            changed = call.db.replace_throughput_settings(rid, settings).await?;
        }
        if let Some(change) = redistribution {
            changed = call.db.redistribute_throughput(rid, change).await?;
        }
        Ok(changed)
    }

    /// Whether the division changes: to equal parts, or to others.
    fn redistribution(&self) -> Result<Option<Option<Redistribution>>, Denial> {
        let (targets, sources) = (
            &self.target_physical_partition_throughput_info,
            &self.source_physical_partition_throughput_info,
        );
        match self.throughput_policy {
            Some(Policy::Equal) if targets.is_empty() && sources.is_empty() => return Ok(Some(None)),
            Some(Policy::Equal) => {
                return Err(bad_request("With equal parts no partition can be named."));
            }
            None if targets.is_empty() && sources.is_empty() => return Ok(None),
            _ if targets.is_empty() => {
                return Err(bad_request("targetPhysicalPartitionThroughputInfo must name a partition."));
            }
            _ => {}
        }
        let target = |partition: &PartitionThroughput| {
            let units = partition.throughput.ok_or_else(|| {
                bad_request(format!("The target partition {} needs a throughput.", partition.id))
            })?;
            Ok((partition.id()?, units))
        };
        Ok(Some(Some(Redistribution {
            targets: targets.iter().map(target).collect::<Result<_, Denial>>()?,
            sources: sources.iter().map(PartitionThroughput::id).collect::<Result<_, Denial>>()?,
        })))
    }
}
