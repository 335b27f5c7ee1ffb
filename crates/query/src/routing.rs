//! Which partition keys a filter pins.
//!
//! The analysis finds conditions that every matching item must meet: for each conjunct, the set of
//! partition-key values under which it can be true. It may find too many keys, never too few, so a
//! caller can send the query to the found keys only.

use orrery_doc::{KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyKind, Segment};

use crate::ast::*;
use crate::compile::{Program, compile_query};
use crate::eval::Context;
use crate::functions::{self, Geospatial};
use crate::limits;
use crate::parameters::Parameters;
use crate::pattern::LikePattern;
use crate::value::{Kind, Val};

/// The partition keys that a filter allows.
#[derive(Debug, Clone, PartialEq)]
pub enum PinnedKeys {
    /// Any key can hold a match.
    All,
    /// Only these keys can. A key with fewer components than the definition has paths is a prefix of
    /// a hierarchical key. No key at all means that nothing can match.
    Only(Vec<PartitionKey>),
}

/// The partition keys that the WHERE clause of a program pins, or `None` when it pins none.
pub fn partition_key_filter(program: &Program, def: &PartitionKeyDef) -> Option<Vec<PartitionKey>> {
    match pinned_keys(program.query(), program.parameters(), def, None) {
        PinnedKeys::All => None,
        PinnedKeys::Only(keys) => Some(keys),
    }
}

/// Spatial functions of constants are evaluated only if it is known what coordinates mean.
pub(crate) fn pinned_keys(
    query: &Query,
    parameters: &Parameters,
    def: &PartitionKeyDef,
    geospatial: Option<Geospatial>,
) -> PinnedKeys {
    let Some(from) = &query.from else { return PinnedKeys::Only(Vec::new()) };
    let (Some(filter), Some(alias)) = (&query.filter, root_alias(from)) else { return PinnedKeys::All };
    let analysis = Analysis { parameters, def, geospatial };
    match analysis.truth(filter, alias) {
        Keys::All => PinnedKeys::All,
        Keys::Only(tuples) => as_partition_keys(tuples, def),
    }
}

/// The name of the container in a FROM clause, if its first source is the whole container.
fn root_alias(from: &From) -> Option<&str> {
    let first = from.sources.first()?;
    match (&first.collection, &first.binding) {
        (Collection::Path { steps, .. }, Binding::Implicit | Binding::Alias(_)) if steps.is_empty() => {
            first.name()
        }
        _ => None,
    }
}

fn as_partition_keys(tuples: Vec<Tuple>, def: &PartitionKeyDef) -> PinnedKeys {
    let mut keys: Vec<PartitionKey> = Vec::with_capacity(tuples.len());
    for tuple in tuples {
        let known: Vec<KeyComponent> = tuple.into_iter().map_while(|component| component).collect();
        let full = known.len() == def.paths.len();
        if known.is_empty() || !(full || def.kind == PartitionKeyKind::MultiHash) {
            return PinnedKeys::All;
        }
        let key = PartitionKey(known);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    PinnedKeys::Only(keys)
}

/// One value per partition-key path, where known.
type Tuple = Vec<Option<KeyComponent>>;

#[derive(Debug, Clone)]
enum Keys {
    All,
    Only(Vec<Tuple>),
}

impl Keys {
    const NONE: Self = Self::Only(Vec::new());

    /// Both conditions hold. Where the product would be too large, one of them is enough.
    fn and(self, other: Self) -> Self {
        let (a, b) = match (self, other) {
            (Self::All, keys) | (keys, Self::All) => return keys,
            (Self::Only(a), Self::Only(b)) => (a, b),
        };
        if a.len() * b.len() > limits::PINNED_KEYS {
            return Self::Only(if a.len() <= b.len() { a } else { b });
        }
        let mut both = Vec::new();
        for left in &a {
            for tuple in b.iter().filter_map(|right| merge(left, right)) {
                if !both.contains(&tuple) {
                    both.push(tuple);
                }
            }
        }
        Self::Only(both)
    }

    /// One of the conditions holds.
    fn or(self, other: Self) -> Self {
        let (mut a, b) = match (self, other) {
            (Self::All, _) | (_, Self::All) => return Self::All,
            (Self::Only(a), Self::Only(b)) => (a, b),
        };
        for tuple in b {
            if !a.contains(&tuple) {
                a.push(tuple);
            }
        }
        if a.len() > limits::PINNED_KEYS { Self::All } else { Self::Only(a) }
    }
}

fn merge(left: &Tuple, right: &Tuple) -> Option<Tuple> {
    left.iter()
        .zip(right)
        .map(|(a, b)| match (a, b) {
            (Some(a), Some(b)) if a != b => None,
            (Some(known), _) | (None, Some(known)) => Some(Some(known.clone())),
            (None, None) => Some(None),
        })
        .collect()
}

struct Analysis<'q> {
    parameters: &'q Parameters,
    def: &'q PartitionKeyDef,
    geospatial: Option<Geospatial>,
}

