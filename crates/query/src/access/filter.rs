//! What a filter demands of an item's index entries.
//!
//! The analysis asks of every expression: what must be in the index if this is to be true, and what if it is to
//! be false? Both questions are needed, because NOT turns one into the other; undefined answers neither. An
//! alias that ranges over an array stands for the path of its elements, so a condition on it says that *some*
//! element has such an entry.

use super::path::{IndexPath, IndexStep};
use super::proposal::{Leaf, Proposal};
use super::span::{Span, term_of, united, without};
use super::{CompositePaths, Indexes};
use crate::ast::{BinaryOp, SubqueryKind, UnaryOp};
use crate::compile::Program;
use crate::eval::{Context, Env};
use crate::program::{CollectionNode, Level, LikeNode, Node, SourceNode};
use crate::value::{Kind, Val};

/// A proposal, and whether the items it names are exactly those that meet the condition.
pub(super) struct Found {
    pub proposal: Proposal,
    pub exact: bool,
}

/// Where an expression points in an item.
#[derive(Clone)]
pub(super) struct Place {
    pub path: IndexPath,
    /// Whether the path is all there is to say: an index into an array is lost in it.
    pub exact: bool,
}

pub(super) struct Analysis<'i> {
    pub indexes: &'i dyn Indexes,
    /// The values of the program's parameters.
    values: &'i [Val<'static>],
    pub composites: Vec<CompositePaths>,
    /// Where the alias of each slot points; slot 0 is the item.
    pub places: Vec<Option<Place>>,
}

impl Found {
    /// An expression that says nothing about the index.
    pub fn unknown() -> Self {
        Self { proposal: Proposal::Everything, exact: false }
    }

    fn constant(holds: bool) -> Self {
        Self { proposal: if holds { Proposal::Everything } else { Proposal::Nothing }, exact: true }
    }

    fn all(parts: Vec<Found>) -> Self {
        let exact = parts.iter().all(|part| part.exact);
        Self { proposal: Proposal::all(parts.into_iter().map(|part| part.proposal)), exact }
    }

    fn any(parts: Vec<Found>) -> Self {
        let exact = parts.iter().all(|part| part.exact);
        Self { proposal: Proposal::any(parts.into_iter().map(|part| part.proposal)), exact }
    }

    pub fn inexact(self) -> Self {
        Self { exact: false, ..self }
    }
}

impl<'i> Analysis<'i> {
    /// For the level of a program that sees the items.
    pub fn new(indexes: &'i dyn Indexes, program: &'i Program) -> Self {
        let mut places = vec![None; program.first_stage().slots.max(1)];
        places[0] = Some(Place { path: IndexPath::default(), exact: true });
        Self { indexes, values: &program.values, composites: indexes.composites(), places }
    }

    /// What an item needs so that the level has any row for it.
    pub fn level(&mut self, level: &Level) -> Found {
        let mut parts = self.sources(&level.sources);
        if let Some(filter) = &level.filter {
            parts.extend(self.conditions(&level.sources, filter));
        }
        Found::all(parts)
    }

    /// Learns where the aliases of a FROM clause point, and what their existence needs.
    fn sources(&mut self, sources: &[SourceNode]) -> Vec<Found> {
        let mut needs = Vec::new();
        for source in sources {
            let place = match &source.collection {
                CollectionNode::Value(node) => self.place(node),
                CollectionNode::Query(query) => {
                    let (place, need) = self.subquery_source(query);
                    needs.extend(need);
                    place
                }
            };
            let place = match place {
                Some(place) if source.each => Some(Place { path: place.path.elements(), ..place }),
                place => place,
            };
            match &place {
                Some(place) if place.path.steps().is_empty() => {}
                Some(place) => needs.push(self.leaf(place, vec![Span::defined()], true)),
                // A collection that is no path may be empty.
                None => needs.push(Found::unknown()),
            }
            if let Some(slot) = self.places.get_mut(source.slot) {
                *slot = place;
            }
        }
        needs
    }

