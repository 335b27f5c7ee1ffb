//! The merge that SDKs do, after the query plan that the server gave.
//!
//! The plan says how the rewritten query's answers of the ranges come together. The steps and their order are
//! those of the clients: merge by order keys, combine groups and aggregates, drop duplicates, pass over OFFSET,
//! stop at LIMIT and TOP, count what is distinct.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::answer::{canonical, order};
use super::hash::by_hash;

/// Where a client that starts from the beginning puts nothing.
const FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// A query plan as the server sends it.
pub struct MergePlan {
    plan: Value,
}

impl MergePlan {
    pub fn new(plan: Value) -> MergePlan {
        MergePlan { plan }
    }

    fn info(&self) -> &Value {
        &self.plan["queryInfo"]
    }

    /// What to send to each range instead of the query.
    pub fn rewritten(&self, text: &str) -> String {
        self.rewritten_behind(text, "true")
    }

    /// The same for a client that goes on behind a row, with a condition of its own.
    pub fn rewritten_behind(&self, text: &str, filter: &str) -> String {
        match self.info()["rewrittenQuery"].as_str() {
            None | Some("") => text.to_owned(),
            Some(rewritten) => rewritten.replace(FILTER, filter),
        }
    }

    /// Whether a range, given by its ends in hexadecimal, has to be asked.
    pub fn asks(&self, min: &str, max: &str) -> bool {
        let ranges = self.plan["queryRanges"].as_array().expect("a plan names ranges");
        ranges.iter().any(|range| {
            let text = |name: &str| range[name].as_str().expect("ends are text").to_owned();
            let (low, high) = (text("min"), text("max"));
            let ends_behind = if range["isMaxInclusive"] == json!(true) {
                high.as_str() >= min
            } else {
                high.as_str() > min
            };
            low.as_str() < max && ends_behind
        })
    }

    fn count(&self, name: &str) -> Option<usize> {
        self.info()[name].as_u64().map(|count| count as usize)
    }

