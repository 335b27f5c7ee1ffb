//! Tables: list, create, delete. A table is a container of the database that all tables are in.

use std::sync::Arc;

use http::StatusCode;
use orrery_cluster::{Api, Catalog, Container, ContainerDefinition, ErrorKind, ResourceKind, Throughput, ru};
use orrery_doc::{DocBuilder, json};
use orrery_gateway::shapes::entity;
use orrery_query::ast::{Binding, Collection, Expr, From, Query, Select, SelectSpec, Source, Span};
use orrery_query::{Context, Parameters as Values, Row, Vocabulary, compile_ast};

use crate::continuation;
use crate::errors::{Own, Refusal};
use crate::filter::{self, Names};
use crate::gateway::Call;
use crate::limits;
use crate::metadata::Metadata;
use crate::moment;
use crate::respond::{NEXT_TABLE_NAME, Reply, receipt};
use crate::router::check_table_name;

pub use orrery_gateway::shapes::entity::DATABASE;

/// RU/s of a table for which the client asks none.
const THROUGHPUT: u32 = 400;

/// The container of a table.
pub(crate) fn find(catalog: &Catalog, table: &str) -> Result<Arc<Container>, Refusal> {
    let found = catalog.database(DATABASE).and_then(|database| database.container(table));
    match found {
        Some(container) if is_table(container) => Ok(container.clone()),
        _ => Err(Own::NotFound.into()),
    }
}

/// Whether a container is a table: others may be in the database, made by other means.
fn is_table(container: &Container) -> bool {
    entity::is_table(&container.definition)
}

pub(crate) fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let filter = call.parameters.get("$filter").map(filter::parse).transpose()?;
    let program = filter.map(|filter| program_of(&filter)).transpose()?;
    let top = top(call, limits::PAGE_TABLES_MAX)?.min(limits::PAGE_TABLES_MAX);
    let from =
        call.parameters.get("NextTableName").map(continuation::unwrap).transpose()?.unwrap_or_default();
    let tables = call.catalog.database(DATABASE).into_iter().flat_map(|database| database.containers());
    let mut names: Vec<&str> = tables
        .filter(|container| is_table(container))
        .map(|container| container.resource.id.as_str())
        .collect();
    names.sort_unstable();
    let is_wanted = |name: &str| match &program {
        Some(program) => program.accepts(&Row::plain(row_of(name).as_ref()), &Context::at(0, 0)),
        None => Ok(true),
    };
    let mut page = Vec::new();
    let mut next = None;
    for name in names.into_iter().filter(|name| *name >= from.as_str()) {
        if !is_wanted(name)? {
            continue;
        }
        if page.len() == top {
            next = Some(name);
            break;
        }
        page.push(name);
    }
    let mut out = b"{".to_vec();
    if call.metadata != Metadata::None {
        out.extend_from_slice(b"\"odata.metadata\":");
        json::write_str(&format!("{}$metadata#Tables", call.base), &mut out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
    for (place, name) in page.into_iter().enumerate() {
        out.extend_from_slice(if place > 0 { b",{" } else { b"{" });
        write_table(call, name, &mut out);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    let reply = Reply::new(StatusCode::OK, call.metadata.content_type(), out)
        .receipt(receipt("catalog read", ru::METADATA_READ));
    Ok(match next {
        Some(name) => reply.header(NEXT_TABLE_NAME, &continuation::wrap(name)),
        None => reply,
    })
}

pub(crate) async fn create(call: &Call<'_>, body: &[u8]) -> Result<Reply, Refusal> {
    let doc =
        json::parse(body, limits::BODY_DEPTH_MAX).map_err(|_| Refusal::invalid(crate::errors::ONE_INPUT))?;
    let name = doc.root().get("TableName").as_str().unwrap_or_default().to_owned();
    check_table_name(&name)?;
    let throughput = throughput(call)?;
    let database = database(call).await?;
    let mut definition = ContainerDefinition::parse(&definition_of(&name))?;
    definition.api = Api::Table;
    let container = call.db.create_container(database, definition, throughput).await?;
    let location = format!("{}Tables('{}')", call.base, crate::entity::encode_key(&name));
    let reply = match call.headers.wants_no_content() {
        true => Reply::empty(StatusCode::NO_CONTENT),
        false => {
            let mut out = b"{".to_vec();
            if call.metadata != Metadata::None {
                out.extend_from_slice(b"\"odata.metadata\":");
                json::write_str(&format!("{}$metadata#Tables/@Element", call.base), &mut out);
                out.push(b',');
            }
            write_table(call, &name, &mut out);
            out.push(b'}');
            Reply::new(StatusCode::CREATED, call.metadata.content_type(), out)
        }
    };
    let made = container.resource.ts * orrery_cluster::store::TICKS_PER_SECOND;
    Ok(reply
        .location(&location)
        .etag(&moment::etag_of_written(made))
        .preference(call.headers.prefer)
        .receipt(receipt("catalog write", ru::METADATA_WRITE)))
}

pub(crate) async fn delete(call: &Call<'_>, table: &str) -> Result<Reply, Refusal> {
    let container = find(call.catalog, table)?;
    call.db.delete_container(container.resource.rid, None).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT).receipt(receipt("catalog write", ru::METADATA_WRITE)))
}

