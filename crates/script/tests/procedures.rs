//! Stored procedures as applications write them.

mod shelf;

use orrery_script::{Limits, Program, ScriptError};
use serde_json::{Value, json};
use shelf::{Shelf, body, execute, finish};

/// Creates a list of items one after the other and answers how many it could, so that the client can go on.
const BULK_IMPORT: &str = r#"
function bulkImport(items) {
    var collection = getContext().getCollection();
    var link = collection.getSelfLink();
    var imported = 0;
    if (!items) throw new Error("There is nothing to import.");
    if (items.length == 0) { getContext().getResponse().setBody(0); return; }
    importNext(items[imported], done);

    function importNext(item, callback) {
        var accepted = collection.createDocument(link, item, { disableAutomaticIdGeneration: true }, callback);
        if (!accepted) getContext().getResponse().setBody(imported);
    }
    function done(err, item, options) {
        if (err) throw err;
        imported++;
        if (imported >= items.length) getContext().getResponse().setBody(imported);
        else importNext(items[imported], done);
    }
}
"#;

fn items(count: usize) -> Value {
    (0..count).map(|n| json!({"id": n.to_string(), "n": n})).collect()
}

#[test]
fn a_bulk_import_creates_all_items_in_order() {
    let (body, shelf) = execute(BULK_IMPORT, json!([items(500)]), Shelf::default());
    assert_eq!(body, Ok(json!(500)));
    assert_eq!(shelf.items.len(), 500);
}

#[test]
fn an_operation_that_is_not_accepted_says_so_and_has_no_effect() {
    let shelf = Shelf { accepted: Some(7), ..Shelf::default() };
    let (body, shelf) = execute(BULK_IMPORT, json!([items(20)]), shelf);
    assert_eq!(body, Ok(json!(7)));
    assert_eq!(shelf.items.len(), 7);
    let limits = Limits { operations: 3, ..Limits::default() };
    let finished = finish(BULK_IMPORT, json!([items(20)]), Shelf::default(), &limits);
    assert_eq!((finished.host.items.len(), finished.operations), (3, 3));
}

#[test]
fn what_a_script_throws_comes_with_its_stack() {
    let (result, _) = execute(BULK_IMPORT, json!([]), Shelf::default());
    let error = result.expect_err("nothing to import is an error");
    let text = error.text();
    let expected = "Encountered exception while executing Javascript. Exception = Error: There is nothing to import.\r\n\
                    Stack trace: Error: There is nothing to import.\n   at bulkImport (test.js:6:";
    assert!(text.starts_with(expected), "{text}");
    assert!(!text.contains("orrery:"), "{text}");
}

#[test]
fn numbers_of_errors_become_sub_statuses() {
    let number = |source: &str| match execute(source, json!([]), Shelf::default()).0 {
        Err(ScriptError::Threw { number, message, .. }) => (number, message),
        other => panic!("{source}: {other:?}"),
    };
    assert_eq!(
        number("() => { throw new Error(404, 'not there') }"),
        (Some(404), "Error: not there".to_owned())
    );
    assert_eq!(
        number("() => { throw new Error(ErrorCodes.Conflict, 'x') }"),
        (Some(409), "Error: x".to_owned())
    );
    assert_eq!(number("() => { throw 'text' }"), (None, "text".to_owned()));
    assert_eq!(number("() => { throw undefined }"), (None, "undefined".to_owned()));
    assert_eq!(number("() => { throw { number: 7 } }").0, Some(7));
    // An error that no callback takes is thrown by the loop, with the number of the refusal.
    let missing = "() => { __.readDocument(__.getAltLink() + '/docs/none') }";
    assert_eq!(number(missing), (Some(404), "Error: Resource Not Found".to_owned()));
    assert_eq!(number("() => { getContext().abort(new Error(412, 'stop')) }").0, Some(412));
    let quiet = "() => { Promise.reject(1).catch(e => getContext().abort('stop')) }";
    assert_eq!(number(quiet), (None, "stop".to_owned()));
}

