//! A plan in words and as JSON: what the indexes offer to a query and which way was taken.

use std::fmt::Write as _;

use orrery_doc::{Bounds, TermType};

use super::path::{IndexPath, IndexStep};
use super::proposal::{Leaf, Proposal};
use super::span::{ORDER, Span, after_prefix, is_whole_term};
use super::{Access, IndexOrder, Shortcut};
use crate::ast::Direction;
use crate::print::quote;
use crate::value::Kind;

/// What the reader of the indexes decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chosen<'c> {
    /// A word or two, such as `scan` or `index order`.
    pub method: &'c str,
    /// The paths whose entries named the candidates.
    pub used: Vec<&'c IndexPath>,
    /// What it took, by name.
    pub figures: Vec<(&'c str, u64)>,
}

/// A plan, explained twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub text: String,
    pub json: String,
}

/// Explains a plan; `access` is none when no index could be asked.
pub fn explain(access: Option<&Access>, chosen: &Chosen<'_>) -> Explanation {
    Explanation { text: text(access, chosen), json: json(access, chosen) }
}

fn text(access: Option<&Access>, chosen: &Chosen<'_>) -> String {
    let mut out = format!("method: {}\n", chosen.method);
    if let Some(access) = access {
        out.push_str(if access.filter_exact { "filter (exact): " } else { "filter: " });
        write_proposal(&access.filter, chosen, 1, &mut out);
        if let Some(order) = &access.order {
            let _ = writeln!(out, "order: {}", order_text(order));
        }
        if access.shortcut != Shortcut::None {
            let _ = writeln!(out, "shortcut: {}", shortcut_text(&access.shortcut));
        }
    }
    for (name, figure) in &chosen.figures {
        let _ = writeln!(out, "{name}: {figure}");
    }
    out
}

fn write_proposal(proposal: &Proposal, chosen: &Chosen<'_>, depth: usize, out: &mut String) {
    let list = |title: &str, parts: &[Proposal], out: &mut String| {
        let _ = writeln!(out, "{title}");
        for part in parts {
            out.extend(std::iter::repeat_n("  ", depth));
            write_proposal(part, chosen, depth + 1, out);
        }
    };
    match proposal {
        Proposal::Everything => out.push_str("every item\n"),
        Proposal::Nothing => out.push_str("no item\n"),
        Proposal::Leaf(leaf) => {
            let exact = if leaf.exact { "" } else { ", to be checked" };
            let used = if chosen.used.contains(&&leaf.path) { ", used" } else { "" };
            let _ = writeln!(out, "{} {}{exact}{used}", leaf.path, condition(leaf));
        }
        Proposal::All(parts) => list("all of", parts, out),
        Proposal::Any(parts) => list("any of", parts, out),
    }
}

fn order_text(order: &IndexOrder) -> String {
    match order {
        IndexOrder::Single { path, direction } => format!("{path} {}", direction_text(*direction)),
        IndexOrder::Composite { index, reversed, fixed, .. } => {
            let backwards = if *reversed { ", backwards" } else { "" };
            let behind = if *fixed > 0 { format!(", behind {fixed} equal values") } else { String::new() };
            format!("composite index {index}{behind}{backwards}")
        }
    }
}

fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "ascending",
        Direction::Descending => "descending",
    }
}

fn shortcut_text(shortcut: &Shortcut) -> String {
    match shortcut {
        Shortcut::None => "none".into(),
        Shortcut::Count => "count of entries".into(),
        Shortcut::First { path, direction: Direction::Ascending, .. } => format!("smallest of {path}"),
        Shortcut::First { path, direction: Direction::Descending, .. } => format!("largest of {path}"),
    }
}

/// Spans beyond this many are only counted.
const SPANS_SHOWN: usize = 8;

fn condition(leaf: &Leaf) -> String {
    let parts = leaf.path.parts();
    let text = |span: &Span| if parts.len() > 1 { entry_text(span, &parts) } else { span_text(span) };
    if let Some(IndexStep::Cells) = leaf.path.steps().last() {
        return format!("near, in {} intervals of cells", leaf.spans.len());
    }
    let shown: Vec<String> = leaf.spans.iter().take(SPANS_SHOWN).map(text).collect();
    let mut text = shown.join(" or ");
    if leaf.spans.len() > SPANS_SHOWN {
        let _ = write!(text, " or {} more", leaf.spans.len() - SPANS_SHOWN);
    }
    text
}

/// An interval of entries that are made of several terms: what all of them begin with, and whether that is all.
fn entry_text(span: &Span, parts: &[bool]) -> String {
    let (first, behind) = (leading_terms(&span.lower, parts), leading_terms(&span.upper, parts));
    let is_prefix = after_prefix(&span.lower) == span.upper;
    let common = first.iter().zip(&behind).take_while(|(a, b)| a == b).count();
    let common = if is_prefix { first.len() } else { common };
    let mut texts: Vec<String> =
        first[..common].iter().map(|term| format!("= {}", term_text(term).0)).collect();
    let length: usize = first[..common].iter().map(Vec::len).sum();
    if !is_prefix || length < span.lower.len() {
        let turned = parts.get(common).copied().unwrap_or(false);
        let rest = |bytes: &[u8]| bytes.get(length..).unwrap_or(&[]).to_vec();
        texts.push(match turned {
            true => "an interval".into(),
            false => span_text(&Span { lower: rest(&span.lower), upper: rest(&span.upper) }),
        });
    }
    texts.join(", ")
}

