//! User-defined functions over rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::{Doc, Value, json};
use orrery_script::{Argument, FunctionRunner, Functions, Limits, Program, ScriptError};

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), json::DEFAULT_MAX_DEPTH).expect("the text is JSON")
}

fn functions(sources: &[(&str, &str)], limits: Limits) -> Functions {
    let compiled = sources.iter().map(|(name, source)| {
        let program = Program::compile(name, source, &limits).expect("the text is a program");
        ((*name).to_owned(), Arc::new(program))
    });
    Functions::new(compiled.collect::<HashMap<_, _>>(), limits.clone())
}

fn text(value: Option<Doc>) -> String {
    let Some(value) = value else { return "undefined".to_owned() };
    let mut out = Vec::new();
    json::write(value.root(), &mut out);
    String::from_utf8(out).expect("JSON is UTF-8")
}

#[test]
fn values_go_in_and_come_out_as_they_are() {
    let set = functions(&[("same", "function (x) { return x }")], Limits::default());
    for sample in [
        "null",
        "true",
        "0",
        "-7",
        "1.5",
        "-0.0",
        "1e300",
        "9007199254740991",
        "\"\"",
        "\"g\u{fc}n\\u0000\"",
        "[]",
        "{}",
        r#"{"b":1,"a":[1,{"c":null}]}"#,
        r#"{"__proto__":{"x":1},"toJSON":1}"#,
    ] {
        let value = doc(sample);
        let expected = text(Some(value.clone()));
        let direct = set.call("same", &[Argument::Value(value.root())]).expect("the function is right");
        assert_eq!(text(direct), expected.replace("-0.0", "-0"), "{sample}");
        let parsed = set.call("same", &[Argument::Json(sample.as_bytes())]).expect("the function is right");
        assert_eq!(text(parsed), expected, "{sample}");
    }
    let undefined = set.call("same", &[Argument::Value(Value::Undefined)]).expect("the function is right");
    assert_eq!(text(undefined), "undefined");
    assert_eq!(text(set.call("same", &[]).expect("the function is right")), "undefined");
}

#[test]
fn results_that_are_not_json_are_what_json_makes_of_them() {
    for (source, expected) in [
        ("() => NaN", "null"),
        ("() => 1 / 0", "null"),
        ("() => () => 1", "undefined"),
        ("() => Symbol()", "undefined"),
        ("() => new Date(0)", "\"1970-01-01T00:00:00.000Z\""),
        ("() => ({ toJSON() { return [1] } })", "[1]"),
        ("() => '\\ud800'", "\"\\ud800\""),
        ("() => typeof getContext + typeof __", "\"undefinedundefined\""),
    ] {
        let set = functions(&[("f", source)], Limits::default());
        let result = set.call("f", &[]);
        if source.contains("ud800") {
            // Half a character cannot be stored.
            assert!(result.is_err(), "{source}");
        } else {
            assert_eq!(text(result.expect("the function is right")), expected, "{source}");
        }
    }
}

#[test]
fn failures_name_their_cause_and_leave_the_engine_usable() {
    let set = functions(
        &[
            ("throws", "function tax(x) {\n  throw new Error('no tax')\n}"),
            ("cyclic", "() => { const a = []; a.push(a); return a }"),
            ("big", "() => 1n"),
            ("works", "(a, b) => a + b"),
            ("nothing", "42"),
            ("hoard", "() => { let s = 'x'; for (;;) s += s }"),
        ],
        Limits::default(),
    );
    let error = set.call("throws", &[]).expect_err("it throws");
    assert!(error.text().contains("Error: no tax\n   at tax (throws.js:2:"), "{}", error.text());
    assert!(matches!(set.call("cyclic", &[]), Err(ScriptError::Threw { .. })));
    assert!(matches!(set.call("big", &[]), Err(ScriptError::Threw { .. })));
    assert!(matches!(
        set.call("hoard", &[]),
        Err(ScriptError::OutOfMemory { .. } | ScriptError::Threw { .. })
    ));
    assert!(matches!(set.call("nothing", &[]), Err(ScriptError::NotAFunction)));
    assert!(matches!(set.call("none", &[]), Err(ScriptError::UnknownFunction(name)) if name == "none"));
    let two = [Argument::Value(Value::Int(1)), Argument::Value(Value::Int(2))];
    assert_eq!(text(set.call("works", &two).expect("it adds")), "3");
}

#[test]
fn the_time_of_all_calls_counts_together() {
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let started = Instant::now();
    let set = functions(&[("spin", "() => { for (let i = 0; i < 100000; i++); }")], limits.clone());
    let failed = (0..10_000).find_map(|_| set.call("spin", &[]).err());
    assert_eq!(failed, Some(ScriptError::TimedOut { limit: limits.time }));
    assert_eq!(set.call("spin", &[]), Err(ScriptError::TimedOut { limit: limits.time }));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn sets_do_not_see_each_other() {
    let source = "() => { globalThis.count = (globalThis.count || 0) + 1; return count }";
    let first = functions(&[("count", source)], Limits::default());
    let second = functions(&[("count", source)], Limits::default());
    let count = |set: &Functions| text(set.call("count", &[]).expect("it counts"));
    assert_eq!((count(&first), count(&first)), ("1".to_owned(), "2".to_owned()));
    assert_eq!(count(&second), "1");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| count(&second));
        assert_eq!(other.join().expect("the thread ends"), "1");
    });
}

#[test]
fn promises_of_functions_do_not_pile_up() {
    // All calls share the time, and this is about their memory.
    let limits = Limits { memory_bytes: 4 << 20, time: Duration::from_secs(300), ..Limits::default() };
    let program =
        Program::compile("p", "async (x) => { await x; return x }", &limits).expect("it is a program");
    let mut runner = FunctionRunner::new(limits).expect("the engine starts");
    runner.add("p", &program).expect("it is a function");
    for _ in 0..100_000 {
        let result = runner.call("p", &[Argument::Value(Value::Int(1))]).expect("it answers a promise");
        assert_eq!(text(result), "{}");
    }
}
