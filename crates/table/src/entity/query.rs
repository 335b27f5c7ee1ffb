//! Queries over the entities of a table.
//!
//! Entities come in the order of both keys. Within one partition that is the order in which items lie; over several, an
//! index of the two keys delivers it, merged. A table that was made by other means may lack that index; its entities
//! come in the order of the first key alone.

use std::sync::Arc;

use http::StatusCode;
use orrery_cluster::store::ItemHeader;
use orrery_cluster::{
    AccessChoice, Container, ErrorKind, ItemOrder, ItemProperties, OfferedIndexes, PageOptions, QueryPage,
    Scope,
};
use orrery_query::ast::{Direction, Expr, ExprKind, OrderBy, OrderItem};
use orrery_query::{
    Indexes, Parameters as Values, Program, SystemField, SystemValue, Vocabulary, compile_ast,
};

use super::rows::{EntityRows, ITEM, MANNER, WRITTEN, manner_of};
use super::{Renderer, key_of};
use crate::edm;
use crate::errors::{Own, Refusal};
use crate::filter::{self, Filter, Names};
use crate::gateway::Call;
use crate::limits::{PAGE_ENTITIES_DEFAULT, PAGE_ENTITIES_MAX, PAGE_TIME_MAX, SELECTED_MAX};
use crate::respond::{NEXT_PARTITION_KEY, NEXT_ROW_KEY, Reply};
use crate::tables::{query_of, top};
use crate::{continuation, tables};

/// What a program calls the manner in which its rows are shown.
const MANNER_GIVEN: &str = "@manner";

/// Entities have no properties besides those that are stored; the time of the last write is asked for by a function.
#[derive(Debug)]
struct NoProperties;

impl ItemProperties for NoProperties {
    fn read(&self, _: &Container, _: &ItemHeader, _: SystemField) -> SystemValue {
        SystemValue::Absent
    }

    fn write_json(&self, _: &Container, _: &ItemHeader, _: &mut Vec<u8>) {}
}

pub(crate) async fn run(call: &Call<'_>, table: &str) -> Result<Reply, Refusal> {
    let container = tables::find(call.catalog, table)?;
    let filter = call.parameters.get("$filter").map(filter::parse).transpose()?;
    let selected = selected(call)?;
    let renderer = Renderer::new(call, table, selected.as_deref());
    let top = top(call, PAGE_ENTITIES_DEFAULT)?.min(PAGE_ENTITIES_MAX);
    let continuation = call.parameters.get("NextPartitionKey").map(continuation::read).transpose()?;
    if let (Some((partition_key, row_key)), None) = (filter.as_ref().and_then(Filter::key), &continuation) {
        return by_key(call, &container, partition_key, row_key, &renderer).await;
    }
    let filter = restricted(filter, call.grant.restriction());
    let scope = match filter.as_ref().and_then(|filter| filter.pinned("PartitionKey")) {
        Some(partition_key) => Scope::Key(key_of(partition_key)),
        None => Scope::Container,
    };
    // All entities of a partition pass a filter that asks for the partition and nothing else.
    let is_asked = |filter: &&Filter| matches!(scope, Scope::Container) || !filter.only_pins("PartitionKey");
    let program = program_of(
        &container,
        filter.as_ref().filter(is_asked),
        &renderer,
        matches!(scope, Scope::Container),
    )?;
    let options = PageOptions {
        items_max: top,
        bytes_max: call.page_bytes,
        time_max: PAGE_TIME_MAX,
        continuation,
        consistency: call.db.account().consistency,
        session: None,
        access: AccessChoice::Auto,
        properties: Some(&NoProperties),
        order: ItemOrder::Keys,
    };
    let page: QueryPage<EntityRows> = match &scope {
        Scope::Container => call.db.query_merged_into(&container, &scope, &program, &options).await,
        _ => call.db.query_into(&container, &scope, &program, &options).await,
    }
    .map_err(refused)?;
    let reply = shown(call, &renderer, page.rows).receipt(page.receipt);
    Ok(match page.continuation {
        Some(cursor) => reply
            .header(NEXT_PARTITION_KEY, &continuation::write(&cursor))
            .header(NEXT_ROW_KEY, continuation::NO_ROW_KEY),
        None => reply,
    })
}

