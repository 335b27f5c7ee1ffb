//! The matrix itself.

use std::collections::HashSet;

use super::*;
use crate::auth::{Bound, Claim};
use crate::router::RouteKind;

/// Requests that each route gets. Those behind the bar differ on items only.
const OPERATIONS: [&str; 13] = [
    "GET",
    "POST",
    "QUERY",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "UPSERT",
    "CHANGES",
    "PLAN",
    "BATCH",
    "BULK",
    "TYPED QUERY",
];

/// The columns, in this order: a read-write key, the second one counting as the same; a read-only key; permissions to
/// read and to do all on the container, on an item, on a key of the container, the last once more with requests that
/// name another key; all on a procedure; all on another container; roles: reader of the account, contributor of the
/// database, one that reads and queries items of the container, contributor of another database; no role.
///
/// A dot passes. F is 403 without a number, N 403/5300, M 403/5301, D 403/5302.
const MATRIX: &str = "
Account         GET                     ...............M
Account         POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Databases       GET,QUERY               ..FFFFFFFFF.MMMM
Databases       POST,PUT,PATCH,DELETE   .FFFFFFFFFFNNNNN
Database        GET                     ..FFFFFFFFF..MMM
Database        POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Containers      GET,QUERY               ..FFFFFFFFF..MMM
Containers      POST,PUT,PATCH,DELETE   .FFFFFFFFFFNNNNN
Container       GET                     ..........F...MM
Container       POST,QUERY,PUT,PATCH,DELETE  .FF.FFFFFFFNNNNN
Items           GET,HEAD,CHANGES        ....FF..FFF..DDD
Items           QUERY                   ....FF..FFF...DD
Items           PLAN                    ..........F...DD
Items           POST,UPSERT             .FF.FFF.FFFD.DDD
Items           BATCH,BULK              .FF.FFF.FFFF.FDD
Items           PUT,PATCH,DELETE        .FF.FFF.FFFNNNNN
Item            GET                     ........FFF...DD
Item            PUT,PATCH,DELETE        .FF.F.F.FFFD.DDD
Item            POST,QUERY              .FF.F.F.FFFNNNNN
Ranges          GET                     ..........F...MM
Ranges          QUERY                   ....FFFFFFFNNNNN
Ranges          POST,PUT,PATCH,DELETE   .FF.FFFFFFFNNNNN
Conflicts       GET,QUERY               ....FF..FFFD.DDD
Conflicts       POST,PUT,PATCH,DELETE   .FF.FFF.FFFNNNNN
Conflict        GET                     ....FF..FFFD.DDD
Conflict        DELETE                  .FF.FFF.FFFD.DDD
Conflict        POST,QUERY,PUT,PATCH    .FF.FFF.FFFNNNNN
KeyDelete       GET,POST,QUERY,PUT,PATCH,DELETE  .FF.FFF.FFFD.DDD
Users           GET,QUERY               ..FFFFFFFFFNNNNN
Users           POST,PUT,PATCH,DELETE   .FFFFFFFFFFNNNNN
User            GET                     ..FFFFFFFFFNNNNN
User            POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
EncryptionKeys  GET,QUERY               ..FFFFFFFFF..MMM
EncryptionKeys  POST,PUT,PATCH,DELETE   .FFFFFFFFFFNNNNN
EncryptionKey   GET                     ..FFFFFFFFF..MMM
EncryptionKey   POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Permissions     GET,POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Permission      GET,POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Procedures      GET,QUERY               ....FFFFFFFNNNNN
Procedures      POST,PUT,PATCH,DELETE   .FF.FFFFFFFNNNNN
Procedure       GET                     ....FFFFF.FNNNNN
Procedure       POST,QUERY              .FF.FFF.F.FD.DDD
Procedure       PUT,PATCH,DELETE        .FF.FFFFF.FNNNNN
Triggers        GET,QUERY               ....FFFFFFFNNNNN
Triggers        POST,PUT,PATCH,DELETE   .FF.FFFFFFFNNNNN
Trigger         GET                     ....FFFFFFFNNNNN
Trigger         POST,QUERY,PUT,PATCH,DELETE  .FF.FFFFFFFNNNNN
Functions       GET,QUERY               ....FFFFFFFNNNNN
Functions       POST,PUT,PATCH,DELETE   .FF.FFFFFFFNNNNN
Function        GET                     ....FFFFFFFNNNNN
Function        POST,QUERY,PUT,PATCH,DELETE  .FF.FFFFFFFNNNNN
Offers          GET,QUERY               ..FFFFFFFFFNNNNN
Offers          POST,PUT,PATCH,DELETE   .FFFFFFFFFFNNNNN
Offer           GET                     ..FFFFFFFFFNNNNN
Offer           POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Roles           GET,QUERY               ..FFFFFFFFFNNNNN
Roles           POST,PUT,PATCH,DELETE   .FFFFFFFFFFNNNNN
Role            GET                     ..FFFFFFFFFNNNNN
Role            POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
Unsupported     GET                     ..FFFFFFFFFNNNNN
Unsupported     POST,QUERY,PUT,PATCH,DELETE  .FFFFFFFFFFNNNNN
";

