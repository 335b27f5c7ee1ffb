//! `$filter`: a small language of comparisons, joined by `and`, `or` and `not`.
//!
//! [`parse`] reads it into a [`Filter`] under limits of length and depth; [`compile`] makes of that the condition of a
//! query, which the planner of SQL then treats as its own.

mod compile;
mod lexer;
mod parse;

pub(crate) use compile::{Names, condition};
pub(crate) use parse::parse;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Compare {
        property: String,
        operator: Operator,
        literal: Literal,
    },
    /// `true`, `false`
    Constant(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    String(String),
    Int(i64),
    Double(f64),
    Bool(bool),
    /// Ticks since the year 1.
    DateTime(i64),
    /// In lower case.
    Guid(String),
    /// As base64.
    Binary(String),
}

impl Operator {
    /// The operator when both sides change places.
    fn turned(self) -> Operator {
        match self {
            Operator::Greater => Operator::Less,
            Operator::GreaterOrEqual => Operator::LessOrEqual,
            Operator::Less => Operator::Greater,
            Operator::LessOrEqual => Operator::GreaterOrEqual,
            same => same,
        }
    }

    /// Whether it holds between two numbers, of which either may be infinite or none at all.
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::Greater => left > right,
            Operator::GreaterOrEqual => left >= right,
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
        }
    }
}

impl Filter {
    /// The text that a property must be equal to, if every row that passes has it.
    pub fn pinned(&self, property: &str) -> Option<&str> {
        match self {
            Filter::Compare { property: name, operator: Operator::Equal, literal: Literal::String(text) }
                if name == property =>
            {
                Some(text)
            }
            Filter::And(list) => list.iter().find_map(|filter| filter.pinned(property)),
            _ => None,
        }
    }

    /// Whether every row passes in which a property is equal to a text, the one that it is pinned to, and no other row.
    pub fn only_pins(&self, property: &str) -> bool {
        !matches!(self, Filter::And(_)) && self.pinned(property).is_some()
    }

    /// Both parts of a key, if the filter asks for one entity by them and for nothing else.
    pub fn key(&self) -> Option<(&str, &str)> {
        match self {
            Filter::And(list) if list.len() == 2 => self.pinned("PartitionKey").zip(self.pinned("RowKey")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_every_row_has_are_known() {
        let only = |text: &str| parse(text).expect(text).only_pins("PartitionKey");
        assert!(only("PartitionKey eq 'p'") && only("'p' eq PartitionKey"));
        for more in [
            "PartitionKey eq 'p' and n eq 1",
            "PartitionKey ge 'p'",
            "not (PartitionKey eq 'p')",
            "RowKey eq 'p'",
        ] {
            assert!(!only(more), "{more}");
        }
        let pinned = |text: &str| {
            let filter = parse(text).expect("well formed");
            let of = |name: &str| filter.pinned(name).map(str::to_owned);
            (of("PartitionKey"), of("RowKey"))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(pinned("PartitionKey eq 'p' and RowKey eq 'r'"), (text("p"), text("r")));
        assert_eq!(pinned("a eq 1 and (PartitionKey eq 'p' and b eq 2)"), (text("p"), None));
        assert_eq!(pinned("PartitionKey eq 'p' or RowKey eq 'r'"), (None, None));
        assert_eq!(pinned("not (PartitionKey eq 'p')"), (None, None));
        assert_eq!(pinned("PartitionKey ge 'p'"), (None, None));
    }

    #[test]
    fn a_filter_for_one_entity_is_known() {
        let key = |text: &str| {
            let filter = parse(text).expect("well formed");
            filter.key().map(|(partition_key, row_key)| format!("{partition_key} {row_key}"))
        };
        for text in ["PartitionKey eq 'p' and RowKey eq 'r'", "(('r' eq RowKey) and (PartitionKey eq 'p'))"] {
            assert_eq!(key(text).as_deref(), Some("p r"), "{text}");
        }
        for text in [
            "PartitionKey eq 'p'",
            "PartitionKey eq 'p' or RowKey eq 'r'",
            "PartitionKey eq 'p' and RowKey ge 'r'",
            "PartitionKey eq 'p' and RowKey eq 'r' and a eq 1",
            "PartitionKey eq 'p' and PartitionKey eq 'r'",
            "not (PartitionKey eq 'p' and RowKey eq 'r')",
        ] {
            assert_eq!(key(text), None, "{text}");
        }
    }
}
