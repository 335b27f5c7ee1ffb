//! Databases: create, read, delete, list, query.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use orrery_cluster::store::Etag;
use orrery_cluster::{Database, ru};

use crate::call::Call;
use crate::envelope::{self, push_number, push_text};
use crate::errors::{Own, Refusal};
use crate::respond::{Reply, ResourceUsage};
use crate::{address, resource_query, throughput};

/// `/dbs`
pub(crate) async fn feed(call: &Call<'_>, body: Bytes) -> Result<Reply, Refusal> {
    match *call.trace.method {
        Method::GET | Method::HEAD => list(call),
        Method::POST if call.headers.is_query => {
            let rows = call.catalog.databases().map(|database| render(database));
            resource_query::serve(call, None, "Databases", rows, &body).await
        }
        Method::POST => create(call, &body).await,
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// `/dbs/{db}`
pub(crate) async fn one(call: &Call<'_>, text: &str) -> Result<Reply, Refusal> {
    let database = address::database(call.catalog, text).ok_or(Own::NotFound)?;
    match *call.trace.method {
        Method::GET | Method::HEAD => Ok(show(call, &database, StatusCode::OK)),
        Method::DELETE => {
            call.db.delete_database(database.resource.rid, if_match(call)).await?;
            let left = call.db.catalog().databases().count();
            Ok(Reply::empty(StatusCode::NO_CONTENT)
                .charge("catalog write", ru::METADATA_WRITE)
                .in_catalog(call.db.catalog_lsn(), None)
                .usage(ResourceUsage::Databases(left)))
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let catalog = call.catalog;
    let (databases, containers) = (catalog.databases().count(), catalog.containers().count());
    let rid = |database: &Arc<Database>| database.resource.rid;
    let reply =
        envelope::list(call, None, "Databases", catalog.databases(), rid, |database| render(database))?;
    Ok(reply
        .charge("catalog read", ru::METADATA_READ)
        .in_catalog(call.db.catalog_lsn(), None)
        .usage(ResourceUsage::Account { databases, containers }))
}

async fn create(call: &Call<'_>, body: &[u8]) -> Result<Reply, Refusal> {
    let doc = envelope::parse_body(body)?;
    let id = envelope::required_id(&doc)?;
    orrery_cluster::catalog::check_name(id)?;
    let throughput = throughput::requested(call)?;
    let id = id.to_owned();
    let database = call.db.create_database(&id, doc, throughput).await?;
    let mut reply = show(call, &database, StatusCode::CREATED);
    reply = reply.charge("catalog write", ru::METADATA_WRITE);
    Ok(reply.usage(ResourceUsage::Databases(call.db.catalog().databases().count())))
}

fn show(call: &Call<'_>, database: &Database, status: StatusCode) -> Reply {
    let etag = database.resource.etag;
    if status == StatusCode::OK && is_current(call, etag) {
        return Reply::empty(StatusCode::NOT_MODIFIED).charge("catalog read", ru::METADATA_READ).etag(etag);
    }
    let resource_lsn = (status == StatusCode::OK).then_some(database.resource.lsn);
    Reply::new(status, render(database))
        .charge("catalog read", ru::METADATA_READ)
        .in_catalog(call.db.catalog_lsn(), resource_lsn)
        .etag(etag)
        .usage(ResourceUsage::Databases(call.catalog.databases().count()))
}

fn render(database: &Database) -> Vec<u8> {
    let resource = &database.resource;
    let mut out = Vec::with_capacity(256);
    envelope::begin_resource(resource, &resource.body, &mut out);
    push_text(&mut out, "_rid", &resource.rid.to_string());
    push_text(&mut out, "_self", &format!("dbs/{}/", resource.rid));
    push_text(&mut out, "_etag", &resource.etag.to_header());
    push_text(&mut out, "_colls", "colls/");
    push_text(&mut out, "_users", "users/");
    push_number(&mut out, "_ts", resource.ts);
    out.push(b'}');
    out
}

/// Whether the client's `If-None-Match` names the current version.
pub(crate) fn is_current(call: &Call<'_>, etag: Etag) -> bool {
    call.headers.if_none_match.is_some_and(|text| text == "*" || Etag::parse(text) == Some(etag))
}

/// The version that the client insists on. One that no resource can have matches none.
pub(crate) fn if_match(call: &Call<'_>) -> Option<Etag> {
    let text = call.headers.if_match.filter(|text| text.trim() != "*")?;
    Some(Etag::parse(text).unwrap_or(Etag(u64::MAX)))
}
