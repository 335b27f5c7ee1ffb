//! Queries that code makes: they give what their text gives, and are held to what texts are held to.

use orrery_doc::{Doc, Value, json};
use orrery_query::ast::*;
use orrery_query::print::{Layout, print};
use orrery_query::{
    Context, IndexPath, Indexes, Parameters, Program, QueryError, Row, Vocabulary, compile_ast, compile_with,
    limits, plan_access,
};

/// Everything is indexed.
struct All;

impl Indexes for All {
    fn covers(&self, _: &IndexPath) -> bool {
        true
    }
}

fn item() -> Expr {
    Expr::name("c")
}

fn number(value: i64) -> Expr {
    Expr::made(ExprKind::Literal(Literal::Int(value)))
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::made(ExprKind::Binary(op, Box::new(left), Box::new(right)))
}

fn over_items(filter: Option<Expr>) -> Query {
    Query::over_items("c").with_filter(filter)
}

/// Trees as another language would make them.
fn trees() -> Vec<Query> {
    let equal = |name: &str, value: Expr| binary(BinaryOp::Equal, item().member(name), value);
    let parameter = || Expr::made(ExprKind::Parameter(String::from("@a")));
    let in_list = |negated| {
        let list = vec![number(1), number(3), Expr::made(ExprKind::Literal(Literal::Null))];
        Expr::made(ExprKind::In { negated, needle: Box::new(item().member("a")), list })
    };
    let each = Query {
        select: Select::value(Expr::name("t")),
        from: Some(From { sources: vec![Source::each("t", "c", vec![Step::Name(String::from("list"))])] }),
        filter: Some(binary(BinaryOp::Greater, Expr::name("t"), parameter())),
        ..over_items(None)
    };
    let exists = Expr::made(ExprKind::Subquery(SubqueryKind::Exists, Box::new(each.clone())));
    let list = vec![
        SelectItem { expr: item().member("b"), alias: None },
        SelectItem { expr: Expr::call("COUNT", vec![number(1)]), alias: Some(String::from("n")) },
    ];
    let grouped = Query {
        select: Select::list(list),
        group_by: vec![item().member("b")],
        ..over_items(Some(Expr::call("IS_DEFINED", vec![item().member("b")])))
    };
    let order = OrderItem { expr: item().member("a"), direction: Some(Direction::Descending) };
    let ordered = Query { order_by: Some(OrderBy::Items(vec![order])), ..over_items(None) };
    let top = Select { top: Some(Count::literal(2)), ..Select::value(item().member("id")) };
    let mut trees = vec![
        over_items(None),
        over_items(Some(equal("a", number(2)))),
        over_items(Some(
            equal("a", parameter())
                .and(equal("b", Expr::made(ExprKind::Literal(Literal::String("x".into()))))),
        )),
        over_items(Some(equal("a", number(1)).or(equal("a", number(3))).or(in_list(true)))),
        over_items(Some(in_list(false))),
        over_items(Some(exists)),
        over_items(Some(Expr::made(ExprKind::Unary(UnaryOp::Not, Box::new(equal("a", number(1))))))),
        Query { select: top, ..ordered.clone() },
        grouped,
        ordered,
    ];
    trees.extend([each]);
    trees
}

fn items() -> Vec<Doc> {
    let texts = [
        r#"{"id":"1","a":1,"b":"x","list":[1,2,3]}"#,
        r#"{"id":"2","a":2,"b":"y","list":[5]}"#,
        r#"{"id":"3","a":3,"b":"x","list":[]}"#,
        r#"{"id":"4","a":null,"list":[2]}"#,
    ];
    texts.iter().map(|text| json::parse(text.as_bytes(), 8).expect("a test item")).collect()
}

