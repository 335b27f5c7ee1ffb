//! Items: what happens below `docs`.
//!
//! One path serves many operations, told apart by headers: a POST may create, upsert, query, ask for a query
//! plan, or carry a batch. This module only tells them apart; each family of operations has its own file.

mod batch;
mod batch_body;
mod batch_reply;
mod batch_rows;
mod body_rows;
pub(crate) mod bulk;
mod change_filter;
mod changes;
pub(crate) mod continuation;
mod diagnostics;
pub(crate) mod document;
mod feed;
pub(crate) mod key;
mod key_delete;
mod operation;
pub(crate) mod options;
mod patch;
pub(crate) mod point;
mod query;
mod query_metrics;
mod query_settings;
mod ranked;
pub(crate) mod render;
mod scope;
pub(crate) mod session;
pub(crate) mod shape;
mod system_properties;
pub(crate) mod told;
pub(crate) mod version;

use bytes::Bytes;
use http::Method;
use orrery_cluster::store::Target;
use orrery_cluster::{Container, Look, Rid};

pub(crate) use key::{parse as parse_key, starts_with as key_starts_with};
pub(crate) use key_delete::delete_key;
pub(crate) use patch::PatchError;
pub(crate) use scope::range_id;
pub(crate) use system_properties::PROPERTIES;

use crate::address::ContainerAddress;
use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::respond::Reply;
use crate::scripts;

/// Requests on `docs`.
pub(crate) async fn feed(call: &Call<'_>, address: &ContainerAddress, body: Bytes) -> Result<Reply, Refusal> {
    let container = &address.container;
    check_intended(call, container)?;
    let headers = call.headers;
    match *call.trace.method {
        Method::GET => feed::read(call, container).await,
        Method::POST if headers.asks_for_changes(call.trace.method) => {
            changes::read(call, container, headers.a_im.unwrap_or_default(), &body).await
        }
        Method::POST if headers.is_query_plan => query::plan(call, container, &body).await,
        Method::POST if headers.is_query => query::run(call, container, &body).await,
        // A write without its triggers would not be what the client asked for.
        Method::POST if headers.is_batch && !scripts::triggers(call).is_empty() => {
            Err(Refusal::unsupported("Triggers in a batch"))
        }
        Method::POST if headers.is_batch && headers.batch_atomic => batch::run(call, container, &body).await,
        Method::POST if headers.is_batch => bulk::run(call, container, &body).await,
        Method::POST => point::create(call, container, &body).await,
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// A GET of `docs/{item}`, which waits for nothing.
pub(crate) fn read(call: &Call<'_>, address: &ContainerAddress, item: &str) -> Result<Look<Reply>, Refusal> {
    check_intended(call, &address.container)?;
    let target = target(address, item)?;
    point::read(call, &address.container, &target)
}

/// Requests on `docs/{item}` that write it.
pub(crate) async fn write_one(
    call: &Call<'_>,
    address: &ContainerAddress,
    item: &str,
    body: Bytes,
) -> Result<Reply, Refusal> {
    let container = &address.container;
    check_intended(call, container)?;
    let target = target(address, item)?;
    match *call.trace.method {
        Method::PUT => point::replace(call, container, target, &body).await,
        Method::DELETE => point::delete(call, container, target).await,
        Method::PATCH => patch::run(call, container, target, &body).await,
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// A path made of RIDs names its item by RID too.
fn target(address: &ContainerAddress, item: &str) -> Result<Target, Refusal> {
    if !address.by_rid {
        return document::target(item);
    }
    let Some(number) = Rid::parse(item).and_then(|rid| {
        let is_inside = rid.container_part() == Some(address.container.resource.rid);
        rid.child_number().filter(|_| is_inside)
    }) else {
        return Err(Refusal::bad_request(
            "The item of a path made of resource ids must be a resource id too.",
        ));
    };
    Ok(Target::Rid(number))
}

/// A client that learnt the container's RID earlier may mean one that is gone. One that says that it does not encrypt
/// its items does not insist on it.
pub(crate) fn check_intended(call: &Call<'_>, container: &Container) -> Result<(), Refusal> {
    let insists = call.headers.is_client_encrypted != Some(false);
    match call.headers.intended_collection_rid {
        Some(intended) if insists && Rid::parse(intended) != Some(container.resource.rid) => {
            Err(Own::StaleCollectionRid.into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
