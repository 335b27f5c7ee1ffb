//! Generated documents.

use serde_json::{Map, Value, json};

use super::{place, shape};
use crate::Random;

/// The document of this number: every property but the id may be missing, or of a type nobody expects.
pub fn document(random: &mut Random, number: usize) -> Value {
    let mut fields = Map::new();
    fields.insert("id".to_owned(), json!(format!("d{number}")));
    let mut put = |random: &mut Random, name: &str, missing: usize, value: fn(&mut Random) -> Value| {
        if !random.one_in(missing) {
            fields.insert(name.to_owned(), value(random));
        }
    };
    put(random, "pk", 12, place::key);
    put(random, "n", 6, tame_mostly);
    put(random, "f", 4, place::wild);
    put(random, "s", 6, place::short);
    put(random, "l", 3, place::long);
    put(random, "m", 5, place::mixed);
    put(random, "b", 3, place::flag);
    put(random, "a b", 3, place::short);
    put(random, "\u{fc}", 3, |random| json!({"s": place::short(random)}));
    put(
        random,
        "tags",
        4,
        |random| if random.one_in(10) { place::mixed(random) } else { place::tags(random) },
    );
    put(random, "o", 4, nested);
    put(random, "es", 3, |random| {
        let count = random.below(4);
        (0..count).map(|_| place::element(random)).collect()
    });
    put(random, "loc", 4, shape::shape);
    put(random, "spots", 4, |random| {
        let count = random.below(3);
        (0..count).map(|_| shape::point(random)).collect()
    });
    Value::Object(fields)
}

/// Numbers, and once in a while something that spoils a sum.
fn tame_mostly(random: &mut Random) -> Value {
    if random.one_in(60) {
        random.pick(&[json!("ten"), Value::Null, json!([])]).clone()
    } else {
        place::tame(random)
    }
}

fn nested(random: &mut Random) -> Value {
    let mut object = Map::new();
    if !random.one_in(4) {
        object.insert("x".to_owned(), place::mixed(random));
    }
    if !random.one_in(3) {
        object.insert("y".to_owned(), json!({"z": place::tame(random)}));
    }
    if random.one_in(3) {
        object.insert("w".to_owned(), json!([[1, 2], [place::tag(random)], []]));
    }
    Value::Object(object)
}
