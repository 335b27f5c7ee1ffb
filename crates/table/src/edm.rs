//! Typed properties, and the shape in which an entity is stored.
//!
//! The shape itself is [`orrery_gateway::shapes::entity`]'s, since other gateways write entities too.

use std::borrow::Cow;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_doc::{DocBuilder, Plain, Value};
use orrery_gateway::shapes::entity::ROW_KEY_COPY;
pub(crate) use orrery_gateway::shapes::entity::{
    PARTITION_KEY, ROW_KEY, TYPE, VALUE, guid, kind, padded, property_name, stored_name,
};

use crate::moment;

/// The value of a property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edm<'a> {
    Guid(Cow<'a, str>),
    Double(f64),
    String(Cow<'a, str>),
    /// As base64.
    Binary(Cow<'a, str>),
    Boolean(bool),
    /// Ticks since the year 1.
    DateTime(i64),
    Int32(i32),
    Int64(i64),
}

/// A value that is not what its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongValue;

impl<'a> Edm<'a> {
    /// Reads a value of a body: with the type that an annotation names, or that it shows by itself. Null is none.
    pub fn read(value: Value<'a>, annotated: Option<&str>) -> Result<Option<Edm<'a>>, WrongValue> {
        if value.is_null() {
            return Ok(None);
        }
        let Some(name) = annotated else { return Edm::untyped(value).map(Some) };
        let text = || value.as_str().ok_or(WrongValue);
        let edm = match name {
            "Edm.String" => Edm::String(text()?.into()),
            "Edm.Guid" => Edm::Guid(guid(text()?).ok_or(WrongValue)?.into()),
            "Edm.Binary" => Edm::Binary(binary(text()?).ok_or(WrongValue)?.into()),
            "Edm.DateTime" => Edm::DateTime(moment::parse(text()?).ok_or(WrongValue)?),
            "Edm.Boolean" => Edm::Boolean(match value.as_str() {
                Some(text) if text.eq_ignore_ascii_case("true") => true,
                Some(text) if text.eq_ignore_ascii_case("false") => false,
                Some(_) => return Err(WrongValue),
                None => value.as_bool().ok_or(WrongValue)?,
            }),
            "Edm.Int64" => Edm::Int64(whole(value)?),
            "Edm.Int32" => Edm::Int32(i32::try_from(whole(value)?).map_err(|_| WrongValue)?),
            "Edm.Double" => Edm::Double(match value.as_str() {
                Some("Infinity" | "INF") => f64::INFINITY,
                Some("-Infinity" | "-INF") => f64::NEG_INFINITY,
                Some("NaN") => f64::NAN,
                Some(text) => text.parse().map_err(|_| WrongValue)?,
                None => double_of(value).ok_or(WrongValue)?,
            }),
            _ => return Err(WrongValue),
        };
        Ok(Some(edm))
    }

    fn untyped(value: Value<'a>) -> Result<Edm<'a>, WrongValue> {
        match value {
            Value::Bool(value) => Ok(Edm::Boolean(value)),
            Value::Int(value) => i32::try_from(value).map(Edm::Int32).map_err(|_| WrongValue),
            Value::Double(value) => Ok(Edm::Double(value)),
            Value::Str(text) => Ok(Edm::String(text.into())),
            _ => Err(WrongValue),
        }
    }

    /// Writes the value as it is stored.
    pub fn store(&self, out: &mut DocBuilder) {
        out.begin_object();
        out.name(TYPE).int(self.kind());
        out.name(VALUE);
        match self {
            Edm::Guid(text) | Edm::String(text) | Edm::Binary(text) => out.str(text),
            Edm::Double(value) if value.is_finite() => out.double(*value),
            Edm::Double(value) => out.str(name_of(*value)),
            Edm::Boolean(value) => out.bool(*value),
            Edm::DateTime(ticks) => out.str(&padded(*ticks)),
            Edm::Int32(value) => out.int(i64::from(*value)),
            Edm::Int64(value) => out.str(&padded(*value)),
        };
        out.end_object();
    }

    /// Reads a stored value; none if it is not of the shape.
    pub fn stored(value: Value<'a>) -> Option<Edm<'a>> {
        let (kind, value) = (value.get(TYPE).as_i64()?, value.get(VALUE));
        Some(match kind {
            kind::GUID => Edm::Guid(value.as_str()?.into()),
            kind::STRING => Edm::String(value.as_str()?.into()),
            kind::BINARY => Edm::Binary(value.as_str()?.into()),
            kind::BOOLEAN => Edm::Boolean(value.as_bool()?),
            kind::DATE_TIME => Edm::DateTime(value.as_str()?.parse().ok()?),
            kind::INT32 => Edm::Int32(i32::try_from(value.as_i64()?).ok()?),
            kind::INT64 => Edm::Int64(value.as_str()?.parse().ok()?),
            kind::DOUBLE => Edm::Double(match value.as_str() {
                Some("NaN") => f64::NAN,
                Some("Infinity") => f64::INFINITY,
                Some("-Infinity") => f64::NEG_INFINITY,
                Some(_) => return None,
                None => value.as_f64()?,
            }),
            _ => return None,
        })
    }

    fn kind(&self) -> i64 {
        match self {
            Edm::Guid(_) => kind::GUID,
            Edm::Double(_) => kind::DOUBLE,
            Edm::String(_) => kind::STRING,
            Edm::Binary(_) => kind::BINARY,
            Edm::Boolean(_) => kind::BOOLEAN,
            Edm::DateTime(_) => kind::DATE_TIME,
            Edm::Int32(_) => kind::INT32,
            Edm::Int64(_) => kind::INT64,
        }
    }

    /// The type that an answer has to name, because the value does not show it.
    pub fn told_type(&self) -> Option<&'static str> {
        match self {
            Edm::Guid(_) => Some("Edm.Guid"),
            Edm::Binary(_) => Some("Edm.Binary"),
            Edm::DateTime(_) => Some("Edm.DateTime"),
            Edm::Int64(_) => Some("Edm.Int64"),
            Edm::Double(value) if !value.is_finite() => Some("Edm.Double"),
            Edm::Double(_) | Edm::String(_) | Edm::Boolean(_) | Edm::Int32(_) => None,
        }
    }

    /// Writes the value as an answer shows it.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Edm::Guid(text) | Edm::String(text) | Edm::Binary(text) => orrery_doc::json::write_str(text, out),
            Edm::Double(value) if value.is_finite() => write_double(*value, out),
            Edm::Double(value) => orrery_doc::json::write_str(name_of(*value), out),
            Edm::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Edm::DateTime(ticks) => {
                out.push(b'"');
                moment::write(*ticks, out);
                out.push(b'"');
            }
            Edm::Int32(value) => write_plainly(format_args!("{value}"), out),
            Edm::Int64(value) => write_plainly(format_args!("\"{value}\""), out),
        }
    }
}

/// Writes both parts of the key as an item has them.
pub(crate) fn store_key(out: &mut DocBuilder, partition_key: &str, row_key: &str) {
    out.name(ROW_KEY).str(row_key);
    out.name(ROW_KEY_COPY).str(row_key);
    out.name(PARTITION_KEY).str(partition_key);
}

fn binary(text: &str) -> Option<&str> {
    STANDARD.decode(text).ok().map(|_| text)
}

/// Some clients write a large double without a point, as an integer that 64 bits do not hold.
fn double_of(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Typed(wide) => match wide.plain() {
            Plain::Double(value) => Some(value),
            _ => None,
        },
        value => value.as_f64(),
    }
}

fn whole(value: Value<'_>) -> Result<i64, WrongValue> {
    match value.as_str() {
        Some(text) => text.trim().parse().map_err(|_| WrongValue),
        None => value.as_i64().ok_or(WrongValue),
    }
}

fn name_of(value: f64) -> &'static str {
    match value {
        value if value.is_nan() => "NaN",
        value if value < 0.0 => "-Infinity",
        _ => "Infinity",
    }
}

