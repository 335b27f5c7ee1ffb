//! The clauses of one query level.

use super::grouping::{GroupScope, contains_aggregate};
use super::{Compiler, Purpose, ranking};
use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::parse::Counted;
use crate::program::{CollectionNode, Grouping, Level, Node, PathStep, SourceNode};
use crate::value::Val;

impl Compiler<'_> {
    pub(super) fn level(&mut self, query: &Query) -> Result<Level> {
        let scope = self.names.len();
        self.levels += 1;
        let outer_group = self.group.take();
        let sources = self.sources(query)?;
        let filter = query.filter.as_ref().map(|filter| self.expr(filter)).transpose()?;
        let grouped = !query.group_by.is_empty() || selects_aggregate(&query.select);
        let keys = query.group_by.iter().map(|key| self.expr(key)).collect::<Result<Vec<_>>>()?;
        if grouped {
            self.group = Some(GroupScope::new(query.group_by.clone()));
        }
        let select = self.select(query, &sources)?;
        let order_by = self.order_by(query, grouped)?;
        let grouping = self.group.take().map(|group| Grouping { keys, aggregates: group.aggregates });
        self.names.truncate(scope);
        self.levels -= 1;
        self.group = outer_group;
        let (offset, limit) = self.counts(query)?;
        let distinct = query.select.distinct;
        let (order_is_implied, keys_are_rows) = (false, false);
        Ok(Level {
            sources,
            filter,
            select,
            grouping,
            distinct,
            order_by,
            order_is_implied,
            keys_are_rows,
            offset,
            limit,
        })
    }

    fn sources(&mut self, query: &Query) -> Result<Vec<SourceNode>> {
        let Some(from) = &query.from else { return Ok(Vec::new()) };
        let mut nodes = Vec::with_capacity(from.sources.len());
        for source in &from.sources {
            let collection = match &source.collection {
                Collection::Subquery(query) => CollectionNode::Query(Box::new(self.level(query)?)),
                Collection::Value(expr) => CollectionNode::Value(self.expr(expr)?),
                Collection::Path { root, steps, span } => {
                    let path = self.collection_path(root, steps, *span);
                    CollectionNode::Value(self.noted(path)?.unwrap_or(Node::Constant(Val::Undefined)))
                }
            };
            let slot = self.slots;
            self.slots += 1;
            let each = matches!(source.binding, Binding::Each(_));
            if let CollectionNode::Value(Node::Slot(of)) = &collection
                && !each
                && self.items.contains(of)
            {
                self.items.push(slot);
            }
            if let Some(name) = source.name() {
                self.names.push((name.to_owned(), slot));
            }
            nodes.push(SourceNode { slot, collection, each });
        }
        Ok(nodes)
    }

    /// The first name of a path is an alias in scope or stands for the container, which may be
    /// called anything where nothing else is in scope, and `root` everywhere.
    fn collection_path(&mut self, root: &str, steps: &[Step], span: Span) -> Result<Node> {
        let known = self.names.iter().rev().find(|(name, _)| name == root).map(|(_, slot)| *slot);
        let slot = match known {
            Some(slot) => slot,
            None if self.has_items && (self.names.is_empty() || root.eq_ignore_ascii_case("root")) => 0,
            None => return Err(unresolved(root, span)),
        };
        let steps: Box<[PathStep]> = steps
            .iter()
            .map(|step| match step {
                Step::Name(name) | Step::Key(name) => PathStep::Name(name.as_str().into()),
                Step::Index(index) => PathStep::Index(usize::try_from(*index).unwrap_or(usize::MAX)),
            })
            .collect();
        Ok(if steps.is_empty() { Node::Slot(slot) } else { Node::Path { slot, steps } })
    }

    fn select(&mut self, query: &Query, sources: &[SourceNode]) -> Result<Node> {
        match &query.select.spec {
            SelectSpec::Value(expr) => self.expr(expr),
            SelectSpec::Star(span) => {
                let star = self.star(*span, sources);
                Ok(self.noted(star)?.unwrap_or(Node::Constant(Val::Undefined)))
            }
            SelectSpec::List(items) => {
                let names = item_names(items);
                let mut properties = Vec::with_capacity(items.len());
                for (item, name) in items.iter().zip(names) {
                    properties.push((name.into_boxed_str(), self.expr(&item.expr)?));
                }
                Ok(Node::Object(properties))
            }
        }
    }

    fn star(&self, span: Span, sources: &[SourceNode]) -> Result<Node> {
        let (code, message) = match sources {
            _ if self.group.is_some() => (2041, "'SELECT *' is not allowed with GROUP BY."),
            [] => (2040, "'SELECT *' is not valid if FROM clause is omitted."),
            [source] => return Ok(Node::Slot(source.slot)),
            _ => (2042, "'SELECT *' is only valid with a single input set."),
        };
        Err(QueryError::at(code, span, message))
    }

    fn order_by(&mut self, query: &Query, grouped: bool) -> Result<Vec<(Node, Direction)>> {
        let items = match &query.order_by {
            None => return Ok(Vec::new()),
            // One row has no order; its order keys need not be known after aggregation.
            Some(_) if grouped && query.group_by.is_empty() => return Ok(Vec::new()),
            Some(OrderBy::Items(items)) => items,
            Some(OrderBy::Rank(items)) => return self.ranking(items),
        };
        let keyed = |item: &OrderItem| {
            let key = self.expr(&item.expr)?;
            let natural = match &key {
                Node::VectorDistance { distance, .. } => distance.best_first(),
                _ => Direction::Ascending,
            };
            ranking::refuse_direction(item)?;
            Ok((key, item.direction.unwrap_or(natural)))
        };
        items.iter().map(keyed).collect()
    }

    /// The scores of ORDER BY RANK, and which end of each is best. A plan asks for them; the query itself runs as the queries
    /// that the plan makes of it.
    fn ranking(&mut self, items: &[OrderItem]) -> Result<Vec<(Node, Direction)>> {
        if self.purpose == Purpose::Run {
            return Err(QueryError::Ranked);
        }
        let mut scores = Vec::new();
        for item in items {
            self.expr(&item.expr)?;
            for score in ranking::scores(&item.expr) {
                let key = self.expr(score)?;
                let best = match &key {
                    Node::VectorDistance { distance, .. } => distance.best_first(),
                    _ => Direction::Descending,
                };
                scores.push((key, best));
            }
        }
        Ok(scores)
    }

    fn counts(&mut self, query: &Query) -> Result<(u64, Option<u64>)> {
        let top = query.select.top.as_ref().map(|top| self.count(top, Counted::Top)).transpose()?;
        let Some(OffsetLimit { offset, limit, .. }) = &query.offset_limit else { return Ok((0, top)) };
        let offset = self.count(offset, Counted::Offset)?;
        let limit = self.count(limit, Counted::Limit)?;
        Ok((offset, Some(top.map_or(limit, |top| top.min(limit)))))
    }

    fn count(&mut self, count: &Count, counted: Counted) -> Result<u64> {
        match &count.kind {
            CountKind::Literal(value) => Ok(*value),
            CountKind::Parameter(name) => {
                let value = self.given.value(name).as_i64().and_then(|value| u64::try_from(value).ok());
                let value = value.filter(|v| *v <= limits::ROW_COUNT);
                Ok(self.noted(value.ok_or_else(|| counted.refuse(count.span)))?.unwrap_or_default())
            }
        }
    }
}

/// The names of a SELECT list: the alias, the last step of a path, or `$1`, `$2`, ...
pub(crate) fn item_names(items: &[SelectItem]) -> Vec<String> {
    let mut unnamed = 0;
    items
        .iter()
        .map(|item| match item.alias.as_deref().or_else(|| item.expr.implied_name()) {
            Some(name) => name.to_owned(),
            None => {
                unnamed += 1;
                format!("${unnamed}")
            }
        })
        .collect()
}

pub(crate) fn selects_aggregate(select: &Select) -> bool {
    match &select.spec {
        SelectSpec::Star(_) => false,
        SelectSpec::Value(expr) => contains_aggregate(expr),
        SelectSpec::List(items) => items.iter().any(|item| contains_aggregate(&item.expr)),
    }
}

pub(super) fn unresolved(name: &str, span: Span) -> QueryError {
    QueryError::at(2001, span, format!("Identifier '{name}' could not be resolved."))
}
