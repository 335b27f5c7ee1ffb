//! Indexes of other kinds than that of a path: composite, tuple and spatial ones.

use proptest::prelude::*;

use super::proposals::{check, combined, item, simple, value};
use super::*;
use crate::compile::{ComputedProperty, Vocabulary, compile_with};

fn names(path: &str) -> IndexPath {
    IndexPath::of_names(&path.split('.').collect::<Vec<_>>())
}

fn composite(parts: &[(&str, Direction)]) -> CompositePaths {
    parts.iter().map(|(path, direction)| (names(path), *direction)).collect()
}

fn ready() -> Ready {
    use Direction::{Ascending as Up, Descending as Down};
    Ready {
        composites: vec![
            composite(&[("a", Up), ("b", Down)]),
            composite(&[("b", Down), ("a", Up), ("n.a", Down)]),
            composite(&[("x", Up), ("z", Up)]),
            composite(&[("x", Up), ("a", Up)]),
        ],
        tuples: vec![
            (names("es").elements(), vec![names("k")]),
            (names("es").elements(), vec![names("k"), names("v")]),
            (names("es").elements(), vec![names("v"), names("k")]),
        ],
        spatial: vec![names("loc"), names("spots").elements()],
        excluded: vec![names("x"), names("z")],
    }
}

fn explained(text: &str, ready: &Ready) -> String {
    let access = plan_access(&program(text), ready);
    let explained = explain(Some(&access), &Chosen::default());
    let json: Result<serde_json::Value, _> = serde_json::from_str(&explained.json);
    assert!(json.is_ok(), "{}", explained.json);
    explained.text.lines().skip(1).collect::<Vec<_>>().join("\n")
}

#[test]
fn composite_indexes_serve_equal_values_and_an_interval() {
    for (query, expected) in [
        ("* FROM c WHERE c.a = 1 AND c.b = 'x'", "filter (exact): (/a ASC, /b DESC) = 1, = \"x\""),
        ("* FROM c WHERE c.a = 1 AND c.b > 2", "filter (exact): (/a ASC, /b DESC) = 1, an interval"),
        (
            "* FROM c WHERE c.a > 1 AND c.b = 2 AND c.y = 3",
            "filter (exact): all of\n  (/b DESC, /a ASC, /n/a DESC) = 2, > 1\n  /y = 3",
        ),
        // An interval ends what the index can say.
        ("* FROM c WHERE c.a > 1 AND c.n.a = 2", "filter (exact): all of\n  /a > 1\n  /n/a = 2"),
        (
            "* FROM c WHERE c.a IN (1, 2) AND c.b = 3",
            "filter (exact): (/a ASC, /b DESC) = 1, = 3 or = 2, = 3",
        ),
        // No index begins with this path, so nothing is known of it.
        ("* FROM c WHERE c.z = 1", "filter: every item"),
        ("* FROM c WHERE c.z = 1 AND c.y = 1", "filter: /y = 1"),
        ("* FROM c WHERE c.z = 1 AND c.x = 1", "filter (exact): (/x ASC, /z ASC) = 1, = 1"),
        // No other index has this path.
        ("* FROM c WHERE c.x = 1", "filter (exact): (/x ASC, /a ASC) = 1"),
        (
            "* FROM c WHERE c.x != 1 AND c.y = 1",
            "filter (exact): all of\n  (/x ASC, /a ASC) is null or < 1 or > 1\n  /y = 1",
        ),
        ("* FROM c WHERE c.x = 1 OR c.y = 1", "filter (exact): any of\n  (/x ASC, /a ASC) = 1\n  /y = 1"),
        (
            "* FROM c WHERE c.a = 1 ORDER BY c.b",
            "filter (exact): /a = 1\norder: composite index 0, behind 1 equal values, backwards",
        ),
        (
            "* FROM c WHERE c.b = 1 ORDER BY c.a, c.n.a DESC",
            "filter (exact): /b = 1\norder: composite index 1, behind 1 equal values",
        ),
        ("* FROM c WHERE c.a = 1 ORDER BY c.a, c.b DESC", "filter (exact): /a = 1\norder: composite index 0"),
        ("* FROM c WHERE c.a > 1 ORDER BY c.b", "filter (exact): /a > 1\norder: /b ascending"),
        (
            "DISTINCT VALUE c.b FROM c WHERE c.a = 1 ORDER BY c.b",
            "filter (exact): (/a ASC, /b DESC) = 1, an interval",
        ),
    ] {
        assert_eq!(explained(&format!("SELECT {query}"), &ready()), expected, "{query}");
    }
}

