//! Procedures that every container has without anybody having made them.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use orrery_cluster::limits::{SCRIPT_ANSWER_TIME_MAX, SCRIPT_WRITES_MAX};
use orrery_cluster::store::{Action, Op, Precondition, Target};
use orrery_cluster::{Charge, Container, Receipt, Served};
use orrery_doc::{PartitionKey, Value, epk, json};

use super::{forms, tables_batch};
use crate::access::ItemAct;
use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::items::document::{ItemBody, parse_any};
use crate::items::{bulk, key, options, shape};
use crate::respond::Reply;

/// What running nothing costs.
const ECHO_UNITS: f64 = 1.0;

#[derive(Clone, Copy)]
pub(super) enum System {
    /// Answers its first argument.
    Echo,
    /// Writes the items of a list that belong to one physical partition, as many as it can.
    BulkInsert,
    /// Writes entities of one partition of a table together.
    TablesBatch,
}

pub(super) fn find(name: &str) -> Option<System> {
    match name {
        "__.sys.echo" => Some(System::Echo),
        "__.sys.commonBulkInsert" => Some(System::BulkInsert),
        "__.sys.tablesBatchOperation" => Some(System::TablesBatch),
        _ => None,
    }
}

pub(super) async fn execute(
    call: &Call<'_>,
    procedure: System,
    container: &Arc<Container>,
    body: &Bytes,
) -> Result<Reply, Refusal> {
    let arguments = if body.is_empty() { parse_any(b"[]") } else { parse_any(body) }?;
    match procedure {
        System::Echo => echo(call, container, argument(arguments.root(), 0)),
        System::BulkInsert => {
            let inserting = Inserting::read(call, container, arguments.root())?;
            Box::pin(inserting.run(call, container)).await
        }
        System::TablesBatch => Box::pin(tables_batch::execute(call, container, arguments.root())).await,
    }
}

