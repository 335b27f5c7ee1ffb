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
use orrery_doc::json;
use orrery_query::ast::{Direction, Expr, OrderBy, OrderItem};
use orrery_query::{
    Documents, Indexes, Parameters as Values, Program, SystemField, SystemValue, Vocabulary, compile_ast,
};

use super::{Renderer, key_of};
use crate::edm;
use crate::errors::{Own, Refusal};
use crate::filter::{self, Filter, Names};
use crate::gateway::Call;
use crate::limits::{PAGE_ENTITIES_DEFAULT, PAGE_ENTITIES_MAX, PAGE_TIME_MAX, SELECTED_MAX};
use crate::metadata::Metadata;
use crate::respond::{NEXT_PARTITION_KEY, NEXT_ROW_KEY, Reply};
use crate::tables::{query_of, top};
use crate::{continuation, tables};

/// The names in which a row holds the item and the time of its last write.
const ITEM: &str = "e";
const WRITTEN: &str = "w";

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
    let filter = restricted(filter, call.grant.restriction());
    let selected = selected(call)?;
    let top = top(call, PAGE_ENTITIES_DEFAULT)?.min(PAGE_ENTITIES_MAX);
    let scope = match filter.as_ref().and_then(|filter| filter.pinned("PartitionKey")) {
        Some(partition_key) => Scope::Key(key_of(partition_key)),
        None => Scope::Container,
    };
    let program = program_of(&container, filter.as_ref(), matches!(scope, Scope::Container))?;
    let continuation = call.parameters.get("NextPartitionKey").map(continuation::read).transpose()?;
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
    let page: QueryPage<Documents> = match &scope {
        Scope::Container => call.db.query_merged_into(&container, &scope, &program, &options).await,
        _ => call.db.query_into(&container, &scope, &program, &options).await,
    }
    .map_err(refused)?;
    let renderer = Renderer::new(call, table, selected.as_deref());
    let mut out = Vec::with_capacity(256 + page.rows.iter().map(|row| row.bytes().len()).sum::<usize>());
    out.push(b'{');
    if call.metadata != Metadata::None {
        out.extend_from_slice(b"\"odata.metadata\":");
        json::write_str(&format!("{}$metadata#{table}", call.base), &mut out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
    for (place, row) in page.rows.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let row = row.root();
        let written = row.get(WRITTEN).as_i64().and_then(|time| u64::try_from(time).ok()).unwrap_or_default();
        renderer.row(&row.get(ITEM), written, &mut out);
    }
    out.extend_from_slice(b"]}");
    let reply = Reply::new(StatusCode::OK, call.metadata.content_type(), out).receipt(page.receipt);
    Ok(match page.continuation {
        Some(cursor) => reply
            .header(NEXT_PARTITION_KEY, &continuation::write(&cursor))
            .header(NEXT_ROW_KEY, continuation::NO_ROW_KEY),
        None => reply,
    })
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

/// `SELECT VALUE {"e": c, "w": WRITTENAT(c)} FROM c WHERE … [ORDER BY c["$pk"], c.id]`
fn program_of(
    container: &Arc<Container>,
    filter: Option<&Filter>,
    ordered: bool,
) -> Result<Program, Refusal> {
    let item = || Expr::name("c");
    let row = Expr::object(vec![(ITEM, item()), (WRITTEN, Expr::call("WRITTENAT", vec![item()]))]);
    let condition = filter.map(|filter| filter::condition(filter, Names::Entities)).transpose()?;
    let mut query = query_of(row, condition);
    if ordered {
        let by = |name: &str| OrderItem { expr: item().member(name), direction: Some(Direction::Ascending) };
        let mut items = vec![by(edm::PARTITION_KEY)];
        if has_key_index(container) {
            items.push(by(edm::ROW_KEY));
        }
        query.order_by = Some(OrderBy::Items(items));
    }
    Ok(compile_ast(query, &Values::default(), &Vocabulary::default())?)
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