/// The whole terms that an entry begins with, with their bits turned back.
fn leading_terms(bytes: &[u8], parts: &[bool]) -> Vec<Vec<u8>> {
    let (mut terms, mut rest) = (Vec::new(), bytes);
    for turned in parts {
        let plain: Vec<u8> = rest.iter().map(|byte| if *turned { !byte } else { *byte }).collect();
        let Some(length) = (1..=plain.len()).find(|length| is_whole_term(&plain[..*length])) else { break };
        terms.push(plain[..length].to_vec());
        rest = &rest[length..];
    }
    terms
}

fn span_text(span: &Span) -> String {
    if *span == Span::defined() {
        return "is defined".into();
    }
    if span.is_one_term() {
        return format!("= {}", term_text(&span.lower).0);
    }
    const KINDS: [(Kind, &str); 6] = [
        (Kind::Null, "null"),
        (Kind::Bool, "a boolean"),
        (Kind::Number, "a number"),
        (Kind::String, "a string"),
        (Kind::Array, "an array"),
        (Kind::Object, "an object"),
    ];
    if let Some((_, name)) = KINDS.iter().find(|(kind, _)| *span == Span::of_kind(*kind)) {
        return format!("is {name}");
    }
    if span.lower.len() > 1
        && TermType::of_term(&span.lower, ORDER) == Some(TermType::String)
        && after_prefix(&span.lower) == span.upper
    {
        return format!("starts with {}", term_text(&span.lower).0);
    }
    let (starts_type, ends_type) = (is_between_types(&span.lower), is_between_types(&span.upper));
    let mut bounds = Vec::new();
    if !starts_type || ends_type {
        let (value, behind) = term_text(&span.lower);
        bounds.push(format!("{} {value}", if behind { ">" } else { ">=" }));
    }
    if !ends_type || (starts_type && span.upper != [ORDER.defined().behind]) {
        let (value, behind) = term_text(&span.upper);
        bounds.push(format!("{} {value}", if behind { "<=" } else { "<" }));
    }
    bounds.join(" and ")
}

/// Whether no type has terms on both sides of a bound.
fn is_between_types(bound: &[u8]) -> bool {
    let mut all = TermType::all().filter_map(|kind| kind.bounds(ORDER));
    all.any(|Bounds { first, behind }| bound == [first] || bound == [behind])
}

/// The value of a bound as a person would write it, and whether the bound lies just behind it.
fn term_text(term: &[u8]) -> (String, bool) {
    let kind = TermType::of_term(term, ORDER);
    let rest = term.get(1..).unwrap_or_default();
    let from_mark = term.first().zip(kind.and_then(|kind| kind.bounds(ORDER)));
    let from_mark = from_mark.map_or(0, |(mark, bounds)| mark - bounds.first);
    match kind {
        Some(TermType::Null) => ("null".into(), from_mark > 0),
        Some(TermType::Bool) if from_mark == 0 => ("false".into(), false),
        Some(TermType::Bool) => ("true".into(), from_mark > 1),
        Some(TermType::Number) if rest.is_empty() => ("any number".into(), false),
        Some(TermType::String) if rest.is_empty() => ("any string".into(), false),
        Some(TermType::Array) if rest.is_empty() => ("any array".into(), false),
        Some(TermType::Object) if rest.is_empty() => ("any object".into(), false),
        Some(TermType::Number) if rest.len() >= 9 => {
            let bits = rest.first_chunk::<8>().map_or(0, |bits| u64::from_be_bytes(*bits));
            let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
            (f64::from_bits(bits).to_string(), rest[8] == 0x81 && rest.len() == 9)
        }
        Some(TermType::String) => {
            let end = rest.windows(2).position(|pair| pair[0] == 0 && pair[1] != 0xff);
            let bytes = &rest[..end.unwrap_or(rest.len())];
            let mut out = String::new();
            quote(&String::from_utf8_lossy(bytes).replace("\0\u{fffd}", "\0"), &mut out);
            (out, end.is_some_and(|end| rest[end + 1] != 0))
        }
        _ => {
            let hex: String = term.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            (format!("term {hex}"), false)
        }
    }
}

fn json(access: Option<&Access>, chosen: &Chosen<'_>) -> String {
    let mut out = String::from("{\"method\":");
    quote(chosen.method, &mut out);
    if let Some(access) = access {
        out.push_str(",\"filter\":");
        json_proposal(&access.filter, chosen, &mut out);
        let _ = write!(out, ",\"filterExact\":{}", access.filter_exact);
        let order = access.order.as_ref().map(order_text);
        let shortcut = Some(&access.shortcut).filter(|shortcut| **shortcut != Shortcut::None);
        for (name, value) in [("order", order), ("shortcut", shortcut.map(shortcut_text))] {
            if let Some(value) = value {
                let _ = write!(out, ",\"{name}\":");
                quote(&value, &mut out);
            }
        }
    }
    out.push_str(",\"figures\":{");
    for (i, (name, figure)) in chosen.figures.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        quote(name, &mut out);
        let _ = write!(out, ":{figure}");
    }
    out.push_str("}}");
    out
}

fn json_proposal(proposal: &Proposal, chosen: &Chosen<'_>, out: &mut String) {
    let (name, parts) = match proposal {
        Proposal::Everything => return out.push_str("\"everything\""),
        Proposal::Nothing => return out.push_str("\"nothing\""),
        Proposal::Leaf(leaf) => {
            out.push_str("{\"path\":");
            quote(&leaf.path.to_string(), out);
            out.push_str(",\"condition\":");
            quote(&condition(leaf), out);
            let used = chosen.used.contains(&&leaf.path);
            let _ = write!(out, ",\"exact\":{},\"used\":{used}}}", leaf.exact);
            return;
        }
        Proposal::All(parts) => ("all", parts),
        Proposal::Any(parts) => ("any", parts),
    };
    let _ = write!(out, "{{\"{name}\":[");
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        json_proposal(part, chosen, out);
    }
    out.push_str("]}");
}
