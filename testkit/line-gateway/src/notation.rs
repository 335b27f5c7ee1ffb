//! Values as text: JSON, and for each type that JSON does not have a word with its parts in parentheses.
//!
//! ```text
//! 7  7.0  int32(7)  dec(1e000000000000000000000000004030)  date(-1)  ts(5 1)  oid(00…)  uuid(00…)  bin(0 ff)  min  max
//! ```

use orrery_doc::{Decimal128, Doc, DocBuilder, Typed, Value, json};

use crate::limits::DEPTH_MAX;
use crate::refusal::Refusal;

/// Reads all values of a line.
pub fn read_all(text: &str) -> Result<Vec<Doc>, Refusal> {
    let mut values = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut builder = DocBuilder::new();
        rest = read(rest, 0, &mut builder)?.trim_start();
        values.push(builder.finish());
    }
    Ok(values)
}

/// Reads one value and gives what follows it.
fn read<'t>(text: &'t str, depth: usize, out: &mut DocBuilder) -> Result<&'t str, Refusal> {
    if depth > DEPTH_MAX {
        return Err(wrong("is nested too deeply", text));
    }
    match text.as_bytes().first() {
        Some(b'{') => {
            out.begin_object();
            let rest = read_list(&text[1..], '}', |entry| {
                let (name, rest) = read_text(entry)?;
                let rest = rest
                    .trim_start()
                    .strip_prefix(':')
                    .ok_or_else(|| wrong("has a name without a value", rest))?;
                out.name(&name);
                read(rest.trim_start(), depth + 1, out)
            })?;
            out.end_object();
            Ok(rest)
        }
        Some(b'[') => {
            out.begin_array();
            let rest = read_list(&text[1..], ']', |entry| read(entry, depth + 1, out))?;
            out.end_array();
            Ok(rest)
        }
        Some(b'"') => {
            let (value, rest) = read_text(text)?;
            out.str(&value);
            Ok(rest)
        }
        _ => read_word(text, out),
    }
}

/// Reads entries with commas between them, up to and with the end.
fn read_list<'t>(
    text: &'t str,
    end: char,
    mut entry: impl FnMut(&'t str) -> Result<&'t str, Refusal>,
) -> Result<&'t str, Refusal> {
    let mut rest = text.trim_start();
    if let Some(rest) = rest.strip_prefix(end) {
        return Ok(rest);
    }
    loop {
        rest = entry(rest)?.trim_start();
        if let Some(rest) = rest.strip_prefix(end) {
            return Ok(rest);
        }
        rest = rest.strip_prefix(',').ok_or_else(|| wrong("lacks a comma", rest))?.trim_start();
    }
}

fn read_text(text: &str) -> Result<(String, &str), Refusal> {
    let mut is_escaped = false;
    let inside = text.strip_prefix('"').ok_or_else(|| wrong("is no text", text))?;
    let end = inside.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    let (quoted, rest) = text.split_at(end.ok_or_else(|| wrong("does not end", text))? + 2);
    let doc = json::parse(quoted.as_bytes(), 1).map_err(|_| wrong("is no text", quoted))?;
    Ok((doc.root().as_str().unwrap_or_default().to_owned(), rest))
}

fn read_word<'t>(text: &'t str, out: &mut DocBuilder) -> Result<&'t str, Refusal> {
    let end = text.find([',', ']', '}', ' ', '(']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if let Some(inside) = rest.strip_prefix('(') {
        let (parts, rest) = inside.split_once(')').ok_or_else(|| wrong("does not end", text))?;
        let parts: Vec<&str> = parts.split(' ').filter(|part| !part.is_empty()).collect();
        return read_typed(word, &parts, out).map(|()| rest).ok_or_else(|| wrong("is no value", text));
    }
    match word {
        "null" => out.null(),
        "true" | "false" => out.bool(word == "true"),
        "min" => out.min_key(),
        "max" => out.max_key(),
        word => match (word.parse(), word.parse::<f64>()) {
            (Ok(number), _) => out.int(number),
            (_, Ok(number)) if number.is_finite() => out.double(number),
            _ => return Err(wrong("is no value", word)),
        },
    };
    Ok(rest)
}

fn read_typed(word: &str, parts: &[&str], out: &mut DocBuilder) -> Option<()> {
    match (word, parts) {
        ("int32", [number]) => out.int32(number.parse().ok()?),
        ("date", [number]) => out.date(number.parse().ok()?),
        ("ts", [seconds, increment]) => out.timestamp(seconds.parse().ok()?, increment.parse().ok()?),
        ("oid", [hex]) => out.object_id(bytes(hex)?.try_into().ok()?),
        ("uuid", [hex]) => out.uuid(bytes(hex)?.try_into().ok()?),
        ("dec", [hex]) => out.decimal128(Decimal128::from_bytes(bytes(hex)?.try_into().ok()?)),
        ("bin", [subtype]) => out.binary(subtype.parse().ok()?, &[]),
        ("bin", [subtype, hex]) => out.binary(subtype.parse().ok()?, &bytes(hex)?),
        _ => return None,
    };
    Some(())
}

/// Appends a value as [`read_all`] reads it.
pub fn write(value: Value<'_>, out: &mut String) {
    match value {
        Value::Array(array) => {
            out.push('[');
            for (place, element) in array.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                write(element, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (place, (name, value)) in object.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                write_json(Value::Str(name), out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Double(number) if number.fract() == 0.0 => out.push_str(&format!("{number:.1}")),
        Value::Typed(typed) => out.push_str(&written(typed).unwrap_or_else(|| shown(value))),
        value => write_json(value, out),
    }
}

fn written(value: Typed<'_>) -> Option<String> {
    Some(match value {
        Typed::Int32(number) => format!("int32({number})"),
        Typed::Date(number) => format!("date({number})"),
        Typed::Timestamp { seconds, increment } => format!("ts({seconds} {increment})"),
        Typed::ObjectId(id) => format!("oid({})", hex(&id)),
        Typed::Uuid(id) => format!("uuid({})", hex(&id)),
        Typed::Decimal128(number) => format!("dec({})", hex(&number.to_bytes())),
        Typed::Binary { subtype, bytes } => format!("bin({subtype} {})", hex(bytes)),
        Typed::MinKey => "min".to_owned(),
        Typed::MaxKey => "max".to_owned(),
        // The notation has no words for the rest; other gateways may have stored it.
        _ => return None,
    })
}

fn shown(value: Value<'_>) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: Value<'_>, out: &mut String) {
    let mut text = Vec::new();
    json::write(value, &mut text);
    out.push_str(&String::from_utf8_lossy(&text));
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(|pair| if pair.len() == 2 { byte(pair) } else { None }).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn wrong(what: &str, text: &str) -> Refusal {
    let shown: String = text.chars().take(20).collect();
    Refusal::wrong(format!("the value at '{shown}' {what}"))
}