/// A number with a decimal point: without one, clients take it for a whole one.
fn write_double(value: f64, out: &mut Vec<u8>) {
    let start = out.len();
    write_plainly(format_args!("{value:?}"), out);
    let digits = out[start..].iter().position(|byte| *byte == b'e').map(|length| start + length);
    if let Some(end) = digits.filter(|end| !out[start..*end].contains(&b'.')) {
        out.splice(end..end, *b".0");
    }
}

fn write_plainly(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    out.write_fmt(text).expect("memory takes what is written to it");
}

#[cfg(test)]
mod tests {
    use orrery_doc::json;

    use super::*;

    /// What is stored of a property of a body, and what an answer shows of it.
    fn round(property: &str) -> Result<(String, String), WrongValue> {
        let body = json::parse_wide(format!("{{{property}}}").as_bytes(), 8).expect("JSON");
        let root = body.root();
        let annotated = root.get("p@odata.type").as_str();
        let Some(edm) = Edm::read(root.get("p"), annotated)? else { return Ok(Default::default()) };
        let mut builder = DocBuilder::new();
        edm.store(&mut builder);
        let stored = builder.finish();
        let (mut text, mut shown) = (Vec::new(), Vec::new());
        json::write(stored.root(), &mut text);
        Edm::stored(stored.root()).expect("it was just stored").write_json(&mut shown);
        Ok((String::from_utf8(text).expect("UTF-8"), String::from_utf8(shown).expect("UTF-8")))
    }

