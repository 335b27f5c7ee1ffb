//! Deleting all items of one logical partition.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use orrery_cluster::limits::BATCH_OPS_MAX;
use orrery_cluster::store::{Action, Fault, Item, Op, OpError, Precondition, Target};
use orrery_cluster::{Container, Cursor, Error, ErrorKind, PageOptions, Receipt, Scope};

use crate::address::ContainerAddress;
use crate::call::Call;
use crate::errors::Refusal;
use crate::headers::names;
use crate::items::{check_intended, document, key, options};
use crate::respond::Reply;

/// Deletes page after page. When the budget ends, the client is told to wait and asks again, which goes on
/// where this stopped.
pub(crate) async fn delete_key(call: &Call<'_>, address: &ContainerAddress) -> Result<Reply, Refusal> {
    let container = &address.container;
    check_intended(call, container)?;
    let key = key::of_request(&container.definition.key, key::named(&container.definition, call.headers))?;
    let account = call.db.account().consistency;
    let options = options::write(call.headers, account)?;
    let mut total = Receipt::default();
    let mut continuation: Option<Cursor> = None;
    let mut items_max = BATCH_OPS_MAX;
    loop {
        let from = continuation;
        let page = PageOptions {
            items_max,
            continuation: from.clone(),
            ..options::page(call.headers, account, call.page_bytes)?
        };
        let page = call.db.read_feed(container, &Scope::Key(key.clone()), &page).await?;
        add(&mut total, page.receipt);
        let ops: Vec<Op> = page.items.iter().map(delete).collect();
        if !ops.is_empty() {
            match call.db.write(container, &key, ops, &options).await {
                Ok(reply) => add(&mut total, reply.receipt),
                // Together they would hold too much; one alone never does.
                Err(Error { kind: ErrorKind::Fault { fault: Fault::TooMuchMemory { .. }, .. }, .. })
                    if page.items.len() > 1 =>
                {
                    items_max = page.items.len() / 2;
                    continuation = from;
                    continue;
                }
                // Another client deleted an item meanwhile: look at the same page again.
                Err(Error { kind: ErrorKind::Op { error: OpError::NotFound, .. }, .. }) => {
                    continuation = from;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
        }
        continuation = page.continuation;
        if continuation.is_none() {
            return Ok(done(container, total));
        }
    }
}

fn done(container: &Arc<Container>, total: Receipt) -> Reply {
    // The service deletes in the background and says so; here nothing is left to do.
    Reply::empty(StatusCode::OK)
        .header(names::KEY_DELETE_PENDING, HeaderValue::from_static("false"))
        .receipt(total)
        .in_container(container)
}

fn delete(item: &Item) -> Op {
    let id = document::stored_id(item);
    Op {
        target: Target::Id(id),
        action: Action::Delete,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

fn add(total: &mut Receipt, part: Receipt) {
    total.charge.merge(part.charge);
    total.served = part.served.or(total.served);
}
