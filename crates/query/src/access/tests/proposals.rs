//! Random filters over random items.

use proptest::prelude::*;

use super::*;

const PATHS: [&str; 8] = ["c.a", "c.b", "c.n.a", "c.list", "c.list[0]", "c.id", "c.objects[1].a", "c[\"b\"]"];

fn constant() -> impl Strategy<Value = String> {
    let long = "x".repeat(140);
    prop_oneof![
        3 => (-2i64..4).prop_map(|number| number.to_string()),
        1 => Just("1.5".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
        1 => Just("undefined".to_owned()),
        3 => prop_oneof![Just("''"), Just("'a'"), Just("'ab'"), Just("'abc'"), Just("'b'")].prop_map(str::to_owned),
        1 => Just(format!("'{long}'")),
        1 => Just(format!("'{long}y'")),
        1 => Just("[1]".to_owned()),
        1 => Just("[]".to_owned()),
        1 => Just("{\"a\": 1}".to_owned()),
        1 => Just("9007199254740993".to_owned()),
    ]
}

fn subject(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(names).prop_map(str::to_owned)
}

pub(super) fn simple(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let op = prop::sample::select(&["=", "!=", "<", "<=", ">", ">="][..]);
    let check = prop::sample::select(
        &[
            "IS_DEFINED",
            "IS_NULL",
            "IS_BOOL",
            "IS_NUMBER",
            "IS_STRING",
            "IS_ARRAY",
            "IS_OBJECT",
            "IS_PRIMITIVE",
        ][..],
    );
    let text = prop::sample::select(&["STARTSWITH", "STRINGEQUALS", "CONTAINS", "ENDSWITH"][..]);
    let pattern = prop::sample::select(&["a%", "ab", "%b", "_b%", "", "%"][..]);
    let flag = prop::sample::select(&["", ", true", ", false"][..]);
    prop_oneof![
        4 => (subject(names), op.clone(), constant()).prop_map(|(s, o, v)| format!("{s} {o} {v}")),
        1 => (subject(names), op, constant()).prop_map(|(s, o, v)| format!("{v} {o} {s}")),
        1 => (subject(names), any::<bool>(), constant(), constant()).prop_map(|(s, not, a, b)| {
            format!("{s} {} BETWEEN {a} AND {b}", if not { "NOT" } else { "" })
        }),
        2 => (subject(names), any::<bool>(), prop::collection::vec(constant(), 1..4)).prop_map(|(s, not, list)| {
            format!("{s} {} IN ({})", if not { "NOT" } else { "" }, list.join(", "))
        }),
        1 => (constant(), subject(names), subject(names)).prop_map(|(v, a, b)| format!("{v} IN ({a}, {b})")),
        2 => (check, subject(names)).prop_map(|(check, s)| format!("{check}({s})")),
        2 => (text, subject(names), constant(), flag.clone()).prop_map(|(f, s, v, flag)| {
            format!("{f}({s}, {v}{flag})")
        }),
        1 => (subject(names), any::<bool>(), pattern).prop_map(|(s, not, pattern)| {
            format!("{s} {} LIKE '{pattern}'", if not { "NOT" } else { "" })
        }),
        2 => (subject(names), constant(), flag).prop_map(|(s, v, flag)| format!("ARRAY_CONTAINS({s}, {v}{flag})")),
        1 => (subject(names), constant()).prop_map(|(s, v)| format!("ARRAY_CONTAINS([{v}, 1, 'a'], {s})")),
        1 => (subject(names), constant(), constant(), any::<bool>()).prop_map(|(s, a, b, all)| {
            format!("ARRAY_CONTAINS_{}({s}, {a}, {b})", if all { "ALL" } else { "ANY" })
        }),
        1 => subject(names),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
    ]
}

pub(super) fn combined(leaf: BoxedStrategy<String>) -> BoxedStrategy<String> {
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|list| format!("({})", list.join(" AND "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|list| format!("({})", list.join(" OR "))),
            inner.clone().prop_map(|inner| format!("(NOT {inner})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a} ?? {b})")),
        ]
    })
    .boxed()
}

fn filter() -> BoxedStrategy<String> {
    const ELEMENT: [&str; 4] = ["t", "t.a", "c.a", "t[0]"];
    let element = combined(simple(&ELEMENT).boxed());
    let source = prop::sample::select(&["c.list", "c.objects", "c.n.a"][..]);
    let select = prop::sample::select(&["VALUE t", "VALUE t.a", "VALUE 1", "t", "VALUE COUNT(1)"][..]);
    let exists = prop_oneof![
        (source.clone(), select.clone(), element).prop_map(|(source, select, filter)| {
            format!("EXISTS(SELECT {select} FROM t IN {source} WHERE {filter})")
        }),
        (source, select).prop_map(|(source, select)| format!("EXISTS(SELECT {select} FROM t IN {source})")),
    ];
    combined(prop_oneof![5 => simple(&PATHS), 1 => exists].boxed())
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        (-2i64..4).prop_map(|number| number.to_string()),
        Just("1.5".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"a\"".to_owned()),
        Just("\"ab\"".to_owned()),
        Just("\"abc\"".to_owned()),
        Just("9007199254740992".to_owned()),
        Just(format!("\"{}\"", "x".repeat(140))),
        Just(format!("\"{}y\"", "x".repeat(140))),
    ]
}