    #[test]
    fn values_are_stored_in_the_shape_and_shown_as_they_came() {
        for (property, stored, shown) in [
            (r#""p":5"#, r#"{"$t":16,"$v":5}"#, "5"),
            (r#""p":5.0"#, r#"{"$t":1,"$v":5.0}"#, "5.0"),
            (r#""p":1e300"#, r#"{"$t":1,"$v":1e300}"#, "1.0e300"),
            (r#""p":"x""#, r#"{"$t":2,"$v":"x"}"#, r#""x""#),
            (r#""p":true"#, r#"{"$t":8,"$v":true}"#, "true"),
            (r#""p":"False","p@odata.type":"Edm.Boolean""#, r#"{"$t":8,"$v":false}"#, "false"),
            (r#""p":"5","p@odata.type":"Edm.Int64""#, r#"{"$t":18,"$v":"00000000000000000005"}"#, r#""5""#),
            (
                r#""p@odata.type":"Edm.Int64","p":"-5""#,
                r#"{"$t":18,"$v":"-00000000000000000005"}"#,
                r#""-5""#,
            ),
            (r#""p":"NaN","p@odata.type":"Edm.Double""#, r#"{"$t":1,"$v":"NaN"}"#, r#""NaN""#),
            (r#""p":3,"p@odata.type":"Edm.Double""#, r#"{"$t":1,"$v":3.0}"#, "3.0"),
            (r#""p":"AAE=","p@odata.type":"Edm.Binary""#, r#"{"$t":5,"$v":"AAE="}"#, r#""AAE=""#),
            (
                r#""p":"2024-01-01T00:00:00Z","p@odata.type":"Edm.DateTime""#,
                r#"{"$t":9,"$v":"00638396640000000000"}"#,
                r#""2024-01-01T00:00:00.0000000Z""#,
            ),
            (
                r#""p":100000000000000000000,"p@odata.type":"Edm.Double""#,
                r#"{"$t":1,"$v":100000000000000000000.0}"#,
                "1.0e20",
            ),
            (r#""p":null"#, "", ""),
        ] {
            let (was_stored, was_shown) = round(property).expect(property);
            assert_eq!(was_shown, shown, "{property}");
            // A whole double may lose its point in JSON: the type keeps what it is.
            assert_eq!(was_stored.replace(".0}", "}"), stored.replace(".0}", "}"), "{property}");
        }
    }

    #[test]
    fn values_that_are_not_of_their_type_are_refused() {
        for property in [
            r#""p":3000000000"#,
            r#""p":9223372036854775808"#,
            r#""p":-100000000000000000000"#,
            r#""p":9223372036854775808,"p@odata.type":"Edm.Int64""#,
            r#""p":[1]"#,
            r#""p":{}"#,
            r#""p":"x","p@odata.type":"Edm.Int64""#,
            r#""p":"9223372036854775808","p@odata.type":"Edm.Int64""#,
            r#""p":"x","p@odata.type":"Edm.Guid""#,
            r#""p":"*","p@odata.type":"Edm.Binary""#,
            r#""p":"x","p@odata.type":"Edm.Else""#,
            r#""p":"soon","p@odata.type":"Edm.DateTime""#,
        ] {
            assert_eq!(round(property), Err(WrongValue), "{property}");
        }
    }

    #[test]
    fn padded_numbers_that_are_not_negative_keep_their_order() {
        let numbers = [0, 1, 9, 10, 99, i64::from(i32::MAX), i64::MAX];
        assert!(numbers.windows(2).all(|pair| padded(pair[0]) < padded(pair[1])));
        assert!(padded(-1) < padded(0) && padded(i64::MIN) < padded(0));
    }
}
