//! Entities of tables.
//!
//! An entity is the item `{"id":<RowKey>,"$id":<RowKey>,"$pk":<PartitionKey>,"<name>":{"$t":<type>,"$v":<value>},…}`. This
//! is a public contract: SQL queries see it, and other clients write it. 64-bit integers and moments are texts of 20
//! digits, so that their order is that of their values; a negative number has a minus sign in front.
//!
//! Names that an item needs for itself, and those that begin with `$`, are stored with `$$` in front, so that every name
//! can be used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_cluster::ContainerDefinition;
use orrery_doc::Value;

/// The database of all tables.
pub const DATABASE: &str = "TablesDB";

/// Where the parts of the key are in an item.
pub const PARTITION_KEY: &str = "$pk";
pub const ROW_KEY: &str = "id";
pub const ROW_KEY_COPY: &str = "$id";
/// The parts of a stored property.
pub const TYPE: &str = "$t";
pub const VALUE: &str = "$v";

/// Names that items need for themselves.
pub const TAKEN: [&str; 8] = ["id", "ttl", "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
pub const ESCAPE: &str = "$$";

/// Bytes of the two parts of a key.
pub const PARTITION_KEY_BYTES_MAX: usize = 2 * 1024;
pub const ROW_KEY_BYTES_MAX: usize = 255;
/// Properties of an entity besides its keys and its timestamp, and characters of their names.
pub const PROPERTIES_MAX: usize = 252;
pub const PROPERTY_NAME_CHARS_MAX: usize = 255;

/// The types, with the numbers that stand for them.
pub mod kind {
    pub const GUID: i64 = 0;
    pub const DOUBLE: i64 = 1;
    pub const STRING: i64 = 2;
    pub const BINARY: i64 = 5;
    pub const BOOLEAN: i64 = 8;
    pub const DATE_TIME: i64 = 9;
    pub const INT32: i64 = 16;
    pub const INT64: i64 = 18;
}

/// The first tick behind the year 9999.
pub const TICKS_END: i64 = 3_652_059 * 86_400 * 10_000_000;

/// Whether a container's key is that of tables.
pub fn is_table(definition: &ContainerDefinition) -> bool {
    let paths = &definition.key.paths;
    matches!(paths.as_slice(), [path] if path.to_pointer() == format!("/{PARTITION_KEY}"))
}

/// Whether a part of a key may not have this letter.
pub fn is_wrong_in_key(letter: char) -> bool {
    matches!(letter, '/' | '\\' | '#' | '?') || letter.is_control()
}

/// A guid in its usual form, in lower case.
pub fn guid(text: &str) -> Option<String> {
    let is_guid = text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_guid.then(|| text.to_ascii_lowercase())
}

/// A number as a text whose order is that of the numbers, as long as they are not negative.
pub fn padded(value: i64) -> String {
    let digits = value.unsigned_abs();
    if value < 0 { format!("-{digits:020}") } else { format!("{digits:020}") }
}

/// What is wrong with an item that is to be an entity.
pub fn check(item: Value<'_>) -> Result<(), String> {
    let object = item.as_object().ok_or_else(|| wrong("it is not an object"))?;
    let key = |name: &str, bytes_max: usize| match item.get(name).as_str() {
        None => Err(wrong(&format!("the property '{name}' must be a string"))),
        Some("") => Err(wrong(&format!("the property '{name}' must not be empty"))),
        Some(text) if text.len() > bytes_max => {
            Err(wrong(&format!("the property '{name}' is longer than {bytes_max} bytes")))
        }
        Some(text) if text.contains(is_wrong_in_key) => Err(wrong(&format!(
            "the property '{name}' contains one of the characters '/', '\\', '#', '?' or a control character"
        ))),
        Some(text) => Ok(text),
    };
    key(PARTITION_KEY, PARTITION_KEY_BYTES_MAX)?;
    let row_key = key(ROW_KEY, ROW_KEY_BYTES_MAX)?;
    if item.get(ROW_KEY_COPY).as_str() != Some(row_key) {
        return Err(wrong(&format!("the property '{ROW_KEY_COPY}' must be the same as '{ROW_KEY}'")));
    }
    let mut count = 0;
    for (name, value) in object.iter() {
        if matches!(name, PARTITION_KEY | ROW_KEY_COPY) || TAKEN.contains(&name) {
            continue;
        }
        check_name(name)?;
        check_value(name, value)?;
        count += 1;
    }
    match count {
        count if count > PROPERTIES_MAX => {
            Err(wrong(&format!("it has {count} properties, and {PROPERTIES_MAX} are allowed")))
        }
        _ => Ok(()),
    }
}

fn wrong(what: &str) -> String {
    format!("The input content is invalid because the item is not an entity of a table: {what}.")
}

fn check_name(name: &str) -> Result<(), String> {
    let own = name.strip_prefix(ESCAPE).unwrap_or(name);
    let shown: String = name.chars().take(64).collect();
    if name.starts_with('$') && own == name {
        return Err(wrong(&format!("the name '{shown}' begins with '$' and is none of its own")));
    }
    if own.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(wrong(&format!("the name '{shown}' begins with a digit")));
    }
    match own.is_empty() || own.chars().count() > PROPERTY_NAME_CHARS_MAX {
        true => Err(wrong(&format!("the name '{shown}' is empty or too long"))),
        false => Ok(()),
    }
}

