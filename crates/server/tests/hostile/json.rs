//! JSON that is broken, and JSON that is whole but absurd.

use orrery_testkit::Random;
use serde_json::{Value, json};

use crate::junk;

/// Nesting deeper than anything may be.
const DEEP: usize = 10_000;

/// Pieces that look like JSON and are not.
const TOKENS: [&str; 16] = [
    "\"\\ud800\"",
    "\\u00",
    "\"\\x\"",
    "\u{0}",
    "NaN",
    "-",
    "01",
    "1.",
    ".5",
    "1e",
    "/**/",
    "'a'",
    ",,",
    "}",
    "]",
    "\u{feff}",
];

/// A body that no parser should accept, or one that makes a careless parser work too hard.
pub fn broken(random: &mut Random, good: &[u8]) -> Vec<u8> {
    match random.below(14) {
        0 => {
            let count = random.below(300);
            random.bytes(count)
        }
        1 => junk::text(random),
        2 => good[..random.below(good.len())].to_vec(),
        3 => junk::insert(random, good, b"\xc3\x28"),
        4 => junk::insert(random, good, b"\xed\xa0\x80"),
        5 => {
            let token = *random.pick(&TOKENS);
            junk::insert(random, good, token.as_bytes())
        }
        6 if random.one_in(10) => format!("{{\"id\":\"deep\",\"pk\":{}", "[".repeat(DEEP)).into_bytes(),
        7 if random.one_in(10) => format!("{}1{}", "[".repeat(DEEP), "]".repeat(DEEP)).into_bytes(),
        8 if random.one_in(10) => "{\"a\":".repeat(DEEP).into_bytes(),
        9 => format!("{{\"id\":\"number\",\"pk\":\"k\",\"n\":{}}}", number(random)).into_bytes(),
        10 => b"{\"id\":\"twice\",\"pk\":\"k\",\"id\":\"once\",\"pk\":1,\"a\":1,\"a\":2}".to_vec(),
        // The first byte of the binary form that clients may send instead of text.
        11 => {
            let count = random.below(200);
            [vec![0x80], random.bytes(count)].concat()
        }
        12 => [good, good].concat(),
        _ => junk::mutate(random, good),
    }
}

fn number(random: &mut Random) -> String {
    let digits = "9".repeat(random.below(2_000));
    match random.below(5) {
        0 => format!("1{digits}"),
        1 => format!("-0.{digits}"),
        2 => format!("1e{digits}"),
        3 => format!("{digits}.{digits}e-{}", random.below(5_000)),
        _ => random.pick(&["1e308", "1e309", "-1e400", "5e-325", "9007199254740993", "-0.0"]).to_string(),
    }
}

/// Changes whole values: another type, a missing name, a doubled element.
pub fn surprise(random: &mut Random, good: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(good) else {
        return nasty(random, 4).to_string().into_bytes();
    };
    for _ in 0..1 + random.below(3) {
        change(random, &mut value, 8);
    }
    value.to_string().into_bytes()
}

fn change(random: &mut Random, value: &mut Value, depth: usize) {
    if depth == 0 || random.one_in(5) {
        *value = nasty(random, 3);
        return;
    }
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let place = random.below(elements.len());
            match random.below(6) {
                0 => drop(elements.remove(place)),
                1 => elements.push(elements[place].clone()),
                2 if elements.len() < 8 => *elements = vec![elements[place].clone(); 150],
                _ => change(random, &mut elements[place], depth - 1),
            }
        }
        Value::Object(properties) if !properties.is_empty() => {
            let place = random.below(properties.len());
            let name = properties.keys().nth(place).expect("the place is within").clone();
            match random.below(6) {
                0 => drop(properties.remove(&name)),
                1 => {
                    let moved = properties.remove(&name).unwrap_or_default();
                    let name = String::from_utf8_lossy(&junk::mutate(random, name.as_bytes())).into_owned();
                    properties.insert(name, moved);
                }
                _ => change(random, properties.get_mut(&name).expect("the name is there"), depth - 1),
            }
        }
        _ => *value = nasty(random, 3),
    }
}

/// A value that is JSON, and yet unexpected nearly everywhere.
pub fn nasty(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 9 } else { 13 }) {
        0 => Value::Null,
        1 => json!(random.one_in(2)),
        2 => json!(*random.pick(&[0_i64, -1, 1, 1 << 31, -(1 << 31), (1 << 53) + 1, i64::MIN, i64::MAX])),
        3 => json!(*random.pick(&[u64::MAX, 1 << 63, 1 << 32])),
        4 => json!(*random.pick(&[0.5, -0.0, 1e308, -1e-308, 5e-324, 1e15])),
        5 => json!(String::from_utf8_lossy(&junk::text(random))),
        6 => json!("x".repeat(random.below(3_000))),
        7 => json!(*random.pick(&[
            "/",
            "//",
            "/*",
            "/?",
            "/a/[]/?",
            "/\"",
            "/a/-1",
            "/-",
            "/id",
            "/_ts",
            "/pk",
            "/~",
            "/a/99999999999"
        ])),
        8 => json!([]),
        9 => Value::Array((0..random.below(6)).map(|_| nasty(random, depth - 1)).collect()),
        10 => (0..random.below(6))
            .map(|_| {
                let name = String::from_utf8_lossy(&junk::text(random)).into_owned();
                (name, nasty(random, depth - 1))
            })
            .collect(),
        11 => (0..random.below(200)).fold(Value::Null, |inner, _| json!([inner])),
        _ => json!({}),
    }
}
