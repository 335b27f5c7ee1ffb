//! Computed properties: names that a container gives to expressions.
//!
//! A computed property is not stored. Wherever a query names it on the item itself, the expression of its
//! definition stands instead; `SELECT *` does not show it.

use orrery_doc::{Doc, DocBuilder, DocRef};

use super::{Compiler, Program};
use crate::ast::{Binding, Collection, Expr, ExprKind, Literal, Query, SelectSpec};
use crate::error::{QueryError, Result};
use crate::eval::{Context, Env};
use crate::functions::{self, Function, Geospatial};
use crate::parameters::Parameters;
use crate::parse;
use crate::program::Node;
use crate::row::{Row, SystemField};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Definition {
    pub name: String,
    /// What the definition calls the item.
    alias: String,
    value: Expr,
}

pub(super) fn definition(name: &str, text: &str) -> Result<Definition> {
    let refused = |why: &str| {
        QueryError::bare(format!("One of the specified inputs is invalid: computed property '{name}' {why}."))
    };
    let Query { select, from, filter, group_by, order_by, offset_limit, .. } = parse::parse(text)?;
    let plain = filter.is_none() && group_by.is_empty() && order_by.is_none() && offset_limit.is_none();
    if !plain || select.distinct || select.top.is_some() {
        return Err(refused("must be a SELECT VALUE of one expression and nothing else"));
    }
    let SelectSpec::Value(value) = select.spec else {
        return Err(refused("must use SELECT VALUE"));
    };
    let mut sources = from.map(|from| from.sources).unwrap_or_default();
    let (Some(source), true) = (sources.pop(), sources.is_empty()) else {
        return Err(refused("must be FROM the item"));
    };
    let is_item = matches!(&source.collection, Collection::Path { steps, .. } if steps.is_empty())
        && !matches!(source.binding, Binding::Each(_));
    match source.name().filter(|_| is_item) {
        Some(alias) => Ok(Definition { name: name.to_owned(), alias: alias.to_owned(), value: *value }),
        None => Err(refused("must be FROM the item")),
    }
}

impl Compiler<'_> {
    /// The expression behind `item.name`, if it is a computed property.
    pub(super) fn computed(&mut self, base: &Node, name: &str) -> Result<Option<Node>> {
        let Node::Slot(slot) = base else { return Ok(None) };
        if !self.items.contains(slot) {
            return Ok(None);
        }
        let Some(found) = self.computed.iter().find(|definition| definition.name == name) else {
            return Ok(None);
        };
        // The definition knows the item by its own name and nothing else, and it may not name others.
        let names = std::mem::replace(&mut self.names, vec![(found.alias.clone(), *slot)]);
        let group = self.group.take();
        let computed = std::mem::take(&mut self.computed);
        let node = self.expr(&found.value);
        self.computed = computed;
        self.group = group;
        self.names = names;
        let named = |node: Node| match node {
            node @ (Node::Slot(_) | Node::Path { .. } | Node::Constant(_)) => node,
            node => Node::Computed { slot: *slot, name: name.into(), value: Box::new(node) },
        };
        node.map(named).map(Some)
    }
}

/// A computed property whose value an index can hold, because it depends on nothing but the stored item.
#[derive(Debug)]
pub struct ComputedProperty {
    program: Program,
    geospatial: Geospatial,
}

impl ComputedProperty {
    /// None if the definition is not valid, or if the value depends on anything else: the time, chance, or properties
    /// that are not stored with the item.
    pub fn new(name: &str, text: &str, geospatial: Geospatial) -> Option<Self> {
        let definition = definition(name, text).ok()?;
        if !is_of_item(&definition.value, &definition.alias) {
            return None;
        }
        let program = super::compile(text, &Parameters::default()).ok()?;
        program.code.earlier.is_empty().then_some(Self { program, geospatial })
    }

    /// The value of an item. A definition that does too much work for one has none for it.
    pub fn value(&self, item: DocRef<'_>) -> Option<Doc> {
        let context = Context { geospatial: self.geospatial, ..Context::at(0, 0) };
        let row = Row::plain(item);
        let stage = self.program.first_stage();
        let mut env = Env::new(stage.slots, &self.program.values, &context, Some(&row));
        for source in &stage.level.sources {
            env.slots[source.slot] = env.slots[0].clone();
        }
        let value = stage.level.select.eval(&mut env).ok().filter(|value| !value.is_undefined())?;
        let mut builder = DocBuilder::new();
        value.write_doc(&mut builder);
        Some(builder.finish())
    }
}

/// Whether an expression depends on the stored item alone.
fn is_of_item(expr: &Expr, alias: &str) -> bool {
    let is_item = |base: &Expr| matches!(&base.kind, ExprKind::Name(name) if name == alias);
    let is_stored = |name: &str| SystemField::from_name(name).is_none();
    match &expr.kind {
        // The item as a whole has properties that are not stored with it.
        ExprKind::Name(_) | ExprKind::Parameter(_) | ExprKind::Subquery(..) | ExprKind::Placeholder(_) => {
            false
        }
        ExprKind::Member(base, name) if is_item(base) => is_stored(name),
        ExprKind::Index(base, index) if is_item(base) => {
            matches!(&index.kind, ExprKind::Literal(Literal::String(name)) if is_stored(name))
        }
        ExprKind::Call { udf, name, .. } => {
            let is_fixed = |function: &Function| {
                !function.uses_chance && !function.depends_on_time && !function.is_search
            };
            !udf && functions::find(name).is_some_and(is_fixed) && are_of_item(expr, alias)
        }
        _ => are_of_item(expr, alias),
    }
}

fn are_of_item(expr: &Expr, alias: &str) -> bool {
    let mut all = true;
    expr.operands(|operand| all = all && is_of_item(operand, alias));
    all
}