impl Analysis<'_> {
    /// The keys under which the expression can be true.
    fn truth(&self, expr: &Expr, alias: &str) -> Keys {
        match &expr.kind {
            ExprKind::And(operands) => {
                operands.iter().fold(Keys::All, |keys, operand| keys.and(self.truth(operand, alias)))
            }
            ExprKind::Or(operands) => {
                operands.iter().fold(Keys::NONE, |keys, operand| keys.or(self.truth(operand, alias)))
            }
            ExprKind::Binary(BinaryOp::Equal, left, right) => {
                let sides = self.defined(left, alias).and(self.defined(right, alias));
                sides.and(self.equality(left, right, alias)).and(self.equality(right, left, alias))
            }
            ExprKind::In { negated: false, needle, list } => match self.path(needle, alias) {
                Some(path) => self.any_of(path, list),
                None => Keys::All,
            },
            ExprKind::Like { negated: false, value, pattern, escape } => {
                self.like(value, pattern, escape.as_deref(), alias)
            }
            ExprKind::Unary(UnaryOp::Not, operand) => match self.path(operand, alias) {
                Some(path) => self.point(path, KeyComponent::Bool(false)),
                None => self.constant_truth(expr),
            },
            ExprKind::Call { udf: false, name, arguments } => self.call(expr, name, arguments, alias),
            ExprKind::Name(_) | ExprKind::Member(..) | ExprKind::Index(..) => match self.path(expr, alias) {
                Some(path) => self.point(path, KeyComponent::Bool(true)),
                None => Keys::All,
            },
            _ => self.constant_truth(expr),
        }
    }

    /// The keys under which the expression can be anything but undefined.
    fn defined(&self, expr: &Expr, alias: &str) -> Keys {
        let ExprKind::Subquery(SubqueryKind::Scalar, query) = &expr.kind else { return Keys::All };
        let source = query.from.as_ref().and_then(|from| from.sources.first());
        let over_item = source.is_some_and(|source| {
            matches!(&source.collection, Collection::Path { root, steps, .. } if root == alias && steps.is_empty())
                && !matches!(source.binding, Binding::Each(_))
        });
        match (&query.filter, source.and_then(Source::name)) {
            (Some(filter), Some(inner)) if over_item => self.truth(filter, inner),
            _ => Keys::All,
        }
    }

    fn equality(&self, side: &Expr, other: &Expr, alias: &str) -> Keys {
        if let Some(path) = self.path(side, alias) {
            return self.any_of(path, std::slice::from_ref(other));
        }
        let ExprKind::Call { udf: false, name, arguments } = &side.kind else { return Keys::All };
        let ([argument], true) = (arguments.as_slice(), name.eq_ignore_ascii_case("ABS")) else {
            return Keys::All;
        };
        match (self.path(argument, alias), self.constant(other).and_then(|value| value.as_f64())) {
            (Some(path), Some(number)) => self
                .point(path, KeyComponent::Number(number))
                .or(self.point(path, KeyComponent::Number(-number))),
            _ => Keys::All,
        }
    }

    fn call(&self, expr: &Expr, name: &str, arguments: &[Expr], alias: &str) -> Keys {
        let path = |i: usize| arguments.get(i).and_then(|argument| self.path(argument, alias));
        match name.to_ascii_uppercase().as_str() {
            "IS_BOOL" | "IS_BOOLEAN" => path(0).map_or(Keys::All, |path| {
                let yes = self.point(path, KeyComponent::Bool(true));
                yes.or(self.point(path, KeyComponent::Bool(false)))
            }),
            "IS_NULL" => path(0).map_or(Keys::All, |path| self.point(path, KeyComponent::Null)),
            "ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS" if arguments.len() == 2 => {
                match (path(1), self.constant(&arguments[0])) {
                    (Some(path), Some(Val::Array(list))) if list.len() <= limits::PINNED_KEYS => {
                        list.iter().fold(Keys::NONE, |keys, item| keys.or(self.value_point(path, &item)))
                    }
                    _ => Keys::All,
                }
            }
            _ => self.constant_truth(expr),
        }
    }

    fn like(&self, value: &Expr, pattern: &Expr, escape: Option<&str>, alias: &str) -> Keys {
        let Some(path) = self.path(value, alias) else { return Keys::All };
        let Some(pattern) = self.constant(pattern) else { return Keys::All };
        let exact = pattern
            .as_str()
            .and_then(|text| LikePattern::new(text, escape.and_then(|e| e.chars().next())).exact());
        exact.map_or(Keys::All, |text| self.point(path, KeyComponent::Str(text)))
    }

    /// The path equals one of the values; all of them must be constants.
    fn any_of(&self, path: usize, values: &[Expr]) -> Keys {
        values.iter().fold(Keys::NONE, |keys, value| match self.constant(value) {
            Some(value) => keys.or(self.value_point(path, &value)),
            None => Keys::All,
        })
    }

    /// Arrays and objects are stored under the undefined key.
    fn value_point(&self, path: usize, value: &Val<'_>) -> Keys {
        let component = match value.kind() {
            Kind::Undefined => return Keys::NONE,
            Kind::Null => KeyComponent::Null,
            Kind::Array | Kind::Object => KeyComponent::Undefined,
            Kind::Bool => KeyComponent::Bool(value.is_true()),
            Kind::Number => KeyComponent::Number(value.as_f64().unwrap_or_default()),
            Kind::String => KeyComponent::Str(value.as_str().unwrap_or_default().to_owned()),
        };
        self.point(path, component)
    }

    fn point(&self, path: usize, component: KeyComponent) -> Keys {
        let mut tuple = vec![None; self.def.paths.len()];
        tuple[path] = Some(component);
        Keys::Only(vec![tuple])
    }

    /// Which partition-key path an expression names.
    fn path(&self, expr: &Expr, alias: &str) -> Option<usize> {
        let mut names = Vec::new();
        let mut at = expr;
        loop {
            match &at.kind {
                ExprKind::Member(base, name) => {
                    names.push(name.as_str());
                    at = base;
                }
                ExprKind::Index(base, index) => {
                    let ExprKind::Literal(Literal::String(name)) = &index.kind else { return None };
                    names.push(name.as_str());
                    at = base;
                }
                ExprKind::Name(name) if name == alias => break,
                _ => return None,
            }
        }
        names.reverse();
        self.def.paths.iter().position(|path| {
            let segments = path.segments();
            segments.len() == names.len()
                && segments.iter().zip(&names).all(|(segment, name)| match segment {
                    Segment::Name(segment) => segment == name,
                    Segment::Index(_) => false,
                })
        })
    }

    /// A constant that is not true makes the whole query empty.
    fn constant_truth(&self, expr: &Expr) -> Keys {
        match self.constant(expr) {
            Some(value) if !value.is_true() => Keys::NONE,
            _ => Keys::All,
        }
    }

    /// The value of an expression that needs no item.
    fn constant(&self, expr: &Expr) -> Option<Val<'static>> {
        match &expr.kind {
            ExprKind::Literal(literal) => Some(crate::compile::constant(literal)),
            ExprKind::Parameter(name) => Some(self.parameters.get(name)),
            _ if is_constant(expr, self.geospatial.is_some()) => self.fold(expr),
            _ => None,
        }
    }

    fn fold(&self, expr: &Expr) -> Option<Val<'static>> {
        let span = expr.span;
        let spec = SelectSpec::Value(Box::new(expr.clone()));
        let select = Select { distinct: false, top: None, top_span: span, spec, span };
        let query = Query {
            select,
            from: None,
            filter: None,
            group_by: Vec::new(),
            order_by: None,
            order_by_span: span,
            offset_limit: None,
            span,
        };
        let program = compile_query(query, self.parameters).ok()?;
        let cx = Context { geospatial: self.geospatial.unwrap_or_default(), ..Context::at(0, 0) };
        program.evaluate_alone(&cx).ok()
    }
}

/// Whether an expression has the same value everywhere and at any time.
fn is_constant(expr: &Expr, spatial: bool) -> bool {
    let own = match &expr.kind {
        ExprKind::Name(_) | ExprKind::Subquery(..) | ExprKind::Placeholder(_) => false,
        ExprKind::Call { udf: true, .. } => false,
        ExprKind::Call { name, .. } => functions::find(name).is_some_and(|function| {
            !function.depends_on_time && !function.is_later() && (spatial || !function.is_spatial)
        }),
        _ => true,
    };
    let mut all = own;
    if own {
        expr.operands(|operand| all = all && is_constant(operand, spatial));
    }
    all
}
