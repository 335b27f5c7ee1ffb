//! Strings. Positions and lengths count characters.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::regex::regex_match;
use super::{Args, Function, MANY, array, fallible, function, text};
use crate::limits;
use crate::value::{Kind, Text, Val};

pub(super) static FUNCTIONS: [Function; 36] = [
    function("CONCAT", 2, MANY, concat),
    function("CONTAINS", 2, 3, |args| compare(args, |s, t| s.contains(t))),
    function("CONTAINS_ALL_CI", 2, MANY, |args| contains_each(args, true, true)),
    function("CONTAINS_ALL_CS", 2, MANY, |args| contains_each(args, false, true)),
    function("CONTAINS_ANY_CI", 2, MANY, |args| contains_each(args, true, false)),
    function("CONTAINS_ANY_CS", 2, MANY, |args| contains_each(args, false, false)),
    function("ENDSWITH", 2, 3, |args| compare(args, |s, t| s.ends_with(t))),
    function("INDEX_OF", 2, 3, index_of),
    function("LASTINDEXOF", 2, 3, last_index_of),
    function("LEFT", 2, 2, |args| {
        let (s, count) = (args.str(0)?, count(args, 1)?);
        piece(args, 0, byte_of_char(s, count).unwrap_or(s.len()))
    }),
    function("LENGTH", 1, 1, |args| Some(Val::Int(args.str(0)?.chars().count() as i64))),
    function("LOWER", 1, 1, |args| text(args.str(0)?.to_lowercase())),
    function("LTRIM", 1, 2, |args| trim(args, true, false)),
    fallible("REGEXMATCH", 2, 3, regex_match),
    function("REPLACE", 3, 3, replace),
    function("REPLICATE", 2, 2, replicate),
    function("REVERSE", 1, 1, |args| text(args.str(0)?.chars().rev().collect())),
    function("RIGHT", 2, 2, |args| {
        let (s, count) = (args.str(0)?, count(args, 1)?);
        let first = s.char_indices().map(|(at, _)| at).rev().take(count).last();
        piece(args, first.unwrap_or(s.len()), s.len())
    }),
    function("RTRIM", 1, 2, |args| trim(args, false, true)),
    function("STARTSWITH", 2, 3, |args| compare(args, |s, t| s.starts_with(t))),
    function("STRINGEQUALS", 2, 3, |args| compare(args, |s, t| s == t)),
    function("STRINGJOIN", 2, 2, string_join),
    function("STRINGSPLIT", 2, 2, string_split),
    function("STRINGTOARRAY", 1, 1, |args| from_json(args, Kind::Array)),
    function("STRINGTOBOOLEAN", 1, 1, |args| from_json(args, Kind::Bool)),
    function("STRINGTONULL", 1, 1, |args| from_json(args, Kind::Null)),
    function("STRINGTONUMBER", 1, 1, |args| from_json(args, Kind::Number)),
    function("STRINGTOOBJECT", 1, 1, |args| from_json(args, Kind::Object)),
    function("SUBSTRING", 2, 3, substring),
    function("SUBSTRINGAFTER", 2, 2, |args| cut(args, |s, t| s.find(t), true)),
    function("SUBSTRINGBEFORE", 2, 2, |args| cut(args, |s, t| s.find(t), false)),
    function("LASTSUBSTRINGAFTER", 2, 2, |args| cut(args, |s, t| s.rfind(t), true)),
    function("LASTSUBSTRINGBEFORE", 2, 2, |args| cut(args, |s, t| s.rfind(t), false)),
    function("TOSTRING", 1, 1, to_string),
    function("TRIM", 1, 2, |args| trim(args, true, true)),
    function("UPPER", 1, 1, |args| text(args.str(0)?.to_uppercase())),
];

fn concat<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let mut out = String::new();
    for i in 0..args.len() {
        let part = args.str(i)?;
        if out.len() + part.len() > limits::STRING_BYTES {
            return None;
        }
        out.push_str(part);
    }
    text(out)
}

/// Two strings and an optional flag to ignore case.
fn compare<'a>(args: &Args<'_, 'a>, test: fn(&str, &str) -> bool) -> Option<Val<'a>> {
    let (s, t) = (args.str(0)?, args.str(1)?);
    let found = if args.flag(2)? { test(&lower(s), &lower(t)) } else { test(s, t) };
    Some(Val::Bool(found))
}

/// The text in lower case; what is so already is not copied.
fn lower(s: &str) -> Cow<'_, str> {
    if s.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        return Cow::Borrowed(s);
    }
    Cow::Owned(s.to_lowercase())
}

