//! The condition of a query that a filter stands for.
//!
//! A comparison asks for the type of the property as well as for its value: a text may look like a padded number. Types
//! of numbers are compared by value, so `123` finds integers of both sizes and doubles. Doubles that are infinite or no
//! numbers are stored by their names and compare as such values do: all of them are unequal to `123`, and one is greater.

use orrery_query::ast::{BinaryOp, Expr, ExprKind, Literal as SqlLiteral, UnaryOp};

use super::{Filter, Literal, Operator};
use crate::edm::{self, kind};
use crate::errors::Refusal;
use crate::moment;

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Entities,
    /// Objects with a `TableName`.
    Tables,
}

/// The condition over rows that are called `c`.
pub(crate) fn condition(filter: &Filter, names: Names) -> Result<Expr, Refusal> {
    Ok(match filter {
        Filter::And(list) => joined(list, names, ExprKind::And)?,
        Filter::Or(list) => joined(list, names, ExprKind::Or)?,
        Filter::Not(inner) => Expr::made(ExprKind::Unary(UnaryOp::Not, Box::new(condition(inner, names)?))),
        Filter::Constant(value) => constant(*value),
        Filter::Compare { property, operator, literal } => match names {
            Names::Entities => of_entity(property, *operator, literal)?,
            Names::Tables => match (property.as_str(), literal) {
                ("TableName", Literal::String(text)) => {
                    binary(item().member("TableName"), *operator, string(text))
                }
                _ => return Err(Refusal::bad_address()),
            },
        },
    })
}

fn joined(list: &[Filter], names: Names, join: fn(Vec<Expr>) -> ExprKind) -> Result<Expr, Refusal> {
    let operands = list.iter().map(|filter| condition(filter, names));
    Ok(Expr::made(join(operands.collect::<Result<_, _>>()?)))
}

fn of_entity(property: &str, operator: Operator, literal: &Literal) -> Result<Expr, Refusal> {
    let key = match property {
        "PartitionKey" => Some(edm::PARTITION_KEY),
        "RowKey" => Some(edm::ROW_KEY),
        "Timestamp" => return Ok(of_timestamp(operator, literal)),
        _ => None,
    };
    if let Some(key) = key {
        return Ok(match literal {
            Literal::String(text) => binary(item().member(key), operator, string(text)),
            _ => constant(false),
        });
    }
    let stored = || item().member(&edm::stored_name(property));
    let (value, of_kind) = (|| stored().member(edm::VALUE), |kind| is_kind(stored(), kind));
    Ok(match literal {
        Literal::String(text) => binary(value(), operator, string(text)).and(of_kind(kind::STRING)),
        Literal::Guid(text) => binary(value(), operator, string(text)).and(of_kind(kind::GUID)),
        Literal::Bool(flag) => {
            let flag = Expr::made(ExprKind::Literal(SqlLiteral::Bool(*flag)));
            binary(value(), operator, flag).and(of_kind(kind::BOOLEAN))
        }
        Literal::DateTime(ticks) => {
            binary(value(), operator, string(&edm::padded(*ticks))).and(of_kind(kind::DATE_TIME))
        }
        Literal::Binary(text) => match operator {
            Operator::Equal | Operator::NotEqual => {
                binary(value(), operator, string(text)).and(of_kind(kind::BINARY))
            }
            // Base64 does not keep the order of bytes; hexadecimal digits do.
            _ => {
                let hex = |base64| Expr::call("HEXOFBASE64", vec![base64]);
                binary(hex(value()), operator, hex(string(text))).and(of_kind(kind::BINARY))
            }
        },
        Literal::Int(number) => {
            let literal = Expr::made(ExprKind::Literal(SqlLiteral::Int(*number)));
            let finite = numbers(stored(), binary(value(), operator, literal));
            with_names(finite, stored(), operator, *number as f64).or(of_int64(stored(), operator, *number))
        }
        Literal::Double(number) => {
            let compared = match number.is_finite() {
                true => binary(value(), operator, Expr::made(ExprKind::Literal(SqlLiteral::Double(*number)))),
                // A query can hold no such number, and to each of them all finite values are alike.
                false => always(operator.holds(0.0, *number), value()),
            };
            let long = match nearest(operator, *number) {
                Nearest::Always(holds) => always(holds, value()).and(of_kind(kind::INT64)),
                Nearest::Compare(operator, whole) => of_int64(stored(), operator, whole),
            };
            with_names(numbers(stored(), compared), stored(), operator, *number).or(long)
        }
    })
}