/// Arguments that were left out are undefined, as in the procedures that clients have made.
pub(super) fn argument(arguments: Value<'_>, place: usize) -> Value<'_> {
    let list = arguments.as_array();
    list.and_then(|list| list.iter().nth(place)).unwrap_or(Value::Undefined)
}

fn echo(call: &Call<'_>, container: &Arc<Container>, said: Value<'_>) -> Result<Reply, Refusal> {
    let definition = &container.definition;
    let key = key::of_request(&definition.key, key::named(definition, call.headers))?;
    let place = epk(&definition.key, &key);
    let range = container.ranges().into_iter().find(|range| range.range.contains(&place));
    let served = range.map(|range| Served { range_id: range.id, lsn: range.lsn, item_lsn: None });
    let mut out = Vec::new();
    if !said.is_undefined() {
        json::write(said, &mut out);
    }
    let receipt = Receipt { charge: Charge::flat("script started", ECHO_UNITS), served };
    Ok(Reply::ok(out).receipt(receipt).in_container(container))
}

/// Items on their way in, each with its key.
struct Inserting {
    items: Vec<(PartitionKey, ItemBody)>,
    is_upsert: bool,
    /// A conflict ends the list and leaves what was written before it; otherwise it undoes all.
    stops_softly: bool,
}

/// How far it came.
struct Progress {
    count: usize,
    error: u16,
    receipt: Receipt,
}

impl Inserting {
    /// Reads `[[item, ...], {options}]`. What is wrong with any item is found before the first is written.
    fn read(call: &Call<'_>, container: &Container, arguments: Value<'_>) -> Result<Inserting, Refusal> {
        let options = argument(arguments, 1);
        for name in ["systemCollectionId", "enableBsonSchema"] {
            if !matches!(options.get(name), Value::Undefined | Value::Null | Value::Bool(false)) {
                return Err(Refusal::unsupported(format!("The option '{name}' of commonBulkInsert")));
            }
        }
        let is_on = |name: &str| options.get(name).as_bool() == Some(true);
        let Some(list) = argument(arguments, 0).as_array() else {
            return Err(Refusal::bad_request(
                "The first argument of commonBulkInsert must be a list of items.",
            ));
        };
        let is_upsert = is_on("enableUpsert");
        let area = Area::of(call, container)?;
        let mut items = Vec::new();
        for value in list.iter().take(SCRIPT_WRITES_MAX) {
            let item = match is_on("disableAutomaticIdGeneration") {
                true => ItemBody::from_value(value)?,
                false => forms::named_value(value)?,
            };
            shape::check(container.definition.api, &item.doc)?;
            let key = area.key_of(container, &item)?;
            call.grant.check(if is_upsert { ItemAct::Upsert } else { ItemAct::Create }, &key)?;
            items.push((key, item));
        }
        Ok(Inserting { items, is_upsert, stops_softly: is_on("softStopOnConflict") })
    }

    async fn run(self, call: &Call<'_>, container: &Arc<Container>) -> Result<Reply, Refusal> {
        let progress = match self.stops_softly {
            true => self.one_by_one(call, container).await?,
            false => self.together(call, container).await?,
        };
        let body = format!("{{\"count\":{},\"errorCode\":{}}}", progress.count, progress.error);
        Ok(Reply::ok(body).receipt(progress.receipt).in_container(container))
    }

    fn op(&self, container: &Container, item: &ItemBody) -> Op {
        let doc = item.doc.clone();
        let action = if self.is_upsert { Action::Upsert(doc) } else { Action::Create(doc) };
        let indexed = shape::is_automatic(container);
        Op {
            target: Target::Id(item.id.clone()),
            action,
            precondition: Precondition::None,
            indexed,
            unlinked: false,
        }
    }

    /// Writes until something is in the way: an item that exists, or no time or throughput left. The client goes on
    /// from there.
    async fn one_by_one(&self, call: &Call<'_>, container: &Arc<Container>) -> Result<Progress, Refusal> {
        let options = options::write(call.headers, call.db.account().consistency)?;
        let deadline = Instant::now() + SCRIPT_ANSWER_TIME_MAX;
        let mut progress = Progress { count: 0, error: 0, receipt: Receipt::default() };
        for (key, item) in &self.items {
            if Instant::now() >= deadline {
                break;
            }
            let written = call.db.write(container, key, vec![self.op(container, item)], &options).await;
            match written.map_err(Refusal::from) {
                Ok(reply) => {
                    progress.count += 1;
                    progress.receipt.charge.merge(reply.receipt.charge);
                    progress.receipt.served = reply.receipt.served;
                }
                Err(refusal) => {
                    let status = refusal.wire().status.as_u16();
                    if status != 409 && progress.count == 0 {
                        return Err(refusal);
                    }
                    if let Some(receipt) = refusal.receipt() {
                        progress.receipt.charge.merge(receipt.charge.clone());
                    }
                    // Who only came too fast is told no error: the count says where to go on.
                    progress.error = if status == 429 { 0 } else { status };
                    break;
                }
            }
        }
        Ok(progress)
    }

    async fn together(&self, call: &Call<'_>, container: &Arc<Container>) -> Result<Progress, Refusal> {
        let Some((key, _)) = self.items.first() else {
            return Ok(Progress { count: 0, error: 0, receipt: Receipt::default() });
        };
        if self.items.iter().any(|(other, _)| !key::same(other, key)) {
            return Err(Refusal::unsupported(
                "commonBulkInsert of items with several partition keys without softStopOnConflict",
            ));
        }
        let options = options::write(call.headers, call.db.account().consistency)?;
        let ops = self.items.iter().map(|(_, item)| self.op(container, item)).collect();
        let reply = call.db.write(container, key, ops, &options).await?;
        Ok(Progress { count: self.items.len(), error: 0, receipt: reply.receipt })
    }
}

/// Where the items may belong: a logical partition or a physical one.
enum Area {
    Key(PartitionKey),
    Range(orrery_doc::EpkRange),
}

impl Area {
    fn of(call: &Call<'_>, container: &Container) -> Result<Area, Refusal> {
        match bulk::range(call, container)? {
            Some(range) => Ok(Area::Range(range)),
            None => {
                let named = key::named(&container.definition, call.headers);
                key::of_request(&container.definition.key, named).map(Area::Key)
            }
        }
    }

    fn key_of(&self, container: &Container, item: &ItemBody) -> Result<PartitionKey, Refusal> {
        let def = &container.definition.key;
        let key = key::full(def, PartitionKey::extract(def, item.doc.as_ref()))?;
        match self {
            Area::Key(named) if !key::same(named, &key) => Err(Own::KeyMismatch.into()),
            Area::Range(range) if !range.contains(&epk(def, &key)) => {
                Err(orrery_cluster::ErrorKind::RangeGone.into())
            }
            _ => Ok(key),
        }
    }
}