fn check_value(name: &str, value: Value<'_>) -> Result<(), String> {
    let shown: String = name.chars().take(64).collect();
    let is_pair = value.as_object().is_some_and(|object| object.iter().count() == 2);
    let (Some(kind), held) = (value.get(TYPE).as_i64(), value.get(VALUE)) else {
        return Err(wrong(&format!("the property '{shown}' must be an object with '{TYPE}' and '{VALUE}'")));
    };
    if !is_pair || held.is_undefined() {
        return Err(wrong(&format!("the property '{shown}' must have '{TYPE}', '{VALUE}' and nothing else")));
    }
    match wanted(kind, held) {
        None => Ok(()),
        Some(wanted) => Err(wrong(&format!("the '{VALUE}' of the property '{shown}' must be {wanted}"))),
    }
}

/// What a value must be that is not what its type says; nothing if it is.
fn wanted(kind: i64, value: Value<'_>) -> Option<&'static str> {
    let text = value.as_str();
    let digits = || text.filter(|text| text.trim_start_matches('-').len() == 20)?.parse::<i64>().ok();
    let (is_right, wanted) = match kind {
        kind::GUID => (text.is_some_and(|text| guid(text).as_deref() == Some(text)), "a GUID in lower case"),
        kind::DOUBLE => {
            let is_named = matches!(text, Some("NaN" | "Infinity" | "-Infinity"));
            (is_named || value.as_f64().is_some(), "a number, 'NaN', 'Infinity' or '-Infinity'")
        }
        kind::STRING => (text.is_some(), "a string"),
        kind::BINARY => (text.is_some_and(|text| STANDARD.decode(text).is_ok()), "a string in base64"),
        kind::BOOLEAN => (value.as_bool().is_some(), "a boolean"),
        kind::DATE_TIME => (
            digits().is_some_and(|ticks| (0..TICKS_END).contains(&ticks)),
            "a string of 20 digits, the ticks of a time until the year 9999",
        ),
        kind::INT32 => {
            (value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()), "a whole number of 32 bits")
        }
        kind::INT64 => (
            digits().is_some_and(|number| text == Some(padded(number).as_str())),
            "a string of 20 digits, with a minus sign in front of negative numbers",
        ),
        _ => (false, "of one of the types 0, 1, 2, 5, 8, 9, 16 and 18"),
    };
    (!is_right).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use orrery_doc::json;

    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        check(json::parse(text.as_bytes(), 16).expect(text).root())
    }

    fn with(properties: &str) -> Result<(), String> {
        checked(&format!(r#"{{"id":"r","$id":"r","$pk":"p"{properties}}}"#))
    }

    #[test]
    fn entities_of_all_types_may_be_written() {
        for properties in [
            "",
            r#","a":{"$t":0,"$v":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#,
            r#","a":{"$t":1,"$v":1.5},"b":{"$t":1,"$v":"NaN"},"c":{"$t":1,"$v":2}"#,
            r#","a":{"$t":2,"$v":""},"$$id":{"$t":2,"$v":"mine"}"#,
            r#","a":{"$t":5,"$v":"AAE="},"b":{"$v":true,"$t":8}"#,
            r#","a":{"$t":9,"$v":"00639305639547455033"},"b":{"$t":16,"$v":-4}"#,
            r#","a":{"$t":18,"$v":"00000000005000000000"},"b":{"$t":18,"$v":"-00000000005000000000"}"#,
            r#","ttl":5"#,
        ] {
            assert_eq!(with(properties), Ok(()), "{properties}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (properties, wanted) in [
            (r#","Age":4"#, "'Age' must be an object"),
            (r#","Age":{"$t":16}"#, "'Age' must have"),
            (r#","Age":{"$t":16,"$v":1,"x":1}"#, "'Age' must have"),
            (r#","Age":{"$t":16,"$v":"1"}"#, "'Age' must be a whole number"),
            (r#","Age":{"$t":16,"$v":3000000000}"#, "'Age' must be a whole number"),
            (r#","Age":{"$t":3,"$v":1}"#, "'Age' must be of one of the types"),
            (r#","Age":{"$t":18,"$v":"5"}"#, "20 digits"),
            (r#","Age":{"$t":18,"$v":"-00000000000000000000"}"#, "20 digits"),
            (r#","Age":{"$t":9,"$v":"99999999999999999999"}"#, "20 digits"),
            (r#","Age":{"$t":0,"$v":"C9DA6455-213D-42C9-9A79-3E9149A57833"}"#, "GUID"),
            (r#","Age":{"$t":5,"$v":"*"}"#, "base64"),
            (r#","Age":{"$t":8,"$v":1}"#, "a boolean"),
            (r#","Age":{"$t":1,"$v":"1"}"#, "a number"),
            (r#","$x":{"$t":2,"$v":""}"#, "'$x' begins with '$'"),
            (r#","1x":{"$t":2,"$v":""}"#, "'1x' begins with a digit"),
            (r#","$$":{"$t":2,"$v":""}"#, "empty or too long"),
        ] {
            let said = with(properties).expect_err(properties);
            assert!(said.contains(wanted), "{said}");
        }
        for (text, wanted) in [
            ("[]", "not an object"),
            (r#"{"id":"r","$id":"r"}"#, "'$pk' must be a string"),
            (r#"{"id":"r","$id":"r","$pk":5}"#, "'$pk' must be a string"),
            (r#"{"id":"r","$id":"r","$pk":""}"#, "'$pk' must not be empty"),
            (r#"{"id":"r","$pk":"p"}"#, "'$id' must be the same"),
            (r#"{"id":"r","$id":"s","$pk":"p"}"#, "'$id' must be the same"),
            (r##"{"id":"r#","$id":"r#","$pk":"p"}"##, "'id' contains"),
        ] {
            let said = checked(text).expect_err(text);
            assert!(said.contains(wanted), "{said}");
        }
        let long = "k".repeat(256);
        let said = checked(&format!(r#"{{"id":"{long}","$id":"{long}","$pk":"p"}}"#)).expect_err("too long");
        assert!(said.contains("longer than 255"), "{said}");
        let many: String = (0..253).map(|place| format!(r#","p{place}":{{"$t":16,"$v":1}}"#)).collect();
        assert!(with(&many).expect_err("too many").contains("253 properties"));
    }
}
