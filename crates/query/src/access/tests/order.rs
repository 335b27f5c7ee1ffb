//! Pages in the order of an index against pages of a sort.

use proptest::prelude::*;

use super::*;
use crate::run::{Carry, Flow, PageEnd, Room, Rows, Run};

fn page(
    program: &Program,
    docs: &[Doc],
    size: usize,
    carry: Option<&Carry>,
    presorted: bool,
) -> (Vec<String>, Option<Carry>) {
    let cx = Context::at(0, 0);
    let mut out = Rows::default();
    let mut run =
        Run::start(program, &cx, Room { rows: size, bytes: usize::MAX }, carry).expect("the run starts");
    let mut order: Vec<usize> = (0..docs.len()).collect();
    let term = |at: &usize| {
        let mut term = Vec::new();
        encode_term(docs[*at].root().get("x"), TermOrder::Sql, &mut term);
        term
    };
    if presorted {
        let descending = matches!(
            plan_access(program, &Ready::default()).order,
            Some(IndexOrder::Single { direction: Direction::Descending, .. })
        );
        // Entries of one term come in the order of keys, not of creation.
        order.sort_by_key(|at| (term(at), std::cmp::Reverse(*at)));
        if descending {
            order.reverse();
        }
    }
    let mut last = None;
    let one_per_term = plan_access(program, &Ready::default()).one_per_term;
    for at in order {
        let is_cut = term(&at).ends_with(&[0, 1]);
        if presorted && one_per_term && !is_cut && last.as_ref() == Some(&term(&at)) {
            continue;
        }
        if presorted
            && last.as_ref().is_some_and(|last| *last != term(&at))
            && run.end_ties(&mut out).expect("ties end") != Flow::More
        {
            break;
        }
        last = Some(term(&at));
        let place = (at as u64).to_be_bytes();
        let row = Row { doc: docs[at].as_ref(), system: None, place: &place };
        run.feed(&row, &mut out).expect("the query runs");
    }
    let end = run.finish(&mut out).expect("the page ends");
    let rows = out.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
    (
        rows,
        match end {
            PageEnd::Done => None,
            PageEnd::Continue(carry) => Some(carry),
        },
    )
}

fn pages(program: &Program, docs: &[Doc], size: usize, mode: impl Fn(usize) -> bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut carry = None;
    for number in 0.. {
        let (rows, next) = page(program, docs, size, carry.as_ref(), mode(number));
        all.extend(rows);
        carry = next.map(|carry| Carry::from_bytes(&carry.to_bytes()).expect("a carry survives"));
        if carry.is_none() {
            break;
        }
        assert!(number < 1_000, "pages must end");
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn index_order_gives_the_rows_of_a_sort(
        values in prop::collection::vec(prop::sample::select(vec![
            "1".to_owned(), "2".into(), "2.0".into(), "null".into(), "\"a\"".into(), "true".into(), "[1]".into(),
            format!("\"{}b\"", "x".repeat(130)), format!("\"{}a\"", "x".repeat(130)), "".into(),
        ]), 0..25),
        size in 1usize..6,
        text in prop::sample::select(vec![
            "SELECT VALUE c.id FROM c ORDER BY c.x",
            "SELECT VALUE c.id FROM c ORDER BY c.x DESC",
            "SELECT VALUE c.id FROM c WHERE IS_STRING(c.x) ORDER BY c.x",
            "SELECT TOP 7 VALUE c.id FROM c ORDER BY c.x DESC",
            "SELECT VALUE c.id FROM c ORDER BY c.x OFFSET 3 LIMIT 5",
            "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.x DESC",
            "SELECT DISTINCT VALUE c.x FROM c",
            "SELECT DISTINCT c.x FROM c OFFSET 1 LIMIT 4",
            "SELECT DISTINCT TOP 3 VALUE c.x FROM c ORDER BY c.x DESC",
            "SELECT DISTINCT VALUE c.x FROM c JOIN t IN c.tags",
        ]),
    ) {
        let docs: Vec<Doc> = values.iter().enumerate().map(|(i, x)| {
            let x = if x.is_empty() { String::new() } else { format!(",\"x\":{x}") };
            document(&format!("{{\"id\":\"{i}\",\"tags\":[\"{i}a\",\"{i}b\"]{x}}}"))
        }).collect();
        let program = program(text);
        prop_assert!(program.can_be_presorted());
        if text == "SELECT DISTINCT VALUE c.x FROM c" {
            let plain = self::program("SELECT VALUE c.x FROM c");
            let rows = plain.run_all(docs.iter().map(|doc| Row::plain(doc.as_ref())), &Context::at(0, 0));
            let mut values: Vec<String> =
                rows.expect("the query runs").iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
            values.iter_mut().for_each(|value| if value == "2.0" { *value = "2".into() });
            values.sort();
            values.dedup();
            let mut found = pages(&program, &docs, size, |_| true);
            found.iter_mut().for_each(|value| if value == "2.0" { *value = "2".into() });
            found.sort();
            prop_assert_eq!(found, values);
        }
        let sorted = pages(&program, &docs, size, |_| false);
        let whole = pages(&program, &docs, 1_000, |_| false);
        prop_assert_eq!(&sorted, &whole, "pages of a sort: {}", text);
        prop_assert_eq!(&sorted, &pages(&program, &docs, size, |_| true), "in index order: {}", text);
        prop_assert_eq!(&sorted, &pages(&program, &docs, size, |page| page % 2 == 0), "in turn: {}", text);
    }
}
