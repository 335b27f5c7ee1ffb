//! The body of a write: an entity as JSON, turned into the item that is stored.

use orrery_doc::{Doc, DocBuilder, Value, json};
use orrery_gateway::shapes::entity::{
    PARTITION_KEY_BYTES_MAX, PROPERTIES_MAX, PROPERTY_NAME_CHARS_MAX, ROW_KEY_BYTES_MAX, TYPE_OF, is_own,
    is_wrong_in_key,
};

use crate::edm::{self, Edm};
use crate::errors::{ONE_INPUT, Own, Refusal};
use crate::limits::BODY_DEPTH_MAX;

/// An entity that may be stored.
#[derive(Debug)]
pub(crate) struct Body {
    pub partition_key: String,
    pub row_key: String,
    /// The item.
    pub doc: Doc,
}

impl Body {
    /// Reads a body. The address may name the key; then the body need not.
    pub fn read(text: &[u8], address: Option<(&str, &str)>) -> Result<Body, Refusal> {
        let invalid = || Refusal::invalid(ONE_INPUT);
        let body = json::parse_wide(text, BODY_DEPTH_MAX).map_err(|_| invalid())?;
        let object = body.root().as_object().ok_or_else(invalid)?;
        let type_of = |name: &str| match object.get(&format!("{name}{TYPE_OF}")) {
            Value::Undefined | Value::Null => Ok(None),
            Value::Str(text) => Ok(Some(text)),
            _ => Err(invalid()),
        };
        let own = |name: &str| match (object.get(name), type_of(name)?) {
            (Value::Undefined | Value::Null, _) => Ok(None),
            (Value::Str(text), None | Some("Edm.String")) => Ok(Some(text)),
            _ => Err(invalid()),
        };
        let (partition_key, row_key) = match (address, own("PartitionKey")?, own("RowKey")?) {
            // Of two keys the address is right: it is what the client was allowed to write to.
            (Some((partition_key, row_key)), ..) => (partition_key, row_key),
            (None, Some(partition_key), Some(row_key)) => (partition_key, row_key),
            _ => return Err(Own::NoKey.into()),
        };
        check_key(partition_key, row_key)?;
        let mut doc = DocBuilder::with_capacity(text.len() + 128);
        doc.begin_object();
        let mut count = 0;
        for (name, value) in object.iter() {
            if is_own(name) {
                continue;
            }
            let Some(edm) = Edm::read(value, type_of(name)?)? else { continue };
            if name.is_empty() || name.chars().count() > PROPERTY_NAME_CHARS_MAX {
                return Err(invalid());
            }
            if name.starts_with(|first: char| first.is_ascii_digit()) {
                return Err(Own::BadPropertyName.into());
            }
            count += 1;
            doc.name(&edm::stored_name(name));
            edm.store(&mut doc);
        }
        if count > PROPERTIES_MAX {
            return Err(Own::TooManyProperties.into());
        }
        edm::store_key(&mut doc, partition_key, row_key);
        doc.end_object();
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        Ok(Body { partition_key, row_key, doc: doc.finish() })
    }
}

/// Refuses keys that no entity may have.
fn check_key(partition_key: &str, row_key: &str) -> Result<(), Refusal> {
    if partition_key.is_empty() || row_key.is_empty() {
        return Err(Own::NoKey.into());
    }
    let is_too_long = partition_key.len() > PARTITION_KEY_BYTES_MAX || row_key.len() > ROW_KEY_BYTES_MAX;
    if is_too_long || row_key.contains(is_wrong_in_key) || partition_key.contains(is_wrong_in_key) {
        return Err(Refusal::invalid(ONE_INPUT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, u16> {
        let body = Body::read(text.as_bytes(), None).map_err(|refusal| refusal.wire().status.as_u16())?;
        let mut out = Vec::new();
        json::write(body.doc.root(), &mut out);
        Ok(String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn an_entity_becomes_the_item_that_sql_sees() {
        assert_eq!(
            read(
                r#"{"PartitionKey":"p","RowKey":"r","Name":"x","L":"5","L@odata.type":"Edm.Int64","none":null,"id":"mine","odata.etag":"e","Timestamp":"t"}"#
            ),
            Ok(r#"{"Name":{"$t":2,"$v":"x"},"L":{"$t":18,"$v":"00000000000000000005"},"$$id":{"$t":2,"$v":"mine"},"id":"r","$id":"r","$pk":"p"}"#.into())
        );
    }

    #[test]
    fn what_is_no_entity_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"RowKey":"r"}"#,
            r#"{"PartitionKey":"p"}"#,
            r#"{"PartitionKey":"","RowKey":"r"}"#,
            r#"{"PartitionKey":5,"RowKey":"r"}"#,
            r#"{"PartitionKey":"a/b","RowKey":"r"}"#,
            r#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.Binary","RowKey":"r"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","1x":1}"#,
            r#"{"PartitionKey":"p","RowKey":"r","x":[]}"#,
            r#"{"PartitionKey":"p","RowKey":"r","x":1,"x@odata.type":5}"#,
            r#"{"PartitionKey":"p","PartitionKey@odata.type":[],"RowKey":"r"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","":1}"#,
        ] {
            assert_eq!(read(text), Err(400), "{text}");
        }
        let many: String = (0..253).map(|place| format!(",\"p{place}\":1")).collect();
        assert_eq!(read(&format!(r#"{{"PartitionKey":"p","RowKey":"r"{many}}}"#)), Err(400));
        let long = "k".repeat(256);
        assert_eq!(read(&format!(r#"{{"PartitionKey":"p","RowKey":"{long}"}}"#)), Err(400));
    }

    #[test]
    fn the_address_decides_the_key() {
        let body = Body::read(br#"{"PartitionKey":"other","x":1}"#, Some(("p", "r"))).expect("an entity");
        assert_eq!((body.partition_key.as_str(), body.row_key.as_str()), ("p", "r"));
        assert_eq!(body.doc.root().get("$pk").as_str(), Some("p"));
        assert!(
            Body::read(br#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.Guid"}"#, Some(("p", "r")))
                .is_err()
        );
    }
}
