//! `__.sys.tablesBatchOperation`: writes of one partition of a table, all or none, as older clients of tables ask for them.
//!
//! The arguments are three lists of the same length: items, what is to be done with each, and versions that must be theirs. The
//! answer is a text that holds the list of the items. What goes wrong is told as the exception of a script, in whose text
//! these clients look for the place of the operation and for the words of its error.

use std::sync::Arc;

use orrery_cluster::limits::BATCH_OPS_MAX;
use orrery_cluster::store::{Action, Effect, Op, Outcome, Precondition, Target};
use orrery_cluster::{Api, Container, Error, ErrorKind, ScriptError};
use orrery_doc::{PartitionKey, Value, json};
use orrery_gateway::merge;

use super::system::argument;
use crate::access::ItemAct;
use crate::call::Call;
use crate::errors::{Refusal, Voice};
use crate::items::document::ItemBody;
use crate::items::render::Renderer;
use crate::items::{key, options, shape};
use crate::respond::Reply;

pub(super) async fn execute(
    call: &Call<'_>,
    container: &Arc<Container>,
    arguments: Value<'_>,
) -> Result<Reply, Refusal> {
    if container.definition.api != Api::Table {
        return Err(Refusal::unsupported("tablesBatchOperation in a container that is no table"));
    }
    let definition = &container.definition;
    let key = key::of_request(&definition.key, key::named(definition, call.headers))?;
    let ops = operations(call, container, &key, arguments)?;
    let options = options::write(call.headers, call.db.account().consistency)?;
    let done = match call.db.write(container, &key, ops, &options).await {
        Ok(done) => done,
        Err(error) => {
            return Err(match error.kind.place() {
                Some(place) => exception(place, Refusal::Db(error)),
                None => Refusal::Db(error),
            });
        }
    };
    let text = shown(container, &done.outcomes);
    let mut body = Vec::with_capacity(text.len() + 64);
    json::write_str(&text, &mut body);
    Ok(Reply::ok(body).receipt(done.receipt).in_container(container))
}

/// What the database is to do.
fn operations(
    call: &Call<'_>,
    container: &Container,
    key: &PartitionKey,
    arguments: Value<'_>,
) -> Result<Vec<Op>, Refusal> {
    let list = |place: usize| -> Option<Vec<Value<'_>>> {
        Some(argument(arguments, place).as_array()?.iter().collect())
    };
    let (Some(items), Some(kinds), Some(versions)) = (list(0), list(1), list(2)) else {
        return Err(Refusal::bad_request(
            "The arguments of tablesBatchOperation must be lists of items, operations and versions.",
        ));
    };
    if items.len() != kinds.len() || items.len() != versions.len() || items.is_empty() {
        return Err(Refusal::bad_request(
            "The lists of items, operations and versions of tablesBatchOperation must be equally long, and not empty.",
        ));
    }
    if items.len() > BATCH_OPS_MAX {
        return Err(Refusal::bad_request(format!(
            "A batch of tablesBatchOperation has at most {BATCH_OPS_MAX} operations."
        )));
    }
    let operations = items.into_iter().zip(kinds).zip(versions).enumerate();
    operations
        .map(|(place, ((item, kind), version))| {
            operation(call, container, key, item, kind, version).map_err(|refusal| exception(place, refusal))
        })
        .collect()
}

fn operation(
    call: &Call<'_>,
    container: &Container,
    key: &PartitionKey,
    item: Value<'_>,
    kind: Value<'_>,
    version: Value<'_>,
) -> Result<Op, Refusal> {
    let item = ItemBody::from_value(item)?;
    key::check_document(&container.definition.key, key, &item.doc)?;
    let (act, insists) = match kind.as_i64() {
        Some(0) => (ItemAct::Create, false),
        Some(1) => (ItemAct::Delete, true),
        Some(2) => (ItemAct::Replace, true),
        Some(3) => (ItemAct::Replace, true),
        Some(4 | 5) => (ItemAct::Upsert, false),
        Some(6) => (ItemAct::Read, false),
        _ => {
            return Err(Refusal::bad_request(
                "An operation of tablesBatchOperation is a number from 0 to 6.",
            ));
        }
    };
    call.grant.check(act, key)?;
    if !matches!(act, ItemAct::Delete | ItemAct::Read) {
        shape::check(container.definition.api, &item.doc)?;
    }
    let action = match (kind.as_i64(), item.doc) {
        (Some(0), doc) => Action::Create(doc),
        (Some(2), doc) => Action::Replace(doc),
        (Some(3), doc) => merge::action(doc, false),
        (Some(4), doc) => Action::Upsert(doc),
        (Some(5), doc) => merge::action(doc, true),
        (Some(6), _) => Action::Read,
        _ => Action::Delete,
    };
    let version = version.as_str().filter(|text| insists && !text.is_empty());
    Ok(Op {
        target: Target::Id(item.id),
        action,
        precondition: version.map_or(Precondition::None, |text| options::precondition(Some(text), None)),
        indexed: shape::is_automatic(container),
        unlinked: false,
    })
}

/// The items as a list; of what was deleted there is none.
fn shown(container: &Container, outcomes: &[Outcome]) -> String {
    let renderer = Renderer::new(container);
    let mut list = b"[".to_vec();
    for (place, outcome) in outcomes.iter().enumerate() {
        if place > 0 {
            list.push(b',');
        }
        match outcome.effect {
            Effect::Deleted | Effect::Absent => list.extend_from_slice(b"null"),
            _ => renderer.write_item(&outcome.item, &mut list),
        }
    }
    list.push(b']');
    String::from_utf8(list).expect("JSON is UTF-8")
}

/// The exception that clients take apart: `OperationCount:<place>.` and one of three texts that they know.
fn exception(place: usize, refusal: Refusal) -> Refusal {
    let wire = refusal.wire();
    let told = match wire.status.as_u16() {
        404 => "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found".to_owned(),
        409 => "Resource with specified id or name already exists.".to_owned(),
        412 => "One of the specified pre-condition is not met.".to_owned(),
        // These are told as they are everywhere.
        401 | 403 | 413 | 429 | 503 => return refusal,
        _ => match wire.voice {
            Voice::Partition(text) | Voice::Gateway(text) => text.into_owned(),
            Voice::PartitionJson(text) => text,
        },
    };
    let message = format!("OperationCount:{place}.\n{told}");
    let kind = ErrorKind::Script(ScriptError::Threw { message, stack: String::new(), number: None });
    Refusal::Db(Error { kind, receipt: refusal.receipt().cloned() })
}
