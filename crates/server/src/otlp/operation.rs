//! What a request does, in the words of the conventions for databases, and on which container.

use std::borrow::Cow;

use http::{HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;

use crate::metrics::Speech;

/// The name of what a request does; none for pages of the server itself, such as probes.
pub fn of<B>(request: &Request<B>, speech: Speech) -> Option<&'static str> {
    let path = request.uri().path();
    if speech == Speech::Table {
        return Some(of_table(request.method(), path));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).take(7).collect();
    match parts.as_slice() {
        [] => Some("read_account"),
        ["dbs", ..] => Some(of_resource(request.method(), request.headers(), &parts)),
        ["offers", ..] => Some(of_feed(request.method(), request.headers(), parts.len() == 1, OFFERS)),
        ["_orrery", ..] => Some("manage"),
        _ => None,
    }
}

/// The names of the six things that are done with resources of a type.
type Names = [&'static str; 6];

const DATABASES: Names = [
    "create_database",
    "read_database",
    "replace_database",
    "delete_database",
    "query_databases",
    "read_all_databases",
];
const CONTAINERS: Names = [
    "create_container",
    "read_container",
    "replace_container",
    "delete_container",
    "query_containers",
    "read_all_containers",
];
const ITEMS: Names =
    ["create_item", "read_item", "replace_item", "delete_item", "query_items", "read_all_items"];
const OFFERS: Names = [
    "create_throughput",
    "read_throughput",
    "replace_throughput",
    "delete_throughput",
    "query_throughput",
    "read_all_throughput",
];
const SCRIPTS: Names =
    ["create_script", "read_script", "replace_script", "delete_script", "query_scripts", "read_all_scripts"];
const OTHERS: Names = [
    "create_resource",
    "read_resource",
    "replace_resource",
    "delete_resource",
    "query_resources",
    "read_all_resources",
];

fn of_resource(method: &Method, headers: &HeaderMap, parts: &[&str]) -> &'static str {
    let is_feed = parts.len() % 2 == 1;
    let kind = if is_feed { parts.last() } else { parts.get(parts.len() - 2) };
    let names = match kind {
        Some(&"dbs") => DATABASES,
        Some(&"colls") => CONTAINERS,
        Some(&"docs") => return of_item(method, headers, is_feed),
        Some(&"sprocs") if !is_feed && method == Method::POST => return "execute_stored_procedure",
        Some(&("sprocs" | "triggers" | "udfs")) => SCRIPTS,
        Some(&"pkranges") => return "read_partition_key_ranges",
        _ => OTHERS,
    };
    of_feed(method, headers, is_feed, names)
}

fn of_item(method: &Method, headers: &HeaderMap, is_feed: bool) -> &'static str {
    let says =
        |name: &str| headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    match *method {
        Method::POST if says("x-ms-cosmos-is-batch-request") => "execute_batch",
        Method::POST if says("x-ms-documentdb-is-upsert") => "upsert_item",
        Method::POST if says("x-ms-cosmos-is-query-plan-request") => "read_query_plan",
        Method::PATCH => "patch_item",
        Method::GET if is_feed && headers.contains_key("a-im") => "query_change_feed",
        _ => of_feed(method, headers, is_feed, ITEMS),
    }
}

fn of_feed(method: &Method, headers: &HeaderMap, is_feed: bool, names: Names) -> &'static str {
    let [create, read, replace, delete, query, read_all] = names;
    let kind = headers.get(http::header::CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let is_query =
        headers.contains_key("x-ms-documentdb-isquery") || kind.starts_with(b"application/query+json");
    match *method {
        Method::POST if is_query => query,
        Method::POST => create,
        Method::PUT => replace,
        Method::DELETE => delete,
        _ if is_feed => read_all,
        _ => read,
    }
}

fn of_table(method: &Method, path: &str) -> &'static str {
    let is_of_tables = path.starts_with("/Tables");
    match method.as_str() {
        "POST" if path.ends_with("/$batch") => "execute_batch",
        "POST" if is_of_tables => "create_table",
        "DELETE" if is_of_tables => "delete_table",
        "GET" if is_of_tables => "query_tables",
        "POST" => "insert_entity",
        "PUT" => "update_entity",
        "MERGE" | "PATCH" => "merge_entity",
        "DELETE" => "delete_entity",
        _ => "query_entities",
    }
}