/// A term that was cut ends an entry, and different values share it.
#[test]
fn long_values_end_an_entry() {
    let (long, longer) = ("x".repeat(140), format!("{}y", "x".repeat(140)));
    let items: Vec<String> = [(&long, 1), (&longer, 1), (&long, 2)]
        .iter()
        .map(|(text, n)| {
            format!(r#"{{"a":"{text}","b":{n},"x":"{text}","z":{n},"es":[{{"k":"{text}","v":{n}}},{{"k":{n},"v":"{text}"}}]}}"#)
        })
        .collect();
    for filter in [
        format!("c.a = '{long}' AND c.b = 1"),
        format!("c.b = 1 AND c.a = '{longer}'"),
        format!("c.a IN ('{long}', 'a') AND c.b >= 1"),
        format!("c.x = '{long}' AND c.z = 1"),
        format!("c.a = '{long}' ORDER BY c.b"),
        format!("EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = '{long}' AND e.v = 1)"),
        format!("EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = 1 AND e.v = '{long}')"),
        format!("ARRAY_CONTAINS(c.es, {{\"k\": '{long}', \"v\": 1}}, true)"),
    ] {
        let text = format!("SELECT VALUE 1 FROM c WHERE {filter}");
        check(&text, &items, &ready()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn orders_behind_equal_values_are_served() {
    for (query, served) in [
        ("WHERE c.a = 1 ORDER BY c.b, c.n.a", false),
        ("WHERE c.b = 1 ORDER BY c.a, c.n.a DESC", true),
        ("WHERE c.b = 1 ORDER BY c.a DESC, c.n.a", true),
        ("WHERE c.b = 1 ORDER BY c.a, c.n.a", false),
        ("WHERE c.b > 1 ORDER BY c.a, c.n.a DESC", false),
        ("WHERE c.b IN (1, 2) ORDER BY c.a, c.n.a DESC", false),
        ("ORDER BY c.a, c.b DESC", true),
        ("ORDER BY c.a, c.b", false),
    ] {
        let checked = check_order(&program(&format!("SELECT * FROM c {query}")), &ready());
        assert_eq!(checked.is_ok(), served, "{query}");
    }
}

#[test]
fn tuple_indexes_serve_conditions_on_one_element() {
    for (condition, expected) in [
        (
            "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = 'a' AND e.v = 1)",
            "filter (exact): /es/[]/{k,v} = \"a\", = 1",
        ),
        (
            "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.v IN (1, 2) AND 'a' = e.k AND true)",
            "filter (exact): /es/[]/{k,v} = \"a\", = 1 or = \"a\", = 2",
        ),
        (
            "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = 'a' AND e.v = 1 AND e.w > 2)",
            "filter: all of\n  /es/[]/{k,v} = \"a\", = 1\n  /es/[]/w > 2",
        ),
        (
            "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = 'a' AND e.v > 1)",
            "filter: all of\n  /es/[]/{k} = \"a\"\n  /es/[]/v > 1",
        ),
        (
            "ARRAY_CONTAINS(c.es, {\"v\": 1, \"k\": 'a', \"z\": 3}, true)",
            "filter: all of\n  /es/[]/{v,k} = 1, = \"a\"\n  /es/[]/z = 3, to be checked",
        ),
    ] {
        assert_eq!(
            explained(&format!("SELECT * FROM c WHERE {condition}"), &ready()),
            expected,
            "{condition}"
        );
    }
    // Two aliases of one array are two elements.
    let text = "SELECT c.id FROM c JOIN d IN c.es JOIN e IN c.es WHERE d.k = 'a' AND e.v = 1";
    assert!(!explained(text, &ready()).contains(','));
}

#[test]
fn spatial_conditions_propose_cells() {
    const POINT: &str = "{\"type\": \"Point\", \"coordinates\": [4.9, 52.4]}";
    for (condition, used) in [
        (format!("ST_DISTANCE(c.loc, {POINT}) < 1000"), true),
        (format!("1000 >= ST_DISTANCE({POINT}, c.loc)"), true),
        (format!("NOT (ST_DISTANCE(c.loc, {POINT}) > 1000)"), true),
        (format!("ST_DISTANCE(c.loc, {POINT}) BETWEEN 10 AND 20"), true),
        (format!("ST_WITHIN(c.loc, {POINT})"), true),
        (format!("ST_INTERSECTS({POINT}, c.loc)"), true),
        (format!("EXISTS(SELECT VALUE s FROM s IN c.spots WHERE ST_DISTANCE(s, {POINT}) < 9)"), true),
        (format!("ST_DISTANCE(c.loc, {POINT}) > 1000"), false),
        (format!("NOT ST_WITHIN(c.loc, {POINT})"), false),
        (format!("ST_DISTANCE(c.other, {POINT}) < 1000"), false),
        ("ST_DISTANCE(c.loc, c.other) < 1000".to_owned(), false),
        ("ST_WITHIN(c.loc, {\"type\": \"Point\"})".to_owned(), false),
    ] {
        let text = explained(&format!("SELECT * FROM c WHERE {condition}"), &ready());
        assert_eq!(text.contains("intervals of cells"), used, "{condition}: {text}");
        assert!(!text.contains("exact"), "{condition}: {text}");
    }
}

/// As the baselines of the .NET SDK have it (IndexMetricsParserBaselineTest).
#[test]
fn metrics_leave_out_a_filtered_order_beside_other_conditions() {
    let singles = |text: &str| index_metrics(&program(text), &Ready::default(), &[]).utilized_single;
    for (filter, expected) in [
        ("c.n = '1'", vec!["/n/?"]),
        ("c.n = '1' AND c.s = 'a'", vec!["/s/?"]),
        ("c.n = '1' AND c.s > 'a'", vec!["/s/?", "/n/?"]),
        ("c.n > '1' AND c.s > 'a'", vec!["/s/?"]),
        ("c.s = 'a'", vec!["/s/?", "/n/?"]),
    ] {
        let text = format!("SELECT * FROM c WHERE {filter} ORDER BY c.n");
        assert_eq!(singles(&text), expected, "{text}");
    }
    assert_eq!(singles("SELECT * FROM c ORDER BY c.n"), ["/n/?"]);
}

#[test]
fn metrics_name_the_indexes_of_other_kinds() {
    let metrics = |text: &str| index_metrics(&program(text), &ready(), &[]);
    let found = metrics("SELECT * FROM c WHERE c.a = 1 AND c.b > 2 AND c.y = 3");
    assert_eq!(found.utilized_composite, [["/a ASC", "/b DESC"]]);
    assert_eq!((found.utilized_single, found.potential_composite.len()), (vec!["/y/?".to_owned()], 0));
    let found = metrics("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b");
    assert_eq!(found.utilized_composite, [["/a ASC", "/b DESC"]]);
    let found = metrics("SELECT c.id FROM c JOIN e IN c.es WHERE e.k = 1 AND e.v = 2");
    assert_eq!(found.utilized_single[0], "/es/[]/{k,v}/?");
    let point = "{\"type\": \"Point\", \"coordinates\": [1, 2]}";
    let found = metrics(&format!("SELECT * FROM c WHERE ST_DISTANCE(c.loc, {point}) < 5"));
    assert_eq!(found.utilized_single, ["/loc/?"]);
}

#[test]
fn computed_properties_are_found_in_an_index() {
    struct Computing(bool);
    impl Indexes for Computing {
        fn covers(&self, path: &IndexPath) -> bool {
            match path.steps() {
                [IndexStep::Computed(name), ..] => self.0 && &**name == "low",
                _ => true,
            }
        }
    }
    let properties = Vocabulary::new([
        ("low", "SELECT VALUE LOWER(c.name) FROM c"),
        ("same", "SELECT VALUE c.a FROM c"),
        ("flag", "SELECT VALUE c.a > 1 FROM c"),
    ]);
    let properties = properties.expect("the definitions are valid");
    let plan = |text: &str, indexed: bool| {
        let program = compile_with(text, &Parameters::default(), &properties).expect("the query is valid");
        let explained = explain(Some(&plan_access(&program, &Computing(indexed))), &Chosen::default());
        explained.text.lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    for (query, indexed, expected) in [
        ("* FROM c WHERE c.low = 'a'", true, "filter (exact): /low = \"a\""),
        ("* FROM c WHERE c.low = 'a'", false, "filter: every item"),
        ("* FROM c WHERE c.low.x > 1", true, "filter (exact): /low/x > 1"),
        ("* FROM c WHERE c.same = 1", true, "filter (exact): /a = 1"),
        ("* FROM c WHERE c.flag", true, "filter (exact): /a > 1"),
        ("* FROM c ORDER BY c.low", true, "filter (exact): every item\norder: /low ascending"),
        ("* FROM c ORDER BY c.low", false, "filter (exact): every item"),
        ("VALUE MIN(c.low) FROM c", true, "filter (exact): every item\nshortcut: smallest of /low"),
    ] {
        assert_eq!(plan(&format!("SELECT {query}"), indexed), expected, "{query}");
    }
}

#[test]
fn only_values_that_depend_on_the_item_alone_can_be_indexed() {
    for (expression, usable) in [
        ("LOWER(c.name)", true),
        ("c.a + c['b'].x", true),
        ("{\"x\": c.a, \"y\": [c.b, 1]}", true),
        ("ST_DISTANCE(c.loc, c.home)", true),
        ("c._ts + 1", false),
        ("c['_etag']", false),
        ("ObjectToArray(c)", false),
        ("c[c.name]", false),
        ("GetCurrentTimestamp()", false),
        ("RAND() + c.a", false),
        ("udf.f(c.a)", false),
        ("ARRAY(SELECT VALUE t FROM t IN c.tags)", false),
    ] {
        let text = format!("SELECT VALUE {expression} FROM c");
        let property = ComputedProperty::new("p", &text, crate::Geospatial::Geography);
        assert_eq!(property.is_some(), usable, "{expression}");
    }
    let low = ComputedProperty::new("low", "SELECT VALUE LOWER(x.name) FROM x", crate::Geospatial::Geography);
    let low = low.expect("the definition is valid");
    let value = low.value(document(r#"{"name":"ABC"}"#).as_ref()).expect("there is a value");
    assert_eq!(value.root().as_str(), Some("abc"));
    assert!(low.value(document(r#"{"name":1}"#).as_ref()).is_none());
}

/// Single conditions on elements are exact, several are not: each may be met by another element.
#[test]
fn several_conditions_on_elements_are_not_exact() {
    let items = [
        r#"{"es":[{"k":1,"v":2},{"k":2,"v":1}]}"#,
        r#"{"es":[{"k":1,"v":1}]}"#,
        r#"{"es":[{"v":1}],"tags":[1,5]}"#,
    ]
    .map(str::to_owned);
    for condition in [
        "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = 1 AND e.v = 1)",
        "EXISTS(SELECT VALUE e.v FROM e IN c.es WHERE e.k = 2)",
        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t > 1 AND t < 5)",
        "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.v = 1 AND IS_DEFINED(e.k))",
        "EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.v = 1)",
    ] {
        for ready in [Ready::default(), ready()] {
            check(&format!("SELECT VALUE 1 FROM c WHERE {condition}"), &items, &ready)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
    let plain = plan_access(
        &program("SELECT * FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = 1 AND e.v = 1)"),
        &Ready::default(),
    );
    assert!(!plain.filter_exact);
}

fn element() -> impl Strategy<Value = String> {
    let field = |name: &'static str| {
        prop::option::of(value()).prop_map(move |value| value.map(|v| format!("\"{name}\":{v}")))
    };
    (field("k"), field("v"), field("w")).prop_map(|(k, v, w)| {
        format!("{{{}}}", [k, v, w].into_iter().flatten().collect::<Vec<_>>().join(","))
    })
}

fn item_with_elements() -> impl Strategy<Value = String> {
    (item(), prop::collection::vec(element(), 0..4), prop::option::of(value())).prop_map(|(item, es, x)| {
        let x = x.map(|x| format!(",\"x\":{x}")).unwrap_or_default();
        format!("{},\"es\":[{}]{x}}}", &item[..item.len() - 1], es.join(","))
    })
}

fn degrees(most: f64) -> impl Strategy<Value = f64> {
    // Round places meet each other, at the ends of the map and elsewhere.
    prop_oneof![
        (-4i32..=4).prop_map(move |n| f64::from(n) * most / 4.0),
        (-20i32..=20).prop_map(|n| f64::from(n) / 2.0),
        -most..=most,
    ]
}

fn place() -> impl Strategy<Value = String> {
    (degrees(180.0), degrees(90.0)).prop_map(|(x, y)| format!("[{x:?},{y:?}]"))
}

/// A ring around a place, of any size, either way round, sometimes in an order that crosses itself.
fn ring() -> impl Strategy<Value = String> {
    let around = (degrees(180.0), degrees(90.0), prop_oneof![Just(0.5), Just(5.0), Just(40.0), Just(80.0)]);
    (around, prop::collection::vec((0.3..1.0f64, 0.0..360.0f64), 3..6), 0..4u8).prop_map(
        |((x, y, size), mut corners, kind)| {
            if kind != 3 {
                corners.sort_by(|a, b| a.1.total_cmp(&b.1));
            }
            if kind == 2 {
                corners.reverse();
            }
            let corner = |(far, angle): &(f64, f64)| {
                let (sin, cos) = angle.to_radians().sin_cos();
                let longitude = (x + size * far * cos + 540.0).rem_euclid(360.0) - 180.0;
                format!("[{longitude:?},{:?}]", (y + size * far * sin).clamp(-90.0, 90.0))
            };
            let mut places: Vec<String> = corners.iter().map(corner).collect();
            places.push(places[0].clone());
            format!("[{}]", places.join(","))
        },
    )
}

fn shape() -> impl Strategy<Value = String> {
    let of = |kind: &'static str| {
        move |coordinates: String| format!("{{\"type\":\"{kind}\",\"coordinates\":{coordinates}}}")
    };
    prop_oneof![
        3 => place().prop_map(of("Point")),
        1 => prop::collection::vec(place(), 2..4).prop_map(|list| format!("[{}]", list.join(","))).prop_map(of("LineString")),
        4 => ring().prop_map(|ring| format!("[{ring}]")).prop_map(of("Polygon")),
        1 => (ring(), ring()).prop_map(|(a, b)| format!("[{a},{b}]")).prop_map(of("Polygon")),
        1 => (ring(), ring()).prop_map(|(a, b)| format!("[[{a}],[{b}]]")).prop_map(of("MultiPolygon")),
    ]
}

fn metres() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1e5f64, 0.0..5e6f64, 0.0..2.1e7f64]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_item_is_missed_by_composite_and_tuple_indexes(
        filter in combined(simple(&["c.a", "c.b", "c.n.a", "c.x"]).boxed()),
        element in prop::collection::vec(simple(&["e.k", "e.v", "e.k", "e.w"]), 1..4),
        items in prop::collection::vec(item_with_elements(), 1..8),
    ) {
        let element = element.join(" AND ");
        check(&format!("SELECT VALUE 1 FROM c WHERE {filter}"), &items, &ready())?;
        check(&format!("SELECT VALUE 1 FROM c WHERE c.a = 1 AND {filter} ORDER BY c.b"), &items, &ready())?;
        check(&format!("SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.es WHERE {element})"), &items, &ready())?;
        check(&format!("SELECT VALUE 1 FROM c JOIN e IN c.es WHERE {element}"), &items, &ready())?;
        let fields = "{\"k\": 1, \"v\": 'a'}";
        check(&format!("SELECT VALUE 1 FROM c WHERE ARRAY_CONTAINS(c.es, {fields}, true)"), &items, &ready())?;
    }

    #[test]
    fn equal_values_are_found_in_composite_and_tuple_indexes(
        values in prop::collection::vec((0..3u8, 0..3u8, 0..3u8), 1..12),
        (a, b, low) in (0..3u8, 0..3u8, 0..3u8),
    ) {
        let items: Vec<String> = values.iter().map(|(a, b, x)| {
            format!("{{\"a\":{a},\"b\":{b},\"n\":{{\"a\":{x}}},\"x\":{x},\"es\":[{{\"k\":{a},\"v\":{b}}},{{\"k\":{b},\"v\":{x}}}]}}")
        }).collect();
        for filter in [
            format!("c.a = {a} AND c.b = {b}"),
            format!("c.b = {b} AND c.a >= {low}"),
            format!("c.a = {a} AND c.b < {low}"),
            format!("c.b IN ({a}, {b}) AND c.a = {low} AND c.n.a > 0"),
            format!("c.x = {a} AND c.a != {b}"),
            format!("EXISTS(SELECT VALUE e FROM e IN c.es WHERE e.k = {a} AND e.v = {b})"),
        ] {
            let text = format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}");
            prop_assert!(plan_access(&program(&text), &ready()).filter_exact, "{}", filter);
            check(&format!("SELECT VALUE 1 FROM c WHERE {filter}"), &items, &ready())?;
        }
    }

    #[test]
    fn what_is_just_within_a_distance_is_found(
        (x, y) in (-180.0..180.0f64, -75.0..75.0f64), size in prop::sample::select(vec![0.01, 1.0, 12.0]),
        (east, north) in prop_oneof![Just((1.0, 0.0)), Just((0.0, 1.0)), Just((-1.0, 0.0)), Just((0.0, -1.0))],
        part in 0.5..1.0f64,
    ) {
        let (far_x, far_y) = (x + size * part * east, y + size * part * north);
        let far_x = (far_x + 540.0).rem_euclid(360.0) - 180.0;
        let point = |x: f64, y: f64| format!("{{\"type\":\"Point\",\"coordinates\":[{x:?},{y:?}]}}");
        let (wanted, stored) = (point(x, y), point(far_x, far_y));
        let distance = program(&format!("SELECT VALUE ST_DISTANCE({stored}, {wanted}) FROM c"));
        let rows = distance.run_all([Row::plain(document("{}").as_ref())], &Context::at(0, 0)).expect("it runs");
        let metres = String::from_utf8_lossy(rows.iter().next().expect("a distance")).into_owned();
        let text = format!("SELECT VALUE 1 FROM c WHERE ST_DISTANCE(c.loc, {wanted}) <= {metres}");
        let item = format!("{{\"loc\":{stored}}}");
        prop_assert_eq!(rows_of(&program(&text), &document(&item)), 1);
        check(&text, &[item], &ready())?;
    }

    #[test]
    fn no_shape_is_missed(wanted in shape(), stored in prop::collection::vec(shape(), 1..6), metres in metres()) {
        let items: Vec<String> = stored.iter().map(|shape| format!("{{\"loc\":{shape},\"spots\":[{shape}]}}")).collect();
        for condition in [
            format!("ST_INTERSECTS(c.loc, {wanted})"),
            format!("ST_WITHIN(c.loc, {wanted})"),
            format!("ST_WITHIN({wanted}, c.loc)"),
            format!("ST_DISTANCE({wanted}, c.loc) <= {metres:?}"),
        ] {
            check(&format!("SELECT VALUE 1 FROM c WHERE {condition}"), &items, &ready())?;
        }
        check(&format!("SELECT VALUE 1 FROM c JOIN s IN c.spots WHERE ST_INTERSECTS(s, {wanted})"), &items, &ready())?;
    }
}
