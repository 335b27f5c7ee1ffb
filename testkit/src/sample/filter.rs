//! Generated conditions.

use serde_json::{Value, json};

use super::place::{self, Place};
use super::policy::COMPOSITES;
use super::shape;
use crate::Random;

/// How deep AND, OR and NOT may nest.
const DEPTH_MAX: usize = 3;

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];
const TYPE_CHECKS: [&str; 10] = [
    "IS_DEFINED",
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_INTEGER",
];

/// What a condition can speak of, and the parameters that it has used so far.
pub struct Writer<'r> {
    pub random: &'r mut Random,
    /// Names of elements: `t` of tags, `e` of objects.
    pub joined: Vec<Joined>,
    pub parameters: Vec<(String, Value)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    Tag,
    Element,
}

impl Writer<'_> {
    /// A condition that is true for some rows, false for others, and undefined for the rest.
    pub fn condition(&mut self) -> String {
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> String {
        if depth == DEPTH_MAX || self.random.one_in(2) {
            return self.leaf();
        }
        match self.random.below(7) {
            5 => self.frequent(),
            6 => self.paired(),
            0 => format!("NOT ({})", self.nested(depth + 1)),
            1 | 2 => format!("({} AND {})", self.nested(depth + 1), self.nested(depth + 1)),
            3 => format!("({} OR {})", self.nested(depth + 1), self.nested(depth + 1)),
            _ => {
                let parts: Vec<String> = (0..3).map(|_| self.leaf()).collect();
                format!("({})", parts.join(if self.random.one_in(2) { " AND " } else { " OR " }))
            }
        }
    }

    /// Conditions that each hold for many documents, so that an index has long lists to intersect or unite.
    fn frequent(&mut self) -> String {
        let count = 2 + self.random.below(2);
        let parts: Vec<String> = (0..count)
            .map(|_| match self.random.below(7) {
                0 => format!("c.b = {}", place::flag(self.random)),
                1 => format!("ARRAY_CONTAINS(c.tags, \"t{}\")", self.random.below(6)),
                2 => {
                    format!("EXISTS(SELECT VALUE x FROM x IN c.es WHERE x.k = {})", place::word(self.random))
                }
                3 => format!("c.pk = {}", place::key(self.random)),
                4 => format!("c.n >= {}", place::tame(self.random)),
                5 => {
                    format!("c.s IN ({}, {}, \"abc\")", place::short(self.random), place::short(self.random))
                }
                _ => format!("IS_DEFINED(c{})", self.random.pick(&place::PLACES).path),
            })
            .collect();
        format!("({})", parts.join(if self.random.one_in(4) { " OR " } else { " AND " }))
    }

    /// Equal values at the first paths of a composite index, and something about the next.
    fn paired(&mut self) -> String {
        let paths = *self.random.pick(&COMPOSITES);
        let equal = 1 + self.random.below(paths.len() - 1);
        let mut parts: Vec<String> = paths[..equal]
            .iter()
            .map(|(path, _)| {
                let (first, second) =
                    (place::value_at(self.random, path), place::value_at(self.random, path));
                match self.random.one_in(5) {
                    true => format!("c{path} IN ({first}, {second})"),
                    false => format!("c{path} = {first}"),
                }
            })
            .collect();
        let (next, _) = paths[equal];
        let value = place::value_at(self.random, next);
        parts.push(match self.random.below(5) {
            0 => format!("IS_DEFINED(c{next})"),
            1 => format!("c{next} != {value}"),
            _ => format!("c{next} {} {}", self.random.pick(&COMPARISONS), self.literal(value)),
        });
        format!("({})", parts.join(" AND "))
    }

    /// Where shapes lie.
    fn spatial(&mut self) -> String {
        let shape = shape::shape(self.random);
        let shape = self.literal(shape);
        let metres = shape::metres(self.random);
        let path = if self.random.one_in(4) { "c.spots[0]" } else { "c.loc" };
        match self.random.below(10) {
            0 | 1 => format!("ST_WITHIN({path}, {shape})"),
            2 => format!("ST_WITHIN({shape}, {path})"),
            3 | 4 => format!("ST_INTERSECTS({path}, {shape})"),
            5 => {
                format!("EXISTS(SELECT VALUE x FROM x IN c.spots WHERE ST_DISTANCE(x, {shape}) <= {metres})")
            }
            6 => format!("NOT (ST_DISTANCE({path}, {shape}) > {metres})"),
            7 => format!("{metres} > ST_DISTANCE({shape}, {path})"),
            8 => format!("ST_DISTANCE({path}, {shape}) BETWEEN 1 AND {metres}"),
            _ => format!("ST_DISTANCE({path}, {shape}) < {metres}"),
        }
    }

    fn leaf(&mut self) -> String {
        match self.random.below(18) {
            16 | 17 => self.spatial(),
            0..=3 => self.comparison(),
            4 => self.list(),
            5 => self.between(),
            6 | 7 => self.text(),
            8 => self.array(),
            9 => self.exists(),
            10 | 11 => {
                let check = *self.random.pick(&TYPE_CHECKS);
                let (path, _) = self.place();
                let negation = if self.random.one_in(4) { "NOT " } else { "" };
                format!("{negation}{check}({path})")
            }
            12 => (*self.random.pick(&[
                "c.b",
                "NOT c.b",
                "c.m",
                "true",
                "c.b = true",
                "c._ts > 0",
                "c._ts < 1",
            ]))
            .to_owned(),
            13 => self.computed(),
            14 => self.two_places(),
            _ => {
                let key = place::key(self.random);
                format!("c.pk = {}", self.literal(key))
            }
        }
    }

    /// A place with a value that may be there.
    fn place(&mut self) -> (String, Value) {
        if !self.joined.is_empty() && self.random.one_in(2) {
            return match *self.random.pick(&self.joined.clone()) {
                Joined::Tag => ("t".to_owned(), place::tag(self.random)),
                Joined::Element if self.random.one_in(2) => ("e.k".to_owned(), place::word(self.random)),
                Joined::Element => ("e.v".to_owned(), place::tame(self.random)),
            };
        }
        let Place { path, value } = place::any(self.random);
        // Now and then a value that belongs elsewhere, since comparisons across types have rules of their own.
        let value = if self.random.one_in(10) { place::mixed(self.random) } else { value(self.random) };
        (format!("c{path}"), value)
    }

    /// The value as text of the query, or as a parameter.
    fn literal(&mut self, value: Value) -> String {
        if !self.random.one_in(5) {
            return value.to_string();
        }
        let name = format!("@p{}", self.parameters.len());
        self.parameters.push((name.clone(), value));
        name
    }

    fn comparison(&mut self) -> String {
        let (path, value) = self.place();
        let sign = if self.random.one_in(2) { "=" } else { *self.random.pick(&COMPARISONS) };
        let literal = self.literal(value);
        if self.random.one_in(5) {
            format!("{literal} {sign} {path}")
        } else {
            format!("{path} {sign} {literal}")
        }
    }

    fn list(&mut self) -> String {
        let Place { path, value } = place::any(self.random);
        let count = 1 + self.random.below(4);
        let values: Vec<String> = (0..count)
            .map(|_| {
                let value = value(self.random);
                self.literal(value)
            })
            .collect();
        let negation = if self.random.one_in(5) { "NOT " } else { "" };
        format!("c{path} {negation}IN ({})", values.join(", "))
    }

    fn between(&mut self) -> String {
        let Place { path, value } = *self.random.pick(&place::PLACES);
        let (low, high) = (value(self.random), value(self.random));
        // Most pairs the right way round, or most answers would be empty.
        let swap = super::order(Some(&low), Some(&high)).is_gt() && !self.random.one_in(5);
        let (low, high) = if swap { (high, low) } else { (low, high) };
        let (low, high) = (self.literal(low), self.literal(high));
        let negation = if self.random.one_in(6) { "NOT " } else { "" };
        format!("c{path} {negation}BETWEEN {low} AND {high}")
    }

    fn text(&mut self) -> String {
        let (path, text) = match self.random.below(5) {
            0 => ("c.l", place::long(self.random)),
            1 => ("c.id", place::id(self.random)),
            2 => ("c.m", place::short(self.random)),
            _ => ("c.s", place::short(self.random)),
        };
        let text = text.as_str().unwrap_or_default().to_owned();
        let length = text.chars().count();
        let cut = if path == "c.l" { length - self.random.below(4) } else { self.random.below(length + 1) };
        let prefix: String = text.chars().take(cut).collect();
        match self.random.below(7) {
            0 | 1 => {
                let prefix = self.literal(json!(prefix));
                let caseless = *self.random.pick(&["", "", ", false", ", true"]);
                format!("STARTSWITH({path}, {prefix}{caseless})")
            }
            2 => {
                let pattern = self.pattern(&prefix);
                let negation = if self.random.one_in(5) { "NOT " } else { "" };
                format!("{path} {negation}LIKE {}", json!(pattern))
            }
            3 => format!(
                "{path} LIKE {} ESCAPE \"!\"",
                json!(format!("{}%", prefix.replace(['%', '_', '!'], "!%")))
            ),
            4 => {
                let text = self.literal(json!(text));
                let caseless = *self.random.pick(&["", "", ", true"]);
                format!("STRINGEQUALS({path}, {text}{caseless})")
            }
            5 => format!("CONTAINS({path}, {})", json!(prefix)),
            _ => format!("ENDSWITH({path}, {})", json!(prefix)),
        }
    }

    fn pattern(&mut self, prefix: &str) -> String {
        match self.random.below(5) {
            0 => format!("%{prefix}"),
            1 => format!("{prefix}_"),
            2 => format!("{prefix}%b%"),
            3 => prefix.to_owned(),
            _ => format!("{prefix}%"),
        }
    }

    fn array(&mut self) -> String {
        let (first, second) = (place::tag(self.random), place::tag(self.random));
        let (first, second) = (self.literal(first), self.literal(second));
        match self.random.below(9) {
            8 => {
                let mut element = place::element(self.random);
                if let Some(fields) = element.as_object_mut() {
                    fields.remove("t");
                }
                format!("ARRAY_CONTAINS(c.es, {}, true)", self.literal(element))
            }
            0..=2 => format!("ARRAY_CONTAINS(c.tags, {first})"),
            3 => format!("ARRAY_CONTAINS_ANY(c.tags, {first}, {second})"),
            4 => format!("ARRAY_CONTAINS_ALL(c.tags, {first}, {second})"),
            5 => {
                let word = place::word(self.random);
                format!("ARRAY_CONTAINS(c.es, {{\"k\": {word}}}, true)")
            }
            6 => {
                let element = place::element(self.random);
                format!("ARRAY_CONTAINS(c.es, {})", self.literal(element))
            }
            _ => format!("ARRAY_CONTAINS(c.o.w, [{first}])"),
        }
    }

    fn exists(&mut self) -> String {
        let negation = if self.random.one_in(6) { "NOT " } else { "" };
        let sign = *self.random.pick(&COMPARISONS);
        let inner = match self.random.below(7) {
            5 | 6 => {
                let element = place::element(self.random);
                let (word, number) = (element["k"].clone(), place::tame(self.random));
                let number = element.get("v").cloned().unwrap_or(number);
                let more = if self.random.one_in(4) { " AND ARRAY_LENGTH(x.t) > 0" } else { "" };
                format!("SELECT VALUE x FROM x IN c.es WHERE x.v IN ({number}, 1) AND x.k = {word}{more}")
            }
            0 | 1 => {
                let tag = place::tag(self.random);
                format!("SELECT VALUE x FROM x IN c.tags WHERE x {sign} {}", self.literal(tag))
            }
            2 => {
                let (word, number) = (place::word(self.random), place::tame(self.random));
                format!("SELECT 1 FROM x IN c.es WHERE x.k = {word} AND x.v {sign} {}", self.literal(number))
            }
            3 => {
                let tag = place::tag(self.random);
                format!("SELECT VALUE 1 FROM x IN c.es JOIN y IN x.t WHERE y = {}", self.literal(tag))
            }
            _ => "SELECT VALUE x FROM x IN c.tags".to_owned(),
        };
        format!("{negation}EXISTS({inner})")
    }

    /// What no index can answer.
    fn computed(&mut self) -> String {
        let number = self.random.below(12);
        match self.random.below(11) {
            8 => format!("c.cp_obj.x = {}", place::mixed(self.random)),
            9 => format!("ARRAY_CONTAINS(c.cp_obj.tags, \"t{}\")", number % 6),
            10 => format!("NOT IS_DEFINED(c.cp_sum) AND c.n > {number}"),
            0 => format!("ABS(c.n) = {number}"),
            1 => format!("c.n + 1 > {number}"),
            2 => format!("ARRAY_LENGTH(c.tags) >= {}", number % 4),
            3 => format!("LENGTH(c.s) = {}", number % 5),
            4 => format!("(c.n ?? {number}) = {number}"),
            5 => format!("(c.b ? c.n : c.f) > {number}"),
            6 => "UPPER(c.s) = \"ABC\"".to_owned(),
            _ => format!("(SELECT VALUE COUNT(1) FROM x IN c.tags) = {}", number % 4),
        }
    }

    fn two_places(&mut self) -> String {
        let (first, _) = self.place();
        let (second, _) = self.place();
        format!("{first} {} {second}", self.random.pick(&COMPARISONS))
    }
}
