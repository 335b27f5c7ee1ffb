//! Entity group transactions: up to a hundred writes of one partition, which happen together or not at all.
//!
//! The body is a multipart message ([`multipart`]) with one changeset, or with a single read. What is wrong with one of
//! the operations is told in an answer of one part, with the place of that operation in front of the text.

mod multipart;
mod reply;

use std::collections::HashSet;

use crate::auth::Act;
use crate::entity::{self, Change};
use crate::errors::{Own, Refusal};
use crate::gateway::Call;
use crate::headers::{Headers, Verb};
use crate::limits::BATCH_OPERATIONS_MAX;
use crate::metadata::Metadata;
use crate::parameters::Parameters;
use crate::respond::Reply;
use crate::router::{self, Endpoint};
use multipart::{Batch, Part};

pub(crate) async fn run(call: &Call<'_>, body: &[u8]) -> Result<Reply, Refusal> {
    let content_type = call.headers.content_type.unwrap_or_default();
    let batch = multipart::parse(content_type, body)?;
    let in_changeset = matches!(batch, Batch::Changes(_));
    let done = match &batch {
        Batch::Read(part) => match read(call, part).await {
            Ok(answer) => Ok(reply::of_read(part, &answer)),
            Err(refusal) => Err((None, refusal)),
        },
        Batch::Changes(parts) => write(call, parts).await,
    };
    match done {
        Ok(answer) => Ok(answer),
        Err((place, refusal)) if refusal.is_of_operation() => {
            Ok(reply::of_failure(call, &refusal, place, in_changeset))
        }
        Err((_, refusal)) => Err(refusal),
    }
}

/// How much the answer to a part tells about its values: what the part asks for, or else the whole batch.
fn metadata_of(call: &Call<'_>, part: &Part<'_>) -> Metadata {
    part.header("accept").map_or(call.metadata, |accept| Metadata::of(Some(accept), None))
}

/// A read that is alone in its batch.
async fn read(call: &Call<'_>, part: &Part<'_>) -> Result<Reply, Refusal> {
    let (endpoint, query) = endpoint_of(call, part)?;
    let (Endpoint::Entity { table, partition_key, row_key }, Verb::Get) = (&endpoint, part.verb()?) else {
        return Err(Own::MethodNotAllowed.into());
    };
    call.check(Act::Read, table)?;
    let parameters = Parameters::read(query)?;
    let metadata = metadata_of(call, part);
    let headers = Headers { if_none_match: None, ..*call.headers };
    let call = Call { parameters: &parameters, headers: &headers, metadata, ..*call };
    entity::get(&call, table, partition_key, row_key).await
}

/// All writes of a changeset. A refusal comes with the place of the operation that it is about, if it is about one.
async fn write(call: &Call<'_>, parts: &[Part<'_>]) -> Result<Reply, (Option<usize>, Refusal)> {
    if parts.len() > BATCH_OPERATIONS_MAX {
        let message = "The batch request operation exceeds the maximum 100 changes per change set.";
        // Azure Storage names the last operation that there was room for, and clients tell their users which one it is.
        return Err((Some(BATCH_OPERATIONS_MAX - 1), Refusal::invalid(message)));
    }
    let mut changes: Vec<Change> = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        changes.push(change_of(call, part).map_err(|refusal| (Some(place), refusal))?);
    }
    let Some(first) = changes.first() else { return Err((None, Refusal::invalid(crate::errors::ONE_INPUT))) };
    let container = crate::tables::find(call.catalog, &first.table).map_err(|refusal| (None, refusal))?;
    if let Some((place, refusal)) = misfit(&changes) {
        return Err((Some(place), refusal.into()));
    }
    let partition_key = first.partition_key.clone();
    let ops = changes.iter_mut().map(|change| std::mem::replace(&mut change.op, nothing())).collect();
    match entity::commit(call, &container, &partition_key, ops).await {
        Ok((outcomes, receipt)) => Ok(reply::of_success(call, parts, &changes, &outcomes).receipt(receipt)),
        Err(Refusal::Db(error)) => Err((error.kind.place(), Refusal::Db(error))),
        Err(refusal) => Err((None, refusal)),
    }
}

/// The first operation that may not be in the batch: all are on one partition of one table, and no two on one entity.
fn misfit(changes: &[Change]) -> Option<(usize, Own)> {
    let mut seen = HashSet::new();
    changes.iter().enumerate().find_map(|(place, change)| {
        let first = &changes[0];
        if change.table != first.table || change.partition_key != first.partition_key {
            let refusal = Own::Changeset {
                code: "CommandsInBatchActOnDifferentPartitions",
                message: "All commands in a batch must operate on same entity group.",
            };
            return Some((place, refusal));
        }
        if !seen.insert(&change.row_key) {
            let refusal = Own::Changeset {
                code: "InvalidDuplicateRow",
                message: "The batch request contains multiple changes with same row key. An entity can appear only once \
                          in a batch request.",
            };
            return Some((place, refusal));
        }
        None
    })
}

fn change_of(call: &Call<'_>, part: &Part<'_>) -> Result<Change, Refusal> {
    let (endpoint, _) = endpoint_of(call, part)?;
    entity::change_of(call, part.verb()?, &endpoint, part.header("if-match"), part.body, true)
}

/// What the address of a part names; it may be a whole one.
fn endpoint_of<'p>(call: &Call<'_>, part: &Part<'p>) -> Result<(Endpoint, Option<&'p str>), Refusal> {
    let address = match part.address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => part.address,
    };
    let (path, query) = address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
    let parameters = Parameters::read(None)?;
    let endpoint = router::route(path, &parameters, |name| call.accounts.contains(&name))?;
    Ok((endpoint, query))
}

/// What is left of an operation that has been handed over.
fn nothing() -> orrery_cluster::store::Op {
    orrery_cluster::store::Op {
        target: orrery_cluster::store::Target::Id(Default::default()),
        action: orrery_cluster::store::Action::Read,
        precondition: Default::default(),
        indexed: true,
        unlinked: false,
    }
}
