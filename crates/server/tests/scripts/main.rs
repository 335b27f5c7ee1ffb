//! Procedures, triggers and user-defined functions, as clients meet them over the wire.

mod hostile;
mod world;

use serde_json::{Value, json};
use world::{CONTAINER, World, text};

const PRE: &str = "x-ms-documentdb-pre-trigger-include";
const POST: &str = "x-ms-documentdb-post-trigger-include";

#[test]
fn procedures_are_resources_and_run() {
    let mut world = World::start();
    let made = world.script(
        "sprocs",
        "hello",
        "function (who) { getContext().getResponse().setBody('hello ' + who) }",
    );
    let by_rid = format!("/{}", made["_self"].as_str().expect("a link").trim_end_matches('/'));
    let reply = world.execute("hello", "a", json!(["world"]));
    assert_eq!((reply.status, reply.json()), (200, json!("hello world")));
    assert!(reply.header("x-ms-session-token").is_some());
    assert!(
        reply.header("x-ms-request-charge").is_some_and(|units| units.parse::<f64>().unwrap_or(0.0) >= 1.0)
    );
    let key = ("x-ms-documentdb-partitionkey", "[\"a\"]");
    assert_eq!(world.send("POST", &by_rid, &[key], &json!([1])).json(), json!("hello 1"));
    // The logical partition must be named.
    assert_eq!(world.send("POST", &format!("{CONTAINER}/sprocs/hello"), &[], &json!([])).status, 400);
    assert_eq!(world.execute("none", "a", json!([])).status, 404);
    let replaced = json!({"id": "hello", "body": "() => __.response.setBody([])"});
    assert_eq!(world.send("PUT", &by_rid, &[], &replaced).status, 200);
    assert_eq!(world.execute("hello", "a", json!([])).json(), json!([]));
    let list = world.send("GET", &format!("{CONTAINER}/sprocs"), &[], &Value::Null).json();
    assert_eq!(list["StoredProcedures"].as_array().map(Vec::len), Some(1));
    let again = world.send("POST", &format!("{CONTAINER}/sprocs"), &[], &replaced);
    assert_eq!(again.status, 409, "{}", text(&again));
    assert_eq!(world.send("DELETE", &by_rid, &[], &Value::Null).status, 204);
    assert_eq!(world.execute("hello", "a", json!([])).status, 404);
}

#[test]
fn bad_scripts_and_bad_calls_are_refused_in_the_service_s_words() {
    let mut world = World::start();
    for (kind, body, substatus, words) in [
        ("sprocs", json!({"id": "x"}), 0, "'body; '"),
        ("sprocs", json!({"body": "() => 1"}), 0, "'id; '"),
        ("triggers", json!({"id": "x", "body": "() => 1", "triggerType": "Pre"}), 0, "'triggerOperation; '"),
        (
            "triggers",
            json!({"id": "x", "body": "() => 1", "triggerType": "Mid", "triggerOperation": "All"}),
            0,
            "triggerType",
        ),
    ] {
        let reply = world.send("POST", &format!("{CONTAINER}/{kind}"), &[], &body);
        assert_eq!((reply.status, reply.sub_status()), (400, substatus), "{}", text(&reply));
        assert!(text(&reply).contains(words), "{}", text(&reply));
    }
    for (name, body, status, substatus, words) in [
        (
            "throws",
            "() => { throw new Error('too bad') }",
            400,
            0,
            "Encountered exception while executing Javascript. Exception = Error: too bad",
        ),
        ("numbered", "() => { throw new Error(4711, 'x') }", 400, 4711, "Error: x"),
        (
            "missing",
            "() => { __.readDocument(__.getAltLink() + '/docs/none') }",
            400,
            404,
            "Resource Not Found",
        ),
        (
            "elsewhere",
            "() => { __.createDocument(__.getSelfLink(), {id: 'a', pk: 'other'}) }",
            400,
            400,
            "cannot reference partition keys",
        ),
        ("syntax", "function ( {", 400, 0xFFFF, "SyntaxError"),
        ("value", "12", 400, 0xFFFF, "not a function"),
        ("large", "() => { __.response.setBody('x'.repeat(5000000)) }", 413, 0, "bytes"),
    ] {
        world.script("sprocs", name, body);
        let reply = world.execute(name, "a", json!([]));
        assert_eq!((reply.status, reply.sub_status()), (status, substatus), "{name}: {}", text(&reply));
        assert!(text(&reply).contains(words), "{name}: {}", text(&reply));
    }
    let path = format!("{CONTAINER}/sprocs/throws");
    let key = ("x-ms-documentdb-partitionkey", "[\"a\"]");
    let reply = world.client.send("POST", &path, &[key], b"[1,").expect("an answer");
    assert_eq!(reply.status, 400, "{}", text(&reply));
}

