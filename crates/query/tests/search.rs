//! Vectors by their distance, and texts by their words.

use std::sync::Arc;

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::{
    Carry, ComputedProperty, Context, Features, Flow, Geospatial, PageEnd, Parameters, PlanSettings, Program,
    ProgramCache, QueryError, Room, Row, Rows, Run, VectorDistance, VectorPath, Vocabulary, compile,
    compile_with, describe_with,
};

/// Seen from [3,4]: the angle, the product and the distance each have an order of their own. Three are no vectors of that length.
const VECTORS: [&str; 7] = [
    r#"{"id":"far","v":[30,40],"t":"Red kites rise"}"#,
    r#"{"id":"same","v":[3,4],"t":"A red kite"}"#,
    r#"{"id":"long","v":[3,4,0],"t":"kites, red ones"}"#,
    r#"{"id":"near","v":[3,3.5]}"#,
    r#"{"id":"none","t":null}"#,
    r#"{"id":"back","v":[-3,-4],"t":"the RED-kite; the red kite"}"#,
    r#"{"id":"odd","v":[3,"4"],"t":["red kite"]}"#,
];

fn docs() -> Vec<Doc> {
    VECTORS.iter().map(|item| json::parse(item.as_bytes(), 8).expect("a test item")).collect()
}

/// All rows, in pages of so many.
fn paged(program: &Program, rows: usize) -> Vec<String> {
    let (docs, cx) = (docs(), Context::at(0, 0));
    let (mut shown, mut carry) = (Vec::new(), None::<Carry>);
    loop {
        let mut out = Rows::default();
        let room = Room { rows, bytes: usize::MAX };
        let mut run = Run::start(program, &cx, room, carry.as_ref()).expect("it starts");
        for (doc, place) in docs.iter().zip(0u8..) {
            let row = Row { doc: doc.as_ref(), system: None, place: &[place] };
            if run.feed(&row, &mut out).expect("it runs") != Flow::More {
                break;
            }
        }
        let end = run.finish(&mut out).expect("it ends");
        shown.extend(out.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        match end {
            PageEnd::Continue(next) if program.is_blocking() => carry = Some(next),
            _ => return shown,
        }
    }
}

fn answer_with(text: &str, vocabulary: &Vocabulary) -> String {
    let program = compile_with(text, &Parameters::new(), vocabulary);
    let program = program.unwrap_or_else(|error| panic!("{text}: {error}"));
    let whole = paged(&program, usize::MAX);
    if program.is_blocking() {
        assert_eq!(paged(&program, 1), whole, "{text} in pages of one row");
    }
    whole.join(" ").replace('"', "")
}

fn answer(text: &str) -> String {
    answer_with(text, &Vocabulary::default())
}

fn policy(path: &[&str], distance: VectorDistance) -> Vec<VectorPath> {
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    vec![VectorPath { path, distance }]
}

#[test]
fn a_distance_is_what_mathematics_says_of_two_vectors_of_one_length() {
    for (arguments, expected) in [
        ("[3,4], [3,4]", "1"),
        ("[3,4], [-30,-40]", "-1"),
        ("[1,0], [0,2.5]", "0"),
        ("[3,4], [1,2], true", "0.9838699100999074"),
        ("[3,4], [1,2], false, {distanceFunction: 'Cosine'}", "0.9838699100999074"),
        ("[3,4], [1,2], false, {distanceFunction: 'DotProduct', dataType: 'Float32'}", "11"),
        ("[3,4], [0,0], true, {'distanceFunction': 'euclidean'}", "5"),
        ("[1,2,3,4,5], [5,4,3,2,1], true, {distanceFunction: 'dotproduct'}", "35"),
        // No vectors, or none that have a direction.
        ("[3,4], [1]", ""),
        ("[3,4], [1,'2']", ""),
        ("[3,4], [1,null]", ""),
        ("[], []", ""),
        ("[1], 1", ""),
        ("'a', 'a'", ""),
        ("[0,0], [3,4]", ""),
        ("[1e300], [1e300], true, {distanceFunction: 'dotproduct'}", ""),
    ] {
        assert_eq!(
            answer(&format!("SELECT VALUE VectorDistance({arguments}) FROM c WHERE c.id = 'near'")),
            expected,
            "{arguments}"
        );
    }
}

#[test]
fn the_best_vectors_come_first_and_what_is_no_vector_has_its_place() {
    let ordered = |options: &str| {
        answer(&format!("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [3,4]{options})"))
    };
    assert_eq!(ordered(""), "same far near back odd none long");
    assert_eq!(ordered(", true, {distanceFunction: 'dotproduct'}"), "far same near back odd none long");
    assert_eq!(ordered(", true, {distanceFunction: 'euclidean'}"), "long none odd same near back far");
}

#[test]
fn an_order_of_distances_has_a_filter_a_top_and_an_offset_as_any_other() {
    let distance = "VectorDistance([3,4], c.v, false, {distanceFunction: 'euclidean'})";
    for (text, expected) in [
        ("SELECT TOP 2 VALUE c.id FROM c WHERE {D} > 0 ORDER BY {D}", "near back"),
        ("SELECT VALUE c.id FROM c WHERE {D} < 11 ORDER BY {D} OFFSET 1 LIMIT 2", "near back"),
        ("SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED({D})", "long none odd"),
        ("SELECT TOP 1 c.id, {D} AS far FROM c WHERE {D} > 20 ORDER BY {D}", "{id:far,far:45}"),
        ("SELECT DISTINCT VALUE c.kind FROM c ORDER BY {D}", ""),
        ("SELECT DISTINCT TOP 2 VALUE c.t ?? 'x' FROM c WHERE {D} >= 0 ORDER BY {D}", "A red kite x"),
        ("SELECT VALUE COUNTIF({D} < 20) FROM c", "3"),
    ] {
        let text = text.replace("{D}", distance);
        assert_eq!(answer(&text), expected, "{text}");
    }
}

#[test]
fn a_path_of_the_policy_is_measured_as_the_policy_says() {
    let vocabulary = Vocabulary::default().with_vectors(policy(&["v"], VectorDistance::Euclidean));
    let far = |text: &str| answer_with(&format!("SELECT VALUE {text}"), &vocabulary);
    assert_eq!(far("VectorDistance(c.v, [3,4]) FROM c WHERE c.id = 'far'"), "45");
    assert_eq!(far("VectorDistance([3,4], x['v']) FROM x WHERE x.id = 'far'"), "45");
    assert_eq!(
        far("VectorDistance(c.v, [3,4], true, {distanceFunction: 'dotproduct'}) FROM c WHERE c.id = 'far'"),
        "250"
    );
    assert_eq!(far("VectorDistance([30,40], [3,4]) FROM c WHERE c.id = 'far'"), "1");
    // The path is one of the item, and not of what a query calls so.
    assert_eq!(
        far("VectorDistance(x.v, [3,4]) FROM (SELECT VALUE {v: c.v} FROM c WHERE c.id = 'far') AS x"),
        "1"
    );
    let ordered = "c.id FROM c ORDER BY VectorDistance(c.v, [3,4])";
    assert_eq!(far(ordered), "long none odd same near back far");
    // A computed property is about the same item.
    let named = Vocabulary::new([("gap", "SELECT VALUE VectorDistance(c.v, [3,4]) FROM c")]);
    let named = named.expect("a definition").with_vectors(policy(&["v"], VectorDistance::Euclidean));
    assert_eq!(answer_with("SELECT VALUE c.gap FROM c WHERE c.id = 'far'", &named), "45");
}

#[test]
fn containers_with_other_policies_do_not_share_a_compiled_text() {
    let cache = ProgramCache::default();
    let distances = [VectorDistance::Euclidean, VectorDistance::DotProduct, VectorDistance::Cosine];
    let known =
        distances.map(|distance| Arc::new(Vocabulary::default().with_vectors(policy(&["v"], distance))));
    let text =
        "SELECT TOP 1 VALUE VectorDistance(c.v, [3,4]) FROM c WHERE IS_DEFINED(VectorDistance(c.v, [3,4]))
                ORDER BY VectorDistance(c.v, [3,4])";
    for _ in 0..4 {
        let best = known.each_ref().map(|vocabulary| {
            let program = cache.compile(text, &Parameters::new(), vocabulary);
            paged(&program.expect(text), usize::MAX).join(" ")
        });
        assert_eq!(best, ["0", "250", "1"]);
    }
}

#[test]
fn clients_get_each_distance_beside_its_row_and_nothing_where_there_is_none() {
    let paths = vec![Path::parse_property("/id").expect("a path")];
    let def = PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths };
    let settings = PlanSettings { geospatial: None, vectors: policy(&["v"], VectorDistance::Euclidean) };
    let mut parameters = Parameters::new();
    let vector = json::parse(b"[3,4]", 2).expect("JSON");
    parameters.set("@vector", vector.root());
    let text = "SELECT TOP 4 c.id FROM c ORDER BY VectorDistance(c.v, @vector)";
    let plan = describe_with(text, &parameters, &def, &Features::all(), &settings).expect(text);
    assert!(plan.info.has_non_streaming_order_by);
    let rewritten = plan.info.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true");
    let vocabulary = Vocabulary::default().with_vectors(settings.vectors);
    let program = compile_with(&rewritten, &parameters, &vocabulary).expect(&rewritten);
    let rows = paged(&program, 3);
    assert_eq!(
        rows,
        [
            r#"{"orderByItems":[{}],"payload":{"id":"long"}}"#,
            r#"{"orderByItems":[{}],"payload":{"id":"none"}}"#,
            r#"{"orderByItems":[{}],"payload":{"id":"odd"}}"#,
            r#"{"orderByItems":[{"item":0}],"payload":{"id":"same"}}"#,
        ]
    );
}