/// The only entity that can pass a filter is read as any other that is asked for by its key.
async fn by_key(
    call: &Call<'_>,
    container: &Arc<Container>,
    partition_key: &str,
    row_key: &str,
    renderer: &Renderer<'_>,
) -> Result<Reply, Refusal> {
    // What the sender may not see is not among what a query shows, which is no error.
    if call.grant.check_key(partition_key, row_key).is_err() {
        return Ok(shown(call, renderer, EntityRows::default()));
    }
    match super::read(call, container, partition_key, row_key).await {
        Ok((item, receipt)) => {
            let mut rows = EntityRows::default();
            rows.show(renderer, &item.doc.root(), item.header.time);
            Ok(shown(call, renderer, rows).receipt(receipt))
        }
        Err(refusal) if refusal.is_absence() => {
            let reply = shown(call, renderer, EntityRows::default());
            Ok(match refusal.receipt() {
                Some(receipt) => reply.receipt(receipt.clone()),
                None => reply,
            })
        }
        Err(refusal) => Err(refusal),
    }
}

/// The list that a query is answered with.
fn shown(call: &Call<'_>, renderer: &Renderer<'_>, mut rows: EntityRows) -> Reply {
    Reply::new(StatusCode::OK, call.metadata.content_type(), rows.take_body(renderer))
}

/// A continuation that is none of ours is the only thing that a client can do wrong here.
fn refused(error: orrery_cluster::Error) -> Refusal {
    match error.kind {
        ErrorKind::CursorMismatch => Own::BadAddress.into(),
        _ => error.into(),
    }
}

fn restricted(filter: Option<Filter>, restriction: Option<Filter>) -> Option<Filter> {
    match (filter, restriction) {
        (Some(filter), Some(restriction)) => Some(Filter::And(vec![filter, restriction])),
        (one, other) => one.or(other),
    }
}

/// `SELECT VALUE {"e": c, "w": WRITTENAT(c), "m": @manner} FROM c WHERE … [ORDER BY c["$pk"], c.id]`
fn program_of(
    container: &Arc<Container>,
    filter: Option<&Filter>,
    renderer: &Renderer<'_>,
    ordered: bool,
) -> Result<Program, Refusal> {
    let item = || Expr::name("c");
    let mut row = vec![(ITEM, item()), (WRITTEN, Expr::call("WRITTENAT", vec![item()]))];
    let mut values = Values::default();
    if let Some(manner) = manner_of(renderer) {
        values.set(MANNER_GIVEN, manner.root());
        row.push((MANNER, Expr::made(ExprKind::Parameter(MANNER_GIVEN.to_owned()))));
    }
    let condition = filter.map(|filter| filter::condition(filter, Names::Entities)).transpose()?;
    let mut query = query_of(Expr::object(row), condition);
    if ordered {
        let by = |name: &str| OrderItem { expr: item().member(name), direction: Some(Direction::Ascending) };
        let mut items = vec![by(edm::PARTITION_KEY)];
        if has_key_index(container) {
            items.push(by(edm::ROW_KEY));
        }
        query.order_by = Some(OrderBy::Items(items));
    }
    Ok(compile_ast(query, &values, &Vocabulary::default())?)
}

/// Whether an index of the container delivers the order of both keys.
fn has_key_index(container: &Container) -> bool {
    let path = |name: &str| orrery_query::IndexPath::of_names(&[name]);
    let wanted = [path(edm::PARTITION_KEY), path(edm::ROW_KEY)];
    OfferedIndexes::Defined(&container.definition.indexing).composites().iter().any(|parts| {
        parts.len() == wanted.len()
            && parts
                .iter()
                .zip(&wanted)
                .all(|((path, direction), wanted)| path == wanted && *direction == Direction::Ascending)
    })
}

/// The names in `$select`.
pub(crate) fn selected(call: &Call<'_>) -> Result<Option<Vec<String>>, Refusal> {
    let Some(text) = call.parameters.get("$select").filter(|text| text.trim() != "*") else {
        return Ok(None);
    };
    let mut names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.len() > SELECTED_MAX || names.iter().any(String::is_empty) {
        return Err(Refusal::bad_address());
    }
    // What an entity lacks is shown for each name, and an object has a name once.
    names.sort_unstable();
    names.dedup();
    Ok(Some(names))
}