/// The time of the last write, which the store knows beside the item.
fn of_timestamp(operator: Operator, literal: &Literal) -> Expr {
    let Literal::DateTime(ticks) = literal else { return constant(false) };
    let ticks = Expr::made(ExprKind::Literal(SqlLiteral::Int(ticks - moment::TICKS_TO_1970)));
    binary(Expr::call("WRITTENAT", vec![item()]), operator, ticks)
}

/// A condition that holds for every value, or for none, and says nothing where there is no value.
fn always(holds: bool, value: Expr) -> Expr {
    binary(value.clone(), if holds { Operator::Equal } else { Operator::NotEqual }, value)
}

/// A condition on values that are stored as numbers.
fn numbers(stored: Expr, condition: Expr) -> Expr {
    let is_number = is_kind(stored.clone(), kind::INT32).or(is_kind(stored.clone(), kind::DOUBLE));
    condition.and(is_number.clone()).and(is_held_as("IS_NUMBER", stored, is_number))
}

/// A comparison with a number, and with it that of the doubles which are stored by their names.
fn with_names(numbers: Expr, stored: Expr, operator: Operator, number: f64) -> Expr {
    let all = [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];
    let pass = all.into_iter().filter(|(_, value)| operator.holds(*value, number));
    let names: Vec<Expr> = pass.map(|(name, _)| string(name)).collect();
    if names.is_empty() {
        return numbers;
    }
    let value = Box::new(stored.clone().member(edm::VALUE));
    let is_named = Expr::made(ExprKind::In { needle: value, list: names, negated: false });
    let is_double = is_kind(stored.clone(), kind::DOUBLE);
    numbers.or(is_named.and(is_double.clone()).and(is_held_as("IS_STRING", stored, is_double)))
}

/// Whether a value of a type is also held as that type mostly is. To compare a number with a text says nothing, and what says
/// nothing cannot be negated; with this beside it the comparison is false. Where there is no property it says nothing.
fn is_held_as(function: &str, stored: Expr, is_of_type: Expr) -> Expr {
    let is_held = Expr::call(function, vec![stored.member(edm::VALUE)]);
    Expr::made(ExprKind::Binary(BinaryOp::Equal, Box::new(is_of_type), Box::new(is_held)))
}

/// 64-bit integers, which are stored as texts: among those with a minus sign the order is turned, and all of them come
/// before the others.
fn of_int64(stored: Expr, operator: Operator, number: i64) -> Expr {
    let value = || stored.clone().member(edm::VALUE);
    let text = string(&edm::padded(number));
    let compared = match (operator, number < 0) {
        (Operator::Equal | Operator::NotEqual, _) | (_, false) => binary(value(), operator, text),
        (Operator::Less | Operator::LessOrEqual, true) => {
            binary(value(), operator.turned(), text).and(binary(value(), Operator::Less, string("0")))
        }
        (Operator::Greater | Operator::GreaterOrEqual, true) => binary(value(), operator.turned(), text)
            .or(binary(value(), Operator::GreaterOrEqual, string("0"))),
    };
    // One operand each, whatever the comparison was made of.
    Expr::made(ExprKind::And(vec![compared, is_kind(stored, kind::INT64)]))
}

/// A comparison of whole numbers that says the same as one with a double.
enum Nearest {
    Always(bool),
    Compare(Operator, i64),
}

fn nearest(operator: Operator, number: f64) -> Nearest {
    // Outside of this no whole number lies, and NaN is nowhere.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return Nearest::Always(operator.holds(0.0, number));
    }
    let (below, is_whole) = (number.floor() as i64, number.fract() == 0.0);
    match operator {
        _ if is_whole => Nearest::Compare(operator, below),
        Operator::Equal => Nearest::Always(false),
        Operator::NotEqual => Nearest::Always(true),
        Operator::Less | Operator::LessOrEqual => Nearest::Compare(Operator::LessOrEqual, below),
        Operator::Greater | Operator::GreaterOrEqual => Nearest::Compare(Operator::Greater, below),
    }
}

