//! A plan in words and as JSON: what the indexes offer to a query and which way was taken.

use std::fmt::Write as _;

use super::path::{IndexPath, IndexStep};
use super::proposal::{Leaf, Proposal};
use super::span::{Span, after_prefix, is_whole_term};
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
    if let [0x50, _, ..] = span.lower.as_slice()
        && after_prefix(&span.lower) == span.upper
    {
        return format!("starts with {}", term_text(&span.lower).0);
    }
    let starts_type = matches!(span.lower.as_slice(), [mark] if mark & 0x0f == 0);
    let ends_type = matches!(span.upper.as_slice(), [mark] if mark & 0x0f == 0);
    let mut bounds = Vec::new();
    if !starts_type || ends_type {
        let (value, behind) = term_text(&span.lower);
        bounds.push(format!("{} {value}", if behind { ">" } else { ">=" }));
    }
    if !ends_type || (starts_type && span.upper != [0x90]) {
        let (value, behind) = term_text(&span.upper);
        bounds.push(format!("{} {value}", if behind { "<=" } else { "<" }));
    }
    bounds.join(" and ")
}

/// The value of a bound as a person would write it, and whether the bound lies just behind it.
fn term_text(term: &[u8]) -> (String, bool) {
    match term {
        [0x20 | 0x21] => ("null".into(), term == [0x21]),
        [0x30] => ("false".into(), false),
        [0x31 | 0x32] => ("true".into(), term == [0x32]),
        [0x40] => ("any number".into(), false),
        [0x50] => ("any string".into(), false),
        [0x70] => ("any array".into(), false),
        [0x80] => ("any object".into(), false),
        [0x40, number @ ..] if number.len() >= 9 => {
            let bits = number.first_chunk::<8>().map_or(0, |bits| u64::from_be_bytes(*bits));
            let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
            (f64::from_bits(bits).to_string(), number[8] == 0x81 && number.len() == 9)
        }
        [0x50, text @ ..] => {
            let end = text.windows(2).position(|pair| pair[0] == 0 && pair[1] != 0xff);
            let bytes = &text[..end.unwrap_or(text.len())];
            let mut out = String::new();
            quote(&String::from_utf8_lossy(bytes).replace("\0\u{fffd}", "\0"), &mut out);
            (out, end.is_some_and(|end| text[end + 1] != 0))
        }
        term => {
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
