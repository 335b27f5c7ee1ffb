//! The tree of a query, with the place of every part in the text.
//!
//! Trees compare by meaning: spans are ignored by `==`, which is what GROUP BY matching and the
//! print-and-parse-again tests need. Chains of AND and of OR are flat lists, because clients send
//! chains of thousands of operands and a tree that deep could not be walked by recursion.
//!
//! Trees come from [`crate::parse`], or from code that speaks another language: it makes them with the constructors here,
//! which leave all places empty, and hands them to [`crate::compile_ast`], which checks what the parser would have.

use std::borrow::Cow;

/// Byte offsets into the query text. All spans are equal: place is not meaning.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    pub fn to(self, other: Span) -> Self {
        Self { start: self.start, end: other.end }
    }

    pub fn text(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Span {}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub select: Select,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub order_by: Option<OrderBy>,
    /// Where the ORDER BY clause stands, if there is one.
    pub order_by_span: Span,
    pub offset_limit: Option<OffsetLimit>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Count>,
    /// Where `TOP 5` stands, if it does.
    pub top_span: Span,
    pub spec: SelectSpec,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SelectSpec {
    Star(Span),
    Value(Box<Expr>),
    List(Vec<SelectItem>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<String>,
}

/// A row count: a literal or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    pub kind: CountKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CountKind {
    Literal(u64),
    Parameter(String),
}

/// The FROM clause: the first source and the joined ones, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct From {
    pub sources: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub collection: Collection,
    /// Where the collection stands, without its name; a subquery with its parentheses.
    pub collection_span: Span,
    pub binding: Binding,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Binding {
    /// `c`, `c.children`: the value itself, named by its last step.
    Implicit,
    /// `c AS x`: the value itself.
    Alias(String),
    /// `x IN c.children`: every element of the array.
    Each(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Collection {
    Path {
        root: String,
        steps: Vec<Step>,
        span: Span,
    },
    Subquery(Box<Query>),
    /// An expression that is neither a path nor a subquery, such as a parameter or an array.
    Value(Box<Expr>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Name(String),
    Key(String),
    Index(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub enum OrderBy {
    Items(Vec<OrderItem>),
    Rank(Vec<OrderItem>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    /// `None` when the text does not say; the printer must not say it either.
    pub direction: Option<Direction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OffsetLimit {
    pub offset: Count,
    pub limit: Count,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Literal(Literal),
    Parameter(String),
    /// A name that some source of the FROM clause binds.
    Name(String),
    /// `base.name`
    Member(Box<Expr>, String),
    /// `base[index]`
    Index(Box<Expr>, Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Conditional(Box<[Expr; 3]>),
    Between {
        negated: bool,
        operands: Box<[Expr; 3]>,
    },
    In {
        negated: bool,
        needle: Box<Expr>,
        list: Vec<Expr>,
    },
    Like {
        negated: bool,
        value: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<String>,
    },
    Array(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    Call {
        udf: bool,
        name: String,
        arguments: Vec<Expr>,
    },
    Subquery(SubqueryKind, Box<Query>),
    /// Text that a client fills in before it sends the query back; only printed, never parsed.
    Placeholder(Cow<'static, str>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Undefined,
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    String(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    Scalar,
    Exists,
    Array,
    All,
    First,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    BitNot,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    Coalesce,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Concat,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl BinaryOp {
    /// Whether it is one of `=`, `!=`, `<`, `<=`, `>` and `>=`.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
        )
    }

    pub fn symbol(self) -> &'static str {
        match self {
            Self::Coalesce => "??",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::BitAnd => "&",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Concat => "||",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::ShiftRightZero => ">>>",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

impl Query {
    /// `SELECT * FROM alias`. Languages that make queries of their own begin here.
    pub fn over_items(alias: &str) -> Self {
        let item = Source::made(
            Collection::Path { root: alias.to_owned(), steps: Vec::new(), span: Span::default() },
            Binding::Implicit,
        );
        Self {
            select: Select::made(SelectSpec::Star(Span::default())),
            from: Some(From { sources: vec![item] }),
            filter: None,
            group_by: Vec::new(),
            order_by: None,
            order_by_span: Span::default(),
            offset_limit: None,
            span: Span::default(),
        }
    }

    /// The same with this WHERE clause.
    pub fn with_filter(self, filter: Option<Expr>) -> Self {
        Self { filter, ..self }
    }
}

impl Select {
    /// `SELECT VALUE value`
    pub fn value(value: Expr) -> Self {
        Self::made(SelectSpec::Value(Box::new(value)))
    }

    /// `SELECT a, b AS c`
    pub fn list(items: Vec<SelectItem>) -> Self {
        Self::made(SelectSpec::List(items))
    }

    fn made(spec: SelectSpec) -> Self {
        Self { distinct: false, top: None, top_span: Span::default(), spec, span: Span::default() }
    }
}

impl Count {
    pub fn literal(count: u64) -> Self {
        Self { kind: CountKind::Literal(count), span: Span::default() }
    }
}

impl Expr {
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Self { kind, span }
    }

    /// An expression that no text stands for, made by a rewrite.
    pub fn made(kind: ExprKind) -> Self {
        Self { kind, span: Span::default() }
    }

    pub fn name(name: &str) -> Self {
        Self::made(ExprKind::Name(name.to_owned()))
    }

    pub fn member(self, name: &str) -> Self {
        Self::made(ExprKind::Member(Box::new(self), name.to_owned()))
    }

    pub fn call(name: &str, arguments: Vec<Expr>) -> Self {
        Self::made(ExprKind::Call { udf: false, name: name.to_owned(), arguments })
    }

    pub fn object(properties: Vec<(&str, Expr)>) -> Self {
        let properties = properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self::made(ExprKind::Object(properties))
    }

    /// `left AND right`, kept flat on the left as the parser keeps it.
    pub fn and(self, right: Expr) -> Self {
        let span = self.span.to(right.span);
        let mut operands = match self.kind {
            ExprKind::And(operands) => operands,
            _ => vec![self],
        };
        operands.push(right);
        Self::new(ExprKind::And(operands), span)
    }

    /// `left OR right`, kept flat on the left as the parser keeps it.
    pub fn or(self, right: Expr) -> Self {
        let span = self.span.to(right.span);
        let mut operands = match self.kind {
            ExprKind::Or(operands) => operands,
            _ => vec![self],
        };
        operands.push(right);
        Self::new(ExprKind::Or(operands), span)
    }

    /// The name that SELECT gives to this expression when the text gives none.
    pub fn implied_name(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Name(name) | ExprKind::Member(_, name) => Some(name),
            ExprKind::Index(_, index) => match &index.kind {
                ExprKind::Literal(Literal::String(name)) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `visit` on every direct operand (not on subqueries).
    pub fn operands<'e>(&'e self, mut visit: impl FnMut(&'e Expr)) {
        match &self.kind {
            ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Name(_)
            | ExprKind::Subquery(..)
            | ExprKind::Placeholder(_) => {}
            ExprKind::Member(base, _) | ExprKind::Unary(_, base) => visit(base),
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => {
                visit(a);
                visit(b);
            }
            ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Array(list) => list.iter().for_each(visit),
            ExprKind::Conditional(operands) | ExprKind::Between { operands, .. } => {
                operands.iter().for_each(visit);
            }
            ExprKind::In { needle, list, .. } => {
                visit(needle);
                list.iter().for_each(visit);
            }
            ExprKind::Like { value, pattern, .. } => {
                visit(value);
                visit(pattern);
            }
            ExprKind::Object(properties) => properties.iter().for_each(|(_, value)| visit(value)),
            ExprKind::Call { arguments, .. } => arguments.iter().for_each(visit),
        }
    }
}

impl Source {
    /// `name IN root.steps`: one row for each element of an array.
    pub fn each(name: &str, root: &str, steps: Vec<Step>) -> Self {
        let collection = Collection::Path { root: root.to_owned(), steps, span: Span::default() };
        Self::made(collection, Binding::Each(name.to_owned()))
    }

    /// A source that no text stands for.
    pub fn made(collection: Collection, binding: Binding) -> Self {
        Self { collection, collection_span: Span::default(), binding, span: Span::default() }
    }

    /// The name under which the rest of the query knows this source.
    pub fn name(&self) -> Option<&str> {
        match (&self.binding, &self.collection) {
            (Binding::Alias(name) | Binding::Each(name), _) => Some(name),
            (Binding::Implicit, Collection::Path { root, steps, .. }) => match steps.last() {
                None => Some(root),
                Some(Step::Name(name) | Step::Key(name)) => Some(name),
                Some(Step::Index(_)) => None,
            },
            (Binding::Implicit, _) => None,
        }
    }
}