fn rows(program: &Program) -> Vec<String> {
    let items = items();
    let rows = program.run_all(items.iter().map(|item| Row::plain(item.as_ref())), &Context::at(0, 0));
    rows.expect("it runs").iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

fn made(query: Query) -> orrery_query::Result<Program> {
    let mut parameters = Parameters::new();
    parameters.set("@a", Value::Int(2));
    compile_ast(query, &parameters, &Vocabulary::default())
}

#[test]
fn a_tree_gives_the_program_that_its_text_gives() {
    let mut parameters = Parameters::new();
    parameters.set("@a", Value::Int(2));
    let mut answered = 0;
    for tree in trees() {
        let text = print(&tree, Layout::Line);
        let parsed = compile_with(&text, &parameters, &Vocabulary::default()).expect(&text);
        let made = made(tree.clone()).expect(&text);
        assert_eq!(*parsed.query(), tree, "{text}");
        assert_eq!(*made.query(), tree, "{text}");
        assert_eq!(rows(&made), rows(&parsed), "{text}");
        assert_eq!(plan_access(&made, &All), plan_access(&parsed, &All), "{text}");
        assert_eq!(
            (made.is_light(), made.is_blocking()),
            (parsed.is_light(), parsed.is_blocking()),
            "{text}"
        );
        answered += rows(&made).len();
    }
    assert!(answered > 20, "{answered} rows say too little");
}

#[test]
fn computed_properties_hold_for_trees_too() {
    let properties = Vocabulary::new([("up", "SELECT VALUE UPPER(c.b) FROM c")]).expect("a property");
    let query = Query { select: Select::value(item().member("up")), ..over_items(None) };
    let program = compile_ast(query, &Parameters::new(), &properties).expect("a query");
    assert_eq!(rows(&program), [r#""X""#, r#""Y""#, r#""X""#]);
}

fn refusal(query: Query) -> QueryError {
    made(query).expect_err("it must be refused")
}

fn sum(terms: u32) -> Expr {
    (0..terms).fold(number(0), |sum, _| binary(BinaryOp::Add, sum, number(1)))
}

#[test]
fn trees_are_held_to_the_limits_of_texts() {
    let value = |expr| Query { select: Select::value(expr), ..over_items(None) };
    assert!(made(value(sum(limits::EXPRESSION_DEPTH - 2))).is_ok());
    assert_eq!(refusal(value(sum(limits::EXPRESSION_DEPTH))).sc_code(), Some(1020));
    assert_eq!(refusal(value(sum(4_000))).sc_code(), Some(1020));

    let joins = |count: usize| {
        let source = |i: usize| Source::each(&format!("t{i}"), "c", vec![Step::Name(String::from("list"))]);
        let mut query = value(number(1));
        let from = query.from.as_mut().expect("it has a FROM");
        from.sources.extend((0..count).map(source));
        query
    };
    assert!(made(joins(limits::JOINS)).is_ok());
    assert_eq!(refusal(joins(limits::JOINS + 1)).sc_code(), Some(3036));

    let long = Expr::made(ExprKind::Literal(Literal::String("x".repeat(limits::QUERY_BYTES))));
    assert!(refusal(value(long)).to_string().contains("maximum length"));
    let wide = Expr::made(ExprKind::Array(vec![number(1); limits::QUERY_BYTES / 2]));
    assert!(refusal(value(wide)).to_string().contains("maximum length"));

    let top = Select { top: Some(Count::literal(limits::ROW_COUNT + 1)), ..Select::value(number(1)) };
    assert_eq!(refusal(Query { select: top, ..over_items(None) }).sc_code(), Some(2060));
}

#[test]
fn trees_that_no_text_gives_are_refused() {
    for kind in [
        ExprKind::And(vec![number(1)]),
        ExprKind::Or(Vec::new()),
        ExprKind::In { negated: false, needle: Box::new(number(1)), list: Vec::new() },
    ] {
        let error = refusal(over_items(Some(Expr::made(kind))));
        assert!(error.to_string().contains("needs at least"), "{error}");
    }
    let nothing = Query { select: Select::list(Vec::new()), ..over_items(None) };
    assert!(refusal(nothing).to_string().contains("A SELECT list needs"));
    let nowhere = Query { from: Some(From { sources: Vec::new() }), ..over_items(None) };
    assert!(refusal(nowhere).to_string().contains("A FROM clause needs"));
}

#[test]
fn what_is_wrong_with_a_tree_is_told_without_places() {
    let query = Query { select: Select::value(Expr::name("d")), ..over_items(None) };
    let error = refusal(query);
    assert_eq!(error.sc_code(), Some(2001));
    assert!(!error.to_json().contains("location"), "{}", error.to_json());
}
