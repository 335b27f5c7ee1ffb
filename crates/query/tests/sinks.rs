//! In whatever form rows leave, they are the same rows.

use orrery_doc::{Doc, json};
use orrery_query::{
    Carry, Context, Documents, Flow, PageEnd, Parameters, Program, QueryError, Room, Row, Rows, Run, Sink,
    compile,
};

const TEXTS: [&str; 12] = [
    "SELECT * FROM c",
    "SELECT c.id, c.a FROM c",
    "SELECT VALUE c.a FROM c",
    "SELECT VALUE {x: c.a, y: [c.b, 1.5, null, {z: c.list}]} FROM c",
    "SELECT * FROM c ORDER BY c.a DESC",
    "SELECT VALUE [c.id, t] FROM c JOIN t IN c.list ORDER BY c.id",
    "SELECT TOP 3 VALUE c.b FROM c ORDER BY c.id",
    "SELECT c.b, COUNT(1) AS n, MAKELIST(c.a) AS all FROM c GROUP BY c.b",
    "SELECT VALUE AVG(LENGTH(c.id) / 2) FROM c",
    "SELECT DISTINCT VALUE c.b FROM c",
    "SELECT VALUE r.id FROM (SELECT c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2) AS r",
    "SELECT VALUE 1 + 1",
];

fn items() -> Vec<Doc> {
    let texts = [
        r#"{"id":"1","a":1,"b":"x","list":[1,2,3]}"#,
        r#"{"id":"2","a":2.5,"b":"é\n","list":["x",true]}"#,
        r#"{"id":"3","a":-3,"b":"x","list":[]}"#,
        r#"{"id":"4","a":"x","b":2}"#,
        r#"{"id":"5","a":null,"b":[1,2],"list":[2.5,{"k":null}]}"#,
        r#"{"id":"6","b":{"k":1}}"#,
    ];
    texts.iter().map(|text| json::parse(text.as_bytes(), 8).expect("a test item")).collect()
}

/// One page; a program that answers each item at once is given those that it has not seen.
fn page(
    program: &Program,
    out: &mut dyn Sink,
    rows: usize,
    carry: Option<Carry>,
    first: &mut usize,
) -> PageEnd {
    let context = Context::at(0, 0);
    let room = Room { rows, bytes: usize::MAX };
    let mut run = Run::start(program, &context, room, carry.as_ref()).expect("it starts");
    if !program.needs_items() {
        run.feed_nothing(out).expect("it runs");
        *first = usize::MAX;
        return run.finish(out).expect("it ends");
    }
    let docs = items();
    let from = if program.is_blocking() { 0 } else { *first };
    let mut flow = Flow::More;
    for (place, doc) in docs.iter().enumerate().skip(from) {
        *first = place;
        flow = run.feed(&Row::plain(doc.as_ref()), out).expect("it runs");
        if flow != Flow::More {
            break;
        }
    }
    if flow == Flow::More {
        *first = usize::MAX;
    }
    run.finish(out).expect("it ends")
}

/// All rows, in pages of so many, each with a sink of its own.
fn all<S: Sink + Default>(program: &Program, rows: usize, show: impl Fn(&S) -> Vec<String>) -> Vec<String> {
    let (mut shown, mut carry, mut first) = (Vec::new(), None, 0);
    loop {
        let mut out = S::default();
        let end = page(program, &mut out, rows, carry.take(), &mut first);
        let texts = show(&out);
        assert_eq!(texts.len(), out.len());
        assert!(
            out.len() <= rows && out.is_empty() == texts.is_empty() && out.memory_bytes() >= out.byte_len()
        );
        shown.extend(texts);
        match end {
            PageEnd::Continue(next) if program.is_blocking() || first != usize::MAX => carry = Some(next),
            _ => return shown,
        }
    }
}

fn as_text(rows: &Rows) -> Vec<String> {
    rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

fn as_documents(rows: &Documents) -> Vec<String> {
    let show = |row: &Doc| {
        let mut out = Vec::new();
        json::write(row.root(), &mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    };
    rows.iter().map(show).collect()
}

#[test]
fn documents_are_the_rows_that_json_shows() {
    for text in TEXTS {
        let program = compile(text, &Parameters::new()).expect(text);
        let expected = all(&program, usize::MAX, as_text);
        assert!(!expected.is_empty(), "{text}");
        for rows in [1, 2, usize::MAX] {
            assert_eq!(all(&program, rows, as_text), expected, "{text} in pages of {rows}");
            assert_eq!(all(&program, rows, as_documents), expected, "{text} in pages of {rows}");
        }
    }
}

#[test]
fn a_row_that_is_too_long_leaves_no_trace_in_any_form() {
    let row = orrery_query::Val::text("x".repeat(100));
    let (mut texts, mut documents) = (Rows::default(), Documents::default());
    let sinks: [&mut dyn Sink; 2] = [&mut texts, &mut documents];
    for sink in sinks {
        assert!(matches!(sink.push(&row, 50), Err(QueryError::LimitExceeded(_))));
        assert!(sink.is_empty() && sink.byte_len() == 0);
        let mut held = Vec::new();
        assert!(sink.hold(&row, 50, &mut held).is_err() && held.is_empty());
        sink.push(&row, 200).expect("short enough");
        assert_eq!(sink.len(), 1);
    }
}

#[test]
fn a_row_that_names_one_part_many_times_is_refused_before_it_is_made() {
    let twice = |value: orrery_query::Val<'static>| orrery_query::Val::array(vec![value.clone(), value]);
    let row = (0..40).fold(orrery_query::Val::text("x".repeat(100)), |row, _| twice(row));
    let (mut texts, mut documents) = (Rows::default(), Documents::default());
    let sinks: [&mut dyn Sink; 2] = [&mut texts, &mut documents];
    for sink in sinks {
        assert!(matches!(sink.push(&row, 1 << 20), Err(QueryError::LimitExceeded(_))));
        assert!(sink.is_empty());
    }
}