#[test]
fn a_procedure_does_all_or_nothing_and_its_answers_are_what_is_stored() {
    let mut world = World::start();
    let source = r#"
        function make(count, fails) {
            var made = [], link = __.getSelfLink();
            next();
            function next(err, item) {
                if (err) throw err;
                if (item) made.push(item);
                if (made.length < count) return __.createDocument(link, {pk: 'a', n: made.length}, next);
                if (fails) throw new Error('after all');
                __.queryDocuments(link, 'SELECT VALUE COUNT(1) FROM c', function (err, counts) {
                    if (err) throw err;
                    console.log('made %s', made.length);
                    __.response.setBody({count: counts[0], last: made[made.length - 1]});
                });
            }
        }"#;
    world.script("sprocs", "make", source);
    let failed = world.execute("make", "a", json!([10, true]));
    assert_eq!(failed.status, 400);
    let count =
        |world: &mut World| world.query("a", "SELECT VALUE COUNT(1) FROM c").json()["Documents"][0].clone();
    assert_eq!(count(&mut world), 0);
    let key = ("x-ms-documentdb-partitionkey", "[\"a\"]");
    let logging = ("x-ms-documentdb-script-enable-logging", "true");
    let reply = world.send("POST", &format!("{CONTAINER}/sprocs/make"), &[key, logging], &json!([10]));
    assert_eq!(reply.status, 200, "{}", text(&reply));
    assert_eq!(reply.header("x-ms-documentdb-script-log-results"), Some("made%2010"));
    let body = reply.json();
    assert_eq!(body["count"], 10, "a script sees its own writes");
    assert_eq!(count(&mut world), 10);
    let id = body["last"]["id"].as_str().expect("an id was made").to_owned();
    let stored = world.read("a", &id).json();
    for name in ["_rid", "_self", "_etag"] {
        assert_eq!(stored[name], body["last"][name], "{name} is what the script saw");
    }
    let etag = ("if-match", stored["_etag"].as_str().expect("text"));
    let path = format!("{CONTAINER}/docs/{id}");
    assert_eq!(world.send("PUT", &path, &[key, etag], &json!({"id": id, "pk": "a"})).status, 200);
}

#[test]
fn a_procedure_is_told_when_request_units_run_out() {
    let server = orrery_testkit::Server::start(world::binary(), &["--in-memory"]);
    let mut world = World::on(server);
    let source = r#"
        function fill(count) {
            var made = 0;
            next();
            function next(err) {
                if (err) throw err;
                var item = {id: '' + made, pk: 'a', n: made};
                if (made == count || !__.createDocument(__.getSelfLink(), item, next)) return __.response.setBody(made);
                made++;
            }
        }"#;
    world.script("sprocs", "fill", source);
    let reply = world.execute("fill", "a", json!([5000]));
    assert_eq!(reply.status, 200, "{}", text(&reply));
    let made = reply.json().as_u64().expect("a number");
    assert!((50..1_500).contains(&made), "400 RU/s let it make {made} items");
    let charge: f64 = reply.header("x-ms-request-charge").and_then(|text| text.parse().ok()).unwrap_or(0.0);
    assert!(charge > made as f64 * 4.95, "{made} items cost {charge}");
    let next = world.execute("fill", "b", json!([1]));
    assert_eq!(next.status, 429, "what it spent is missing now");
}

