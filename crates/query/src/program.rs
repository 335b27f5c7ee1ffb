//! A compiled query: names are slots, functions are pointers, parameters are constants or numbered values.

use orrery_doc::TermOrder;

use crate::ast::{BinaryOp, Direction, SubqueryKind, UnaryOp};
use crate::functions::{Function, VectorDistance};
use crate::pattern::LikePattern;
use crate::value::Val;

/// One compiled query level; subqueries hold their own.
#[derive(Debug)]
pub(crate) struct Level {
    pub sources: Vec<SourceNode>,
    pub filter: Option<Node>,
    /// The value of one result row; a row whose value is undefined does not exist.
    pub select: Node,
    pub grouping: Option<Grouping>,
    pub distinct: bool,
    pub order_by: Vec<(Node, Direction)>,
    /// Nobody asked for the order: it only brings equal rows together.
    pub order_is_implied: bool,
    /// For DISTINCT: rows are equal exactly if their order keys are.
    pub keys_are_rows: bool,
    pub offset: u64,
    pub limit: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct SourceNode {
    pub slot: usize,
    pub collection: CollectionNode,
    /// `x IN collection`: one row per element.
    pub each: bool,
}

#[derive(Debug)]
pub(crate) enum CollectionNode {
    Value(Node),
    Query(Box<Level>),
}

/// GROUP BY keys and the aggregates to keep per group. No keys means one group.
#[derive(Debug)]
pub(crate) struct Grouping {
    pub keys: Vec<Node>,
    pub aggregates: Vec<Aggregate>,
}

#[derive(Debug)]
pub(crate) struct Aggregate {
    pub kind: AggregateKind,
    pub argument: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateKind {
    Average,
    Count,
    CountIf,
    MakeList,
    MakeSet,
    Max,
    Min,
    Sum,
}

impl AggregateKind {
    /// The aggregate of that name, in any letter case.
    pub fn from_name(name: &str) -> Option<Self> {
        const NAMES: [(&str, AggregateKind); 8] = [
            ("AVG", AggregateKind::Average),
            ("COUNT", AggregateKind::Count),
            ("COUNTIF", AggregateKind::CountIf),
            ("MAKELIST", AggregateKind::MakeList),
            ("MAKESET", AggregateKind::MakeSet),
            ("MAX", AggregateKind::Max),
            ("MIN", AggregateKind::Min),
            ("SUM", AggregateKind::Sum),
        ];
        NAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| kind)
    }

    /// The name that query plans use.
    pub fn plan_name(self) -> &'static str {
        match self {
            Self::Average => "Average",
            Self::Count => "Count",
            Self::CountIf => "CountIf",
            Self::MakeList => "MakeList",
            Self::MakeSet => "MakeSet",
            Self::Max => "Max",
            Self::Min => "Min",
            Self::Sum => "Sum",
        }
    }
}

