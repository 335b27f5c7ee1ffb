//! Generated queries.

use std::fmt::Write;

use serde_json::{Value, json};

use super::answer::order as order_of;
use super::filter::{Joined, Writer};
use super::place;
use super::policy::COMPOSITES;
use crate::Random;

/// A query in parts, so that relatives of it can be written.
#[derive(Clone, Debug, Default)]
pub struct Query {
    distinct: bool,
    top: Option<u64>,
    select: String,
    /// The value of a row, as one expression.
    row: String,
    joins: String,
    filter: Option<String>,
    group_by: Vec<String>,
    /// Paths below the item, and whether descending.
    pub order_by: Vec<(String, bool)>,
    offset_limit: Option<(u64, u64)>,
    pub parameters: Vec<(String, Value)>,
}

impl Query {
    /// The query as a client sends it.
    pub fn text(&self) -> String {
        let mut text = "SELECT ".to_owned();
        if self.distinct {
            text.push_str("DISTINCT ");
        }
        if let Some(top) = self.top {
            write!(text, "TOP {top} ").expect("writing to memory does not fail");
        }
        text.push_str(&self.select);
        self.rest(&mut text);
        if let Some((offset, limit)) = self.offset_limit {
            write!(text, " OFFSET {offset} LIMIT {limit}").expect("writing to memory does not fail");
        }
        text
    }

    /// All rows of the query, without TOP and OFFSET.
    pub fn unlimited(&self) -> Query {
        Query { top: None, offset_limit: None, ..self.clone() }
    }

    /// All rows of an ordered query with the keys they are ordered by: `{"row": [..], "keys": [{"item": ..}]}`.
    /// A row that does not exist has an empty `row`.
    pub fn keyed(&self) -> Option<String> {
        if self.order_by.is_empty() || self.distinct {
            return None;
        }
        let keys: Vec<String> =
            self.order_by.iter().map(|(path, _)| format!("{{\"item\": c{path}}}")).collect();
        let mut text = format!("SELECT VALUE {{\"row\": [{}], \"keys\": [{}]}}", self.row, keys.join(", "));
        self.rest(&mut text);
        Some(text)
    }

    /// The same query over the rows for which another condition is true, false, or neither: together its rows
    /// are those of the query. Only for queries whose rows can be counted apart.
    pub fn thirds(&self, condition: &str) -> Option<[Query; 3]> {
        let whole = self.group_by.is_empty() && !self.distinct && !self.is_aggregate();
        if !whole || self.top.is_some() || self.offset_limit.is_some() {
            return None;
        }
        let with = |condition: String| {
            let filter = match &self.filter {
                Some(filter) => format!("({filter}) AND {condition}"),
                None => condition,
            };
            Query { filter: Some(filter), ..self.clone() }
        };
        Some([
            with(format!("({condition})")),
            with(format!("(NOT ({condition}))")),
            with(format!("(NOT IS_BOOL({condition}))")),
        ])
    }

    /// The condition with which a client goes on behind a row of an ordered query, given the row's keys. There is
    /// none behind arrays and objects, which no comparison of the language orders.
    pub fn resume_filter(&self, keys: &Value) -> Option<String> {
        let mut cases = Vec::new();
        for place in 0..self.order_by.len() {
            let mut parts = Vec::new();
            for (other, (path, descending)) in self.order_by.iter().enumerate().take(place + 1) {
                let key = keys[other].get("item");
                parts.push(match other == place {
                    true => behind(path, key, *descending)?,
                    false => same(path, key)?,
                });
            }
            cases.push(format!("({})", parts.join(" AND ")));
        }
        Some(cases.join(" OR "))
    }

    /// Whether a row with these keys comes behind one with those.
    pub fn is_behind(&self, keys: &Value, those: &Value) -> bool {
        for (place, (_, descending)) in self.order_by.iter().enumerate() {
            let order = order_of(keys[place].get("item"), those[place].get("item"));
            if order.is_ne() {
                return order.is_gt() != *descending;
            }
        }
        false
    }