    /// A subquery as a source has rows only if its own conditions can be met.
    fn subquery_source(&mut self, query: &Level) -> (Option<Place>, Option<Found>) {
        if query.grouping.is_some() {
            return (None, None);
        }
        let need = self.level(query);
        (self.place(&query.select), Some(need.inexact()))
    }

    pub fn place(&self, node: &Node) -> Option<Place> {
        match node {
            Node::Slot(slot) => self.places.get(*slot)?.clone(),
            Node::Path { slot, steps } => {
                let base = self.places.get(*slot)?.as_ref()?;
                let (path, exact) = base.path.follow(steps);
                Some(Place { path, exact: exact && base.exact })
            }
            Node::Computed { slot, name, value } => {
                let base = self.places.get(*slot)?.as_ref()?;
                let path = base.path.then(IndexStep::Computed(name.clone()));
                match self.knows(&path) {
                    true => Some(Place { path, exact: base.exact }),
                    false => self.place(value),
                }
            }
            Node::Member(base, name) => {
                let base = self.place(base)?;
                Some(Place { path: base.path.then(IndexStep::Name(name.clone())), exact: base.exact })
            }
            _ => None,
        }
    }

    /// Whether some index has every value at the path. A composite index may be of no use for the condition; that
    /// is seen when all conditions are known.
    fn knows(&self, path: &IndexPath) -> bool {
        let is_part = |parts: &CompositePaths| parts.iter().any(|(part, _)| part == path);
        self.indexes.covers(path) || self.composites.iter().any(is_part)
    }

    /// A condition on the term at a place; `exact`: it is all that the expression says.
    fn leaf(&self, place: &Place, spans: Vec<Span>, exact: bool) -> Found {
        let spans = united(spans);
        if place.path.steps().is_empty() || !self.knows(&place.path) {
            return Found::unknown();
        }
        if spans.is_empty() {
            return Found { proposal: Proposal::Nothing, exact };
        }
        let exact = exact && place.exact;
        Found { proposal: Proposal::Leaf(Leaf { path: place.path.clone(), spans, exact }), exact }
    }

    /// What must hold so that an expression is `truth`.
    pub fn when(&mut self, node: &Node, truth: bool) -> Found {
        if let Some(value) = self.constant(node) {
            return Found::constant(value.as_bool() == Some(truth));
        }
        match node {
            Node::Computed { value, .. } if self.place(node).is_none() => self.when(value, truth),
            Node::Slot(_) | Node::Path { .. } | Node::Computed { .. } | Node::Member(..) => {
                self.boolean(node, truth)
            }
            Node::Unary(UnaryOp::Not, operand) => self.when(operand, !truth),
            Node::And(operands) | Node::Or(operands) => {
                let parts: Vec<Found> = operands.iter().map(|operand| self.when(operand, truth)).collect();
                // All must be true for AND to be true, all false for OR to be false.
                if matches!(node, Node::And(_)) == truth { Found::all(parts) } else { Found::any(parts) }
            }
            Node::Binary(op, left, right) => self.binary(*op, left, right, truth),
            Node::Between { negated, operands } => self.between(operands, truth != *negated),
            Node::In { negated, needle, list } => self.contained(needle, list, truth != *negated),
            Node::InConstants { negated, needle, sorted } => {
                self.among(needle, sorted.iter(), truth != *negated)
            }
            Node::Like { negated, value, pattern } => self.like(value, pattern, truth != *negated),
            Node::Regex(text, _) => self.some_string(text),
            Node::Call(function, arguments) => self.call(function.name, arguments, truth),
            Node::Conditional(operands) => {
                let [condition, then, otherwise] = &**operands;
                let first = Found::all(vec![self.when(condition, true), self.when(then, truth)]);
                Found::any(vec![first, self.when(otherwise, truth)]).inexact()
            }
            Node::Subquery(SubqueryKind::Exists, level) if truth => self.exists(level),
            _ => Found::unknown(),
        }
    }