fn is_kind(stored: Expr, kind: i64) -> Expr {
    let number = Expr::made(ExprKind::Literal(SqlLiteral::Int(kind)));
    binary(stored.member(edm::TYPE), Operator::Equal, number)
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    let operator = match operator {
        Operator::Equal => BinaryOp::Equal,
        Operator::NotEqual => BinaryOp::NotEqual,
        Operator::Greater => BinaryOp::Greater,
        Operator::GreaterOrEqual => BinaryOp::GreaterOrEqual,
        Operator::Less => BinaryOp::Less,
        Operator::LessOrEqual => BinaryOp::LessOrEqual,
    };
    Expr::made(ExprKind::Binary(operator, Box::new(left), Box::new(right)))
}

fn string(text: &str) -> Expr {
    Expr::made(ExprKind::Literal(SqlLiteral::String(text.to_owned())))
}

fn constant(value: bool) -> Expr {
    Expr::made(ExprKind::Literal(SqlLiteral::Bool(value)))
}

fn item() -> Expr {
    Expr::name("c")
}

#[cfg(test)]
mod tests {
    use orrery_doc::{DocBuilder, json};
    use orrery_query::ast::{Binding, Collection, From, Query, Select, SelectSpec, Source, Span};
    use orrery_query::{Context, Parameters, Row, Vocabulary, compile_ast};

    use super::super::parse;
    use super::*;
    use crate::edm::Edm;
    use crate::limits::{FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};

    /// Whether a filter lets an entity pass whose property `p` has a value.
    fn passes(filter: &str, value: &Edm<'_>) -> bool {
        let condition = condition(&parse(filter).expect(filter), Names::Entities).expect(filter);
        let span = Span::default();
        let path = Collection::Path { root: "c".into(), steps: Vec::new(), span };
        let source = Source { collection: path, collection_span: span, binding: Binding::Implicit, span };
        let query = Query {
            select: Select {
                distinct: false,
                top: None,
                top_span: span,
                spec: SelectSpec::Value(Box::new(item())),
                span,
            },
            from: Some(From { sources: vec![source] }),
            filter: Some(condition),
            group_by: Vec::new(),
            order_by: None,
            order_by_span: span,
            offset_limit: None,
            span,
        };
        let program = compile_ast(query, &Parameters::default(), &Vocabulary::default()).expect(filter);
        let mut doc = DocBuilder::new();
        doc.begin_object();
        edm::store_key(&mut doc, "pk", "rk");
        doc.name("p");
        value.store(&mut doc);
        doc.end_object();
        let doc = doc.finish();
        let mut text = Vec::new();
        json::write(doc.root(), &mut text);
        program.accepts(&Row::plain(doc.as_ref()), &Context::at(0, 0)).expect("it tells")
    }

