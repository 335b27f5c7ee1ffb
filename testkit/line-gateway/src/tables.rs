//! Tables: containers with an order of terms, a placement, and indexes in that order.

use std::sync::Arc;

use orrery_cluster::{Api, Container, ContainerDefinition, Db, ErrorKind, ResourceKind, Throughput};
use orrery_doc::{Doc, DocBuilder, TermOrder, Value, json};

use crate::refusal::Refusal;

/// The database that all tables are in.
const DATABASE: &str = "lines";

/// What stands before the name of a field that is indexed: the computed property that is its key in the order of the table.
const KEY_OF: &str = "$key:";

pub fn find(db: &Db, name: &str) -> Result<Arc<Container>, Refusal> {
    let catalog = db.catalog();
    let found = catalog.database(DATABASE).and_then(|database| database.container(name));
    found.cloned().ok_or_else(|| Refusal { code: "MISSING", text: format!("there is no table '{name}'") })
}

/// Makes a table of one of two kinds: `bson` as MongoDB has them, `cql` as Cassandra has.
pub async fn make(
    db: &Db,
    name: &str,
    kind: &str,
    units: u32,
    keys: &[&str],
    indexed: &[&str],
) -> Result<Arc<Container>, Refusal> {
    let (api, order, placement) = match kind {
        "bson" => (Api::Mongo, TermOrder::Bson, "Exact"),
        "cql" => (Api::Cassandra, TermOrder::Cql, "Token"),
        other => return Err(Refusal::wrong(format!("a table is of kind 'bson' or 'cql', not '{other}'"))),
    };
    let body = body_of(name, kind, placement, keys, indexed);
    let definition = ContainerDefinition::of_api(api, order, &body)?;
    let database = match db.create_database(DATABASE, name_of(DATABASE), None).await {
        Ok(database) => database.resource.rid,
        Err(error) if matches!(error.kind, ErrorKind::AlreadyExists(ResourceKind::Database)) => {
            let known = db.catalog().database(DATABASE).map(|database| database.resource.rid);
            known.ok_or_else(|| Refusal::from(error))?
        }
        Err(error) => return Err(error.into()),
    };
    Ok(db.create_container(database, definition, Some(Throughput::Manual(units))).await?)
}

fn name_of(name: &str) -> Doc {
    let mut body = DocBuilder::new();
    body.begin_object().name("id").str(name).end_object();
    body.finish()
}

/// The definition: nothing is indexed but the keys of the fields that were asked for.
fn body_of(name: &str, order: &str, placement: &str, keys: &[&str], indexed: &[&str]) -> Doc {
    let quoted = |text: &str| {
        let mut out = Vec::new();
        json::write_str(text, &mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    };
    let path = |name: &str, end: &str| quoted(&format!("/{}{end}", quoted(name)));
    let listed = |entries: Vec<String>| entries.join(",");
    let computed = indexed.iter().map(|field| {
        let query = format!("SELECT VALUE ORDERKEY('{order}', c[{}]) FROM c", quoted(field));
        format!("{{\"name\":{},\"query\":{}}}", quoted(&key_name(field)), quoted(&query))
    });
    let included = indexed.iter().map(|field| format!("{{\"path\":{}}}", path(&key_name(field), "/?")));
    let text = format!(
        "{{\"id\":{},\"partitionKey\":{{\"paths\":[{}],\"kind\":\"{placement}\"}},\"computedProperties\":[{}],\
         \"indexingPolicy\":{{\"includedPaths\":[{}],\"excludedPaths\":[{{\"path\":\"/*\"}}]}}}}",
        quoted(name),
        listed(keys.iter().map(|key| path(key, "")).collect()),
        listed(computed.collect()),
        listed(included.collect()),
    );
    json::parse(text.as_bytes(), 8).expect("the text is JSON")
}

pub fn key_name(field: &str) -> String {
    format!("{KEY_OF}{field}")
}

/// Whether the table has an index of a field in its order.
pub fn has_index(table: &Container, field: &str) -> bool {
    let is_its_key = |name: &str| name.strip_prefix(KEY_OF) == Some(field);
    table.definition.vocabulary().is_ok_and(|vocabulary| vocabulary.computed_names().any(is_its_key))
}

/// The name of a table's order in queries.
pub fn order_name(table: &Container) -> &'static str {
    match table.definition.order {
        TermOrder::Sql => "sql",
        TermOrder::Bson => "bson",
        TermOrder::Cql => "cql",
    }
}

/// The texts of an argument that is a list of them.
pub fn texts(list: Value<'_>) -> Vec<&str> {
    list.as_array().into_iter().flat_map(|list| list.iter()).filter_map(|text| text.as_str()).collect()
}
