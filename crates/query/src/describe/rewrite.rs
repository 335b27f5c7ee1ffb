//! The queries that partitions get instead of the client's own.

use crate::ast::*;
use crate::compile::item_names;
use crate::program::AggregateKind;

/// Stands for the condition with which a client resumes an ordered query; it fills it in.
pub(super) const FILTER: &str = "({documentdb-formattableorderbyquery-filter})";

/// Every partition must deliver what the whole query skips and takes.
pub(super) fn offset_limit(offset: u64, limit: u64) -> OffsetLimit {
    let limit = literal(offset.saturating_add(limit));
    OffsetLimit { offset: literal(0), limit, span: Span::default() }
}

fn literal(value: u64) -> Count {
    Count { kind: CountKind::Literal(value), span: Span::default() }
}

/// `SELECT c._rid, [{"item": c.x}] AS orderByItems, c AS payload ...`: the client sees the order keys
/// beside each row.
pub(super) fn order(query: &mut Query, items: &[OrderItem]) {
    let root = query.from.as_ref().and_then(|from| from.sources.first()).and_then(Source::name);
    let root = root.unwrap_or("root").to_owned();
    let mut filter = query.filter.take();
    let mut require = |condition: Expr| {
        filter = Some(match filter.take() {
            Some(filter) => filter.and(condition),
            None => condition,
        });
    };
    require(Expr::made(ExprKind::Placeholder(FILTER.into())));
    let payload = match &query.select.spec {
        SelectSpec::Star(_) => Expr::name(&root),
        SelectSpec::Value(expr) => {
            // A row that does not exist must not come back with an empty payload.
            require(Expr::call("IS_DEFINED", vec![(**expr).clone()]));
            (**expr).clone()
        }
        SelectSpec::List(list) => list_object(list, |expr| expr.clone()),
    };
    query.filter = filter;
    query.select.distinct = false;
    query.select.spec = SelectSpec::List(vec![
        SelectItem { expr: Expr::name(&root).member("_rid"), alias: None },
        keys_item(items.iter().map(|item| &item.expr), "orderByItems"),
        SelectItem { expr: payload, alias: Some("payload".into()) },
    ]);
}

/// Aggregates become parts that can be added up, and group keys stand beside them.
pub(super) fn group(query: &mut Query) {
    let payload = match &query.select.spec {
        SelectSpec::Star(span) => Expr::new(ExprKind::Literal(Literal::Undefined), *span),
        SelectSpec::Value(expr) => match super::aggregate_of(expr) {
            Some(_) => Expr::made(ExprKind::Array(vec![partial(expr)])),
            None => (**expr).clone(),
        },
        SelectSpec::List(list) => list_object(list, partial),
    };
    if query.group_by.is_empty() {
        query.select.spec = match query.select.spec {
            SelectSpec::Value(_) => SelectSpec::Value(Box::new(payload)),
            _ => SelectSpec::List(vec![SelectItem { expr: payload, alias: Some("payload".into()) }]),
        };
        return;
    }
    query.select.distinct = false;
    query.select.spec = SelectSpec::List(vec![
        keys_item(query.group_by.iter(), "groupByItems"),
        SelectItem { expr: payload, alias: Some("payload".into()) },
    ]);
}

/// `SELECT COUNT(1) FROM (SELECT DISTINCT ...)`: counts of different partitions cannot be added,
/// since they may have rows in common, so partitions answer the rows and the client counts them.
pub(super) fn distinct_count(query: &Query) -> Option<(String, &Query)> {
    let plain = query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.offset_limit.is_none()
        && query.select.top.is_none()
        && !query.select.distinct;
    let [source] = query.from.as_ref()?.sources.as_slice() else { return None };
    let Collection::Subquery(inner) = &source.collection else { return None };
    let inner_plain = inner.select.distinct
        && inner.select.top.is_none()
        && inner.group_by.is_empty()
        && inner.order_by.is_none()
        && inner.offset_limit.is_none();
    if !plain || !inner_plain || matches!(source.binding, Binding::Each(_)) {
        return None;
    }
    match &query.select.spec {
        SelectSpec::Value(expr) if counts_rows(expr, source) => Some((String::new(), inner)),
        SelectSpec::List(list) => match list.as_slice() {
            [item] if counts_rows(&item.expr, source) => Some((item_names(list).remove(0), inner)),
            _ => None,
        },
        _ => None,
    }
}

fn counts_rows(expr: &Expr, source: &Source) -> bool {
    let ExprKind::Call { arguments, .. } = &expr.kind else { return false };
    let every_row = match arguments.as_slice() {
        [argument] => match &argument.kind {
            ExprKind::Literal(literal) => *literal != Literal::Undefined,
            ExprKind::Name(name) => source.name() == Some(name),
            _ => false,
        },
        _ => false,
    };
    every_row && super::aggregate_of(expr) == Some(AggregateKind::Count)
}

fn keys_item<'e>(keys: impl Iterator<Item = &'e Expr>, alias: &str) -> SelectItem {
    let items = keys.map(|key| Expr::object(vec![("item", key.clone())])).collect();
    SelectItem { expr: Expr::made(ExprKind::Array(items)), alias: Some(alias.into()) }
}

fn list_object(list: &[SelectItem], value: impl Fn(&Expr) -> Expr) -> Expr {
    let names = item_names(list);
    let properties = names.into_iter().zip(list).map(|(name, item)| (name, value(&item.expr))).collect();
    Expr::made(ExprKind::Object(properties))
}

/// What a partition answers for one aggregate: `{"item": ...}`, so that undefined can be told from
/// nothing. Averages need sum and count; minima and maxima say over how many values they are.
fn partial(expr: &Expr) -> Expr {
    let ExprKind::Call { arguments, .. } = &expr.kind else { return expr.clone() };
    let Some(kind) = super::aggregate_of(expr) else { return expr.clone() };
    let call = |name: &str| Expr::call(name, arguments.clone());
    let extreme = |name: &str| {
        Expr::object(vec![
            ("item", expr.clone()),
            ("item2", Expr::object(vec![(name, expr.clone()), ("count", call("COUNT"))])),
        ])
    };
    match kind {
        AggregateKind::Average => {
            let parts = Expr::object(vec![("sum", call("SUM")), ("count", call("COUNT"))]);
            Expr::object(vec![("item", parts)])
        }
        AggregateKind::Min => extreme("min"),
        AggregateKind::Max => extreme("max"),
        _ => Expr::object(vec![("item", expr.clone())]),
    }
}