    #[test]
    fn numbers_of_all_types_compare_by_value() {
        let values = [-300_i64, -5, -1, 0, 1, 5, 300];
        for value in values {
            for other in values {
                for (operator, wanted) in [
                    ("eq", value == other),
                    ("ne", value != other),
                    ("lt", value < other),
                    ("le", value <= other),
                    ("gt", value > other),
                    ("ge", value >= other),
                ] {
                    for suffix in ["", "L", ".0"] {
                        let filter = format!("p {operator} {other}{suffix}");
                        for edm in [Edm::Int64(value), Edm::Int32(value as i32), Edm::Double(value as f64)] {
                            assert_eq!(passes(&filter, &edm), wanted, "{edm:?} {filter}");
                            assert_eq!(
                                passes(&format!("not ({filter})"), &edm),
                                !wanted,
                                "not {edm:?} {filter}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn whole_numbers_compare_with_fractions_and_with_what_is_beyond_them() {
        for (filter, value, wanted) in [
            ("p lt 4.5", 4, true),
            ("p lt 4.5", 5, false),
            ("p ge -4.5", -4, true),
            ("p ge -4.5", -5, false),
            ("p eq 4.5", 4, false),
            ("p ne 4.5", 4, true),
            ("p lt 1e300", i64::MAX, true),
            ("p gt -1e300", i64::MIN, true),
            ("p gt 1e300", i64::MAX, false),
            ("p eq 9223372036854775807", i64::MAX, true),
            ("p lt -9223372036854775807", i64::MIN, true),
        ] {
            assert_eq!(passes(filter, &Edm::Int64(value)), wanted, "{filter} {value}");
        }
    }

    #[test]
    fn doubles_that_are_no_finite_numbers_compare_as_such() {
        let doubles = [f64::NEG_INFINITY, -5.0, 0.0, 5.0, f64::INFINITY, f64::NAN];
        type Holds = fn(&f64, &f64) -> bool;
        let operators: [(&str, Holds); 6] = [
            ("eq", f64::eq),
            ("ne", f64::ne),
            ("lt", f64::lt),
            ("le", f64::le),
            ("gt", f64::gt),
            ("ge", f64::ge),
        ];
        let names = [("-INF", f64::NEG_INFINITY), ("-Infinity", f64::NEG_INFINITY), ("INF", f64::INFINITY)];
        let literals = [("5", 5.0), ("5.0", 5.0), ("-5L", -5.0), ("1e300", 1e300), ("NaN", f64::NAN)];
        for (text, literal) in names.into_iter().chain(literals) {
            for (name, operator) in operators {
                let filter = format!("p {name} {text}");
                let negated = format!("not ({filter})");
                for value in doubles {
                    let wanted = operator(&value, &literal);
                    let double = Edm::Double(value);
                    assert_eq!(passes(&filter, &double), wanted, "{value} {filter}");
                    assert_eq!(passes(&negated, &double), !wanted, "{value} {negated}");
                    if value.is_finite() {
                        for whole in [Edm::Int32(value as i32), Edm::Int64(value as i64)] {
                            assert_eq!(passes(&filter, &whole), wanted, "{whole:?} {filter}");
                            assert_eq!(passes(&negated, &whole), !wanted, "{whole:?} {negated}");
                        }
                    }
                }
                assert!(!passes(&filter, &Edm::String("Infinity".into())), "a text is no number: {filter}");
                let missing = filter.replace("p ", "missing ");
                assert!(!passes(&missing, &Edm::Double(5.0)), "{missing}");
                assert!(!passes(&format!("not ({missing})"), &Edm::Double(5.0)), "not ({missing})");
            }
        }
    }

    #[test]
    fn the_largest_and_the_deepest_filter_can_be_run() {
        let wide = vec!["p eq 5.5"; FILTER_COMPARISONS_MAX].join(" or ");
        assert!(passes(&wide, &Edm::Double(5.5)));
        let deep = (0..FILTER_DEPTH_MAX).fold("p eq 5.5".to_owned(), |filter, place| match place % 2 {
            0 => format!("({filter}) and (p gt {place})"),
            _ => format!("({filter}) or (p lt {place})"),
        });
        assert!(passes(&deep, &Edm::Double(5.5)));
    }

    #[test]
    fn values_of_other_types_do_not_pass() {
        let text = Edm::String("00000000000000000005".into());
        assert!(!passes("p eq 5", &text) && !passes("p ne 5", &text));
        assert!(passes("p eq '00000000000000000005'", &text));
        assert!(!passes("p eq '5'", &Edm::Int32(5)));
        assert!(passes("p", &Edm::Boolean(true)) && !passes("p", &Edm::Boolean(false)));
        assert!(!passes("p", &text));
        assert!(passes("p eq X'00'", &Edm::Binary("AA==".into())));
        // Of these two base64 has the other order.
        let bytes = || Edm::Binary("+/8=".into());
        assert!(passes("p gt X'0100'", &bytes()) && !passes("p lt X'0100'", &bytes()));
        assert!(passes("p ge X'FBFF'", &bytes()) && passes("p lt X'FBFF00'", &bytes()));
        assert!(!passes("p gt X'00'", &text) && !passes("p lt X'ff'", &text));
        assert!(passes("p lt datetime'2024-01-02'", &Edm::DateTime(638_396_640_000_000_000)));
        assert!(!passes("missing eq 1", &text) && !passes("missing ne 1", &text));
        assert!(passes("PartitionKey eq 'pk' and RowKey gt 'r'", &text));
        assert!(!passes("PartitionKey eq 5", &text));
    }
}