/// The database and the container that a path names.
pub fn place(path: &str, speech: Speech) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    let decoded = |part: &'_ str| percent_decode_str(part).decode_utf8_lossy().into_owned().into();
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    if speech == Speech::Table {
        // `/orders(PartitionKey='…',RowKey='…')`; keys are nobody's business.
        let name = parts.next().map(|part| part.split('(').next().unwrap_or_default());
        let name = name.filter(|name| *name != "Tables" && !name.starts_with('$'));
        return (Some("TablesDB".into()), name.map(decoded));
    }
    if parts.next() != Some("dbs") {
        return (None, None);
    }
    let database = parts.next().map(decoded);
    let container = parts.next().filter(|kind| *kind == "colls").and(parts.next()).map(decoded);
    (database, container)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(method: &str, path: &str, headers: &[(&str, &str)], speech: Speech) -> Option<&'static str> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        of(&request.body(()).expect("a request"), speech)
    }

    #[test]
    fn requests_have_the_names_that_sdks_give_to_operations() {
        let items = "/dbs/d/colls/c/docs";
        for (method, path, headers, wanted) in [
            ("GET", "/dbs/d/colls/c/docs/1", &[][..], Some("read_item")),
            ("POST", items, &[], Some("create_item")),
            ("POST", items, &[("x-ms-documentdb-is-upsert", "True")], Some("upsert_item")),
            ("POST", items, &[("x-ms-documentdb-isquery", "True")], Some("query_items")),
            ("POST", items, &[("content-type", "application/query+json")], Some("query_items")),
            ("POST", items, &[("x-ms-cosmos-is-batch-request", "true")], Some("execute_batch")),
            ("GET", items, &[("a-im", "Incremental feed")], Some("query_change_feed")),
            ("GET", items, &[], Some("read_all_items")),
            ("PATCH", "/dbs/d/colls/c/docs/1", &[], Some("patch_item")),
            ("DELETE", "/dbs/d/colls/c/docs/1", &[], Some("delete_item")),
            ("POST", "/dbs/d/colls/c/sprocs/s", &[], Some("execute_stored_procedure")),
            ("GET", "/dbs/d/colls/c/pkranges", &[], Some("read_partition_key_ranges")),
            ("GET", "/dbs/d/colls/c", &[], Some("read_container")),
            ("POST", "/dbs", &[], Some("create_database")),
            ("GET", "/", &[], Some("read_account")),
            ("PUT", "/offers/x", &[], Some("replace_throughput")),
            ("GET", "/_orrery/server", &[], Some("manage")),
            ("GET", "/metrics", &[], None),
            ("GET", "/ready", &[], None),
            ("GET", "/_explorer/index.html", &[], None),
        ] {
            assert_eq!(named(method, path, headers, Speech::Http), wanted, "{method} {path}");
        }
        assert_eq!(named("POST", "/Tables", &[], Speech::Table), Some("create_table"));
        assert_eq!(
            named("MERGE", "/t(PartitionKey='a',RowKey='b')", &[], Speech::Table),
            Some("merge_entity")
        );
    }

    #[test]
    fn places_are_decoded_and_show_no_keys() {
        let of = |path: &str, speech| {
            let (database, container) = place(path, speech);
            (database.map(Cow::into_owned), container.map(Cow::into_owned))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("/dbs/a%20b/colls/%C3%A4/docs/secret", Speech::Http), (some("a b"), some("ä")));
        assert_eq!(of("/dbs/a", Speech::Http), (some("a"), None));
        assert_eq!(of("/dbs/a/users/u", Speech::Http), (some("a"), None));
        assert_eq!(of("/", Speech::Http), (None, None));
        assert_eq!(of("/t(PartitionKey='a',RowKey='b')", Speech::Table), (some("TablesDB"), some("t")));
        assert_eq!(of("/Tables('t')", Speech::Table), (some("TablesDB"), None));
    }
}