    /// How many rows are passed over and how many are answered at most.
    pub fn window(&self) -> (usize, usize) {
        let (offset, limit) = self.offset_limit.unwrap_or((0, u64::MAX));
        let limit = self.top.unwrap_or(limit).min(limit);
        (offset as usize, usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Whether the order of all rows is decided by the rows themselves.
    pub fn is_ordered_by_row(&self) -> bool {
        self.distinct && !self.order_by.is_empty()
    }

    /// The body of the request.
    pub fn body(&self) -> Value {
        self.body_of(&self.text())
    }

    pub fn body_of(&self, text: &str) -> Value {
        json!({"query": text, "parameters": self.parameters_json()})
    }

    pub fn parameters_json(&self) -> Value {
        self.parameters.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    }

    fn is_aggregate(&self) -> bool {
        ["COUNT(", "SUM(", "AVG(", "MIN(", "MAX("].iter().any(|name| self.select.contains(name))
    }

    fn rest(&self, text: &mut String) {
        text.push_str(" FROM c");
        text.push_str(&self.joins);
        if let Some(filter) = &self.filter {
            write!(text, " WHERE {filter}").expect("writing to memory does not fail");
        }
        if !self.group_by.is_empty() {
            write!(text, " GROUP BY {}", self.group_by.join(", ")).expect("writing to memory does not fail");
        }
        if !self.order_by.is_empty() {
            let direction = |descending: &bool| if *descending { " DESC" } else { "" };
            let items: Vec<String> =
                self.order_by.iter().map(|(path, desc)| format!("c{path}{}", direction(desc))).collect();
            write!(text, " ORDER BY {}", items.join(", ")).expect("writing to memory does not fail");
        }
    }
}

/// The types in their order; each has a function that asks for it.
const TYPES: [&str; 6] = ["IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"];

fn type_of(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

fn same(path: &str, key: Option<&Value>) -> Option<String> {
    match key {
        None => Some(format!("NOT IS_DEFINED(c{path})")),
        Some(key) if type_of(key) < 4 => Some(format!("c{path} = {key}")),
        Some(_) => None,
    }
}

/// Values of the same type by comparison, those of other types by their type.
fn behind(path: &str, key: Option<&Value>, descending: bool) -> Option<String> {
    let Some(key) = key else {
        // Nothing comes before everything.
        return Some(if descending { "false".to_owned() } else { format!("IS_DEFINED(c{path})") });
    };
    let kind = type_of(key);
    if kind >= 4 {
        return None;
    }
    let mut cases = vec![format!("c{path} {} {key}", if descending { "<" } else { ">" })];
    let types = if descending { &TYPES[..kind] } else { &TYPES[kind + 1..] };
    cases.extend(types.iter().map(|check| format!("{check}(c{path})")));
    if descending {
        cases.push(format!("NOT IS_DEFINED(c{path})"));
    }
    Some(format!("({})", cases.join(" OR ")))
}

/// Draws a query.
pub fn query(random: &mut Random) -> Query {
    let mut query = Query::default();
    let mut joined = Vec::new();
    if random.one_in(5) {
        query.joins.push_str(" JOIN t IN c.tags");
        joined.push(Joined::Tag);
    }
    if random.one_in(8) {
        query.joins.push_str(" JOIN e IN c.es");
        joined.push(Joined::Element);
    }
    let mut writer = Writer { random, joined: joined.clone(), parameters: Vec::new() };
    if !writer.random.one_in(8) {
        query.filter = Some(writer.condition());
    }
    query.parameters = std::mem::take(&mut writer.parameters);
    match random.below(10) {
        0..=3 => plain(random, &mut query, &joined),
        4 | 5 => ordered(random, &mut query, &joined),
        6 => distinct(random, &mut query, &joined),
        7 => grouped(random, &mut query),
        _ => aggregate(random, &mut query),
    }
    query
}

/// A condition about items alone, to split the rows of a query with.
pub fn condition(random: &mut Random) -> String {
    // Parameters would have to be added to the query's own.
    loop {
        let mut writer = Writer { random: &mut *random, joined: Vec::new(), parameters: Vec::new() };
        let condition = writer.condition();
        if writer.parameters.is_empty() {
            return condition;
        }
    }
}

fn limited(random: &mut Random, query: &mut Query) {
    match random.below(6) {
        0 => query.top = Some(random.below(12) as u64),
        1 => query.offset_limit = Some((random.below(10) as u64, random.below(20) as u64)),
        _ => {}
    }
}

fn plain(random: &mut Random, query: &mut Query, joined: &[Joined]) {
    projection(random, query, joined);
    limited(random, query);
}

/// `SELECT *` cannot be said of joined rows.
fn projection(random: &mut Random, query: &mut Query, joined: &[Joined]) {
    let element = if joined.contains(&Joined::Tag) { "t" } else { "e.v" };
    let row = match random.below(6) {
        0 if joined.is_empty() => {
            query.select = "*".to_owned();
            query.row = "c".to_owned();
            return;
        }
        1 => {
            let list = if joined.is_empty() {
                "c.id, c.o.x, c.tags".to_owned()
            } else {
                format!("c.id, {element} AS x")
            };
            query.select.clone_from(&list);
            query.row = if joined.is_empty() {
                "{\"id\": c.id, \"x\": c.o.x, \"tags\": c.tags}".to_owned()
            } else {
                format!("{{\"id\": c.id, \"x\": {element}}}")
            };
            return;
        }
        2 => format!("c{}", place::any(random).path),
        3 if !joined.is_empty() => format!("[c.id, {element}]"),
        4 => "{\"id\": c.id, \"n\": c.n + 1, \"first\": c.tags[0]}".to_owned(),
        _ => "c.id".to_owned(),
    };
    query.select = format!("VALUE {row}");
    query.row = row;
}

fn ordered(random: &mut Random, query: &mut Query, joined: &[Joined]) {
    projection(random, query, joined);
    order(random, query);
    limited(random, query);
}

fn order(random: &mut Random, query: &mut Query) {
    if random.one_in(5) {
        return order_behind(random, query);
    }
    if random.one_in(3) {
        let paths = *random.pick(&COMPOSITES);
        let reverse = random.one_in(2);
        query.order_by = paths.iter().map(|(path, desc)| ((*path).to_owned(), *desc != reverse)).collect();
        return;
    }
    let path = random.pick(&place::PLACES).path.to_owned();
    query.order_by = vec![(path, random.one_in(2))];
}

/// The order of the last paths of a composite index, with the first ones held to a value each.
fn order_behind(random: &mut Random, query: &mut Query) {
    let paths = *random.pick(&COMPOSITES);
    let (first, last) = paths.split_at(1 + random.below(paths.len() - 1));
    for (path, _) in first {
        let equal = format!("c{path} = {}", place::value_at(random, path));
        query.filter = Some(match query.filter.take().filter(|_| random.one_in(4)) {
            Some(filter) => format!("({filter}) AND {equal}"),
            None => equal,
        });
    }
    let reverse = random.one_in(2);
    query.order_by = last.iter().map(|(path, desc)| ((*path).to_owned(), *desc != reverse)).collect();
}

fn distinct(random: &mut Random, query: &mut Query, joined: &[Joined]) {
    query.distinct = true;
    match random.below(4) {
        // The rows decide the order, so that equal keys are equal rows.
        0 => {
            let path = random.pick(&place::PLACES).path;
            query.select = format!("VALUE c{path}");
            query.order_by = vec![(path.to_owned(), random.one_in(2))];
        }
        1 => query.select = "c.b, c.pk".to_owned(),
        2 if joined.contains(&Joined::Tag) => query.select = "VALUE t".to_owned(),
        _ => query.select = format!("VALUE c{}", place::any(random).path),
    }
    limited(random, query);
}

fn grouped(random: &mut Random, query: &mut Query) {
    let key = random.pick(&place::PLACES).path;
    query.group_by = vec![format!("c{key}")];
    let mut select = format!("c{key} AS k");
    if random.one_in(3) {
        query.group_by.push("c.b".to_owned());
        select.push_str(", c.b");
    }
    let (first, second) = (function(random), function(random));
    query.select = match random.below(4) {
        0 => select,
        1 => format!("VALUE {first}"),
        2 => format!("{select}, {first} AS x"),
        _ => format!("{select}, {first} AS x, {second} AS y"),
    };
    if random.one_in(8) {
        limited(random, query);
    }
}

fn aggregate(random: &mut Random, query: &mut Query) {
    let (first, second) = (function(random), function(random));
    query.select = match random.below(5) {
        0 => "VALUE COUNT(1)".to_owned(),
        1 | 2 => format!("VALUE {first}"),
        3 => format!("{first} AS x"),
        _ => format!("{first} AS x, {second} AS y"),
    };
}

/// Sums are taken of numbers that add up to the same in any order.
fn function(random: &mut Random) -> String {
    let path = place::any(random).path;
    match random.below(7) {
        0 => "COUNT(1)".to_owned(),
        1 => format!("COUNT(c{path})"),
        2 => "SUM(c.n)".to_owned(),
        3 => "AVG(c.o.y.z)".to_owned(),
        4 => format!("MIN(c{path})"),
        5 => format!("MAX(c{path})"),
        _ => "SUM(c.o.y.z)".to_owned(),
    }
}
