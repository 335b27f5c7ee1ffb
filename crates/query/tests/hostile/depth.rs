//! Texts and values that are as deep as possible.

use orrery_query::{Features, Parameters, compile, describe};

use crate::{definition, doc, exercise};

/// Runs on a stack as small as that of a server's thread.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(body).unwrap().join().unwrap();
}

#[test]
fn no_depth_overflows_the_stack() {
    on_a_small_stack(|| {
        let pairs: &[(&str, &str)] = &[
            ("(", ")"),
            ("[", "]"),
            ("{'a': ", "}"),
            ("NOT ", ""),
            ("- ", ""),
            ("ABS(", ")"),
            ("1 + (", ")"),
            ("1 + ", ""),
            ("true AND (", ")"),
            ("c ? 1 : ", ""),
            ("(c ? ", " : 1)"),
            ("1 ?? ", ""),
            ("c[", "]"),
            ("1 IN (", ")"),
            ("'a' LIKE (", ")"),
            ("(SELECT VALUE ", ")"),
            ("ARRAY(SELECT VALUE ", " FROM c)"),
            ("EXISTS(SELECT VALUE ", ")"),
            ("(SELECT VALUE x FROM (SELECT VALUE ", ") AS x)"),
            ("ARRAY(SELECT k, COUNT(1) FROM k IN ", " GROUP BY k)"),
            ("IIF(true, ", ", 1)"),
            ("[(SELECT VALUE {'a': ", "})]"),
        ];
        let docs = [doc(&format!(r#"{{"id":"1","a":{}1{}}}"#, "[".repeat(100), "]".repeat(100)))];
        for (open, close) in pairs {
            for depth in
                [1, 5, 20, 30, 40, 41, 42, 43, 60, 63, 64, 100, 125, 126, 127, 128, 129, 200, 5_000, 50_000]
            {
                let text = format!("SELECT VALUE {}c{} FROM c", open.repeat(depth), close.repeat(depth));
                if text.len() < 400_000 {
                    let _ = exercise(&text, &Parameters::new(), &docs);
                }
            }
        }
        let members = format!("SELECT VALUE c{} FROM c", ".a".repeat(100_000));
        assert!(exercise(&members, &Parameters::new(), &docs).is_err());
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = doc(&format!(r#"{{"id":"1","a":{}1{}}}"#, open.repeat(120), close.repeat(120)));
            let docs = [deep.clone(), deep];
            for query in [
                "SELECT VALUE [[[c.a]]] FROM c WHERE c.a = c.a",
                "SELECT DISTINCT VALUE {'x': c} FROM c ORDER BY c.a",
                "SELECT VALUE TOSTRING([c, c]) FROM c",
                "SELECT VALUE STRINGTOARRAY(TOSTRING([[c.a]])) FROM c",
                "SELECT c.a, COUNT(1) FROM c GROUP BY c.a",
                "SELECT VALUE SETUNION([c.a], [[c.a]]) FROM c",
                "SELECT VALUE MAKESET([c.a]) FROM c",
                "SELECT VALUE ST_AREA({'type': 'Polygon', 'coordinates': c.a}) FROM c",
            ] {
                let _ = exercise(query, &Parameters::new(), &docs);
            }
        }
    });
}

/// What a client is given to send must be accepted when it sends it.
#[test]
fn rewritten_queries_parse_again() {
    for (operand, joint) in [("c.a", " + "), ("'a'", " || "), ("c.a", " - "), ("c.a", " & ")] {
        for count in [2, 63, 64, 65, 100, 120] {
            let chain = vec![operand; count].join(joint);
            let text = format!("SELECT {chain} AS x FROM c WHERE {chain} = 1 ORDER BY c.a");
            let plan = describe(&text, &Parameters::new(), &definition(), &Features::all()).unwrap();
            let rewritten =
                plan.info.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true");
            assert!(!rewritten.is_empty());
            compile(&rewritten, &Parameters::new()).unwrap_or_else(|error| panic!("{count}{joint}: {error}"));
        }
    }
}

/// Parentheses do not make the tree taller, so they alone never decide whether a chain is too long.
#[test]
fn trees_in_parentheses_are_as_tall_as_without() {
    on_a_small_stack(|| {
        let docs = [doc(r#"{"id":"1","a":1}"#)];
        for count in [10, 100, 124, 125, 126, 127, 128, 200, 5_000] {
            let chain = |n: usize| vec!["c.a"; n].join(" + ");
            for text in [
                format!("SELECT VALUE ({}) FROM c", chain(count)),
                format!("SELECT VALUE {}{}{} FROM c", "(".repeat(100), chain(count), ")".repeat(100)),
                format!("SELECT VALUE ({}) + ({}) FROM c", chain(count), chain(count)),
                format!("SELECT VALUE {}c.a{} FROM c", "(".repeat(count), " + c.a)".repeat(count)),
                format!("SELECT VALUE ({}){} FROM c", chain(count / 2), ".a".repeat(count / 2)),
            ] {
                let answer = exercise(&text, &Parameters::new(), &docs);
                assert!(answer.is_ok() || count > 100, "{count}: {text}");
                assert!(answer.is_err() || count < 200, "{count}: {}", &text[..60]);
            }
        }
    });
}
