//! Operations on one item: create, upsert, read, replace, delete.

use std::sync::Arc;

use http::StatusCode;
use orrery_cluster::store::{Action, Effect, Item, ItemId, Op, Precondition, Target};
use orrery_cluster::{Container, Error, ErrorKind, Look, ReadReply, WriteReply};
use orrery_doc::PartitionKey;

use crate::access::ItemAct;
use crate::binary_json::encode;
use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::items::document::{self, ItemBody};
use crate::items::render::Renderer;
use crate::items::version::Version;
use crate::items::{key, options, shape};
use crate::respond::Reply;
use crate::scripts;

/// Waits for nothing: where the item is not here yet, the caller looks again later.
pub(crate) fn read(
    call: &Call<'_>,
    container: &Arc<Container>,
    target: &Target,
) -> Result<Look<Reply>, Refusal> {
    let key = key::of_request(&container.definition.key, key::named(&container.definition, call.headers))?;
    let options = options::read(call.headers, call.db.account().consistency)?;
    let found = call.db.read_now(container, &key, target, &options)?;
    Ok(found.map(|reply| read_reply(call, container, reply)))
}

fn read_reply(call: &Call<'_>, container: &Arc<Container>, found: ReadReply) -> Reply {
    let answer = match found.not_modified {
        true => Reply::empty(StatusCode::NOT_MODIFIED),
        false => Reply::ok(shown(call, container, &found.item)),
    };
    answer.etag(Version::of(container, &found.item.header)).receipt(found.receipt).in_container(container)
}

/// A single item as the client wants it: without links, if it was written so too, and in the form that it understands.
pub(crate) fn shown(call: &Call<'_>, container: &Container, item: &Item) -> Vec<u8> {
    let may_unlink = call.headers.exclude_system_properties && item.header.is_unlinked();
    let text = Renderer::new(container).without_links(may_unlink).item(item);
    if call.headers.accepts_binary { encode::of_text(&text) } else { text }
}

/// A POST of a document creates it, or with a header replaces what has its id.
pub(crate) async fn create(
    call: &Call<'_>,
    container: &Arc<Container>,
    body: &[u8],
) -> Result<Reply, Refusal> {
    let item = ItemBody::parse(body)?;
    shape::check(container.definition.api, &item.doc)?;
    let key =
        key::of_written(&container.definition, key::named(&container.definition, call.headers), &item.doc)?;
    let act = if call.headers.is_upsert { ItemAct::Upsert } else { ItemAct::Create };
    call.grant.check(act, &key)?;
    let target = Target::Id(item.id);
    let op = match call.headers.is_upsert {
        true => op(call, container, target, Action::Upsert(item.doc)),
        // Whether an item with the id exists already is all that a create asks.
        false => {
            let op = op(call, container, target, Action::Create(item.doc));
            Op { precondition: Precondition::None, ..op }
        }
    };
    write(call, container, &key, vec![op]).await
}

/// A replace may also change the id; the item then moves there and keeps its RID.
pub(crate) async fn replace(
    call: &Call<'_>,
    container: &Arc<Container>,
    target: Target,
    body: &[u8],
) -> Result<Reply, Refusal> {
    let item = ItemBody::parse(body)?;
    shape::check(container.definition.api, &item.doc)?;
    let named = key::named(&container.definition, call.headers);
    let key = match key::of_written(&container.definition, named, &item.doc) {
        Err(Refusal::Own(Own::KeyMismatch)) => return Err(misplaced(call, container, named, target).await),
        key => key?,
    };
    call.grant.check(ItemAct::Replace, &key)?;
    let old_id = match &target {
        Target::Id(id) => id.clone(),
        Target::Rid(_) => stored_id(call, container, &key, &target).await?,
    };
    let action = match old_id == item.id {
        true => Action::Replace(item.doc),
        false => Action::Rename { id: item.id, doc: item.doc },
    };
    let op = op(call, container, target, action);
    write(call, container, &key, vec![op]).await
}