    fn list(&self, name: &str) -> &[Value] {
        self.info()[name].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Puts the answers of the ranges together; ranges come in the order of the key space.
pub fn merge(plan: &MergePlan, ranges: Vec<Vec<Value>>) -> Vec<Value> {
    let mut rows = match plan.list("orderBy") {
        [] => ranges.into_iter().flatten().collect(),
        directions => merge_ordered(directions, ranges),
    };
    if !plan.list("groupByExpressions").is_empty() {
        rows = merge_groups(plan, rows);
    } else if !plan.list("aggregates").is_empty() || !plan.list("groupByAliases").is_empty() {
        rows = merge_aggregates(plan, rows);
    }
    if plan.info()["distinctType"] != json!("None") {
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert(canonical(row)));
    }
    let rows: Vec<Value> = rows.into_iter().skip(plan.count("offset").unwrap_or(0)).collect();
    let most = plan.count("limit").unwrap_or(usize::MAX).min(plan.count("top").unwrap_or(usize::MAX));
    let rows: Vec<Value> = rows.into_iter().take(most).collect();
    match plan.info()["dCountInfo"]["dCountAlias"].as_str() {
        None => rows,
        Some("") => vec![json!(rows.len())],
        Some(alias) => vec![json!({alias: rows.len()})],
    }
}

/// Takes the smallest of all ranges' first rows, again and again; equal keys come range by range.
fn merge_ordered(directions: &[Value], ranges: Vec<Vec<Value>>) -> Vec<Value> {
    let mut heads: Vec<_> = ranges.into_iter().map(|rows| rows.into_iter().peekable()).collect();
    let mut rows = Vec::new();
    loop {
        let mut best: Option<(usize, Value)> = None;
        for (place, head) in heads.iter_mut().enumerate() {
            let Some(row) = head.peek() else { continue };
            let earlier = match &best {
                None => true,
                Some((_, other)) => compare_keys(directions, row, other).is_lt(),
            };
            if earlier {
                best = Some((place, row.clone()));
            }
        }
        let Some((place, mut row)) = best else { return rows };
        heads[place].next();
        rows.push(row["payload"].take());
    }
}

fn compare_keys(directions: &[Value], a: &Value, b: &Value) -> Ordering {
    for (place, direction) in directions.iter().enumerate() {
        let key = |row: &Value| row["orderByItems"][place].get("item").cloned();
        let order = match (key(a), key(b)) {
            (Some(a), Some(b)) if (a.is_array() && b.is_array()) || (a.is_object() && b.is_object()) => {
                by_hash(&a, &b)
            }
            (a, b) => order(a.as_ref(), b.as_ref()),
        };
        let order = if direction == "Descending" { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// One value of a group's row: an aggregate that goes on, or what the first row of the group had.
enum Slot {
    Plain(Option<Value>),
    Sum { total: f64, whole: Option<i64>, spoilt: bool },
    Average { sum: f64, count: f64, spoilt: bool },
    Extreme { best: Option<Value>, wanted: Ordering, spoilt: bool },
}

fn merge_groups(plan: &MergePlan, rows: Vec<Value>) -> Vec<Value> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let key = canonical(&row["groupByItems"]);
        let place = *places.entry(key).or_insert_with(|| {
            groups.push(Group::new(plan));
            groups.len() - 1
        });
        groups[place].add(row.get("payload"));
    }
    groups.into_iter().filter_map(Group::finish).collect()
}

fn merge_aggregates(plan: &MergePlan, rows: Vec<Value>) -> Vec<Value> {
    let mut group = Group::new(plan);
    for row in rows {
        match plan.info()["hasSelectValue"] == json!(true) {
            true => group.add(Some(&row)),
            false => group.add(row.get("payload")),
        }
    }
    group.finish().into_iter().collect()
}

/// The row of one group in the making: `SELECT VALUE` has one nameless value.
struct Group {
    is_value: bool,
    slots: Vec<(String, Slot)>,
}

impl Group {
    fn new(plan: &MergePlan) -> Group {
        let is_value = plan.info()["hasSelectValue"] == json!(true);
        let slots = if is_value {
            let kind = plan.list("aggregates").first().and_then(Value::as_str);
            vec![(String::new(), Slot::new(kind))]
        } else {
            let kinds = &plan.info()["groupByAliasToAggregateType"];
            let names = plan.list("groupByAliases").iter().filter_map(Value::as_str);
            names.map(|name| (name.to_owned(), Slot::new(kinds[name].as_str()))).collect()
        };
        Group { is_value, slots }
    }

    fn add(&mut self, payload: Option<&Value>) {
        for (name, slot) in &mut self.slots {
            match (self.is_value, &*slot) {
                (true, Slot::Plain(_)) => slot.add(payload),
                (true, _) => slot.add(payload.and_then(|list| list.get(0))),
                (false, _) => slot.add(payload.and_then(|object| object.get(name.as_str()))),
            }
        }
    }

    fn finish(self) -> Option<Value> {
        if self.is_value {
            return self.slots.into_iter().next().and_then(|(_, slot)| slot.finish());
        }
        let fields = self.slots.into_iter().filter_map(|(name, slot)| Some((name, slot.finish()?)));
        Some(Value::Object(fields.collect::<Map<_, _>>()))
    }
}

impl Slot {
    fn new(kind: Option<&str>) -> Slot {
        match kind {
            None => Slot::Plain(None),
            Some("Sum" | "Count" | "CountIf") => Slot::Sum { total: 0.0, whole: Some(0), spoilt: false },
            Some("Average") => Slot::Average { sum: 0.0, count: 0.0, spoilt: false },
            Some("Min") => Slot::Extreme { best: None, wanted: Ordering::Less, spoilt: false },
            Some("Max") => Slot::Extreme { best: None, wanted: Ordering::Greater, spoilt: false },
            Some(other) => panic!("the plan names an aggregate that nobody generated: {other}"),
        }
    }

    /// Adds what a range answered: a value as it is, or a part of an aggregate below `item`.
    fn add(&mut self, answer: Option<&Value>) {
        let item = answer.and_then(|answer| answer.get("item"));
        match self {
            Slot::Plain(value) => {
                if value.is_none() {
                    *value = answer.cloned();
                }
            }
            Slot::Sum { total, whole, spoilt } => match item.and_then(Value::as_f64) {
                Some(part) => {
                    *total += part;
                    *whole = whole.zip(item.and_then(Value::as_i64)).and_then(|(a, b)| a.checked_add(b));
                }
                None => *spoilt = true,
            },
            Slot::Average { sum, count, spoilt } => {
                *count += item.and_then(|item| item["count"].as_f64()).unwrap_or(0.0);
                match item.and_then(|item| item["sum"].as_f64()) {
                    Some(part) => *sum += part,
                    None => *spoilt = true,
                }
            }
            Slot::Extreme { best, wanted, spoilt } => {
                let Some(parts) = answer.and_then(|answer| answer.get("item2")) else { return };
                if parts["count"] == json!(0) {
                    return;
                }
                let part = parts.get("min").or(parts.get("max"));
                *spoilt |= part.is_none();
                if part.is_some() && (best.is_none() || order(part, best.as_ref()) == *wanted) {
                    *best = part.cloned();
                }
            }
        }
    }

    fn finish(self) -> Option<Value> {
        match self {
            Slot::Plain(value) => value,
            Slot::Sum { total, whole, spoilt } => {
                (!spoilt).then(|| whole.map_or(json!(total), |whole| json!(whole)))
            }
            Slot::Average { sum, count, spoilt } => (!spoilt && count > 0.0).then(|| json!(sum / count)),
            Slot::Extreme { best, spoilt, .. } => best.filter(|_| !spoilt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(info: Value, ranges: Value) -> Value {
        let ranges =
            ranges.as_array().expect("ranges").iter().map(|rows| rows.as_array().expect("rows").clone());
        merge(&MergePlan::new(json!({"queryInfo": info})), ranges.collect()).into()
    }

    #[test]
    fn ordered_rows_come_by_their_keys_and_ties_by_range() {
        let row = |key: Value, name: &str| json!({"orderByItems": [key], "payload": name});
        let (nothing, one, two) = (json!({}), json!({"item": 1}), json!({"item": 2}));
        let first = json!([row(nothing, "a"), row(two.clone(), "b")]);
        let second = json!([row(one, "c"), row(two, "d")]);
        let info = json!({"distinctType": "None", "orderBy": ["Ascending"], "limit": 3, "offset": 0});
        assert_eq!(merged(info, json!([first, second])), json!(["a", "c", "b"]));
    }

    #[test]
    fn groups_of_all_ranges_come_together() {
        let row = |key: &str, n: i64, least: Value| json!({"groupByItems": [{"item": key}], "payload": {"k": key, "n": {"item": n}, "m": {"item2": least}}});
        let info = json!({
            "distinctType": "None",
            "groupByExpressions": ["c.k"],
            "groupByAliases": ["k", "n", "m"],
            "groupByAliasToAggregateType": {"k": null, "n": "Count", "m": "Min"},
        });
        let first = json!([row("x", 2, json!({"min": 5, "count": 2})), row("y", 1, json!({"count": 0}))]);
        let second = json!([row("x", 1, json!({"min": 4, "count": 1}))]);
        let whole = json!([{"k": "x", "n": 3, "m": 4}, {"k": "y", "n": 1}]);
        assert_eq!(merged(info, json!([first, second])), whole);
    }

    #[test]
    fn an_aggregate_that_one_range_cannot_have_nobody_has() {
        let info = |kind: &str| json!({"distinctType": "None", "hasSelectValue": true, "aggregates": [kind]});
        assert_eq!(merged(info("Sum"), json!([[[{"item": 1}]], [[{"item": 2.5}]]])), json!([3.5]));
        assert_eq!(merged(info("Sum"), json!([[[{"item": 1}]], [[{}]]])), json!([]));
        let average = json!([[[{"item": {"sum": 3, "count": 1}}]], [[{"item": {"sum": 1, "count": 1}}]]]);
        assert_eq!(merged(info("Average"), average), json!([2.0]));
        let extreme = json!([[[{"item2": {"max": 1, "count": 1}}]], [[{"item2": {"count": 2}}]]]);
        assert_eq!(merged(info("Max"), extreme), json!([]));
    }
}