/// A GET of `Tables('t')`, by which clients ask whether there is one.
pub(crate) fn show(call: &Call<'_>, table: &str) -> Result<Reply, Refusal> {
    find(call.catalog, table)?;
    let mut out = b"{".to_vec();
    if call.metadata != Metadata::None {
        out.extend_from_slice(b"\"odata.metadata\":");
        json::write_str(&format!("{}$metadata#Tables/@Element", call.base), &mut out);
        out.push(b',');
    }
    write_table(call, table, &mut out);
    out.push(b'}');
    Ok(Reply::new(StatusCode::OK, call.metadata.content_type(), out)
        .receipt(receipt("catalog read", ru::METADATA_READ)))
}

/// How many rows a page may have: what the client asks for, up to a limit.
pub(crate) fn top(call: &Call<'_>, default: usize) -> Result<usize, Refusal> {
    match call.parameters.get("$top") {
        None => Ok(default),
        Some(text) => text.parse().ok().filter(|top| *top > 0).ok_or_else(Refusal::bad_address),
    }
}

fn write_table(call: &Call<'_>, name: &str, out: &mut Vec<u8>) {
    if call.metadata == Metadata::Full {
        let link = format!("Tables('{}')", crate::entity::encode_key(name));
        for (field, value) in [
            ("odata.type", format!("{}.Tables", call.account)),
            ("odata.id", format!("{}{link}", call.base)),
            ("odata.editLink", link),
        ] {
            json::write_str(field, out);
            out.push(b':');
            json::write_str(&value, out);
            out.push(b',');
        }
    }
    out.extend_from_slice(b"\"TableName\":");
    json::write_str(name, out);
}

/// The database of all tables, which is made with the first of them.
async fn database(call: &Call<'_>) -> Result<orrery_cluster::Rid, Refusal> {
    let found = || call.db.catalog_now().database(DATABASE).map(|database| database.resource.rid);
    if let Some(rid) = found() {
        return Ok(rid);
    }
    let mut body = DocBuilder::new();
    body.begin_object();
    body.name("id").str(DATABASE);
    body.end_object();
    let shared = call.shared_throughput.filter(|_| !call.db.account().serverless).map(Throughput::Manual);
    match call.db.create_database(DATABASE, body.finish(), shared).await {
        Ok(database) => Ok(database.resource.rid),
        // Another request was faster.
        Err(error) if matches!(error.kind, ErrorKind::AlreadyExists(ResourceKind::Database)) => {
            found().ok_or_else(|| Own::NotFound.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A container for entities: keys of full length, and an index by which entities come in the order of both keys.
fn definition_of(name: &str) -> orrery_doc::Doc {
    let mut text = b"{\"id\":".to_vec();
    json::write_str(name, &mut text);
    text.extend_from_slice(
        br#","partitionKey":{"paths":["/'$pk'"],"kind":"Hash","version":2},"indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"},{"path":"/\"$id\"/?"}],"compositeIndexes":[[{"path":"/\"$pk\"","order":"ascending"},{"path":"/id","order":"ascending"}]]}}"#,
    );
    json::parse(&text, limits::BODY_DEPTH_MAX).expect("the text is JSON")
}

fn throughput(call: &Call<'_>) -> Result<Option<Throughput>, Refusal> {
    if call.db.account().serverless {
        return match call.headers.throughput {
            None => Ok(None),
            Some(_) => Err(Refusal::invalid("Throughput cannot be set in serverless accounts.")),
        };
    }
    let units = match call.headers.throughput {
        None if call.shared_throughput.is_some() => return Ok(None),
        None => THROUGHPUT,
        Some(text) => {
            text.trim().parse().ok().filter(|units| *units >= THROUGHPUT && units % 100 == 0).ok_or_else(
                || Refusal::invalid("x-ms-offer-throughput must be a multiple of 100 and at least 400."),
            )?
        }
    };
    Ok(Some(Throughput::Manual(units)))
}

fn row_of(name: &str) -> orrery_doc::Doc {
    let mut row = DocBuilder::new();
    row.begin_object();
    row.name("TableName").str(name);
    row.end_object();
    row.finish()
}

fn program_of(filter: &filter::Filter) -> Result<orrery_query::Program, Refusal> {
    let condition = filter::condition(filter, Names::Tables)?;
    let query = query_of(Expr::name("c"), Some(condition));
    Ok(compile_ast(query, &Values::default(), &Vocabulary::default())?)
}

/// `SELECT VALUE … FROM c WHERE …`
pub(crate) fn query_of(value: Expr, filter: Option<Expr>) -> Query {
    let span = Span::default();
    let path = Collection::Path { root: "c".into(), steps: Vec::new(), span };
    let source = Source { collection: path, collection_span: span, binding: Binding::Implicit, span };
    let spec = SelectSpec::Value(Box::new(value));
    Query {
        select: Select { distinct: false, top: None, top_span: span, spec, span },
        from: Some(From { sources: vec![source] }),
        filter,
        group_by: Vec::new(),
        order_by: None,
        order_by_span: span,
        offset_limit: None,
        span,
    }
}