/// Why a document that belongs elsewhere replaces nothing: there is nothing to replace, or else that.
async fn misplaced(
    call: &Call<'_>,
    container: &Arc<Container>,
    named: Option<&str>,
    target: Target,
) -> Refusal {
    let attempt = async {
        let key = key::of_request(&container.definition.key, named)?;
        call.grant.check(ItemAct::Replace, &key)?;
        let wrong = op(call, container, target, Action::Wrong { needs_item: true });
        let options = options::write(call.headers, call.db.account().consistency)?;
        call.db.write(container, &key, vec![wrong], &options).await.map_err(Refusal::from)
    };
    match attempt.await {
        Ok(_) => Own::KeyMismatch.into(),
        Err(Refusal::Db(error)) if error.is_wrong_op() => {
            Refusal::Db(Error { kind: ErrorKind::KeyMismatch, ..error })
        }
        Err(refusal) => refusal,
    }
}

pub(crate) async fn delete(
    call: &Call<'_>,
    container: &Arc<Container>,
    target: Target,
) -> Result<Reply, Refusal> {
    let key = key::of_request(&container.definition.key, key::named(&container.definition, call.headers))?;
    let op = op(call, container, target, Action::Delete);
    write(call, container, &key, vec![op]).await
}

/// An operation under the conditions that the request's headers name.
pub(crate) fn op(call: &Call<'_>, container: &Container, target: Target, action: Action) -> Op {
    Op {
        target,
        action,
        precondition: options::precondition(call.headers.if_match, call.headers.if_none_match),
        indexed: options::is_indexed(call.headers.indexing_directive, shape::is_automatic(container)),
        unlinked: call.headers.exclude_system_properties,
    }
}

/// Writes and answers with the last operation's item.
pub(crate) async fn write(
    call: &Call<'_>,
    container: &Arc<Container>,
    key: &PartitionKey,
    ops: Vec<Op>,
) -> Result<Reply, Refusal> {
    let triggers = scripts::triggers(call);
    if !triggers.is_empty() {
        let op = ops.into_iter().next().ok_or(ErrorKind::Unsupported("A write without operations"))?;
        return Box::pin(scripts::write(call, container, key, op, &triggers)).await;
    }
    let options = options::write(call.headers, call.db.account().consistency)?;
    let WriteReply { mut outcomes, receipt, .. } = call.db.write(container, key, ops, &options).await?;
    let outcome = outcomes.pop().ok_or(ErrorKind::Unsupported("A write without operations"))?;
    let status = status(outcome.effect);
    let version = Version::of(container, &outcome.item.header);
    let reply = match outcome.effect {
        Effect::Deleted | Effect::NotModified | Effect::Absent => Reply::empty(status),
        _ if call.headers.minimal_response => Reply::empty(status).etag(version),
        _ => Reply::new(status, shown(call, container, &outcome.item)).etag(version),
    };
    Ok(reply.receipt(receipt).in_container(container))
}

/// How an operation that succeeded shows itself, alone or in a batch.
pub(crate) fn status(effect: Effect) -> StatusCode {
    match effect {
        Effect::Created => StatusCode::CREATED,
        Effect::Replaced | Effect::Read | Effect::Unchanged => StatusCode::OK,
        Effect::Deleted | Effect::Absent => StatusCode::NO_CONTENT,
        Effect::NotModified => StatusCode::NOT_MODIFIED,
    }
}

/// The id of an item that the client named by RID.
async fn stored_id(
    call: &Call<'_>,
    container: &Arc<Container>,
    key: &PartitionKey,
    target: &Target,
) -> Result<ItemId, Refusal> {
    let options = options::read(call.headers, call.db.account().consistency)?;
    let options = orrery_cluster::ReadOptions { precondition: Precondition::None, ..options };
    let reply = call.db.read(container, key, target, &options).await?;
    Ok(document::stored_id(&reply.item))
}