struct World {
    server: Server,
    offer: String,
    columns: Vec<(&'static str, Token)>,
}

/// The key of the requests in a column.
fn key_of(column: &str) -> &'static str {
    if column == "another key" { r#"["other"]"# } else { r#"["mine"]"# }
}

async fn world() -> World {
    let server = Server::guarded(false);
    for (path, body) in [
        ("/dbs", json!({"id": "d"})),
        ("/dbs", json!({"id": "e"})),
        ("/dbs/d/colls", container("c")),
        ("/dbs/d/colls", container("x")),
        ("/dbs/e/colls", container("c")),
        ("/dbs/d/users", json!({"id": "u"})),
        ("/dbs/d/colls/c/sprocs", json!({"id": "s", "body": "function s() {}"})),
        ("/dbs/d/colls/c/udfs", json!({"id": "f", "body": "function f() {}"})),
        (
            "/dbs/d/colls/c/triggers",
            json!({"id": "t", "body": "function t() {}", "triggerType": "Pre", "triggerOperation": "All"}),
        ),
        (
            "/roledefinitions",
            json!({"id": "r", "roleName": "looks", "permissions": [{"dataActions": [
                "Microsoft.DocumentDB/databaseAccounts/readMetadata",
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read",
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery"]}]}),
        ),
    ] {
        server.post(path, body).await.expect(201);
    }
    for (id, principal, role, scope) in [
        ("1", "reader", "00000000-0000-0000-0000-000000000001", "/"),
        ("2", "contributor", "00000000-0000-0000-0000-000000000002", "/dbs/d"),
        ("3", "looker", "r", "/dbs/d/colls/c"),
        ("4", "elsewhere", "00000000-0000-0000-0000-000000000002", "/dbs/e"),
    ] {
        let body = json!({"id": id, "principalId": principal, "roleDefinitionId": role, "scope": scope});
        server.post("/roleassignments", body).await.expect(201);
    }
    let offers = server.get("/offers").await.expect(200).body;
    let offer = offers["Offers"][0]["id"].as_str().expect("an offer").to_owned();
    let columns = columns(&server).await;
    World { server, offer, columns }
}

async fn columns(server: &Server) -> Vec<(&'static str, Token)> {
    let on = |mode: &str, resource: &str| json!({"permissionMode": mode, "resource": resource});
    let keyed = |mode: &str| json!({"permissionMode": mode, "resource": "dbs/d/colls/c", "resourcePartitionKey": ["mine"]});
    let key_all = server.token("ka", keyed("All")).await;
    vec![
        ("a key", Token::Key(KEY)),
        ("a read-only key", Token::Key(READ_ONLY)),
        ("container read", server.token("cr", on("Read", "dbs/d/colls/c")).await),
        ("container all", server.token("ca", on("All", "dbs/d/colls/c/")).await),
        ("item read", server.token("ir", on("Read", "dbs/d/colls/c/docs/one")).await),
        ("item all", server.token("ia", on("All", "dbs/d/colls/c/docs/one")).await),
        ("key read", server.token("kr", keyed("Read")).await),
        ("key all", key_all.clone()),
        ("another key", key_all),
        ("procedure all", server.token("sa", on("All", "dbs/d/colls/c/sprocs/s")).await),
        ("another container", server.token("xa", on("All", "dbs/d/colls/x")).await),
        ("reader", entra("reader", |_| {})),
        ("contributor", entra("contributor", |_| {})),
        ("looker", entra("looker", |_| {})),
        ("elsewhere", entra("elsewhere", |_| {})),
        ("nobody", entra("nobody", |_| {})),
    ]
}

fn path(kind: RouteKind, offer: &str) -> String {
    match kind {
        RouteKind::Account => "/",
        RouteKind::Databases => "/dbs",
        RouteKind::Database => "/dbs/d",
        RouteKind::Containers => "/dbs/d/colls",
        RouteKind::Container => "/dbs/d/colls/c",
        RouteKind::Items => "/dbs/d/colls/c/docs",
        RouteKind::Item => "/dbs/d/colls/c/docs/one",
        RouteKind::Ranges => "/dbs/d/colls/c/pkranges",
        RouteKind::Conflicts => "/dbs/d/colls/c/conflicts",
        RouteKind::Conflict => "/dbs/d/colls/c/conflicts/one",
        RouteKind::KeyDelete => "/dbs/d/colls/c/operations/partitionkeydelete",
        RouteKind::Users => "/dbs/d/users",
        RouteKind::User => "/dbs/d/users/u",
        RouteKind::EncryptionKeys => "/dbs/d/clientencryptionkeys",
        RouteKind::EncryptionKey => "/dbs/d/clientencryptionkeys/k",
        RouteKind::Permissions => "/dbs/d/users/u/permissions",
        RouteKind::Permission => "/dbs/d/users/u/permissions/cr",
        RouteKind::Procedures => "/dbs/d/colls/c/sprocs",
        RouteKind::Procedure => "/dbs/d/colls/c/sprocs/s",
        RouteKind::Triggers => "/dbs/d/colls/c/triggers",
        RouteKind::Trigger => "/dbs/d/colls/c/triggers/t",
        RouteKind::Functions => "/dbs/d/colls/c/udfs",
        RouteKind::Function => "/dbs/d/colls/c/udfs/f",
        RouteKind::Offers => "/offers",
        RouteKind::Offer => return format!("/offers/{offer}"),
        RouteKind::Roles => "/roledefinitions",
        RouteKind::Role => "/roledefinitions/r",
        RouteKind::Unsupported => "/dbs/d/colls/c/docs/one/attachments",
    }
    .to_owned()
}

impl World {
    /// How the door answers: a letter of the matrix, or the numbers when it is none of them.
    async fn outcome(&self, token: &Token, key: &str, operation: &str, path: &str) -> String {
        let mut headers = vec![
            ("x-ms-documentdb-partitionkey", key),
            ("if-match", "\"0000d1a2-0000-0000-0000-000000000000\""),
        ];
        let (method, extra): (&str, &[(&str, &str)]) = match operation {
            "QUERY" => ("POST", &[("x-ms-documentdb-isquery", "True")]),
            // What makes it a query is the type alone, and the other headers say that it is something else.
            "TYPED QUERY" => (
                "POST",
                &[("content-type", "Application/Query+JSON; x=y"), ("x-ms-cosmos-is-batch-request", "true")],
            ),
            "PLAN" => ("POST", &[("x-ms-cosmos-is-query-plan-request", "True")]),
            "UPSERT" => ("POST", &[("x-ms-documentdb-is-upsert", "True")]),
            "CHANGES" => ("GET", &[("a-im", "Incremental Feed")]),
            "BATCH" => {
                ("POST", &[("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")])
            }
            "BULK" => ("POST", &[("x-ms-cosmos-is-batch-request", "True")]),
            method => (method, &[]),
        };
        headers.extend_from_slice(extra);
        let body = match operation {
            "QUERY" | "TYPED QUERY" | "PLAN" => json!({"query": "SELECT * FROM c"}),
            "BATCH" | "BULK" => json!([{"operationType": "Delete", "id": "nothing", "partitionKey": key}]),
            _ => json!({}),
        };
        let answer = self.server.send_as(token, method, path, &headers, &body).await;
        // A bulk request is answered for each of its operations.
        let inner = answer.body[0]["statusCode"].as_u64().filter(|_| operation == "BULK");
        let substatus = answer.header("x-ms-substatus").to_owned();
        match (inner.unwrap_or(u64::from(answer.status)), substatus.as_str()) {
            (403, "") => "F".to_owned(),
            (403, "5300") => "N".to_owned(),
            (403, "5301") => "M".to_owned(),
            (403, "5302") => "D".to_owned(),
            (status @ (401 | 403), substatus) => format!("({status}/{substatus})"),
            _ => ".".to_owned(),
        }
    }
}

/// The row of an operation; those that differ on items only follow the one that they are otherwise.
fn row(kind: RouteKind, operation: &str) -> Option<&'static str> {
    let name = format!("{kind:?}");
    let find = |operation: &str| {
        MATRIX.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|words| {
            match words[..] {
                [route, operations, row]
                    if route == name && operations.split(',').any(|one| one == operation) =>
                {
                    Some(row)
                }
                _ => None,
            }
        })
    };
    find(operation).or_else(|| match operation {
        "HEAD" | "CHANGES" => find("GET"),
        "TYPED QUERY" => find("QUERY"),
        "UPSERT" | "PLAN" | "BATCH" | "BULK" => find("POST"),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_token_meets_every_route() {
    let world = world().await;
    let mut differences = Vec::new();
    let mut requests = 0;
    for kind in RouteKind::ALL {
        let path = path(kind, &world.offer);
        assert_eq!(crate::router::route(&path).expect("a path").endpoint.kind(), kind, "{path}");
        for operation in OPERATIONS {
            let Some(wanted) = row(kind, operation) else {
                differences.push(format!("{kind:?} {operation} has no row"));
                continue;
            };
            assert_eq!(wanted.len(), world.columns.len(), "{kind:?} {operation}");
            let mut found = String::new();
            for (column, token) in &world.columns {
                found += &world.outcome(token, key_of(column), operation, &path).await;
                requests += 1;
            }
            if found != wanted {
                differences.push(format!("{kind:?} {operation}: wanted {wanted}, found {found}"));
            }
        }
    }
    println!("{requests} requests");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Tokens that open nothing, whatever they ask for.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_no_token_opens_no_route() {
    let world = world().await;
    let permission = json!({"permissionMode": "All", "resource": "dbs/d/colls/c"});
    let deleted = world.server.token("gone", permission.clone()).await;
    world.server.send("DELETE", "/dbs/d/users/u/permissions/gone", &[], &Value::Null).await.expect(204);
    let forged = match world.server.token("whole", permission).await {
        Token::Text(text) => Token::Text(text.replacen("sig=", "sig=A", 1)),
        key => key,
    };
    let past = SystemTime::now() - Duration::from_secs(100);
    let keys = Keys::from(orrery_gateway::Keys::new([KEY], []).expect("a key"));
    let whole = world.server.get("/dbs/d/users/u/permissions/whole").await.expect(200);
    let permission = orrery_cluster::Rid::parse(whole.body["_rid"].as_str().expect("a rid")).expect("a rid");
    let claim = Claim { permission, resource: Bound::to(None) };
    for (name, token, wanted) in [
        ("a key of nobody", Token::Key("AAAA"), "(401/)"),
        ("no token", Token::Text("nonsense".to_owned()), "(401/)"),
        ("the token of a deleted permission", deleted, "F"),
        ("a forged token", forged, "(401/)"),
        ("an expired token", Token::Text(keys.issue(claim, past, 50)), "F"),
        ("another issuer's signature", signed(STRANGER, "contributor", |_| {}), "(401/5004)"),
        (
            "another issuer",
            entra("contributor", |claims| claims["iss"] = json!("https://else")),
            "(401/5007)",
        ),
        (
            "another audience",
            entra("contributor", |claims| claims["aud"] = json!("https://else")),
            "(401/5008)",
        ),
        ("expired", entra("contributor", |claims| claims["exp"] = json!(1_000_000)), "(401/5006)"),
        ("not yet", entra("contributor", |claims| claims["nbf"] = json!(9_000_000_000u64)), "(401/5005)"),
        ("nobody's", entra("", |_| {}), "(401/5011)"),
        ("no JSON Web Token", Token::Text("type=aad&ver=1.0&sig=a.b.c".to_owned()), "(401/5003)"),
    ] {
        for kind in RouteKind::ALL {
            let path = path(kind, &world.offer);
            for operation in OPERATIONS {
                let found = world.outcome(&token, r#"["mine"]"#, operation, &path).await;
                assert_eq!(found, wanted, "{name}: {operation} {path}");
            }
        }
    }
}

#[test]
fn the_matrix_names_routes_that_exist() {
    let routes: HashSet<String> = RouteKind::ALL.iter().map(|kind| format!("{kind:?}")).collect();
    for line in MATRIX.lines().filter(|line| !line.is_empty()) {
        assert!(routes.contains(line.split_whitespace().next().expect("a name")), "{line}");
    }
    assert_eq!(routes.len(), RouteKind::ALL.len());
}

#[test]
fn methods_are_all_asked() {
    for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert!(OPERATIONS.contains(&method.as_str()));
    }
}
