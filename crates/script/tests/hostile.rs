//! Scripts that mean harm, to the server, to its time, its memory, or to our own glue.

mod shelf;

use std::time::{Duration, Instant};

use orrery_script::{Limits, ScriptError};
use serde_json::{Value, json};
use shelf::{Shelf, body, execute, finish};

/// For scripts that never end by themselves.
const SHORT: Duration = Duration::from_millis(300);
/// For scripts that end for another reason than time, also on a machine that is busy.
const LONG: Duration = Duration::from_secs(60);
/// What does not end by then does not end by itself; a busy machine may well take some of it.
const SOON: Duration = Duration::from_secs(60);

fn within(time: Duration) -> Limits {
    Limits { time, accepting: time / 2, ..Limits::default() }
}

/// Runs a script that something else than its time must stop.
fn attack(source: &str) -> Result<Value, ScriptError> {
    attack_within(source, &within(LONG))
}

/// Runs a script, sees that it ends soon after its time at the latest, and that the next one is unharmed.
fn attack_within(source: &str, limits: &Limits) -> Result<Value, ScriptError> {
    let started = Instant::now();
    let finished = finish(source, json!([]), Shelf::default(), limits);
    let took = started.elapsed();
    assert!(took < limits.time + SOON, "{took:?} for {source}");
    assert_eq!(body("() => { __.response.setBody([1, 'x'.indexOf('x')]) }"), json!([1, 0]));
    finished.result.map(|output| match output.body {
        Some(body) => serde_json::from_slice(&body).expect("bodies are JSON"),
        None => Value::Null,
    })
}

#[test]
fn endless_work_is_stopped_and_cannot_be_caught() {
    for source in [
        "() => { for (;;); }",
        "() => { for (;;) { try { for (;;); } catch (e) { } finally { } } }",
        "() => { while (true) { try { [1].forEach(() => { for (;;); }) } catch { } } }",
        "() => { (function next() { Promise.resolve().then(next) })() }",
        "async () => { for (;;) await null }",
        "() => { const p = Promise.resolve(); const f = () => { p.then(f); p.then(f) }; f() }",
        "() => /^(a+)+$/.test('a'.repeat(40) + 'b')",
        "() => { for (;;) { try { /(x+x+)+y/.exec('x'.repeat(100)) } catch { } } }",
        "() => 'a'.repeat(60).replace(/(.*)*$.*b/, '')",
        "() => { function* g() { for (;;) yield 1 } for (const x of g()); }",
        "() => [...{ *[Symbol.iterator]() { for (;;) { } } }]",
        "() => { for (;;) JSON.stringify({ toJSON() { for (;;); } }) }",
        "() => { __.response.setBody({ toJSON() { for (;;); } }) }",
        "() => { throw { get stack() { for (;;); }, toString() { for (;;); } } }",
        "() => { throw { get message() { for (;;); }, get number() { for (;;); } } }",
        "() => { const next = () => __.readDocument(__.getSelfLink() + 'docs/x', next); next(); for (;;); }",
        "() => [].indexOf.call({ length: 2 ** 53 - 1 }, 1)",
        "() => [].forEach.call({ length: 2 ** 53 - 1 }, () => 1)",
        "() => [].map.call({ length: 2 ** 32 - 1 }, () => 1)",
        "() => [].reduceRight.call({ length: 2 ** 53 - 1 }, () => 1)",
        "() => { class A extends Array { constructor() { for (;;); } } new A() }",
        "() => { for (let n = 1n; ; ) n = (n * n + 1n) % (1n << 400n) }",
        "() => { let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; __.response.setBody(a) }",
    ] {
        let result = attack_within(source, &within(SHORT));
        let stopped = matches!(
            result,
            Err(ScriptError::TimedOut { .. }
                | ScriptError::TooManyJobs { .. }
                | ScriptError::OutOfMemory { .. })
        );
        assert!(stopped, "{source}: {result:?}");
    }
}

