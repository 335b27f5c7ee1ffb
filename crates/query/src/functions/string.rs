//! Strings. Positions and lengths count characters.

use super::{Args, Function, MANY, array, function, text};
use crate::limits;
use crate::value::{Kind, Val};

pub(super) static FUNCTIONS: [Function; 36] = [
    function("CONCAT", 2, MANY, concat),
    function("CONTAINS", 2, 3, |args| compare(args, |s, t| s.contains(t))),
    function("CONTAINS_ALL_CI", 1, MANY, |args| contains_each(args, true, true)),
    function("CONTAINS_ALL_CS", 1, MANY, |args| contains_each(args, false, true)),
    function("CONTAINS_ANY_CI", 1, MANY, |args| contains_each(args, true, false)),
    function("CONTAINS_ANY_CS", 1, MANY, |args| contains_each(args, false, false)),
    function("ENDSWITH", 2, 3, |args| compare(args, |s, t| s.ends_with(t))),
    function("INDEX_OF", 2, 3, index_of),
    function("LASTINDEXOF", 2, 3, last_index_of),
    function("LEFT", 2, 2, |args| {
        let count = count(args, 1)?;
        text(args.str(0)?.chars().take(count).collect())
    }),
    function("LENGTH", 1, 1, |args| Some(Val::Int(args.str(0)?.chars().count() as i64))),
    function("LOWER", 1, 1, |args| text(args.str(0)?.to_lowercase())),
    function("LTRIM", 1, 2, |args| trim(args, true, false)),
    function("REGEXMATCH", 2, 3, regex_match),
    function("REPLACE", 3, 3, replace),
    function("REPLICATE", 2, 2, replicate),
    function("REVERSE", 1, 1, |args| text(args.str(0)?.chars().rev().collect())),
    function("RIGHT", 2, 2, |args| {
        let (s, count) = (args.str(0)?, count(args, 1)?);
        let skip = s.chars().count().saturating_sub(count);
        text(s.chars().skip(skip).collect())
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
    function("SUBSTRINGAFTER", 2, 2, |args| cut(args, |s, t| s.split_once(t).map(|(_, after)| after))),
    function("SUBSTRINGBEFORE", 2, 2, |args| cut(args, |s, t| s.split_once(t).map(|(before, _)| before))),
    function("LASTSUBSTRINGAFTER", 2, 2, |args| cut(args, |s, t| s.rsplit_once(t).map(|(_, after)| after))),
    function("LASTSUBSTRINGBEFORE", 2, 2, |args| {
        cut(args, |s, t| s.rsplit_once(t).map(|(before, _)| before))
    }),
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
    let found = if args.flag(2)? { test(&s.to_lowercase(), &t.to_lowercase()) } else { test(s, t) };
    Some(Val::Bool(found))
}

fn contains_each<'a>(args: &Args<'_, 'a>, ignore_case: bool, every: bool) -> Option<Val<'a>> {
    let fold = |s: &str| if ignore_case { s.to_lowercase() } else { s.to_owned() };
    let s = fold(args.str(0)?);
    let mut found = 0;
    for i in 1..args.len() {
        found += usize::from(s.contains(&fold(args.str(i)?)));
    }
    Some(Val::Bool(if every { found == args.len() - 1 } else { found > 0 }))
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

fn last_index_of<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, t) = (args.str(0)?, args.str(1)?);
    let end = if args.len() > 2 { byte_of_char(s, count(args, 2)?).unwrap_or(s.len()) } else { s.len() };
    let place = s.match_indices(t).map(|(at, _)| at).take_while(|at| *at <= end).last();
    Some(Val::Int(place.map_or(-1, |at| s[..at].chars().count() as i64)))
}

/// The byte where the n-th character starts; the end of the text counts as a start.
fn byte_of_char(s: &str, n: usize) -> Option<usize> {
    s.char_indices().map(|(at, _)| at).chain([s.len()]).nth(n)
}

fn substring<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let (s, start) = (args.str(0)?, count(args, 1)?);
    let length = if args.len() > 2 { count(args, 2)? } else { usize::MAX };
    text(s.chars().skip(start).take(length).collect())
}

fn cut<'a>(args: &Args<'_, 'a>, part: for<'s> fn(&'s str, &str) -> Option<&'s str>) -> Option<Val<'a>> {
    let (s, t) = (args.str(0)?, args.str(1)?);
    text(part(s, t).unwrap_or("").to_owned())
}

fn trim<'a>(args: &Args<'_, 'a>, left: bool, right: bool) -> Option<Val<'a>> {
    let mut s = args.str(0)?;
    let set = if args.len() > 1 { Some(args.str(1)?) } else { None };
    let dropped = |c: char| set.map_or_else(|| c.is_whitespace(), |set| set.contains(c));
    if left {
        s = s.trim_start_matches(dropped);
    }
    if right {
        s = s.trim_end_matches(dropped);
    }
    text(s.to_owned())
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

fn regex_match<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let s = args.str(0)?;
    let modifiers = if args.len() > 2 { args.str(2)? } else { "" };
    Some(Val::Bool(regex(args.str(1)?, modifiers)?.is_match(s)))
}

/// Compiles a pattern with the service's modifiers; `None` when either is not valid.
pub(crate) fn regex(pattern: &str, modifiers: &str) -> Option<regex::Regex> {
    let mut builder = regex::RegexBuilder::new(pattern);
    builder.size_limit(limits::REGEX_BYTES).dfa_size_limit(limits::REGEX_BYTES);
    for modifier in modifiers.chars() {
        match modifier {
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            _ => return None,
        };
    }
    builder.build().ok()
}
