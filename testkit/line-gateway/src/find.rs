//! Queries: a tree of conditions and an order, compiled without any text, whose rows a sink of our own writes.
//!
//! ```text
//! FIND "t" {"where": [["at", ">", date(0)]], "sort": ["at", "down"], "key": {"pk": 1}, "page": 10, "by": "index"}
//! ```
//!
//! Conditions compare as MongoDB does: with values of the same type only. So the end of the type's terms is the other bound
//! of an interval.

use orrery_cluster::{AccessChoice, Container, Db, QueryPage, Scope};
use orrery_doc::{Doc, TermType, Value};
use orrery_query::ast::{
    BinaryOp, Binding, Collection, Direction, Expr, ExprKind, From, Literal, OrderBy, OrderItem, Query,
    Select, SelectSpec, Source, Span,
};
use orrery_query::{Parameters, Sink, Val, compile_ast, order_key};

use crate::command::{key_of, page_options, row};
use crate::refusal::Refusal;
use crate::tables;

pub async fn run(
    db: &Db,
    table: &std::sync::Arc<Container>,
    query: Value<'_>,
) -> Result<(String, String), Refusal> {
    let scope = match query.get("key") {
        Value::Undefined => Scope::Container,
        key => Scope::Key(key_of(table, key)?),
    };
    let tree = tree_of(table, query)?;
    let program = compile_ast(tree, &Parameters::new(), table.definition.vocabulary()?)?;
    let mut options = page_options(db, query.get("page").as_i64().unwrap_or_default());
    options.access = match query.get("by").as_str() {
        Some("scan") => AccessChoice::ScanOnly,
        Some("index") => AccessChoice::IndexAlways,
        _ => AccessChoice::Auto,
    };
    let (mut rows, mut pages, mut methods) = (String::new(), 0, Vec::new());
    loop {
        let page: QueryPage<Lines> = match &scope {
            Scope::Container => db.query_merged_into(table, &scope, &program, &options).await?,
            scope => db.query_into(table, scope, &program, &options).await?,
        };
        pages += 1;
        rows.push_str(&page.rows.text);
        methods.push(page.plan.method.name());
        options.continuation = page.continuation;
        if options.continuation.is_none() {
            methods.dedup();
            return Ok((rows, format!("{pages} pages by {}", methods.join(" and "))));
        }
    }
}

/// `SELECT VALUE c FROM c WHERE … ORDER BY …`, with keys of values instead of values.
fn tree_of(table: &Container, query: Value<'_>) -> Result<Query, Refusal> {
    let span = Span::default();
    let mut filter: Option<Expr> = None;
    for condition in query.get("where").as_array().into_iter().flat_map(|list| list.iter()) {
        let condition = condition_of(table, condition)?;
        filter = Some(match filter {
            Some(before) => before.and(condition),
            None => condition,
        });
    }
    let sort = query.get("sort");
    let order_by = sort.index(0).as_str().map(|field| {
        let direction = match sort.index(1).as_str() {
            Some("down") => Direction::Descending,
            _ => Direction::Ascending,
        };
        OrderBy::Items(vec![OrderItem { expr: key_expr(table, field), direction: Some(direction) }])
    });
    let path = Collection::Path { root: "c".into(), steps: Vec::new(), span };
    let source = Source { collection: path, collection_span: span, binding: Binding::Implicit, span };
    let spec = SelectSpec::Value(Box::new(Expr::name("c")));
    Ok(Query {
        select: Select { distinct: false, top: None, top_span: span, spec, span },
        from: Some(From { sources: vec![source] }),
        filter,
        group_by: Vec::new(),
        order_by,
        order_by_span: span,
        offset_limit: None,
        span,
    })
}

/// The key of a field: the computed property that has an index, if there is one.
fn key_expr(table: &Container, field: &str) -> Expr {
    let item = Expr::name("c");
    match tables::has_index(table, field) {
        true => item.member(&tables::key_name(field)),
        false => Expr::call("ORDERKEY", vec![text(tables::order_name(table).to_owned()), item.member(field)]),
    }
}

fn condition_of(table: &Container, condition: Value<'_>) -> Result<Expr, Refusal> {
    let (field, operator, value) = (condition.index(0), condition.index(1), condition.index(2));
    let (Some(field), Some(operator)) = (field.as_str(), operator.as_str()) else {
        return Err(Refusal::wrong("a condition is a field, an operator and a value"));
    };
    let order = table.definition.order;
    let binary = |operator, key: String| {
        Expr::made(ExprKind::Binary(operator, Box::new(key_expr(table, field)), Box::new(text(key))))
    };
    let this = order_key(value, order);
    // Terms of a type begin with its mark; as in keys, a byte is a character.
    let bounds = TermType::of(value, order).bounds(order);
    let mark = |byte: Option<u8>| byte.map(|byte| char::from(byte).to_string()).unwrap_or_default();
    let of_type = |rest: Expr| {
        let first = binary(BinaryOp::GreaterOrEqual, mark(bounds.map(|bounds| bounds.first)));
        let last = binary(BinaryOp::Less, mark(bounds.map(|bounds| bounds.behind)));
        rest.and(first).and(last)
    };
    Ok(match operator {
        "=" => binary(BinaryOp::Equal, this),
        "<" => of_type(binary(BinaryOp::Less, this)),
        "<=" => of_type(binary(BinaryOp::LessOrEqual, this)),
        ">" => of_type(binary(BinaryOp::Greater, this)),
        ">=" => of_type(binary(BinaryOp::GreaterOrEqual, this)),
        other => return Err(Refusal::wrong(format!("'{other}' is no operator"))),
    })
}

fn text(text: String) -> Expr {
    Expr::made(ExprKind::Literal(Literal::String(text)))
}

/// Rows as lines of the answer, each written once.
#[derive(Default)]
struct Lines {
    text: String,
    rows: usize,
}

impl Sink for Lines {
    fn push(&mut self, value: &Val<'_>, bytes_max: usize) -> orrery_query::Result<()> {
        self.text.push_str(&row(value.row_document(bytes_max)?.root()));
        self.rows += 1;
        Ok(())
    }

    fn hold(&self, value: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> orrery_query::Result<()> {
        held.extend_from_slice(value.row_document(bytes_max)?.bytes());
        Ok(())
    }

    fn push_held(&mut self, held: &[u8]) {
        self.text.push_str(&row(Doc::from_trusted(held.to_vec().into()).root()));
        self.rows += 1;
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn byte_len(&self) -> usize {
        self.text.len()
    }

    fn memory_bytes(&self) -> usize {
        self.text.capacity()
    }
}