#[test]
fn work_that_the_engine_does_not_poll_is_refused() {
    for source in [
        "() => [].fill.call({ length: 2 ** 53 - 1 }, 1)",
        "() => [].reverse.call({ length: 2 ** 53 - 1 })",
        "() => { const a = []; a.length = 4294967295; a.join('') }",
        "() => { const a = []; a.length = 4294967295; '' + a }",
        "() => { const a = []; a.length = 4294967295; a.sort() }",
        "() => { const a = []; a.length = 4294967295; [].concat(a) }",
        "() => { const a = []; a.length = 4294967295; a.shift() }",
        "() => { const s = 'a'.repeat(2e6); s.indexOf('a'.repeat(1e6) + 'b') }",
        "() => { const s = 'a'.repeat(2e6); s.split('a'.repeat(1e6) + 'b') }",
        "() => { const s = 'a'.repeat(2e6); s.replaceAll('a'.repeat(1e6) + 'b', '') }",
        "() => ('e' + '\\u0301\\u0323'.repeat(1e6)).normalize('NFD')",
    ] {
        let result = attack(source);
        assert!(
            matches!(&result, Err(ScriptError::Threw { message, .. }) if message.starts_with("RangeError")),
            "{source}: {result:?}"
        );
    }
    let folded = "() => { let a = []; for (let i = 0; i < 60; i++) a = [a, a]; a.flat(Infinity) }";
    assert!(matches!(attack_within(folded, &within(SHORT)), Err(ScriptError::TimedOut { .. })));
    let flat = "() => __.response.setBody([[1, [2]], 3, [[[4]]]].flat(2))";
    assert_eq!(attack(flat), Ok(json!([1, 2, 3, [4]])));
}

#[test]
fn memory_is_bounded_and_comes_back() {
    for source in [
        "() => { let s = 'x'; for (;;) s += s }",
        "() => { let s = 'x'; for (;;) s = s.repeat(2) + '\u{20ac}' }",
        "() => new Array(1e9).fill(0)",
        "() => { const a = []; for (;;) a.push(new Array(1000).fill({})) }",
        "() => { const a = {}; for (let i = 0; ; i++) a['k' + i] = i }",
        "() => new Uint8Array(1e9)",
        "() => { const a = []; for (;;) a.push(new ArrayBuffer(1 << 20)) }",
        "() => { const m = new Map(); for (let i = 0; ; i++) m.set(i, { i }) }",
        "() => { let f = () => 1; for (;;) { const g = f; f = () => g } }",
        "() => { const a = []; for (let i = 0; i < 1e7; i++) a.push(new Promise(() => { })); return Promise.all(a) }",
        "() => JSON.stringify(new Array(1e8).fill('xxxxxxxxxx'))",
        "() => 'x'.padStart(2 ** 29)",
        "() => { const a = []; for (;;) a.push(Symbol('x'.repeat(1000))) }",
    ] {
        let result = attack(source);
        let bounded = match &result {
            Err(ScriptError::OutOfMemory { .. } | ScriptError::TimedOut { .. }) => true,
            Err(ScriptError::Threw { message, .. }) => {
                message.starts_with("RangeError") || message == "InternalError: string too long"
            }
            _ => false,
        };
        assert!(bounded, "{source}: {result:?}");
    }
    // A script that catches the error can go on.
    let caught = "() => { try { let s = 'x'; for (;;) s += s } catch (e) { __.response.setBody('caught') } }";
    assert_eq!(attack(caught), Ok(json!("caught")));
}

/// Every allocation of a call fails once: nothing may crash or hang, whatever was half made.
#[test]
fn the_engine_survives_any_point_of_exhaustion() {
    let source = r#"
        async function f() {
            const made = [];
            for (let i = 0; i < 200; i++) {
                made.push({ i, text: 'x'.repeat(i * 10), list: [1, 2, [3, { n: i }]] });
                __.createDocument(__.getSelfLink(), made[i], (err, doc) => { made[i] = [doc, err, /a(b+)c/.exec('abbc')]; });
                await null;
            }
            try { new Map(made.map((m) => [m, JSON.stringify(m)])); } catch (e) { throw new Error(500, 'x' + e); }
            getContext().getResponse().setBody(made);
        }"#;
    let mut ends = std::collections::BTreeMap::new();
    for memory_bytes in (100_000..900_000).step_by(1_777) {
        let limits = Limits { memory_bytes, ..within(LONG) };
        let finished = finish(source, json!([]), Shelf::default(), &limits);
        let end = match finished.result {
            Ok(_) => "done",
            Err(ScriptError::OutOfMemory { .. }) => "out of memory",
            Err(ScriptError::Engine(_)) => "no engine",
            Err(ScriptError::Threw { .. }) => "threw",
            Err(_) => "other",
        };
        *ends.entry(end).or_insert(0) += 1;
    }
    let times = |end: &str| ends.get(end).copied().unwrap_or(0);
    assert!(times("done") > 3 && times("out of memory") > 10 && times("other") == 0, "{ends:?}");
    assert_eq!(body("() => { __.response.setBody(1) }"), json!(1));
}

