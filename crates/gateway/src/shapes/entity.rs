//! Entities of tables.
//!
//! An entity is the item `{"id":<RowKey>,"$id":<RowKey>,"$pk":<PartitionKey>,"<name>":{"$t":<type>,"$v":<value>},…}`. This
//! is a public contract: SQL queries see it, and other clients write it. 64-bit integers and moments are texts of 20
//! digits, so that their order is that of their values; a negative number has a minus sign in front.
//!
//! Names that an item needs for itself, and those that begin with `$`, are stored with `$$` in front, so that every name
//! can be used.

use std::borrow::Cow;

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
const TAKEN: [&str; 8] = ["id", "ttl", "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
const ESCAPE: &str = "$$";

/// What an entity calls its keys and the time of its last write.
const OWN: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];
/// What the names of annotations begin and end with, which stand among the properties of an entity.
const ANNOTATION: &str = "odata.";
pub const TYPE_OF: &str = "@odata.type";

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

/// Why a merge is refused: the entity would have so many properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", wrong(&format!("it has {} properties, and {PROPERTIES_MAX} are allowed", .0)))]
pub struct TooManyProperties(usize);

/// Whether a container's key is that of tables.
pub fn is_table(definition: &ContainerDefinition) -> bool {
    let paths = &definition.key.paths;
    matches!(paths.as_slice(), [path] if path.to_pointer() == format!("/{PARTITION_KEY}"))
}

/// Whether a part of a key may not have this letter.
pub fn is_wrong_in_key(letter: char) -> bool {
    matches!(letter, '/' | '\\' | '#' | '?') || letter.is_control()
}

/// Whether entities have a meaning of their own for a name, so that none of their properties can have it.
pub fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with(ANNOTATION) || name.ends_with(TYPE_OF)
}

/// The name under which a property is stored.
pub fn stored_name(name: &str) -> Cow<'_, str> {
    match is_escaped(name) {
        true => Cow::Owned(format!("{ESCAPE}{name}")),
        false => Cow::Borrowed(name),
    }
}

/// The property that a stored name stands for; none for what belongs to the item itself, and for names that no property is
/// stored under.
pub fn property_name(stored: &str) -> Option<&str> {
    let name = stored.strip_prefix(ESCAPE).unwrap_or(stored);
    // Each property has one stored name, or two of them would be shown under the same name.
    let is_stored_so = is_escaped(name) == (name.len() < stored.len());
    (is_stored_so && !is_own(name)).then_some(name)
}

fn is_escaped(name: &str) -> bool {
    TAKEN.contains(&name) || name.starts_with('$')
}

/// What an item has besides its keys and what every item has.
fn properties(item: Value<'_>) -> impl Iterator<Item = (&str, Value<'_>)> {
    let all = item.as_object().into_iter().flat_map(|object| object.iter());
    all.filter(|(name, _)| !matches!(*name, PARTITION_KEY | ROW_KEY_COPY) && !TAKEN.contains(name))
}

/// Refuses an item with more properties than an entity may have.
pub fn check_count(item: Value<'_>) -> Result<(), TooManyProperties> {
    match properties(item).count() {
        count if count > PROPERTIES_MAX => Err(TooManyProperties(count)),
        _ => Ok(()),
    }
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
    item.as_object().ok_or_else(|| wrong("it is not an object"))?;
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
    for (name, value) in properties(item) {
        check_name(name)?;
        check_value(name, value)?;
    }
    check_count(item).map_err(|refusal| refusal.to_string())
}

fn wrong(what: &str) -> String {
    format!("The input content is invalid because the item is not an entity of a table: {what}.")
}

fn check_name(stored: &str) -> Result<(), String> {
    let name = stored.strip_prefix(ESCAPE).unwrap_or(stored);
    let is_escaped_name = name.len() < stored.len();
    let shown: String = stored.chars().take(64).collect();
    let is_wrong = |why: &str| Err(wrong(&format!("the name '{shown}' {why}")));
    if stored.starts_with('$') && !is_escaped_name {
        return is_wrong("begins with '$' and is not one of the item's own properties");
    }
    if name.is_empty() || name.chars().count() > PROPERTY_NAME_CHARS_MAX {
        return is_wrong("is empty or too long");
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return is_wrong("begins with a digit");
    }
    if is_own(name) {
        return is_wrong("is not one of a property: answers tell the key, the time or a type under it");
    }
    match property_name(stored) {
        None => is_wrong(&format!("begins with '{ESCAPE}', and '{name}' needs no escape")),
        Some(_) => Ok(()),
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
    fn every_name_can_be_used_and_is_stored_in_one_way() {
        for name in ["id", "ttl", "_ts", "$pk", "$", "$$", "$$id", "Name", "etag", "rid", "odata", "x@odata"]
        {
            let stored = stored_name(name);
            assert_eq!(property_name(&stored), Some(name), "{name}");
            assert_eq!(with(&format!(r#","{stored}":{{"$t":16,"$v":1}}"#)), Ok(()), "{name}");
        }
        for none in [
            "id",
            "$id",
            "$pk",
            "_etag",
            "$$Name",
            "PartitionKey",
            "$$Timestamp",
            "odata.etag",
            "x@odata.type",
        ] {
            assert_eq!(property_name(none), None, "{none}");
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
            (r#","PartitionKey":{"$t":2,"$v":"other"}"#, "'PartitionKey' is not one of a property"),
            (r#","RowKey":{"$t":2,"$v":"other"}"#, "'RowKey' is not one of a property"),
            (r#","Timestamp":{"$t":9,"$v":"00639305639547455033"}"#, "'Timestamp' is not one of a property"),
            (r#","$$PartitionKey":{"$t":2,"$v":"other"}"#, "'$$PartitionKey' is not one of a property"),
            (r#","odata.etag":{"$t":2,"$v":"x"}"#, "'odata.etag' is not one of a property"),
            (r#","$$odata.etag":{"$t":2,"$v":"x"}"#, "'$$odata.etag' is not one of a property"),
            (r#","X@odata.type":{"$t":2,"$v":"Edm.Guid"}"#, "'X@odata.type' is not one of a property"),
            (r#","$$Name":{"$t":2,"$v":""}"#, "'Name' needs no escape"),
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