    fn boolean(&self, node: &Node, truth: bool) -> Found {
        match self.place(node) {
            Some(place) => {
                let (term, _) = term_of(&Val::Bool(truth));
                self.leaf(&place, vec![Span::of_prefix(term)], true)
            }
            None => Found::unknown(),
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Node, right: &Node, truth: bool) -> Found {
        if op == BinaryOp::Coalesce {
            return Found::any(vec![self.when(left, truth), self.when(right, truth)]).inexact();
        }
        let sought = if truth { op } else { opposite(op) };
        if let Some(found) =
            self.distance(sought, left, right).or_else(|| self.distance(mirrored(sought), right, left))
        {
            return found;
        }
        let (place, value, op) = match (self.place(left), self.constant(right)) {
            (Some(place), Some(value)) => (place, value, op),
            _ => match (self.constant(left), self.place(right)) {
                (Some(value), Some(place)) => (place, value, mirrored(op)),
                _ => return Found::unknown(),
            },
        };
        let op = if truth { op } else { opposite(op) };
        match compared(op, &value) {
            Some((spans, exact)) => self.leaf(&place, spans, exact),
            None => Found::unknown(),
        }
    }

    fn between(&mut self, operands: &[Node; 3], truth: bool) -> Found {
        let [value, low, high] = operands;
        if let Some(found) = self.distance(BinaryOp::LessOrEqual, value, high).filter(|_| truth) {
            return found;
        }
        let (Some(place), Some(low), Some(high)) =
            (self.place(value), self.constant(low), self.constant(high))
        else {
            return Found::unknown();
        };
        let (below, above) = if truth {
            (BinaryOp::GreaterOrEqual, BinaryOp::LessOrEqual)
        } else {
            (BinaryOp::Less, BinaryOp::Greater)
        };
        let (Some(low), Some(high)) = (compared(below, &low), compared(above, &high)) else {
            return Found::unknown();
        };
        let exact = low.1 && high.1;
        let spans = if truth {
            super::span::intersected(&united(low.0), &united(high.0))
        } else {
            low.0.into_iter().chain(high.0).collect()
        };
        self.leaf(&place, spans, exact)
    }

    fn contained(&mut self, needle: &Node, list: &[Node], truth: bool) -> Found {
        let Some(value) = self.constant(needle).filter(|_| truth) else { return Found::unknown() };
        let part = |item: &Node| match (self.place(item), self.constant(item)) {
            (Some(place), _) => match compared(BinaryOp::Equal, &value) {
                Some((spans, exact)) => self.leaf(&place, spans, exact),
                None => Found::unknown(),
            },
            (None, Some(item)) => Found::constant(crate::eval::equal(&value, &item) == Some(true)),
            (None, None) => Found::unknown(),
        };
        Found::any(list.iter().map(part).collect())
    }

    /// A value that is, or is not, one of some constants.
    fn among<'v>(&self, needle: &Node, list: impl Iterator<Item = &'v Val<'static>>, truth: bool) -> Found {
        let Some(place) = self.place(needle) else { return Found::unknown() };
        let mut exact = true;
        let mut spans = Vec::new();
        for value in list.filter(|value| !value.is_undefined()) {
            let (term, complete) = term_of(value);
            exact &= complete;
            if complete || truth {
                spans.push(Span::of_prefix(term));
            }
        }
        let spans = if truth { spans } else { without(Span::defined(), &united(spans)) };
        self.leaf(&place, spans, exact)
    }

    fn like(&mut self, value: &Node, pattern: &LikeNode, truth: bool) -> Found {
        match (self.place(value), pattern) {
            (Some(place), LikeNode::Ready(pattern)) if truth => {
                if let Some(text) = pattern.exact() {
                    let (term, complete) = term_of(&Val::text(text));
                    return self.leaf(&place, vec![Span::of_prefix(term)], complete);
                }
                let (span, _) = Span::of_text_prefix(&pattern.literal_prefix());
                self.leaf(&place, vec![span], false)
            }
            _ => self.some_string(value),
        }
    }