#[test]
fn texts_are_searched_for_phrases_without_any_index() {
    for (condition, expected) in [
        ("FullTextContains(c.t, 'red')", "far same long back"),
        ("FullTextContains(c.t, 'Red Kite')", "same back"),
        ("FullTextContains(c.t, 'kite red')", ""),
        ("FullTextContains(c.t, 'kites red')", "long"),
        ("FullTextContains(c.t, 'red-kite')", "back"),
        ("FullTextContains(c.t, 'ki')", ""),
        ("FullTextContains(c.t, '')", ""),
        ("FullTextContainsAll(c.t, 'kite', 'a')", "same"),
        ("FullTextContainsAll(c.t, 'red')", "far same long back"),
        ("FullTextContainsAny(c.t, 'rise', 'ones', 'nothing')", "far long"),
        ("NOT FullTextContains(c.t, 'kite')", "far long"),
        ("fulltextcontains(c.t, c.id)", ""),
        // What is no text has no phrases, and lacks none.
        ("NOT IS_DEFINED(FullTextContains(c.t, 'red'))", "near none odd"),
        ("IS_DEFINED(FullTextContainsAny(c.t, 'red', 1))", ""),
    ] {
        assert_eq!(answer(&format!("SELECT VALUE c.id FROM c WHERE {condition}")), expected, "{condition}");
    }
    let counts = "SELECT VALUE COUNTIF(FullTextContainsAny(c.t, 'kite', 'kites')) FROM c";
    assert_eq!(answer(counts), "4");
    assert_eq!(
        answer("SELECT FullTextContains(c.t, 'kite') AS has FROM c WHERE c.id = 'same'"),
        "{has:true}"
    );
}

