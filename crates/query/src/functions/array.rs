//! Arrays and sets.

use std::collections::HashSet;

use super::{Args, Function, MANY, array, function};
use crate::eval::equal;
use crate::value::{Fields, Kind, List, Text, Val};

pub(super) static FUNCTIONS: [Function; 17] = [
    function("ARRAY_AVG", 1, 1, |args| {
        let numbers = numbers(args.list(0)?)?;
        (!numbers.is_empty()).then(|| Val::number(numbers.iter().sum::<f64>() / numbers.len() as f64))
    }),
    function("ARRAY_CONCAT", 2, MANY, concat),
    function("ARRAY_CONTAINS", 2, 3, contains),
    function("_TRY_ARRAY_CONTAINS", 2, 3, contains),
    function("ARRAY_CONTAINS_ALL", 2, MANY, |args| contains_each(args, true)),
    function("ARRAY_CONTAINS_ANY", 2, MANY, |args| contains_each(args, false)),
    function("ARRAY_LENGTH", 1, 1, |args| Some(Val::Int(args.list(0)?.len() as i64))),
    function("ARRAY_MAX", 1, 1, |args| scalars(args.list(0)?)?.into_iter().max_by(|a, b| a.order(b))),
    function("ARRAY_MEDIAN", 1, 1, median),
    function("ARRAY_MIN", 1, 1, |args| scalars(args.list(0)?)?.into_iter().min_by(|a, b| a.order(b))),
    function("ARRAY_SLICE", 2, 3, slice),
    function("ARRAY_SUM", 1, 1, |args| Some(Val::number(numbers(args.list(0)?)?.iter().sum()))),
    function("OBJECTTOARRAY", 1, 3, object_to_array),
    function("SETDIFFERENCE", 2, 2, |args| {
        let other = keys(args.list(1)?);
        array(
            distinct(args.list(0)?).into_iter().filter(|(key, _)| !other.contains(key)).map(value).collect(),
        )
    }),
    function("SETEQUAL", 2, 2, |args| Some(Val::Bool(keys(args.list(0)?) == keys(args.list(1)?)))),
    function("SETINTERSECT", 2, 2, |args| {
        let other = keys(args.list(1)?);
        array(distinct(args.list(0)?).into_iter().filter(|(key, _)| other.contains(key)).map(value).collect())
    }),
    function("SETUNION", 2, 2, |args| {
        let first = keys(args.list(0)?);
        let mut items = distinct(args.list(0)?);
        items.extend(distinct(args.list(1)?).into_iter().filter(|(key, _)| !first.contains(key)));
        array(items.into_iter().map(value).collect())
    }),
];

fn numbers(list: &List<'_>) -> Option<Vec<f64>> {
    list.iter().map(|item| item.as_f64()).collect()
}

/// Only scalars have an order between their minimum and their maximum.
fn scalars<'a>(list: &List<'a>) -> Option<Vec<Val<'a>>> {
    let scalar = |item: Val<'a>| (!matches!(item.kind(), Kind::Array | Kind::Object)).then_some(item);
    list.iter().map(scalar).collect()
}

fn concat<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let mut items = Vec::new();
    for i in 0..args.len() {
        items.extend(args.list(i)?.iter());
        (items.len() <= crate::limits::ARRAY_ITEMS).then_some(())?;
    }
    array(items)
}

fn contains<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (list, wanted) = (args.list(0)?, args.get(1));
    if wanted.is_undefined() {
        return None;
    }
    let partial = args.flag(2)?;
    let hit = |item: &Val<'a>| if partial { matches_partly(item, wanted) } else { same(item, wanted) };
    Some(Val::Bool(match list {
        List::Made(items) => items.iter().any(hit),
        stored => stored.iter().any(|item| hit(&item)),
    }))
}

fn same(a: &Val<'_>, b: &Val<'_>) -> bool {
    equal(a, b) == Some(true)
}

/// An object matches when it has all members of the wanted one; everything else must be equal.
fn matches_partly(item: &Val<'_>, wanted: &Val<'_>) -> bool {
    match (item, wanted) {
        (Val::Object(_), Val::Object(members)) => {
            let mut all = true;
            members.for_each(|name, value| all = all && matches_partly(&item.get(name), value));
            all
        }
        _ => same(item, wanted),
    }
}

/// As if an ARRAY_CONTAINS for each value were joined by AND or by OR: one that is false (or true)
/// decides, else one that is undefined does.
fn contains_each<'a>(args: &Args<'_, 'a>, every: bool) -> Option<Val<'a>> {
    let present = keys(args.list(0)?);
    let mut unknown = false;
    for wanted in (1..args.len()).map(|i| args.get(i)) {
        if wanted.is_undefined() {
            unknown = true;
        } else if present.contains(&key(wanted)) != every {
            return Some(Val::Bool(!every));
        }
    }
    (!unknown).then_some(Val::Bool(every))
}

fn median<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let mut numbers = numbers(args.list(0)?)?;
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let high = *numbers.get(middle)?;
    Some(Val::number(if numbers.len() % 2 == 1 { high } else { (numbers[middle - 1] + high) / 2.0 }))
}

/// A negative start counts from the end.
fn slice<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let list = args.list(0)?;
    let start = args.int(1)?;
    let start = if start < 0 {
        list.len().saturating_sub(usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX))
    } else {
        usize::try_from(start).unwrap_or(usize::MAX)
    };
    let length = if args.len() > 2 { usize::try_from(args.int(2)?).unwrap_or(0) } else { usize::MAX };
    array(list.iter().skip(start).take(length).collect())
}

fn object_to_array<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let Val::Object(fields) = args.get(0) else { return None };
    let name_key = if args.len() > 1 { args.str(1)? } else { "k" };
    let value_key = if args.len() > 2 { args.str(2)? } else { "v" };
    let pair = |(name, value): (Text<'a>, Val<'a>)| {
        let pair = vec![(Text::Made(name_key.into()), Val::Str(name)), (Text::Made(value_key.into()), value)];
        Val::Object(Fields::Made(pair.into()))
    };
    array(fields.to_vec().into_iter().map(pair).collect())
}

fn key(value: &Val<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    if value.kind() != Kind::Undefined {
        value.write_canonical(&mut key);
    }
    key
}

fn keys(list: &List<'_>) -> HashSet<Vec<u8>> {
    list.iter().map(|item| key(&item)).collect()
}

/// The different items of a list, in order, with their keys.
fn distinct<'a>(list: &List<'a>) -> Vec<(Vec<u8>, Val<'a>)> {
    let mut seen = HashSet::new();
    list.iter().map(|item| (key(&item), item)).filter(|(key, _)| seen.insert(key.clone())).collect()
}

fn value<'a>((_, value): (Vec<u8>, Val<'a>)) -> Val<'a> {
    value
}
