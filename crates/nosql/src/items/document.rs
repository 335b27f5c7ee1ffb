//! Items as clients send them: JSON text or its binary form, checked and freed of what the server adds.

use orrery_cluster::limits::{ID_BYTES_MAX, ITEM_BYTES_MAX, ITEM_ID_BYTES_MAX, JSON_DEPTH_MAX};
use orrery_cluster::store::{Item, ItemId, Target};
use orrery_doc::{Doc, DocBuilder, ObjectRef, Value, json};

use crate::binary_json::{self, BinaryJsonErrorKind};
use crate::errors::{Own, Refusal};
use crate::items::render::SYSTEM_PROPERTIES;

const _: () = assert!(ID_BYTES_MAX <= ITEM_ID_BYTES_MAX);

/// A document that may be stored.
#[derive(Debug)]
pub(crate) struct ItemBody {
    pub id: ItemId,
    pub doc: Doc,
}

impl ItemBody {
    /// Reads the body of a create, upsert or replace.
    pub fn parse(body: &[u8]) -> Result<ItemBody, Refusal> {
        let doc = parse_any(body)?;
        let object = doc.root().as_object().ok_or_else(not_an_object)?;
        let id = check_id(object.get("id"))?;
        let has_system = SYSTEM_PROPERTIES.iter().any(|name| object.contains(name));
        let doc = if has_system { without_system(object, doc.bytes().len()) } else { doc };
        // The text is at least as long as the document that it stands for, but for exotic numbers,
        // which the partition measures.
        if body.len() > ITEM_BYTES_MAX || binary_json::is_binary(body) {
            check_size(&doc)?;
        }
        Ok(ItemBody { id, doc })
    }

    /// Takes a document out of a larger one, as batches carry them.
    pub fn from_value(value: Value<'_>) -> Result<ItemBody, Refusal> {
        let object = value.as_object().ok_or_else(not_an_object)?;
        let id = check_id(object.get("id"))?;
        let doc = without_system(object, 256);
        check_size(&doc)?;
        Ok(ItemBody { id, doc })
    }
}

/// Reads JSON in either form.
pub(crate) fn parse_any(body: &[u8]) -> Result<Doc, Refusal> {
    if binary_json::is_binary(body) {
        return binary_json::decode(body, JSON_DEPTH_MAX).map_err(|error| match error.kind {
            BinaryJsonErrorKind::TooLarge => Own::TooLarge.into(),
            _ => Refusal::bad_request(format!("The input content is invalid: {error}.")),
        });
    }
    json::parse(body, JSON_DEPTH_MAX)
        .map_err(|error| Refusal::bad_request(format!("The input content is invalid: {error}.")))
}

/// An id may be any text without the two characters that the documentation forbids. Not all of them can be named in a path;
/// the router knows which.
fn check_id(id: Value<'_>) -> Result<ItemId, Refusal> {
    let id = match id {
        Value::Undefined => {
            return Err(Refusal::bad_request(
                "The input content is invalid because the required properties - 'id; ' - are missing",
            ));
        }
        Value::Str(id) => id,
        _ => {
            return Err(Refusal::bad_request(
                "The input content is invalid: the property 'id' must be a string.",
            ));
        }
    };
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        let shown: String = id.chars().take(32).collect();
        return Err(Refusal::bad_request(format!(
            "The input name '{shown}' is invalid. Ensure to provide a unique non-empty string less than '{}' \
             characters.",
            ID_BYTES_MAX + 1
        )));
    }
    if id.contains(['/', '\\']) {
        return Err(Refusal::bad_request("The input id contains one of the characters '/', '\\'."));
    }
    Ok(ItemId::new(id).expect("the limit of the service is below that of the store"))
}

/// The item that a client names by its id. No item has a longer one than the store keeps.
pub(crate) fn target(id: &str) -> Result<Target, Refusal> {
    ItemId::new(id).map(Target::Id).map_err(|_| Own::NotFound.into())
}

