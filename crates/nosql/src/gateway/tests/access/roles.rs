//! Roles at work.

use super::*;

const CONTRIBUTOR: &str = "00000000-0000-0000-0000-000000000002";
const ITEMS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items";

async fn server(development: bool) -> Server {
    let server = Server::guarded(development);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server
}

fn definition(id: &str, actions: &[&str]) -> Value {
    json!({"id": id, "roleName": id, "type": "CustomRole", "assignableScopes": ["/dbs/d"],
        "permissions": [{"dataActions": actions}]})
}

fn assignment(id: &str, principal: &str, role: &str, scope: &str) -> Value {
    json!({"id": id, "principalId": principal, "roleDefinitionId": role, "scope": scope})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn batches_are_checked_operation_by_operation() {
    let server = server(false).await;
    server.post("/roledefinitions", definition("r", &[&format!("{ITEMS}/create")])).await.expect(201);
    server.post("/roleassignments", assignment("a", "writer", "r", "/dbs/d/colls/c")).await.expect(201);
    let token = entra("writer", |_| {});
    let batch = [
        ("x-ms-documentdb-partitionkey", r#"["k"]"#),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-atomic", "True"),
    ];
    let create = json!({"operationType": "Create", "resourceBody": {"id": "1", "pk": "k"}});
    let delete = json!({"operationType": "Delete", "id": "1"});
    let docs = "/dbs/d/colls/c/docs";
    server.send_as(&token, "POST", docs, &batch, &json!([create, delete])).await.expect(403);
    server.send_as(&token, "POST", docs, &batch, &json!([create])).await.expect(200);
    server.send_as(&token, "POST", docs, &batch[..1], &json!({"id": "2", "pk": "k"})).await.expect(201);
    server.send_as(&token, "GET", &format!("{docs}/2"), &batch[..1], &Value::Null).await.expect(403);
    // The same role within another scope opens nothing here.
    server.post("/dbs/d/colls", container("x")).await.expect(201);
    server
        .send_as(&token, "POST", "/dbs/d/colls/x/docs", &batch[..1], &json!({"id": "2", "pk": "k"}))
        .await
        .expect(403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn groups_have_roles_and_a_withdrawn_role_is_gone() {
    let server = server(false).await;
    server.post("/roleassignments", assignment("a", "group", CONTRIBUTOR, "/")).await.expect(201);
    let token = entra("member", |claims| claims["groups"] = json!(["other", "GROUP"]));
    server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await.expect(200);
    server.send("DELETE", "/roleassignments/a", &[], &Value::Null).await.expect(204);
    let refused = server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await.expect(403);
    assert!(refused.message().contains("principal [member]"), "{}", refused.message());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn roles_that_mean_nothing_are_refused() {
    let server = server(false).await;
    for body in [
        definition(CONTRIBUTOR, &[&format!("{ITEMS}/*")]),
        definition("r", &[]),
        definition("r", &["Microsoft.DocumentDB/else"]),
        json!({"id": "r", "permissions": [{"dataActions": [format!("{ITEMS}/read")]}]}),
        json!({"id": "r", "roleName": "r", "assignableScopes": ["/nowhere"],
            "permissions": [{"dataActions": [format!("{ITEMS}/read")]}]}),
        json!({"id": "r", "roleName": "r",
            "permissions": [{"dataActions": [format!("{ITEMS}/read")], "notDataActions": ["x"]}]}),
    ] {
        server.post("/roledefinitions", body.clone()).await.expect(400);
    }
    server.post("/roledefinitions", definition("r", &[&format!("{ITEMS}/*")])).await.expect(201);
    for body in [
        assignment("a", "", "r", "/dbs/d"),
        assignment("a", "p", "none", "/dbs/d"),
        assignment("a", "p", "r", "/"),
        assignment("a", "p", "r", "dbs/d/else"),
    ] {
        server.post("/roleassignments", body.clone()).await.expect(400);
    }
    server.post("/roleassignments", assignment("a", "p", "r", "/dbs/d/colls/c")).await.expect(201);
    server.send("DELETE", "/roledefinitions/r", &[], &Value::Null).await.expect(400);
    server.send("DELETE", "/roleassignments/a", &[], &Value::Null).await.expect(204);
    server.send("DELETE", "/roledefinitions/r", &[], &Value::Null).await.expect(204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn development_mode_believes_tokens_that_are_not_expired() {
    let server = server(true).await;
    let headers = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
    let item = json!({"id": "1", "pk": "k"});
    let stranger = signed(STRANGER, "anybody", |claims| claims["aud"] = json!("https://localhost"));
    server.send_as(&stranger, "POST", "/dbs/d/colls/c/docs", &headers, &item).await.expect(201);
    server.send_as(&stranger, "POST", "/dbs", &[], &json!({"id": "e"})).await.expect(403);
    let old = entra("anybody", |claims| claims["exp"] = json!(1_000));
    server.send_as(&old, "GET", "/dbs/d", &[], &Value::Null).await.expect(401);
    // Who has roles has these and no others.
    let reader = "00000000-0000-0000-0000-000000000001";
    server.post("/roleassignments", assignment("a", "anybody", reader, "/")).await.expect(201);
    server.send_as(&stranger, "POST", "/dbs/d/colls/c/docs", &headers, &item).await.expect(403);
}

/// Claims in another form than the standard gives them are not claims that are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn claims_of_the_wrong_type_and_unknown_critical_headers_are_refused() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    type Spoil = fn(&mut Value, u64);
    let wrong: [(&str, Spoil); 12] = [
        ("nbf in the future", |claims, now| claims["nbf"] = json!(now + 3600)),
        ("nbf as a text", |claims, now| claims["nbf"] = json!((now + 3600).to_string())),
        ("nbf as a text of the past", |claims, now| claims["nbf"] = json!((now - 3600).to_string())),
        ("nbf as a list", |claims, now| claims["nbf"] = json!([now + 3600])),
        ("nbf that is null", |claims, _| claims["nbf"] = Value::Null),
        ("nbf below zero", |claims, _| claims["nbf"] = json!(-1)),
        ("exp as a text", |claims, now| claims["exp"] = json!((now + 3600).to_string())),
        ("exp that is null", |claims, _| claims["exp"] = Value::Null),
        ("no exp", |claims, _| drop(claims.as_object_mut().expect("claims").remove("exp"))),
        ("a list of issuers", |claims, _| claims["iss"] = json!(["https://other.example", ISSUER])),
        ("a list of one issuer", |claims, _| claims["iss"] = json!([ISSUER])),
        ("an issuer that is a number", |claims, _| claims["iss"] = json!(1)),
    ];
    for development in [false, true] {
        let server = server(development).await;
        server.post("/roleassignments", assignment("a", "p", CONTRIBUTOR, "/")).await.expect(201);
        server.send_as(&entra("p", |_| {}), "GET", "/dbs/d", &[], &Value::Null).await.expect(200);
        let fraction = entra("p", |claims| claims["nbf"] = json!(now as f64 - 0.5));
        server.send_as(&fraction, "GET", "/dbs/d", &[], &Value::Null).await.expect(200);
        for (what, spoil) in wrong {
            let token = entra("p", |claims| spoil(claims, now));
            let answer = server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await;
            assert_eq!(answer.status, 401, "{what}, development: {development}");
        }
        let claims = json!({"iss": ISSUER, "aud": AUDIENCE, "exp": now + 600, "oid": "p"}).to_string();
        for crit in [json!(["exp"]), json!(["b64"]), json!(["x-unknown"]), json!([])] {
            let header = json!({"alg": "RS256", "kid": "issuer", "crit": crit, "b64": true, "x-unknown": 1});
            let token = sealed(SIGNING, &header, &claims);
            let answer = server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await;
            assert_eq!(answer.status, 401, "{crit}, development: {development}");
        }
        // Who cannot read a header does not know what it asks of its reader.
        for header in [json!("none"), json!(7), Value::Null] {
            let token = sealed(SIGNING, &header, &claims);
            let answer = server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await.expect(401);
            assert_eq!(answer.header("x-ms-substatus"), "5003", "{header}, development: {development}");
        }
        // Of a claim that is there twice readers take one or the other.
        let twice = claims.replacen('{', &format!("{{\"nbf\":{},\"nbf\":1,", now + 3600), 1);
        let token = sealed(SIGNING, &json!({"alg": "RS256", "kid": "issuer"}), &twice);
        let answer = server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await;
        assert_eq!(answer.status, 401, "development: {development}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_an_issuer_no_token_of_entra_is_accepted() {
    let server = Server::start(false);
    let refused = server.send_as(&entra("p", |_| {}), "GET", "/", &[], &Value::Null).await.expect(401);
    assert_eq!(refused.header("x-ms-substatus"), "5002");
}

#[test]
fn issuers_need_keys_and_an_audience() {
    let right = EntraOptions {
        issuers: vec![ISSUER.to_owned()],
        audiences: vec![AUDIENCE.to_owned()],
        keys: KEY_SET.to_owned(),
        development: false,
    };
    assert!(Entra::new(&right).is_ok());
    assert!(Entra::new(&EntraOptions { issuers: vec![], ..right.clone() }).is_err());
    assert!(Entra::new(&EntraOptions { audiences: vec![], ..right.clone() }).is_err());
    for keys in ["", "{}", "{\"keys\":[]}", "[1]"] {
        assert!(Entra::new(&EntraOptions { keys: keys.to_owned(), ..right.clone() }).is_err(), "{keys}");
    }
}