    /// For conditions that only strings can meet.
    fn some_string(&self, node: &Node) -> Found {
        match self.place(node) {
            Some(place) => self.leaf(&place, vec![Span::of_kind(Kind::String)], false),
            None => Found::unknown(),
        }
    }

    fn call(&mut self, name: &str, arguments: &[Node], truth: bool) -> Found {
        match (name, arguments) {
            (_, [subject]) if name.starts_with("IS_") => self.type_check(name, subject, truth),
            ("STARTSWITH", [subject, prefix, flag @ ..]) if truth => self.prefix(subject, prefix, flag),
            ("STRINGEQUALS", [a, b, flag @ ..]) if truth => self.same_text(a, b, flag),
            ("CONTAINS" | "ENDSWITH" | "STARTSWITH" | "STRINGEQUALS" | "REGEXMATCH", [subject, ..]) => {
                self.some_string(subject)
            }
            ("ARRAY_CONTAINS", [list, wanted, flag @ ..]) if truth => self.array_contains(list, wanted, flag),
            ("ARRAY_CONTAINS_ANY" | "ARRAY_CONTAINS_ALL", [list, wanted @ ..]) if truth => {
                self.array_contains_each(list, wanted, name.ends_with("ALL"))
            }
            ("ST_WITHIN" | "ST_INTERSECTS", [a, b]) if truth => self.meeting(a, b),
            _ => Found::unknown(),
        }
    }

    /// Type checks answer false for undefined, so their opposite includes what is absent.
    fn type_check(&self, name: &str, subject: &Node, truth: bool) -> Found {
        let span = match name {
            "IS_DEFINED" => Span::defined(),
            "IS_NULL" => Span::of_kind(Kind::Null),
            "IS_BOOL" | "IS_BOOLEAN" => Span::of_kind(Kind::Bool),
            "IS_NUMBER" | "IS_INTEGER" | "IS_FINITE_NUMBER" => Span::of_kind(Kind::Number),
            "IS_STRING" => Span::of_kind(Kind::String),
            "IS_ARRAY" => Span::of_kind(Kind::Array),
            "IS_OBJECT" => Span::of_kind(Kind::Object),
            "IS_PRIMITIVE" => Span::of_kinds(Kind::Null, Kind::String),
            _ => return Found::unknown(),
        };
        let exact = !matches!(name, "IS_INTEGER" | "IS_FINITE_NUMBER");
        let Some(place) = self.place(subject) else { return Found::unknown() };
        if truth {
            return self.leaf(&place, vec![span], exact);
        }
        // Of several elements one may lack what another has; only a single value can be said to be absent.
        if !place.path.is_single() || !exact {
            return Found::unknown();
        }
        self.leaf(&place, without(Span::of_kinds(Kind::Undefined, Kind::Object), &[span]), true)
    }

    fn prefix(&self, subject: &Node, prefix: &Node, flag: &[Node]) -> Found {
        match (self.place(subject), self.constant(prefix).as_ref().and_then(Val::as_str)) {
            (Some(place), Some(prefix)) if self.is_off(flag) => {
                let (span, exact) = Span::of_text_prefix(prefix);
                self.leaf(&place, vec![span], exact)
            }
            _ => self.some_string(subject),
        }
    }

    fn same_text(&self, a: &Node, b: &Node, flag: &[Node]) -> Found {
        let (subject, text) = if self.place(a).is_some() { (a, b) } else { (b, a) };
        match (self.place(subject), self.constant(text)) {
            (Some(place), Some(text @ Val::Str(_))) if self.is_off(flag) => {
                let (term, complete) = term_of(&text);
                self.leaf(&place, vec![Span::of_prefix(term)], complete)
            }
            _ => self.some_string(subject),
        }
    }

