//! ORDERKEY: a text that sorts as a stored value does in an order of terms other than SQL's.
//!
//! The language sees of a value what JSON shows of it, and compares that. Other protocols have types that JSON does not
//! have, and orders of their own: to MongoDB `true` is above every text, and a date is no text at all. Their gateways ask for
//! keys instead of values: `ORDERKEY("bson", c.at)` is the text of the bytes that [`orrery_doc::encode_key`] gives
//! to the value, so that texts are equal exactly if the values are, and sort as they do. A gateway compares it with
//! [`order_key`] of a constant, and a computed property of that expression has an index as any other.

use orrery_doc::{DocBuilder, TermOrder, Value, encode_key};

use super::Env;
use crate::error::Result;
use crate::limits;
use crate::program::PathStep;
use crate::value::{Fields, List, Text, Val};

/// The key of a value as a text. Undefined has one too, though no item's ORDERKEY is ever that: it is before all others.
pub fn order_key(value: Value<'_>, order: TermOrder) -> String {
    let mut bytes = Vec::new();
    encode_key(value, order, &mut bytes);
    text_of_key(&bytes)
}

/// A character for each byte: texts sort by their code points, as bytes do.
fn text_of_key(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The order that a query calls so.
pub(crate) fn order_named(name: &str) -> Option<TermOrder> {
    match name {
        "sql" => Some(TermOrder::Sql),
        "bson" => Some(TermOrder::Bson),
        "cql" => Some(TermOrder::Cql),
        _ => None,
    }
}

pub(super) fn of_path<'a>(
    order: TermOrder,
    slot: usize,
    steps: &[PathStep],
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let (key, work) = match stored(&env.slots[slot]) {
        Some(root) => key_at(root, steps, order),
        // What the query made has only types that JSON has.
        None => {
            let mut made = DocBuilder::new();
            env.slots[slot].write_doc(&mut made);
            key_at(made.finish().root(), steps, order)
        }
    };
    env.worked(work)?;
    let Some(key) = key else { return Ok(Val::Undefined) };
    env.made_bytes(key.len() as u64)?;
    Ok(Val::Str(Text::Made(key.into())))
}

fn key_at(root: Value<'_>, steps: &[PathStep], order: TermOrder) -> (Option<String>, u64) {
    let value = steps.iter().fold(root, |value, step| match step {
        PathStep::Name(name) => value.get(name),
        PathStep::Index(index) => value.index(*index),
    });
    if value.is_undefined() {
        return (None, 1);
    }
    let key = order_key(value, order);
    let work = 1 + key.len() / limits::WORK_BYTES;
    (Some(key), work as u64)
}

/// What a slot holds, as it is stored.
fn stored<'a>(value: &Val<'a>) -> Option<Value<'a>> {
    match value {
        Val::Object(Fields::Row(row)) => Some(row.doc.root()),
        Val::Object(Fields::Stored(object)) => Some(Value::Object(*object)),
        Val::Array(List::Stored(array)) => Some(Value::Array(*array)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::{Doc, json};

    use super::*;
    use crate::{Context, Parameters, Row, compile};

    fn doc(put: impl for<'b> Fn(&'b mut DocBuilder) -> &'b mut DocBuilder) -> Doc {
        let mut builder = DocBuilder::new();
        put(&mut builder);
        builder.finish()
    }

    /// Typed values in MongoDB's order, most of which JSON shows as texts.
    fn ladder() -> Vec<Doc> {
        vec![
            doc(|b| b.min_key()),
            doc(|b| b.null()),
            doc(|b| b.int32(-7)),
            doc(|b| b.double(2.5)),
            doc(|b| b.int(3)),
            doc(|b| b.str("")),
            doc(|b| b.str("z\u{0}")),
            doc(|b| b.begin_object().name("a").int(1).end_object()),
            doc(|b| b.begin_array().end_array()),
            doc(|b| b.binary(0, &[0xff])),
            doc(|b| b.object_id([7; 12])),
            doc(|b| b.bool(false)),
            doc(|b| b.bool(true)),
            doc(|b| b.date(-1)),
            doc(|b| b.date(1)),
            doc(|b| b.max_key()),
        ]
    }

    fn item(value: Value<'_>) -> Doc {
        let mut builder = DocBuilder::new();
        builder.begin_object().name("x").value(value).name("list");
        builder.begin_array().begin_object().name("x").value(value).end_object().end_array().end_object();
        builder.finish()
    }

    fn passes(condition: &str, key: &str, doc: &Doc) -> bool {
        let text = format!("SELECT VALUE c FROM c WHERE {condition}");
        let mut parameters = Parameters::new();
        parameters.set("@k", Value::Str(key));
        let program = compile(&text, &parameters).unwrap_or_else(|error| panic!("{text}: {error}"));
        program.accepts(&Row::plain(doc.as_ref()), &Context::at(0, 0)).expect("it tells")
    }

    #[test]
    fn keys_compare_as_the_values_do_in_their_order() {
        let ladder = ladder();
        for (i, a) in ladder.iter().enumerate() {
            for (j, b) in ladder.iter().enumerate() {
                let key = order_key(b.root(), TermOrder::Bson);
                for path in ["c.x", "c.list[0].x"] {
                    let is = |operator: &str| {
                        passes(&format!("ORDERKEY('bson', {path}) {operator} @k"), &key, &item(a.root()))
                    };
                    assert_eq!((is("<"), is("="), is(">")), (i < j, i == j, i > j), "{a:?} {b:?} {path}");
                }
                let inside = "EXISTS(SELECT VALUE 1 FROM e IN c.list WHERE ORDERKEY('bson', e.x) <= @k)";
                assert_eq!(passes(inside, &key, &item(a.root())), i <= j);
            }
        }
    }

    #[test]
    fn what_is_not_there_has_no_key_and_equal_numbers_have_one() {
        let doc = json::parse(br#"{"x":{"y":[5]}}"#, 8).expect("JSON");
        assert!(passes("NOT IS_DEFINED(ORDERKEY('bson', c.z.y))", "", &doc));
        let five = order_key(Value::Double(5.0), TermOrder::Bson);
        assert!(passes("ORDERKEY('bson', c.x.y[0]) = @k", &five, &doc));
        assert!(passes("ORDERKEY('cql', c.x.y[0]) != @k", &order_key(Value::Int(6), TermOrder::Cql), &doc));
    }

    #[test]
    fn only_a_named_order_and_a_path_make_sense() {
        for wrong in
            ["ORDERKEY('bson', 5)", "ORDERKEY('ebcdic', c.x)", "ORDERKEY(c.x, 'bson')", "ORDERKEY('bson', c)"]
        {
            let text = format!("SELECT VALUE {wrong} FROM c");
            let error = compile(&text, &Parameters::default()).expect_err(wrong);
            assert!(error.to_string().contains("ORDERKEY"), "{error}");
        }
    }

    #[test]
    fn rows_are_ordered_by_keys_of_their_own_items_only() {
        let compiled = |text: &str| compile(text, &Parameters::default());
        assert!(compiled("SELECT * FROM c ORDER BY ORDERKEY('bson', c.x)").is_ok());
        for wrong in [
            "SELECT VALUE e FROM c JOIN e IN c.list ORDER BY ORDERKEY('bson', e.x)",
            "SELECT * FROM c ORDER BY ORDERKEY('bson', 5)",
        ] {
            assert!(compiled(wrong).is_err(), "{wrong}");
        }
    }
}