/// As if a CONTAINS for each text were joined by AND or by OR: one that is false (or true) decides,
/// else one that is undefined does.
fn contains_each<'a>(args: &Args<'_, 'a>, ignore_case: bool, every: bool) -> Option<Val<'a>> {
    let fold = |s: &str| if ignore_case { s.to_lowercase() } else { s.to_owned() };
    let s = fold(args.str(0)?);
    args.charge((args.len() * (s.len() / limits::WORK_BYTES)) as u64);
    let mut unknown = false;
    for i in 1..args.len() {
        match args.str(i) {
            Some(t) if s.contains(&fold(t)) != every => return Some(Val::Bool(!every)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(Val::Bool(every))
}

/// A character count: negative counts are zero.
fn count(args: &Args<'_, '_>, i: usize) -> Option<usize> {
    Some(usize::try_from(args.int(i)?).unwrap_or(0))
}

fn index_of<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, t) = (args.str(0)?, args.str(1)?);
    let from = if args.len() > 2 { count(args, 2)? } else { 0 };
    let start = byte_of_char(s, from);
    let place = start.and_then(|start| Some(s[..start + s[start..].find(t)?].chars().count() as i64));
    Some(Val::Int(place.unwrap_or(-1)))
}

/// The search begins at a place and goes to the start: no character behind that place is part of it.
fn last_index_of<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, t) = (args.str(0)?, args.str(1)?);
    let searched = match args.len() {
        2 => s,
        _ => &s[..byte_of_char(s, count(args, 2)?.saturating_add(1)).unwrap_or(s.len())],
    };
    Some(Val::Int(searched.rfind(t).map_or(-1, |at| s[..at].chars().count() as i64)))
}

/// The byte where the n-th character starts; the end of the text counts as a start.
fn byte_of_char(s: &str, n: usize) -> Option<usize> {
    s.char_indices().map(|(at, _)| at).chain([s.len()]).nth(n)
}

fn substring<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, start) = (args.str(0)?, count(args, 1)?);
    let start = byte_of_char(s, start).unwrap_or(s.len());
    let end = match args.len() {
        2 => s.len(),
        _ => byte_of_char(&s[start..], count(args, 2)?).map_or(s.len(), |length| start + length),
    };
    piece(args, start, end)
}

/// A piece of the first argument, which is not copied if it is stored.
fn piece<'a>(args: &Args<'_, 'a>, start: usize, end: usize) -> Option<Val<'a>> {
    match args.get(0) {
        Val::Str(Text::Stored(s)) => Some(Val::Str(Text::Stored(s.get(start..end)?))),
        other => Some(Val::text(other.as_str()?.get(start..end)?)),
    }
}

/// The text before or behind a delimiter; empty without one.
fn cut<'a>(args: &Args<'_, 'a>, place: fn(&str, &str) -> Option<usize>, behind: bool) -> Option<Val<'a>> {
    let (s, t) = (args.str(0)?, args.str(1)?);
    match place(s, t) {
        Some(at) if behind => piece(args, at + t.len(), s.len()),
        Some(at) => piece(args, 0, at),
        None => piece(args, 0, 0),
    }
}

fn trim<'a>(args: &Args<'_, 'a>, left: bool, right: bool) -> Option<Val<'a>> {
    let s = args.str(0)?;
    let set = if args.len() > 1 { Some(args.str(1)?) } else { None };
    // Every character of the text may be looked for, so a long set is worth sorting.
    let sorted = set.filter(|set| set.len() > 32).map(|set| set.chars().collect::<BTreeSet<char>>());
    let dropped = |c: char| match (&sorted, set) {
        (Some(sorted), _) => sorted.contains(&c),
        (None, Some(set)) => set.contains(c),
        (None, None) => c.is_whitespace(),
    };
    let end = if right { s.trim_end_matches(dropped).len() } else { s.len() };
    let start = if left { end - s[..end].trim_start_matches(dropped).len() } else { 0 };
    piece(args, start, end)
}

fn replace<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, from, to) = (args.str(0)?, args.str(1)?, args.str(2)?);
    if from.is_empty() {
        return text(s.to_owned());
    }
    let hits = s.matches(from).count();
    let length = s.len().checked_add(hits.checked_mul(to.len())?)?;
    (length <= limits::STRING_BYTES).then_some(())?;
    text(s.replace(from, to))
}

fn replicate<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, times) = (args.str(0)?, usize::try_from(args.int(1)?).ok()?);
    let chars = s.chars().count().checked_mul(times)?;
    (chars <= limits::REPLICATE_CHARS).then(|| Val::text(s.repeat(times)))
}

fn string_join<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (list, separator) = (args.list(0)?, args.str(1)?);
    let mut out = String::new();
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.push_str(separator);
        }
        out.push_str(item.as_str()?);
        (out.len() <= limits::STRING_BYTES).then_some(())?;
    }
    text(out)
}

fn string_split<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, separator) = (args.str(0)?, args.str(1)?);
    if separator.is_empty() {
        return array(vec![Val::text(s)]);
    }
    array(s.split(separator).take(limits::ARRAY_ITEMS + 1).map(Val::text).collect())
}

/// The JSON value in a string, if it is of the wanted kind.
fn from_json<'a>(args: &Args<'_, 'a>, kind: Kind) -> Option<Val<'a>> {
    let s = args.str(0)?.trim();
    // A value of two bytes of text, such as `0,`, becomes one of many bytes.
    args.charge(s.len() as u64);
    args.makes(s.len().saturating_mul(16));
    let doc = orrery_doc::json::parse(s.as_bytes(), orrery_doc::json::DEFAULT_MAX_DEPTH).ok()?;
    let value = Val::from(doc.root()).to_owned_val();
    (value.kind() == kind).then_some(value)
}

fn to_string<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    match args.get(0) {
        Val::Undefined => None,
        Val::Str(s) => Some(Val::Str(s.clone())),
        other => {
            let mut out = Vec::new();
            other.write_json(&mut out);
            text(String::from_utf8(out).ok()?)
        }
    }
}