    /// Either a path that holds a constant, or a constant list that holds a path's value.
    fn array_contains(&self, list: &Node, wanted: &Node, flag: &[Node]) -> Found {
        if let (Some(Val::Array(list)), true) = (self.constant(list), self.is_off(flag)) {
            let list: Vec<Val<'static>> = list.iter().collect();
            return self.among(wanted, list.iter(), true);
        }
        let (Some(place), Some(wanted)) = (self.place(list), self.constant(wanted)) else {
            return Found::unknown();
        };
        let elements = Place { path: place.path.elements(), ..place };
        match &wanted {
            Val::Undefined => Found::constant(false),
            Val::Object(fields) if !self.is_off(flag) => {
                let list: Vec<(Box<str>, Val<'static>)> =
                    fields.to_vec().into_iter().map(|(name, value)| (name.as_str().into(), value)).collect();
                let (found, members) = self.element_with(&elements, &list).unzip();
                let mut parts: Vec<Found> = found.into_iter().collect();
                for (name, value) in list {
                    let member = IndexPath(vec![IndexStep::Name(name)]);
                    let is_answered = members.iter().flatten().any(|known| *known == member);
                    if !is_answered && !matches!(value, Val::Object(_)) {
                        let path = IndexPath(elements.path.steps().iter().cloned().chain(member.0).collect());
                        let span = Span::of_prefix(term_of(&value).0);
                        parts.push(self.leaf(&Place { path, exact: false }, vec![span], false));
                    }
                }
                Found::all(parts).inexact()
            }
            wanted => {
                let (term, complete) = term_of(wanted);
                self.leaf(&elements, vec![Span::of_prefix(term)], complete && self.is_off(flag))
            }
        }
    }

    fn array_contains_each(&self, list: &Node, wanted: &[Node], every: bool) -> Found {
        let Some(place) = self.place(list) else { return Found::unknown() };
        let elements = Place { path: place.path.elements(), ..place };
        let part = |node: &Node| match self.constant(node) {
            Some(value) if !value.is_undefined() => {
                self.leaf(&elements, vec![Span::of_prefix(term_of(&value).0)], false)
            }
            _ => Found::unknown(),
        };
        let parts: Vec<Found> = wanted.iter().map(part).collect();
        if every { Found::all(parts).inexact() } else { Found::any(parts).inexact() }
    }

    /// A subquery has rows only if its sources exist, its filter can pass, and its value is defined.
    fn exists(&mut self, level: &Level) -> Found {
        // An aggregate answers even over no rows.
        if level.grouping.is_some() {
            return Found::unknown();
        }
        let mut parts = self.sources(&level.sources);
        let one_source = parts.len() == 1;
        if let Some(filter) = &level.filter {
            parts.extend(self.conditions(&level.sources, filter));
        }
        let mut always_defined = matches!(level.select, Node::Slot(_) | Node::Object(_) | Node::Array(_));
        if let Some(value) = self.constant(&level.select) {
            always_defined = !value.is_undefined();
        } else if let Some(place) = self.place(&level.select)
            && !place.path.steps().is_empty()
        {
            parts.push(self.leaf(&place, vec![Span::defined()], true));
            always_defined = true;
        }
        let plain = one_source && always_defined && level.offset == 0 && level.limit != Some(0);
        let each = level.sources.first().and_then(|source| self.places.get(source.slot)?.clone());
        simplest(parts, each.filter(|_| plain))
    }
}

/// Conditions on the elements of one array. Together they are exact only if the last of them implies the
/// others, because an index cannot tell which element meets which.
fn simplest(mut parts: Vec<Found>, each: Option<Place>) -> Found {
    let about_element = |part: &Found| match (&part.proposal, &each) {
        (Proposal::Leaf(leaf), Some(each)) => leaf.path.steps().starts_with(each.path.steps()),
        _ => false,
    };
    let whole_existence = |part: &Found| match &part.proposal {
        Proposal::Leaf(leaf) => leaf.spans == [Span::defined()],
        _ => false,
    };
    let all_exact = parts.iter().all(|part| part.exact && about_element(part));
    // That an element exists is implied by any condition on it or on what is in it.
    let mut at = 0;
    while parts.len() > 1 && at < parts.len() {
        let implied = match &parts[at].proposal {
            Proposal::Leaf(leaf) if whole_existence(&parts[at]) => parts.iter().enumerate().any(|(i, other)| {
                i != at && matches!(&other.proposal, Proposal::Leaf(other) if other.path.steps().starts_with(leaf.path.steps()))
            }),
            _ => false,
        };
        if implied {
            parts.remove(at);
        } else {
            at += 1;
        }
    }
    let exact = all_exact && parts.len() == 1;
    Found { exact, ..Found::all(parts) }
}

/// The comparison with its sides exchanged.
fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        op => op,
    }
}

