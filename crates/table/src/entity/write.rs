//! Writes of one entity, alone or in a batch.

use std::sync::Arc;

use http::StatusCode;
use orrery_cluster::store::{Action, Op, Outcome, Precondition};
use orrery_cluster::{Container, WriteOptions};

use super::{Body, Renderer, encode_key, key_of, target_of};
use crate::auth::Act;
use crate::errors::{Own, Refusal};
use crate::gateway::Call;
use crate::headers::{Verb, wants_no_content};
use crate::moment;
use crate::respond::Reply;
use crate::router::Endpoint;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Replace,
    Merge,
    InsertOrReplace,
    InsertOrMerge,
    Delete,
}

impl Kind {
    fn act(self) -> Act {
        match self {
            Kind::Insert => Act::Add,
            Kind::Replace | Kind::Merge => Act::Update,
            Kind::InsertOrReplace | Kind::InsertOrMerge => Act::Upsert,
            Kind::Delete => Act::Delete,
        }
    }
}

/// A write in the terms of the database.
pub(crate) struct Change {
    pub table: String,
    pub kind: Kind,
    pub partition_key: String,
    pub row_key: String,
    pub op: Op,
}

/// What a request, or a part of a batch, asks to be written.
pub(crate) fn change_of(
    call: &Call<'_>,
    verb: Verb,
    endpoint: &Endpoint,
    if_match: Option<&str>,
    body: &[u8],
    is_part: bool,
) -> Result<Change, Refusal> {
    let conditional = if_match.is_some();
    let (table, kind, address) = match (endpoint, verb) {
        (Endpoint::Entities { table }, Verb::Post) => (table, Kind::Insert, None),
        (Endpoint::Entity { table, partition_key, row_key }, verb) => {
            let kind = match verb {
                Verb::Put if conditional => Kind::Replace,
                Verb::Put => Kind::InsertOrReplace,
                Verb::Merge if conditional => Kind::Merge,
                Verb::Merge => Kind::InsertOrMerge,
                Verb::Delete => Kind::Delete,
                Verb::Get | Verb::Post => return Err(Own::MethodNotAllowed.into()),
            };
            (table, kind, Some((partition_key.as_str(), row_key.as_str())))
        }
        _ => return Err(Own::MethodNotAllowed.into()),
    };
    call.check(if is_part { call.grant.act_of_part(kind.act()) } else { kind.act() }, table)?;
    let (partition_key, row_key, doc) = match (kind, address) {
        (Kind::Delete, Some((partition_key, row_key))) => {
            (partition_key.to_owned(), row_key.to_owned(), None)
        }
        _ => {
            let Body { partition_key, row_key, doc } = Body::read(body, address)?;
            (partition_key, row_key, Some(doc))
        }
    };
    call.grant.check_key(&partition_key, &row_key)?;
    let action = match (kind, doc) {
        (Kind::Insert, Some(doc)) => Action::Create(doc),
        (Kind::Replace, Some(doc)) => Action::Replace(doc),
        (Kind::InsertOrReplace, Some(doc)) => Action::Upsert(doc),
        (Kind::Merge, Some(doc)) => orrery_gateway::merge::action(doc, false),
        (Kind::InsertOrMerge, Some(doc)) => orrery_gateway::merge::action(doc, true),
        (Kind::Delete, _) | (_, None) => Action::Delete,
    };
    let target = target_of(&row_key)?;
    let op = Op { target, action, precondition: precondition(if_match), indexed: true, unlinked: false };
    Ok(Change { table: table.clone(), kind, partition_key, row_key, op })
}

/// The version that a client insists on. One that no entity can have matches none.
pub(crate) fn precondition(if_match: Option<&str>) -> Precondition {
    match if_match.map(str::trim) {
        None => Precondition::None,
        Some("*") => Precondition::IfMatchAny,
        Some(etag) => match moment::written_of_etag(etag) {
            Some(time) => Precondition::IfWrittenAt(time),
            None => Precondition::IfMatch(None),
        },
    }
}

/// Carries out one write and answers.
pub(crate) async fn run(call: &Call<'_>, change: Change) -> Result<Reply, Refusal> {
    let container = crate::tables::find(call.catalog, &change.table)?;
    let Change { table, kind, partition_key, row_key, op } = change;
    let (mut outcomes, receipt) = commit(call, &container, &partition_key, vec![op]).await?;
    let outcome = outcomes.pop().ok_or_else(|| Refusal::from(Own::NotFound))?;
    let written = Written { table: &table, kind, partition_key: &partition_key, row_key: &row_key };
    Ok(written.reply(call, &outcome, call.headers.prefer).receipt(receipt))
}

/// Writes operations of one logical partition, all or none.
pub(crate) async fn commit(
    call: &Call<'_>,
    container: &Arc<Container>,
    partition_key: &str,
    ops: Vec<Op>,
) -> Result<(Vec<Outcome>, orrery_cluster::Receipt), Refusal> {
    let reply = call.db.write(container, &key_of(partition_key), ops, &WriteOptions::default()).await?;
    Ok((reply.outcomes, reply.receipt))
}

/// A write that has been carried out.
pub(crate) struct Written<'a> {
    pub table: &'a str,
    pub kind: Kind,
    pub partition_key: &'a str,
    pub row_key: &'a str,
}

impl Written<'_> {
    pub fn reply(&self, call: &Call<'_>, outcome: &Outcome, prefer: Option<&str>) -> Reply {
        let time = outcome.item.header.time;
        let etag = moment::etag_of_written(time);
        if self.kind == Kind::Delete {
            return Reply::empty(StatusCode::NO_CONTENT);
        }
        if self.kind != Kind::Insert {
            return Reply::empty(StatusCode::NO_CONTENT).etag(&etag);
        }
        let location = format!(
            "{}{}(PartitionKey='{}',RowKey='{}')",
            call.base,
            self.table,
            encode_key(self.partition_key),
            encode_key(self.row_key)
        );
        let reply = match wants_no_content(prefer) {
            true => Reply::empty(StatusCode::NO_CONTENT),
            false => {
                let mut out = Vec::with_capacity(outcome.item.header.json_bytes as usize + 256);
                Renderer::new(call, self.table, None).single(&outcome.item.doc.root(), time, &mut out);
                Reply::new(StatusCode::CREATED, call.metadata.content_type(), out)
            }
        };
        reply.etag(&etag).location(&location).preference(prefer)
    }
}