#[test]
fn deep_recursion_ends_in_an_error_that_can_be_caught() {
    for source in [
        "() => { (function f() { f() })() }",
        "() => { const f = (n) => [n].map(f); f(1) }",
        "() => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; __.response.setBody(a) }",
        "() => { const o = { toString() { return '' + o } }; '' + o }",
        "() => { let s = '['.repeat(1e6); JSON.parse(s) }",
        "() => { class A { get x() { return this.x } } new A().x }",
        "() => { const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x }",
        "() => new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).exec('')",
    ] {
        let result = attack(source);
        assert!(
            matches!(result, Err(ScriptError::Threw { .. } | ScriptError::OutOfMemory { .. })),
            "{source}: {result:?}"
        );
    }
    let caught = "() => { let n = 0; try { (function f() { n++; f() })() } catch (e) { __.response.setBody(n > 100) } }";
    assert_eq!(attack(caught), Ok(json!(true)));
}

#[test]
fn code_cannot_be_made_from_text() {
    for source in [
        "() => eval('1')",
        "() => (0, eval)('1')",
        "() => new Function('return 1')()",
        "() => (() => 1).constructor('return 1')()",
        "() => (async () => 1).constructor('return 1')()",
        "() => (function* () { }).constructor('yield 1')()",
        "() => (async function* () { }).constructor('yield 1')()",
        "() => Reflect.construct(Function, ['return 1'])()",
        "() => Object.getPrototypeOf(console.log).constructor('return 1')()",
        "() => setTimeout(() => 1, 1)",
        "() => require('fs')",
        "() => new SharedArrayBuffer(8)",
        "() => Atomics.wait",
        "() => import('std')",
    ] {
        let result = attack(source);
        assert!(matches!(result, Err(ScriptError::Threw { .. })), "{source}: {result:?}");
    }
    assert_eq!(attack("() => __.response.setBody((() => 1) instanceof Function)"), Ok(json!(true)));
}

#[test]
fn tricks_with_arguments_reach_the_host_as_plain_text_or_not_at_all() {
    let link = "__.getSelfLink()";
    for body in [
        "new Proxy({}, { get() { throw 1 } })",
        "{ get id() { throw 1 } }",
        "{ toJSON() { throw 1 } }",
        "{ toJSON() { return undefined } }",
        "{ toJSON() { return 5 } }",
        "{ n: 1n }",
        "(() => { const a = {}; a.a = a; return a })()",
        "'{\"id\": 1'",
        "'\\ud800'",
        "[]",
        "'[]'",
    ] {
        let source = format!(
            "() => {{ let said = 'nothing'; try {{ __.createDocument({link}, {body}, (err) => {{ __.response.setBody(err ? 'refused' : 'made') }}); }} catch (e) {{ __.response.setBody('threw') }} }}"
        );
        let (result, shelf) = execute(&source, json!([]), Shelf::default());
        let said = result.unwrap_or_else(|error| panic!("{body}: {}", error.text()));
        assert!(said == json!("refused") || said == json!("threw"), "{body}: {said}");
        assert!(shelf.items.is_empty(), "{body}");
    }
    for options in [
        "{ get etag() { throw 1 } }",
        "{ etag: Symbol() }",
        "{ etag: { toString() { throw 1 } } }",
        "{ indexAction: Object.create(null) }",
        "new Proxy({}, { get() { throw 1 } })",
    ] {
        let source = format!("() => {{ __.createDocument({link}, {{ id: 'a' }}, {options}) }}");
        let (result, shelf) = execute(&source, json!([]), Shelf::default());
        // A symbol has a text; it is a tag like others.
        assert!(result.is_err() || options.contains("Symbol()"), "{options}: {result:?}");
        assert!(shelf.items.is_empty() || options.contains("Symbol()"), "{options}");
    }
    for size in ["-1", "0", "1e300", "undefined", "null", "Infinity", "0.5"] {
        let source = format!(
            "() => {{ __.readDocuments({link}, {{ pageSize: {size} }}, (e, feed) => __.response.setBody(feed)) }}"
        );
        assert_eq!(body(&source), json!([]), "{size}");
    }
}

