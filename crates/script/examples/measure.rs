//! Calls per second of procedures and of user-defined functions, on one thread.
//!
//! `cargo run --release -p orrery-script --example measure`

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::json;
use orrery_script::{
    Answer, Argument, Collection, Feed, Functions, Host, Limits, Program, Reply, Write, call_procedure,
};

struct Nowhere;

impl Host for Nowhere {
    fn collection(&self) -> Collection {
        Collection {
            self_link: "dbs/a/colls/b/".into(),
            alt_link: "dbs/a/colls/b".into(),
            ..Default::default()
        }
    }

    fn read(&mut self, _: &str, _: Option<&str>) -> Answer {
        Answer::refused(404, "nothing is here")
    }

    fn page(&mut self, _: Feed<'_>) -> Answer {
        Answer::done(Reply { body: "[]".into(), ..Reply::default() })
    }

    fn write(&mut self, write: Write<'_>) -> Answer {
        Answer::done(Reply { body: write.body.to_owned(), ..Reply::default() })
    }
}

const EMPTY: &str = "function f() { getContext().getResponse().setBody(1) }";
const HUNDRED: &str = r#"
function f(count) {
    var n = 0;
    next();
    function next(err) {
        if (err) throw err;
        if (n == count) return getContext().getResponse().setBody(n);
        n++;
        __.createDocument(__.getSelfLink(), { id: '' + n, name: 'item', price: n * 1.5 }, next);
    }
}"#;
const TAX: &str = "function tax(price, rate) { return price > 10 ? price * rate : 0 }";
const FIELDS: &str = "function sum(item) { return item.price + item.tags.length }";

fn main() {
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let compile = |source| Program::compile("measured", source, &limits).expect("the scripts are right");
    for (name, source) in [("an empty procedure", EMPTY), ("a procedure that creates 100 items", HUNDRED)] {
        let program = compile(source);
        rate(name, || {
            let finished = call_procedure(&program, b"[100]", false, Nowhere, &limits);
            finished.result.expect("the scripts are right");
        });
    }
    rate("checking a text", || drop(compile(HUNDRED)));
    let programs =
        [("tax", TAX), ("sum", FIELDS)].map(|(name, source)| (name.to_owned(), Arc::new(compile(source))));
    let functions = Functions::new(HashMap::from(programs), limits.clone());
    let item = json::parse(br#"{"id":"1","price":12.5,"tags":["a","b"],"text":"some words here"}"#, 10)
        .expect("the item is JSON");
    let price = Argument::Value(item.root().get("price"));
    rate("a function of two numbers", || {
        functions.call("tax", &[price, price]).expect("the scripts are right");
    });
    rate("a function of an item", || {
        functions.call("sum", &[Argument::Value(item.root())]).expect("the scripts are right");
    });
}

fn rate(name: &str, mut work: impl FnMut()) {
    let started = Instant::now();
    let mut calls = 0u32;
    while started.elapsed() < Duration::from_secs(1) {
        work();
        calls += 1;
    }
    println!("{name}: {:.0}/s", f64::from(calls) / started.elapsed().as_secs_f64());
}
