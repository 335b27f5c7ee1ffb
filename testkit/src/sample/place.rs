//! The places of a document that queries ask about, each with the values that may be there.

use serde_json::{Value, json};

use crate::Random;

/// A path of the query language below an item, and what to compare it with.
#[derive(Clone, Copy)]
pub struct Place {
    /// What follows the alias: `.o.x`, `["a b"]`, `.tags[0]`.
    pub path: &'static str,
    pub value: fn(&mut Random) -> Value,
}

const fn place(path: &'static str, value: fn(&mut Random) -> Value) -> Place {
    Place { path, value }
}

/// Places with one value in each item that has them.
pub const PLACES: [Place; 19] = [
    place(".n", tame),
    place(".n", tame),
    place(".f", wild),
    place(".s", short),
    place(".s", short),
    place(".l", long),
    place(".m", mixed),
    place(".b", flag),
    place(".pk", key),
    place(".id", id),
    place(".o.x", mixed),
    place(".o.y.z", tame),
    place(".o", object),
    place("[\"a b\"]", short),
    place("[\"\u{fc}\"].s", short),
    place(".nope", mixed),
    place(".tags", tags),
    place(".cp_low", short),
    place(".cp_sum", tame),
];

/// Computed properties that the containers have.
pub const COMPUTED: [(&str, &str); 3] = [
    ("cp_low", "SELECT VALUE LOWER(c.s) FROM c"),
    ("cp_sum", "SELECT VALUE c.n + c.o.y.z FROM c"),
    ("cp_obj", "SELECT VALUE {\"x\": c.o.x, \"tags\": c.tags} FROM c"),
];

/// Places inside arrays, by number. The index cannot tell one element from another, only the document can.
pub const ELEMENTS: [Place; 4] =
    [place(".tags[0]", tag), place(".tags[2]", tag), place(".es[0].k", word), place(".es[1].v", tame)];

pub fn any(random: &mut Random) -> Place {
    if random.one_in(8) { *random.pick(&ELEMENTS) } else { *random.pick(&PLACES) }
}

/// A value that may be at one of the places.
pub fn value_at(random: &mut Random, path: &str) -> Value {
    let place = PLACES.iter().find(|place| place.path == path);
    place.map_or(Value::Null, |place| (place.value)(random))
}

/// Numbers whose sums are exact in any order.
pub fn tame(random: &mut Random) -> Value {
    let number = random.below(41) as i64 - 20;
    match random.below(6) {
        0 => json!(number as f64 + 0.5),
        1 => json!(number as f64),
        _ => json!(number),
    }
}

/// Numbers at the edges of what doubles and integers hold.
pub fn wild(random: &mut Random) -> Value {
    const INTEGERS: [i64; 10] = [
        0,
        1,
        -1,
        9_007_199_254_740_991,
        9_007_199_254_740_992,
        9_007_199_254_740_993,
        -9_007_199_254_740_993,
        1 << 62,
        i64::MAX,
        i64::MIN,
    ];
    const DOUBLES: [f64; 12] = [
        -0.0,
        0.0,
        1.0,
        0.1,
        -0.1,
        1e-7,
        5e-324,
        -1e308,
        1e308,
        123_456_789.125,
        1e16,
        9_007_199_254_740_992.0,
    ];
    if random.one_in(2) { json!(*random.pick(&INTEGERS)) } else { json!(*random.pick(&DOUBLES)) }
}

const WORDS: [&str; 16] = [
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "ABC",
    "Abc",
    "b",
    "ba",
    "zz",
    "\u{e9}",
    "\u{e9}a",
    "\u{65e5}\u{672c}",
    "a%",
    "a_b",
    "a'\"\\",
];

pub fn short(random: &mut Random) -> Value {
    let mut text = (*random.pick(&WORDS)).to_owned();
    if random.one_in(4) {
        let tail = *random.pick(&["x", "\u{1F600}", " ", "\u{0}", "\u{ffff}"]);
        text.push_str(tail);
    }
    json!(text)
}

/// Strings around the length at which index terms are cut; many differ only behind it.
pub fn long(random: &mut Random) -> Value {
    let repeated = *random.pick(&["p", "\u{65e5}", "pq"]);
    let bytes = *random.pick(&[126, 127, 128, 129, 130, 200]);
    let mut text = repeated.repeat(bytes / repeated.len());
    let tail = *random.pick(&["", "a", "b", "bb"]);
    text.push_str(tail);
    json!(text)
}

pub fn flag(random: &mut Random) -> Value {
    json!(random.one_in(2))
}

pub fn word(random: &mut Random) -> Value {
    json!(*random.pick(&["red", "green", "blue"]))
}

pub fn id(random: &mut Random) -> Value {
    json!(format!("d{}", random.below(200)))
}

/// Values of a partition key; `null` is one, a missing property another.
pub fn key(random: &mut Random) -> Value {
    match random.below(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(1),
        3 => json!(2.5),
        n => json!(format!("k{n}")),
    }
}

/// Any type at all.
pub fn mixed(random: &mut Random) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => flag(random),
        2 | 3 => tame(random),
        4 => wild(random),
        5 | 6 => short(random),
        7 => long(random),
        8 => tags(random),
        _ => object(random),
    }
}

pub fn tag(random: &mut Random) -> Value {
    match random.below(8) {
        0 => tame(random),
        1 => Value::Null,
        2 => flag(random),
        3 => short(random),
        _ => json!(format!("t{}", random.below(6))),
    }
}

pub fn tags(random: &mut Random) -> Value {
    let count = random.below(4);
    (0..count).map(|_| tag(random)).collect()
}

pub fn object(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({}),
        1 => json!({"x": tame(random)}),
        // Two orders of the same members are one value.
        2 => json!({"x": 1, "w": tags(random)}),
        _ => json!({"w": [], "x": 1}),
    }
}

/// An element of `es`.
pub fn element(random: &mut Random) -> Value {
    let mut element = json!({"k": word(random)});
    if !random.one_in(4) {
        element["v"] = tame(random);
    }
    if random.one_in(2) {
        element["t"] = tags(random);
    }
    element
}