pub(super) fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|list| format!("[{}]", list.join(","))),
            inner.prop_map(|value| format!("{{\"a\":{value}}}")),
        ]
    })
}

pub(super) fn item() -> impl Strategy<Value = String> {
    let field = (prop::sample::select(&["a", "b", "n", "list", "objects"][..]), value());
    prop::collection::btree_map(field.0, field.1, 0..5).prop_map(|fields| {
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        format!("{{\"id\":\"a\"{}}}", fields.concat())
    })
}

pub(super) fn check(text: &str, items: &[String], ready: &Ready) -> Result<(), TestCaseError> {
    let program = program(text);
    let access = plan_access(&program, ready);
    for json in items {
        let doc = document(json);
        let entries = ready.entries(&doc);
        let passes = rows_of(&program, &doc) > 0;
        let proposed = holds(&access.filter, &entries);
        prop_assert!(proposed || !passes, "{text}\nmisses {json}\n{:?}", access.filter);
        if access.filter_exact {
            prop_assert!(passes || !proposed, "{text}\nis not exact for {json}\n{:?}", access.filter);
        }
        let ordered_by = match &access.order {
            Some(IndexOrder::Single { path, .. }) => Some(path.clone()),
            Some(IndexOrder::Composite { index, .. }) => Some(composite::path_of(&ready.composites[*index])),
            None => None,
        };
        if let Some(path) = ordered_by {
            let term = entries.iter().find(|(at, _)| *at == path).map_or(&[0x10][..], |(_, term)| term);
            let known = access.order_terms.iter().any(|span| span.contains(term));
            prop_assert!(known || !passes, "{text}\nhas no order term for {json}\n{:?}", access.order_terms);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_item_with_a_row_is_missed(filter in filter(), items in prop::collection::vec(item(), 1..8)) {
        check(&format!("SELECT VALUE 1 FROM c WHERE {filter}"), &items, &Ready::default())?;
        check(&format!("SELECT VALUE 1 FROM c WHERE {filter} ORDER BY c.a"), &items, &Ready::default())?;
        check(&format!("SELECT VALUE c.a FROM c WHERE {filter} ORDER BY c.a"), &items, &Ready::default())?;
        check(&format!("SELECT VALUE c.list[0] FROM c WHERE {filter}"), &items, &Ready::default())?;
        let excluded = vec![IndexPath::of_names(&["a"]), IndexPath::of_names(&["list"]).elements()];
        check(&format!("SELECT VALUE 1 FROM c WHERE {filter}"), &items, &Ready { excluded, ..Ready::default() })?;
    }

    #[test]
    fn bounds_are_neither_too_narrow_nor_too_wide(filter in simple(&["c.a"]), values in prop::collection::vec(scalar(), 6..12)) {
        let items: Vec<String> = values.iter().map(|value| format!("{{\"a\":{value}}}")).collect();
        check(&format!("SELECT VALUE 1 FROM c WHERE {filter}"), &items, &Ready::default())?;
        check(&format!("SELECT VALUE 1 FROM c WHERE NOT ({filter})"), &items, &Ready::default())?;
    }

    #[test]
    fn joins_propose_all_items_that_have_rows(
        filter in combined(simple(&["t", "t.a", "c.a", "u", "t[0]"]).boxed()),
        inner in combined(simple(&["s", "s.a", "c.b"]).boxed()),
        items in prop::collection::vec(item(), 1..8),
    ) {
        let from = "FROM c JOIN t IN c.list JOIN u IN c.objects";
        check(&format!("SELECT VALUE 1 {from} WHERE {filter}"), &items, &Ready::default())?;
        let from = format!("FROM c JOIN t IN c.list JOIN u IN (SELECT VALUE s FROM s IN c.objects WHERE {inner})");
        check(&format!("SELECT VALUE 1 {from} WHERE {filter}"), &items, &Ready::default())?;
        let from = format!("FROM c JOIN (SELECT VALUE s.a FROM s IN c.objects WHERE {inner}) AS t JOIN u IN c.list");
        check(&format!("SELECT VALUE 1 {from} WHERE {filter}"), &items, &Ready::default())?;
        check(&format!("SELECT VALUE 1 FROM t IN c.list JOIN c IN t JOIN u IN c WHERE {filter}"), &items, &Ready::default())?;
    }
}
