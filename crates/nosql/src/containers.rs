//! Containers: create, read, replace, delete, list, query.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use orrery_cluster::store::Lsn;
use orrery_cluster::{Api, Container, ContainerDefinition, Database, Receipt, Served, ru};
use orrery_gateway::shapes::entity;

use crate::call::Call;
use crate::databases::{if_match, is_current};
use crate::envelope::{self, push_name, push_number, push_text};
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::items::key;
use crate::respond::{Reply, ResourceUsage};
use crate::{address, resource_query, throughput};

/// `/dbs/{db}/colls`
pub(crate) async fn feed(call: &Call<'_>, database: &Arc<Database>, body: Bytes) -> Result<Reply, Refusal> {
    let owner = Some(database.resource.rid);
    match *call.trace.method {
        Method::GET | Method::HEAD => {
            let rid = |container: &Arc<Container>| container.resource.rid;
            let show = |container: &Arc<Container>| render(call, container);
            let reply = envelope::list(call, owner, "DocumentCollections", database.containers(), rid, show)?;
            Ok(reply
                .charge("catalog read", ru::METADATA_READ)
                .in_catalog(call.db.catalog_lsn(), None)
                .usage(ResourceUsage::Containers(database.containers().count()))
                .in_database(database))
        }
        Method::POST if call.headers.is_query => {
            let rows = database.containers().map(|container| render(call, container));
            let reply = resource_query::serve(call, owner, "DocumentCollections", rows, &body).await?;
            Ok(reply.in_database(database))
        }
        Method::POST => create(call, database, &body).await,
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// `/dbs/{db}/colls/{coll}`
pub(crate) async fn one(call: &Call<'_>, container: &Arc<Container>, body: Bytes) -> Result<Reply, Refusal> {
    match *call.trace.method {
        Method::GET | Method::HEAD => Ok(show(call, container)),
        Method::PUT => replace(call, container, &body).await,
        Method::DELETE => {
            call.db.delete_container(container.resource.rid, if_match(call)).await?;
            let reply = Reply::empty(StatusCode::NO_CONTENT)
                .charge("catalog write", ru::METADATA_WRITE)
                .in_catalog(call.db.catalog_lsn(), None)
                .usage(ResourceUsage::Containers(left(call, container)));
            Ok(in_owner(call, container, reply))
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

async fn create(call: &Call<'_>, database: &Arc<Database>, body: &[u8]) -> Result<Reply, Refusal> {
    let doc = envelope::parse_body(body)?;
    let mut definition = as_client_knows(call, ContainerDefinition::parse(&doc)?);
    // Older clients of tables make them like this.
    if database.resource.id == entity::DATABASE && entity::is_table(&definition) {
        definition.api = Api::Table;
    }
    let throughput = throughput::requested(call)?;
    let container = call.db.create_container(database.resource.rid, definition, throughput).await?;
    let reply = written(call, &container, StatusCode::CREATED)
        .header(names::COLLECTION_PARTITION_INDEX, HeaderValue::from_static("0"))
        .header(names::COLLECTION_SERVICE_INDEX, HeaderValue::from_static("0"));
    let catalog = call.db.catalog();
    let has_offer = |target| catalog.offer_of(target).is_some();
    let shares = has_offer(database.resource.rid) && !has_offer(container.resource.rid);
    Ok(if shares { reply.header(names::SHARE_THROUGHPUT, HeaderValue::from_static("true")) } else { reply })
}

async fn replace(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let doc = envelope::parse_body(body)?;
    let id = envelope::required_id(&doc)?;
    if id != container.resource.id {
        return Err(Refusal::bad_request("Replacing a container cannot change its 'id'."));
    }
    let definition = as_client_knows(call, container.definition.replaced_by(&doc)?);
    let replaced = call.db.replace_container(container.resource.rid, definition, if_match(call)).await?;
    Ok(with_progress(call, &replaced, written(call, &replaced, StatusCode::OK)))
}

/// Clients of today know no kinds of index, though some send back those that they read: they neither see nor set any.
fn as_client_knows(call: &Call<'_>, mut definition: ContainerDefinition) -> ContainerDefinition {
    if !shows_index_kinds(call, &definition) {
        definition.body = definition.body_without_index_kinds();
    }
    definition
}

/// Whether the definition goes to the client as it is stored. Kinds of index are kept for containers without a key alone.
fn shows_index_kinds(call: &Call<'_>, definition: &ContainerDefinition) -> bool {
    !definition.has_system_key() || key::is_from_before_keys(call.headers)
}

/// Containers of the database once this one is gone.
fn left(call: &Call<'_>, container: &Container) -> usize {
    let owner = call.db.catalog().database(&container.database_id).cloned();
    owner.map_or(0, |database| database.containers().count())
}

/// How much of the index is there, in percent, while one is built for a changed policy: told to those who ask for quotas.
fn with_progress(call: &Call<'_>, container: &Container, reply: Reply) -> Reply {
    match call.headers.populate_quota {
        true => reply.header(names::INDEX_PROGRESS, HeaderValue::from(u16::from(container.index_progress()))),
        false => reply,
    }
}

fn show(call: &Call<'_>, container: &Arc<Container>) -> Reply {
    let etag = container.resource.etag;
    let mut reply = match is_current(call, etag) {
        true => Reply::empty(StatusCode::NOT_MODIFIED),
        false => Reply::ok(render(call, container)),
    };
    let mut receipt = receipt(container);
    if let Some(served) = &mut receipt.served {
        // The definition is older than all items: it was the first write there was.
        served.item_lsn = Some(served.lsn.min(Lsn(1)));
    }
    reply = reply.receipt(receipt).charge("catalog read", ru::METADATA_READ).etag(etag);
    if call.headers.populate_quota {
        reply = reply.usage(ResourceUsage::Container(container.usage()));
    }
    in_owner(call, container, with_progress(call, container, reply))
}

fn written(call: &Call<'_>, container: &Arc<Container>, status: StatusCode) -> Reply {
    let mut receipt = receipt(container);
    if let Some(served) = &mut receipt.served {
        served.item_lsn = Some(served.lsn);
    }
    let reply = Reply::new(status, render(call, container))
        .receipt(receipt)
        .charge("catalog write", ru::METADATA_WRITE)
        .etag(container.resource.etag);
    in_owner(call, container, reply)
}

fn in_owner(call: &Call<'_>, container: &Container, reply: Reply) -> Reply {
    match address::database(call.catalog, &container.database_id) {
        Some(database) => reply.in_database(&database),
        None => reply,
    }
}

/// A container answers with the state of its first partition.
fn receipt(container: &Container) -> Receipt {
    let served =
        container.ranges().first().map(|range| Served { range_id: range.id, lsn: range.lsn, item_lsn: None });
    Receipt { served, ..Receipt::default() }
}

fn render(call: &Call<'_>, container: &Container) -> Vec<u8> {
    let resource = &container.resource;
    let mut out = Vec::with_capacity(1024);
    let definition = &container.definition;
    match shows_index_kinds(call, definition) {
        true => envelope::begin_resource(resource, &definition.body, &mut out),
        false => envelope::begin_resource(resource, &definition.body_without_index_kinds(), &mut out),
    }
    push_text(&mut out, "_rid", &resource.rid.to_string());
    push_number(&mut out, "_ts", resource.ts);
    push_text(&mut out, "_self", &format!("dbs/{}/colls/{}/", container.database, resource.rid));
    push_text(&mut out, "_etag", &resource.etag.to_header());
    for (name, link) in [
        ("_docs", "docs/"),
        ("_sprocs", "sprocs/"),
        ("_triggers", "triggers/"),
        ("_udfs", "udfs/"),
        ("_conflicts", "conflicts/"),
    ] {
        push_text(&mut out, name, link);
    }
    if call.headers.populate_statistics {
        push_statistics(&mut out, container);
    }
    out.push(b'}');
    out
}

/// What each physical partition holds; the whole is divided evenly where the parts are not known.
fn push_statistics(out: &mut Vec<u8>, container: &Container) {
    let usage = container.usage();
    let ranges = container.ranges();
    let parts = ranges.len().max(1) as u64;
    push_name(out, "statistics");
    out.push(b'[');
    for (place, range) in ranges.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let text = format!(
            "{{\"id\":\"{}\",\"sizeInKB\":{},\"documentCount\":{},\"sampledDistinctPartitionKeyCount\":0,\
             \"partitionKeys\":[]}}",
            range.id,
            (usage.bytes / parts).div_ceil(1024),
            usage.items / parts,
        );
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b']');
}