/// The comparison that is true when this one is false.
fn opposite(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Equal => BinaryOp::NotEqual,
        BinaryOp::NotEqual => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::GreaterOrEqual,
        BinaryOp::LessOrEqual => BinaryOp::Greater,
        BinaryOp::Greater => BinaryOp::LessOrEqual,
        BinaryOp::GreaterOrEqual => BinaryOp::Less,
        // No comparison: arithmetic is never true or false.
        op => op,
    }
}

/// The terms for which a comparison with a constant is true, and whether they are all and nothing else.
/// `None` for operators that do not compare.
fn compared(op: BinaryOp, value: &Val<'static>) -> Option<(Vec<Span>, bool)> {
    let kind = value.kind();
    if !op.is_comparison() {
        return None;
    }
    let equality = matches!(op, BinaryOp::Equal | BinaryOp::NotEqual);
    if kind == Kind::Undefined || (!equality && matches!(kind, Kind::Array | Kind::Object)) {
        return Some((Vec::new(), true));
    }
    let whole = Span::of_kind(kind);
    let (term, complete) = term_of(value);
    // Values that share a cut term lie on both sides of the bound.
    let this = Span::of_prefix(term);
    let below = Span { lower: whole.lower.clone(), upper: this.lower.clone() };
    let above = Span { lower: this.upper.clone(), upper: whole.upper.clone() };
    let spans = match op {
        BinaryOp::Equal => vec![this],
        // Null differs from everything, not only from its own type.
        BinaryOp::NotEqual if kind == Kind::Null => without(Span::defined(), &[this]),
        BinaryOp::NotEqual if complete => vec![Span::of_kind(Kind::Null), below, above],
        BinaryOp::NotEqual => vec![Span::of_kind(Kind::Null), whole],
        BinaryOp::Less if complete => vec![below],
        BinaryOp::Less | BinaryOp::LessOrEqual => vec![below, this],
        BinaryOp::Greater if complete => vec![above],
        _ => vec![this, above],
    };
    Some((spans, complete))
}

impl Analysis<'_> {
    /// The value of an expression that depends on nothing but the query and its parameters.
    pub fn constant(&self, node: &Node) -> Option<Val<'static>> {
        match node {
            Node::Constant(value) => return Some(value.clone()),
            Node::Parameter(number) => return Some(self.values[*number].clone()),
            node if !is_constant(node) => return None,
            _ => {}
        }
        let context = Context::at(0, 0);
        let mut env = Env::new(1, self.values, &context, None);
        node.eval(&mut env).ok().map(|value| value.to_owned_val())
    }

    /// Whether an optional flag is absent or false.
    fn is_off(&self, flag: &[Node]) -> bool {
        match flag {
            [] => true,
            [flag] => self.constant(flag).as_ref().and_then(Val::as_bool) == Some(false),
            _ => false,
        }
    }
}

fn is_constant(node: &Node) -> bool {
    match node {
        Node::Constant(_) | Node::Parameter(_) => true,
        Node::Unary(_, operand) | Node::Member(operand, _) => is_constant(operand),
        Node::Binary(_, a, b) | Node::Index(a, b) => is_constant(a) && is_constant(b),
        Node::And(list) | Node::Or(list) | Node::Array(list) => list.iter().all(is_constant),
        Node::Object(fields) => fields.iter().all(|(_, node)| is_constant(node)),
        Node::Conditional(operands) => operands.iter().all(is_constant),
        Node::Call(function, arguments) => {
            let known = !function.uses_chance && !function.depends_on_time && !function.is_spatial;
            known && arguments.iter().all(is_constant)
        }
        _ => false,
    }
}