#[test]
fn triggers_run_with_their_write_or_nothing_does() {
    let mut world = World::start();
    world.trigger("stamp", "Pre", "Create", "() => { var r = getContext().getRequest(), d = r.getBody(); d.stamped = r.getOperationType(); r.setBody(d) }");
    world.trigger("copy", "Post", "All", "() => { var d = getContext().getResponse().getBody(); if (d.bad) throw new Error('bad'); __.createDocument(__.getSelfLink(), {id: 'copy of ' + d.id, pk: d.pk, n: d.n}) }");
    let reply = world.create(&json!({"id": "1", "pk": "a", "n": 1}), &[(PRE, "stamp"), (POST, "copy")]);
    assert_eq!((reply.status, reply.json()["stamped"].clone()), (201, json!("Create")), "{}", text(&reply));
    assert_eq!(world.read("a", "copy%20of%201").json()["n"], 1);
    let reply = world.create(&json!({"id": "2", "pk": "a", "bad": true}), &[(POST, "copy")]);
    assert_eq!(reply.status, 400, "{}", text(&reply));
    assert!(text(&reply).contains("Error: bad"), "{}", text(&reply));
    assert_eq!(world.read("a", "2").status, 404);
    // A copy that is there already makes the write fail, too.
    world.create(&json!({"id": "copy of 3", "pk": "a"}), &[]);
    assert_eq!(world.create(&json!({"id": "3", "pk": "a"}), &[(POST, "copy")]).status, 400);
    assert_eq!(world.read("a", "3").status, 404);
    assert_eq!(world.create(&json!({"id": "1", "pk": "a"}), &[(PRE, "stamp")]).status, 409);
    for (headers, words) in [
        (vec![(PRE, "none")], "Trigger 'none' does not exist"),
        (vec![(PRE, "copy")], "trigger type 'Post'"),
        (vec![(PRE, "stamp, copy")], "more than 1 pre trigger"),
        (
            vec![(PRE, "stamp"), ("x-ms-documentdb-is-upsert", "true")],
            "Trigger 'stamp' was defined with operation type 'Create', and therefore is invalid for 'Upsert'.",
        ),
    ] {
        let reply = world.create(&json!({"id": "9", "pk": "a"}), &headers);
        assert_eq!(reply.status, 400, "{}", text(&reply));
        assert!(text(&reply).contains(words), "{}", text(&reply));
    }
}

#[test]
fn functions_work_in_queries() {
    let mut world = World::start();
    for n in 0..30 {
        world.create(&json!({"id": n.to_string(), "pk": "a", "n": n, "tags": ["x", n]}), &[]);
    }
    world.script("udfs", "isEven", "function (n) { return n % 2 == 0 }");
    world.script(
        "udfs",
        "label",
        "function (item, extra) { return { text: item.id + extra.mark, last: item.tags[1] } }",
    );
    world.script("udfs", "fails", "function () { throw new Error('never again') }");
    let rows = |world: &mut World, query: &str| {
        let reply = world.query("a", query);
        assert_eq!(reply.status, 200, "{}", text(&reply));
        reply.json()["Documents"].clone()
    };
    assert_eq!(rows(&mut world, "SELECT VALUE COUNT(1) FROM c WHERE udf.isEven(c.n)"), json!([15]));
    assert_eq!(
        rows(&mut world, "SELECT TOP 2 VALUE c.n FROM c WHERE udf.isEven(c.n) AND c.n > 20 ORDER BY c.n"),
        json!([22, 24])
    );
    assert_eq!(
        rows(&mut world, "SELECT VALUE udf.label(c, {mark: '!'}) FROM c WHERE c.id = '7'"),
        json!([{"text": "7!", "last": 7}])
    );
    assert_eq!(
        rows(&mut world, "SELECT udf.isEven(c.missing) AS even FROM c WHERE c.id = '7'"),
        json!([{"even": false}])
    );
    for (query, words) in
        [("SELECT * FROM c WHERE udf.none(c)", "udf.none"), ("SELECT udf.fails() FROM c", "never again")]
    {
        let reply = world.query("a", query);
        assert_eq!(reply.status, 400, "{}", text(&reply));
        assert!(text(&reply).contains(words), "{}", text(&reply));
    }
    // Nobody calls a function over no items, so nobody misses it.
    assert_eq!(rows(&mut world, "SELECT VALUE udf.none(c) FROM c WHERE c.id = 'nobody'"), json!([]));
    let elsewhere = world.query("empty", "SELECT * FROM c WHERE udf.none(c)");
    assert_eq!((elsewhere.status, elsewhere.json()["_count"].clone()), (200, json!(0)));
    // Scripts may use them in their queries, too.
    world.script("sprocs", "evens", "() => { __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c WHERE udf.isEven(c.n)', (e, r) => { if (e) throw e; __.response.setBody(r[0]) }) }");
    assert_eq!(world.execute("evens", "a", json!([])).json(), json!(15));
}

#[test]
fn scripts_survive_a_restart_and_go_with_their_container() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let start = || orrery_testkit::Server::start_on(world::binary(), folder.path(), &["--no-throttle"]);
    let mut world = World::on(start());
    world.script("sprocs", "one", "() => __.response.setBody(1)");
    world.server.stop();
    let mut world = World::on(start());
    assert_eq!(world.execute("one", "a", json!([])).json(), json!(1));
    assert_eq!(world.send("DELETE", CONTAINER, &[], &Value::Null).status, 204);
    let mut world = World::on(world.server);
    assert_eq!(world.execute("one", "a", json!([])).status, 404, "a new container has no scripts");
}