/// The id of a stored item, which its document tells.
pub(crate) fn stored_id(item: &Item) -> ItemId {
    ItemId::new(item.doc.root().get("id").as_str().unwrap_or_default()).unwrap_or_default()
}

fn without_system(object: ObjectRef<'_>, capacity: usize) -> Doc {
    let mut builder = DocBuilder::with_capacity(capacity);
    builder.begin_object();
    for (name, value) in object.iter().filter(|(name, _)| !SYSTEM_PROPERTIES.contains(name)) {
        builder.field(name, value);
    }
    builder.end_object();
    builder.finish()
}

fn check_size(doc: &Doc) -> Result<(), Refusal> {
    if json::size(doc.root()) > ITEM_BYTES_MAX { Err(Own::TooLarge.into()) } else { Ok(()) }
}

fn not_an_object() -> Refusal {
    Refusal::bad_request("The input content is invalid: an item must be a JSON object.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn status(body: &str) -> u16 {
        ItemBody::parse(body.as_bytes()).map_or_else(|refusal| refusal.wire().status.as_u16(), |_| 200)
    }

    #[test]
    fn system_properties_are_not_stored() {
        let body = br#"{"id":"a","_rid":"x","_self":"x","n":1,"_etag":"x","_attachments":"x","_ts":1,"_lsn":2,"_own":3}"#;
        let item = ItemBody::parse(body).expect("an item");
        assert_eq!(item.id, "a".into());
        assert_eq!(format!("{:?}", item.doc), r#"{"id":"a","n":1,"_own":3}"#);
    }

    #[test]
    fn binary_bodies_are_read_as_text_is() {
        let item = ItemBody::parse(&[0x80, 0xEA, 5, 0x2C, 0x81, b'a', 0x3B, 0x07]).expect("an item");
        assert_eq!(format!("{:?}", item.doc), r#"{"id":"a","type":7}"#);
    }

    #[test]
    fn bodies_that_are_no_items_are_refused() {
        for body in ["", "[]", "1", "{", "{}", r#"{"id":1}"#, r#"{"id":null}"#, r#"{"Id":"a"}"#, "\u{0}"] {
            assert_eq!(status(body), 400, "{body}");
        }
        assert_eq!(status(&format!("{{\"id\":\"a\",\"x\":{}{}}}", "[".repeat(128), "]".repeat(128))), 400);
        assert_eq!(status(&format!("{{\"id\":\"a\",\"x\":{}{}}}", "[".repeat(127), "]".repeat(127))), 200);
    }

    #[test]
    fn ids_have_their_rules() {
        for (id, wanted) in [
            ("a", 200),
            (" a", 200),
            ("a b", 200),
            ("Item@1-é", 200),
            ("", 400),
            ("a ", 200),
            ("a\\n", 200),
            ("a/b", 400),
            ("a\\\\b", 400),
            ("a?b", 200),
            ("a#b", 200),
            ("a\\b\\t%20", 200),
            ("a\\C", 400),
        ] {
            assert_eq!(status(&format!("{{\"id\":\"{id}\"}}")), wanted, "{id}");
        }
        let long = |length: usize| format!("{{\"id\":\"{}\"}}", "i".repeat(length));
        assert_eq!(status(&long(1_023)), 200);
        assert_eq!(status(&long(1_024)), 400);
    }

    #[test]
    fn two_megabytes_are_the_limit() {
        let frame = r#"{"id":"a","x":""}"#.len();
        let sized = |bytes: usize| format!("{{\"id\":\"a\",\"x\":\"{}\"}}", "x".repeat(bytes - frame));
        assert_eq!(status(&sized(ITEM_BYTES_MAX)), 200);
        assert_eq!(status(&sized(ITEM_BYTES_MAX + 1)), 413);
        // Blanks and system properties do not count.
        assert_eq!(status(&format!("  {}", sized(ITEM_BYTES_MAX))), 200);
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = ItemBody::parse(&body);
        }

        #[test]
        fn no_id_panics(id in "\\PC{0,20}") {
            let _ = check_id(Value::Str(&id));
        }
    }
}