#[test]
fn our_glue_does_not_depend_on_prototypes_that_scripts_can_change() {
    let work = "__.createDocument(__.getSelfLink(), { id: 'a' }, (err, doc) => { \
                __.filter((d) => d.id == 'a', (err, found) => { __.response.setBody([doc.id, found.length]) }) })";
    for spoil in [
        "JSON.parse = JSON.stringify = () => { throw 1 }",
        "Array.prototype.push = Array.prototype.forEach = Array.prototype.sort = () => { throw 1 }",
        "Object.defineProperty = Object.freeze = () => { throw 1 }",
        "Reflect.apply = () => { throw 1 }",
        "Promise.prototype.then = () => { throw 1 }",
        "Object.defineProperty(Object.prototype, 'task', { set() { throw 1 }, get() { throw 1 } })",
        "Object.defineProperty(Object.prototype, 'next', { set() { throw 1 } })",
        "for (const k of ['status', 'continuation', 'notModified', 'value', 'get', 'set', 'body', '0', '1']) \
         Object.defineProperty(Object.prototype, k, { __proto__: null, set() { throw 1 }, configurable: true })",
        "Array.prototype[Symbol.iterator] = () => { throw 1 }",
        "String.prototype.toWellFormed = String.prototype.slice = String.prototype.replace = () => { throw 1 }",
        "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw 1 }",
        "globalThis.Error = globalThis.String = globalThis.Array = globalThis.Object = undefined",
        "Error.prototype.toString = () => { throw 1 }",
    ] {
        let source = format!("() => {{ {spoil}; console.log('x', 1); {work} }}");
        let (result, _) = execute(&source, json!([]), Shelf::default());
        assert_eq!(result, Ok(json!(["a", 1])), "{spoil}");
    }
    assert_eq!(body("() => __.response.setBody([].concat([1]))"), json!([1]));
}

#[test]
fn anything_can_be_thrown() {
    for thrown in [
        "Object.create(null)",
        "Symbol('x')",
        "{ toString() { throw 1 } }",
        "{ get stack() { throw 1 }, get number() { throw 2 } }",
        "new Proxy({}, { get() { throw 1 } })",
        "'x'.repeat(1e7)",
        "'\\ud800'",
        "Object.assign(new Error('x'), { stack: 'a\\u0000b\\u0000c', number: NaN })",
        "Object.assign(new Error('x'), { stack: 5, message: { toString: 5 } })",
        "(() => { const e = new Error('cyclic'); e.cause = e; return e })()",
        "function () { }",
    ] {
        for source in [
            format!("() => {{ throw {thrown} }}"),
            format!("async () => {{ throw {thrown} }}"),
            format!(
                "() => {{ __.upsertDocument(__.getSelfLink(), {{ id: 'a' }}, () => {{ throw {thrown} }}) }}"
            ),
        ] {
            let result = attack(&source);
            let Err(error @ ScriptError::Threw { .. }) = &result else { panic!("{source}: {result:?}") };
            assert!(error.text().len() < 40_000, "{source}");
        }
    }
}

#[test]
fn a_million_promises_end() {
    let source = "async () => { for (let i = 0; i < 1e6; i++) Promise.resolve(i).then(() => 1); }";
    let result = attack(source);
    assert!(
        matches!(result, Ok(_) | Err(ScriptError::TimedOut { .. } | ScriptError::OutOfMemory { .. })),
        "{result:?}"
    );
    let limits = Limits { jobs: 1_000, ..Limits::default() };
    let finished = finish("async () => { for (;;) await 1 }", json!([]), Shelf::default(), &limits);
    assert_eq!(finished.result, Err(ScriptError::TooManyJobs { limit: 1_000 }));
}

#[test]
fn one_script_leaves_nothing_for_the_next() {
    body(
        "() => { globalThis.left = 1; Array.prototype.left = 1; __.left = 1; getContext().left = 1; x = 2 }",
    );
    assert_eq!(
        body(
            "() => __.response.setBody([typeof left, typeof [].left, typeof __.left, typeof getContext().left, typeof x])"
        ),
        json!(["undefined", "undefined", "undefined", "undefined", "undefined"])
    );
}