#[derive(Debug)]
pub(crate) enum Node {
    Constant(Val<'static>),
    /// A parameter of the query, by its number in the program's values.
    Parameter(usize),
    Slot(usize),
    /// `alias.a.b[0]`, by far the most common expression.
    Path {
        slot: usize,
        steps: Box<[PathStep]>,
    },
    /// The expression behind a computed property of the item in a slot.
    Computed {
        slot: usize,
        name: Box<str>,
        value: Box<Node>,
    },
    Member(Box<Node>, Box<str>),
    Index(Box<Node>, Box<Node>),
    Unary(UnaryOp, Box<Node>),
    Binary(BinaryOp, Box<Node>, Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Conditional(Box<[Node; 3]>),
    Between {
        negated: bool,
        operands: Box<[Node; 3]>,
    },
    In {
        negated: bool,
        needle: Box<Node>,
        list: Vec<Node>,
    },
    /// IN with constants only, sorted: clients send lists of thousands.
    InConstants {
        negated: bool,
        needle: Box<Node>,
        sorted: Vec<Val<'static>>,
    },
    Like {
        negated: bool,
        value: Box<Node>,
        pattern: LikeNode,
    },
    Array(Vec<Node>),
    Object(Vec<(Box<str>, Node)>),
    Call(&'static Function, Vec<Node>),
    /// ORDERKEY: the key of the stored value at a path in an order of terms. Only here a value still has its own type.
    OrderKey {
        order: TermOrder,
        slot: usize,
        steps: Box<[PathStep]>,
    },
    VectorDistance {
        distance: VectorDistance,
        vectors: Box<[Node; 2]>,
    },
    /// REGEXMATCH with a constant pattern.
    Regex(Box<Node>, Box<crate::functions::Regex>),
    Udf(Box<str>, Vec<Node>),
    Subquery(SubqueryKind, Box<Level>),
    /// The value of a GROUP BY key of the current group.
    GroupKey(usize),
    /// The result of an aggregate of the current group.
    Aggregate(usize),
}

#[derive(Debug)]
pub(crate) enum LikeNode {
    Ready(LikePattern),
    Late(Box<Node>, Option<char>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PathStep {
    Name(Box<str>),
    Index(usize),
}

impl Level {
    /// Whether all rows must be seen before the first can be answered, or earlier answers must be
    /// known to give the next.
    pub fn is_blocking(&self) -> bool {
        self.grouping.is_some() || self.distinct || !self.order_by.is_empty()
    }
}

/// So much is evaluated for an item while others wait: a page of a few items then takes well below a millisecond.
const LIGHT: u32 = 64;
/// Functions that may take long over one value.
fn is_slow(function: &str) -> bool {
    function.starts_with("ST_") || function.starts_with("FULLTEXT") || function == "REGEXMATCH"
}

/// What a call counts, in operators.
const CALL: u32 = 4;

impl Level {
    /// Whether a row takes no more than a few operators and functions, none of which can take long.
    pub fn is_light(&self) -> bool {
        let source_is_item = match self.sources.as_slice() {
            [] => true,
            [source] => {
                !source.each && matches!(&source.collection, CollectionNode::Value(node) if node.is_light())
            }
            _ => false,
        };
        let order_is_light = self.order_by.iter().all(|(node, _)| node.is_light());
        let filter_is_light = self.filter.as_ref().is_none_or(Node::is_light);
        source_is_item && order_is_light && filter_is_light && self.select.is_light()
    }
}

impl Node {
    fn is_light(&self) -> bool {
        self.weigh(0).is_some()
    }

    /// Adds up what an evaluation takes; nothing if that is too much.
    fn weigh(&self, before: u32) -> Option<u32> {
        let sum = before + 1;
        if sum > LIGHT {
            return None;
        }
        let all = |nodes: &[Node], sum: u32| nodes.iter().try_fold(sum, |sum, node| node.weigh(sum));
        match self {
            Node::Constant(_)
            | Node::Parameter(_)
            | Node::Slot(_)
            | Node::Path { .. }
            | Node::GroupKey(_)
            | Node::Aggregate(_) => Some(sum),
            Node::Member(node, _)
            | Node::Unary(_, node)
            | Node::Computed { value: node, .. }
            | Node::InConstants { needle: node, .. } => node.weigh(sum),
            Node::Index(a, b) | Node::Binary(_, a, b) => b.weigh(a.weigh(sum)?),
            Node::And(list) | Node::Or(list) | Node::Array(list) => all(list, sum),
            Node::Conditional(operands) | Node::Between { operands, .. } => all(&operands[..], sum),
            Node::In { needle, list, .. } => all(list, needle.weigh(sum)?),
            Node::Object(fields) => fields.iter().try_fold(sum, |sum, (_, node)| node.weigh(sum)),
            Node::OrderKey { .. } => Some(sum + CALL),
            Node::Like { value, pattern: LikeNode::Ready(_), .. } => value.weigh(sum + CALL),
            Node::Call(function, arguments) if !is_slow(function.name) => all(arguments, sum + CALL),
            Node::Like { .. }
            | Node::Call(..)
            | Node::VectorDistance { .. }
            | Node::Regex(..)
            | Node::Udf(..)
            | Node::Subquery(..) => None,
        }
    }
}