#[test]
fn texts_are_scored_by_their_phrases() {
    let counts = "SELECT COUNT(1) AS items, [{words: SUM(_FullTextWordCount(c.t)), hits: \
                  [COUNTIF(FullTextContains(c.t, 'kite'))]}] AS texts FROM c";
    assert_eq!(answer(counts), "{items:7,texts:[{words:12,hits:[2]}]}");
    let ranked = |phrases: &str, order: &str| {
        let score = format!("_FullTextScore(c.t, {phrases}, 7, 12, [2, 3])");
        answer(&format!("SELECT VALUE c.id FROM c WHERE {score} > 0 ORDER BY {score} {order}"))
    };
    // The shorter text comes first, and a phrase that stands there twice counts more.
    assert_eq!(ranked("['kite']", "DESC"), "same back");
    assert_eq!(ranked("['kite']", "ASC"), "back same");
    assert_eq!(ranked("['red kite', 'rise']", "DESC"), "same back far");
    // What is no text has no score. Of two items one has the phrase, and both are of one length.
    assert_eq!(answer("SELECT VALUE _FullTextScore(c.t, ['a'], 7, 12, [1]) FROM c WHERE c.id = 'none'"), "");
    let of_one = |value: &str| answer(&format!("SELECT VALUE {value} FROM c WHERE c.id = 'same'"));
    assert_eq!(of_one("_FullTextScore('red kite', ['kite'], 2, 4, [1])"), "0.6931471805599453");
    assert_eq!(of_one("_FullTextScore('red kite', ['kite'], 0, 0, [0]) > 0"), "true");
}

#[test]
fn nobody_says_which_end_of_the_vectors_is_the_near_one() {
    for direction in ["ASC", "DESC"] {
        let query = format!("SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1]) {direction}");
        let error = compile(&query, &Parameters::new()).expect_err(direction);
        let text = "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
        assert_eq!(error.to_string(), text);
        compile(&query.replace("VectorDistance", "_VectorScore"), &Parameters::new())
            .expect("a plan says it");
    }
}

#[test]
fn a_query_that_ranks_says_that_it_is_one() {
    let ranks = compile("SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", &Parameters::new());
    assert_eq!(ranks.expect_err("it has a plan"), QueryError::Ranked);
}

#[test]
fn what_cannot_be_searched_for_yet_says_so() {
    let program =
        compile("SELECT VALUE FullTextContains('red', {term: 'rad', distance: 1})", &Parameters::new());
    let error = program.expect("it compiles").run_all([], &Context::at(0, 0)).expect_err("fuzzy");
    assert!(matches!(error, QueryError::Unsupported(_)), "{error}");
    assert_eq!(error.to_string(), "Fuzzy terms of full-text functions are not yet supported.");
}

#[test]
fn no_index_holds_what_a_policy_or_a_later_release_may_change() {
    for value in
        ["VectorDistance(c.v, [3,4])", "FullTextContains(c.t, 'red')", "[FullTextContainsAny(c.t, 'red')]"]
    {
        let text = format!("SELECT VALUE {value} FROM c");
        assert!(ComputedProperty::new("p", &text, Geospatial::Geography).is_none(), "{value}");
    }
    assert!(ComputedProperty::new("p", "SELECT VALUE LOWER(c.t) FROM c", Geospatial::Geography).is_some());
}