#[test]
fn every_operation_calls_back_with_what_the_host_said() {
    let source = r#"
        function all() {
            var c = getContext().getCollection(), said = [], link = c.getAltLink();
            function note(name, next) {
                return function (err, resource, options) {
                    said.push([name, err ? err.number + ': ' + err.body : null, resource && resource.id]);
                    next();
                };
            }
            c.createDocument(link, {id: 'a', v: 1}, note('create', function () {
            c.createDocument(link, {id: 'a', v: 1}, {}, note('again', function () {
            c.upsertDocument(link, '{"id":"b"}', note('upsert', function () {
            c.replaceDocument(link + '/docs/a', {id: 'a', v: 2}, {etag: 'old'}, note('replace', function () {
            c.readDocument(link + '/docs/a', {}, note('read', function () {
            c.deleteDocument(link + '/docs/b', function (err, options) {
                said.push(['delete', err, typeof options]);
            c.createDocument(link, {v: 3}, note('made', function () {
            c.readDocuments(link, {pageSize: 1}, function (err, feed, options) {
                said.push(['feed', feed.length, options.continuation]);
            c.queryDocuments(link, {query: 'SELECT @x', parameters: [{name: '@x', value: 1}]}, function (err, feed) {
                said.push(['query', feed.length]);
            c.queryDocuments(link, 'BROKEN', function (err) {
                said.push(['broken', err.number, err instanceof Error]);
                __.response.setBody(said);
            }); }); }); })); }); })); })); })); })); }));
        }"#;
    let (body, shelf) = execute(source, json!([]), Shelf::default());
    let expected = json!([
        ["create", null, "a"],
        ["again", "409: Resource with specified id or name already exists.", null],
        ["upsert", null, "b"],
        ["replace", "412: One of the specified pre-condition is not met.", null],
        ["read", null, "a"],
        ["delete", null, "object"],
        ["made", null, "made1"],
        ["feed", 1, "1"],
        ["query", 2],
        ["broken", 400, true]
    ]);
    assert_eq!(body, Ok(expected));
    assert_eq!(shelf.queries[0], r#"{"query":"SELECT @x","parameters":[{"name":"@x","value":1}]}"#);
}

#[test]
fn callbacks_wait_until_the_script_has_returned() {
    let source = r#"
        function f() {
            var order = [], link = __.getSelfLink();
            for (var i = 0; i < 3; i++) {
                (function (n) {
                    order.push('called ' + n);
                    __.createDocument(link, {id: '' + n}, function () {
                        order.push('back ' + n);
                        Promise.resolve().then(function () { order.push('job ' + n); getContext().getResponse().setBody(order); });
                    });
                })(i);
            }
            order.push('returned');
        }"#;
    assert_eq!(
        body(source),
        json!([
            "called 0", "called 1", "called 2", "returned", "back 0", "job 0", "back 1", "job 1", "back 2",
            "job 2"
        ])
    );
}

#[test]
fn a_chain_of_many_callbacks_does_not_grow_the_stack() {
    let source = r#"
        function f(count) {
            var n = 0;
            (function next() {
                if (n++ == count) return getContext().getResponse().setBody(n - 1);
                __.upsertDocument(__.getSelfLink(), {id: 'x'}, next);
            })();
        }"#;
    assert_eq!(execute(source, json!([20_000]), Shelf::default()).0, Ok(json!(20_000)));
}

#[test]
fn async_functions_end_when_their_promise_does() {
    let source = r#"
        async function f(count) {
            const create = (item) => new Promise((resolve, reject) => {
                if (!__.createDocument(__.getSelfLink(), item, (err, made) => err ? reject(err) : resolve(made))) reject(new Error('no'));
            });
            const made = [];
            for (let i = 0; i < count; i++) made.push((await create({ id: 'i' + i })).id);
            getContext().getResponse().setBody(made);
            if (count == 2) await create({ id: 'i0' });
        }"#;
    assert_eq!(execute(source, json!([3]), Shelf::default()).0, Ok(json!(["i0", "i1", "i2"])));
    let (failed, _) = execute(source, json!([2]), Shelf::default());
    assert!(matches!(failed, Err(ScriptError::Threw { number: Some(409), .. })), "{failed:?}");
    // A promise that nobody answers to is not the script's result; the service ignores it as well.
    assert_eq!(body("() => { (async () => { throw 1 })(); __.response.setBody('kept') }"), json!("kept"));
    assert_eq!(body("() => new Promise(() => { __.response.setBody(1) })"), json!(1));
}

#[test]
fn the_last_body_is_the_one_that_counts() {
    for (source, expected) in [
        ("() => { }", json!(null)),
        ("() => 5", json!(null)),
        (
            "() => { var r = getContext().getResponse(); r.setBody(1); r.setBody({a: [2]}) }",
            json!({"a": [2]}),
        ),
        (
            "() => { var r = __.response; r.appendBody('a'); r.appendBody('b'); r.appendValue('Body', 'c') }",
            json!("abc"),
        ),
        (
            "() => { __.response.setValue('Body', 3); __.response.setBody(__.response.getBody() + 1) }",
            json!(4),
        ),
        ("() => { __.response.setBody(undefined) }", json!(null)),
        ("function (a, b) { __.response.setBody(typeof a + typeof b) }", json!("undefinedundefined")),
        (
            "() => { var x = {n: 1}; __.response.setBody(x); Promise.resolve().then(() => { x.n = 2 }) }",
            json!({"n": 2}),
        ),
    ] {
        assert_eq!(body(source), expected, "{source}");
    }
    let unknown = "() => { __.response.setValue('Else', 1) }";
    let (error, _) = execute(unknown, json!([]), Shelf::default());
    assert!(matches!(error, Err(ScriptError::Threw { number: Some(400), .. })), "{error:?}");
    let limits = Limits { body_bytes: 1_000, ..Limits::default() };
    let finished =
        finish("() => { __.response.setBody('x'.repeat(999)) }", json!([]), Shelf::default(), &limits);
    assert_eq!(finished.result, Err(ScriptError::TooLarge { what: "body", limit: 1_000 }));
}

#[test]
fn the_console_is_kept_up_to_its_limit() {
    let source = "() => { console.log('a=%s, ', 1); console.info({}); console.warn('x', 2, null); throw 1 }";
    let finished = finish(source, json!([]), Shelf::default(), &Limits::default());
    assert_eq!(finished.log, "a=1, [object Object]x 2 null");
    let long = "() => { for (var i = 0; i < 1000; i++) console.log('\u{e9}\u{e9}\u{e9}') }";
    let limits = Limits { log_bytes: 1_001, ..Limits::default() };
    assert_eq!(finish(long, json!([]), Shelf::default(), &limits).log.len(), 1_000);
    assert_eq!(
        body("() => { console.log('\\ud800', Symbol('s'), () => 1); __.response.setBody(1) }"),
        json!(1)
    );
}

#[test]
fn the_query_builder_filters_maps_sorts_and_unwinds() {
    let shelf = || {
        Shelf::of(&[
            json!({"id": "1", "name": "Ada", "age": 36, "pets": ["cat", "dog"]}),
            json!({"id": "2", "name": "Bob", "age": 20, "pets": []}),
            json!({"id": "3", "name": "Cid", "age": 28, "pets": ["owl"]}),
            json!({"id": "4", "name": "Dan"}),
        ])
    };
    let set = "(err, found) => __.response.setBody(err ? err.message : found)";
    for (query, expected) in [
        (format!("__.filter(d => d.age > 25, {set})"), json!(["Ada", "Cid"])),
        (format!("__.filter(d => d.age > 25, {{pageSize: 1, continuation: '1'}}, {set})"), json!(["Cid"])),
        (format!("__.pluck('age', {set})"), json!([36, 20, 28])),
        (format!("__.map(d => [d.id], {set})"), json!([["1"], ["2"], ["3"], ["4"]])),
        (format!("__.sortBy(d => d.age, {set})"), json!(["Dan", "Bob", "Cid", "Ada"])),
        (
            format!(
                "__.chain().sortByDescending(d => d.age).filter(d => d.id < '4').pluck('name').value({{pageSize: 2}}, {set})"
            ),
            json!(["Ada", "Cid", "Bob"]),
        ),
        (
            format!("__.unwind(d => d.pets, (d, p) => d.name + p, {set})"),
            json!(["Adacat", "Adadog", "Cidowl"]),
        ),
        (
            format!(
                "__.chain().filter(d => d.id == '1').unwind(d => d.pets).map(t => [t[0].id, t[1]]).value({set})"
            ),
            json!([["1", "cat"], ["1", "dog"]]),
        ),
        (format!("__.chain().pluck('pets').flatten().value({set})"), json!(["cat", "dog", "owl"])),
        (format!("__.filter(d => d.none.none, {set})"), json!("cannot read property 'none' of undefined")),
    ] {
        let source = format!("() => {{ if (!{query}.isAccepted) throw 1 }}");
        let (found, _) = execute(&source, json!([]), shelf());
        let found = found.unwrap_or_else(|error| panic!("{query}: {}", error.text()));
        let names = |value: Value| match value {
            Value::Array(list) if list.iter().all(|item| item["name"].is_string()) => {
                list.iter().map(|item| item["name"].clone()).collect()
            }
            other => other,
        };
        assert_eq!(names(found), expected, "{query}");
    }
    let (appended, _) = execute("() => { __.pluck('id') }", json!([]), shelf());
    assert_eq!(appended, Ok(json!("[\"1\",\"2\",\"3\",\"4\"]")));
    let none = Shelf { accepted: Some(0), ..shelf() };
    let (refused, _) = execute("() => __.response.setBody(__.filter(d => true))", json!([]), none);
    assert_eq!(refused, Ok(json!({"isAccepted": false})));
}

#[test]
fn wrong_arguments_are_thrown_at_the_caller() {
    for call in [
        "__.createDocument(__.getSelfLink())",
        "__.createDocument('', {})",
        "__.createDocument(5, {})",
        "__.createDocument(__.getSelfLink(), 5)",
        "__.createDocument(__.getSelfLink(), null)",
        "__.createDocument(__.getSelfLink(), () => 1)",
        "__.createDocument(__.getSelfLink(), {}, 5)",
        "__.createDocument(__.getSelfLink(), {}, {}, 5)",
        "__.queryDocuments(__.getSelfLink(), null)",
        "__.queryDocuments(__.getSelfLink(), 'SELECT 1', {pageSize: '1'})",
        "__.readDocuments(__.getSelfLink(), {pageSize: 'Invalid header type'})",
        "__.readDocuments(__.getSelfLink(), {pageSize: {}})",
        "__.readDocuments(__.getSelfLink(), {pageSize: true})",
        "__.readDocuments(__.getSelfLink(), {pageSize: NaN})",
        "__.filter(() => true, {pageSize: []})",
        "__.createDocument(__.getSelfLink(), {}, {indexAction: 'Invalid Value'})",
        "__.createDocument(__.getSelfLink(), {}, {indexAction: 1})",
        "__.upsertDocument(__.getSelfLink(), {}, {indexAction: ''})",
        "__.replaceDocument(__.getSelfLink(), {}, {indexAction: {}})",
        "__.filter(5)",
        "__.pluck()",
    ] {
        let source = format!("() => {{ try {{ {call} }} catch (e) {{ __.response.setBody(e.number) }} }}");
        assert_eq!(body(&source), json!(400), "{call}");
    }
}

#[test]
fn index_actions_are_words_in_any_case() {
    for word in ["default", "include", "exclude", "Exclude", "INCLUDE"] {
        let source = format!(
            "() => {{ __.createDocument(__.getSelfLink(), {{id: 'a'}}, {{indexAction: '{word}'}}, (err) => {{ if (err) throw err }}) }}"
        );
        let (result, shelf) = execute(&source, json!([]), Shelf::default());
        assert!(result.is_ok() && shelf.items.len() == 1, "{word}: {result:?}");
    }
}

/// As the .NET SDK's suite has it (ExecuteTestWith…Parameters).
#[test]
fn arguments_are_applied_as_a_function_applies_them() {
    let limits = Limits::default();
    let program =
        "function (...given) { __.response.setBody([given.length, ...given.filter(x => x !== undefined)]) }";
    let program = Program::compile("p", program, &limits).expect("it is a function");
    let run = |arguments: &str| {
        let done =
            orrery_script::call_procedure(&program, arguments.as_bytes(), false, Shelf::default(), &limits);
        done.result
            .map(|output| serde_json::from_slice::<Value>(&output.body.expect("a body")).expect("it is JSON"))
    };
    for (arguments, expected) in [
        ("", json!([0])),
        ("null", json!([0])),
        ("[]", json!([0])),
        ("{}", json!([0])),
        (r#"{"param1":4}"#, json!([0])),
        (r#"{"0":4}"#, json!([0])),
        (r#"["a",null,[1]]"#, json!([3, "a", null, [1]])),
        (r#"{"0":"a","length":1}"#, json!([1, "a"])),
        (r#"{"0":"a","length":"1"}"#, json!([1, "a"])),
        (r#"{"0":"a","1":"b","length":1.5}"#, json!([1, "a"])),
        (r#"{"0":"a","2":"c","length":3}"#, json!([3, "a", "c"])),
        (r#"{"2":"c","1":"b","0":"a","length":3}"#, json!([3, "a", "b", "c"])),
        (r#"{"0":"a","length":10000}"#, json!([10000, "a"])),
        (r#"{"0":"a","length":-1}"#, json!([0])),
        (r#"{"0":"a","length":"x"}"#, json!([0])),
        (r#"{"0":"a","length":null}"#, json!([0])),
    ] {
        assert_eq!(run(arguments), Ok(expected), "{arguments}");
    }
    for arguments in [
        "1",
        "\"text\"",
        "true",
        "false",
        r#"{"length":600000}"#,
        r#"{"0":"a","length":1e9}"#,
        "{\"length\":32768}",
    ] {
        assert_eq!(run(arguments), Err(ScriptError::Arguments), "{arguments}");
    }
    let many = format!("[{}1]", "1,".repeat(32_767));
    assert_eq!(run(&many), Err(ScriptError::Arguments), "as many as are refused when they are counted");
}

#[test]
fn texts_that_are_not_functions_or_arguments_that_are_not_json_do_not_run() {
    let limits = Limits::default();
    let text = Program::compile("t", "1 + 1", &limits).expect("it is an expression");
    let run = |program: &Program, arguments: &[u8]| {
        orrery_script::call_procedure(program, arguments, false, Shelf::default(), &limits).result
    };
    assert_eq!(run(&text, b""), Err(ScriptError::NotAFunction));
    let function = Program::compile("t", "() => 1", &limits).expect("it is a function");
    assert!(run(&function, b"").is_ok());
    assert_eq!(run(&function, b"[1,"), Err(ScriptError::Arguments));
    assert_eq!(run(&function, b"\xff"), Err(ScriptError::Arguments));
    let deep = "[".repeat(1 << 20);
    assert_eq!(run(&function, deep.as_bytes()), Err(ScriptError::Arguments));
}
