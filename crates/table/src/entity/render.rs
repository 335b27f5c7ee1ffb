//! Entities as the JSON that clients see, in three levels of detail.

use orrery_doc::{Value, json};

use super::encode_key;
use crate::edm::{self, Edm};
use crate::gateway::Call;
use crate::metadata::Metadata;
use crate::moment;

/// Writes entities of one table.
pub(crate) struct Renderer<'a> {
    pub(super) metadata: Metadata,
    pub(super) base: &'a str,
    pub(super) account: &'a str,
    pub(super) table: &'a str,
    /// Names that the client wants; all if it does not say.
    pub(super) selected: Option<&'a [String]>,
}

impl<'a> Renderer<'a> {
    pub fn new(call: &Call<'a>, table: &'a str, selected: Option<&'a [String]>) -> Renderer<'a> {
        Renderer { metadata: call.metadata, base: call.base, account: call.account, table, selected }
    }

    /// An entity that is an answer by itself.
    pub fn single(&self, item: &Value<'_>, written: u64, out: &mut Vec<u8>) {
        out.push(b'{');
        if self.metadata != Metadata::None {
            let Renderer { base, table, .. } = self;
            push(out, "odata.metadata", &format!("{base}{table}/$metadata#{table}/@Element"));
        }
        self.fields(item, written, out);
        out.push(b'}');
    }

    /// What stands in front of a list.
    pub fn head_of_list(&self, out: &mut Vec<u8>) {
        if self.metadata != Metadata::None {
            push(out, "odata.metadata", &format!("{}$metadata#{}", self.base, self.table));
        }
    }

    /// One of a list.
    pub fn row(&self, item: &Value<'_>, written: u64, out: &mut Vec<u8>) {
        out.push(b'{');
        self.fields(item, written, out);
        out.push(b'}');
    }

    fn fields(&self, item: &Value<'_>, written: u64, out: &mut Vec<u8>) {
        let text = |name: &str| item.get(name).as_str().unwrap_or_default();
        let (partition_key, row_key) = (text(edm::PARTITION_KEY), text(edm::ROW_KEY));
        if self.metadata == Metadata::Full {
            let link = format!(
                "{}(PartitionKey='{}',RowKey='{}')",
                self.table,
                encode_key(partition_key),
                encode_key(row_key)
            );
            push(out, "odata.type", &format!("{}.{}", self.account, self.table));
            push(out, "odata.id", &format!("{}{link}", self.base));
            push(out, "odata.editLink", &link);
        }
        if self.metadata != Metadata::None {
            push(out, "odata.etag", &moment::etag_of_written(written));
        }
        if self.wants("PartitionKey") {
            push(out, "PartitionKey", partition_key);
        }
        if self.wants("RowKey") {
            push(out, "RowKey", row_key);
        }
        for (stored, value) in item.as_object().into_iter().flat_map(|object| object.iter()) {
            let Some(name) = edm::property_name(stored).filter(|name| self.wants(name)) else { continue };
            // What another client has stored in another shape is none of the entity's properties.
            let Some(value) = Edm::stored(value) else { continue };
            if let Some(told) = value.told_type().filter(|_| self.metadata != Metadata::None) {
                json::write_str(name, out);
                // The name goes on where its quote is.
                out.pop();
                out.extend_from_slice(b"@odata.type\":");
                json::write_str(told, out);
                out.push(b',');
            }
            json::write_str(name, out);
            out.push(b':');
            value.write_json(out);
            out.push(b',');
        }
        if self.wants("Timestamp") {
            if self.metadata == Metadata::Full {
                push(out, "Timestamp@odata.type", "Edm.DateTime");
            }
            out.extend_from_slice(b"\"Timestamp\":\"");
            moment::write(moment::ticks_of_written(written), out);
            out.extend_from_slice(b"\",");
        }
        self.absent(item, out);
        if out.last() == Some(&b',') {
            out.pop();
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.selected.is_none_or(|selected| selected.iter().any(|other| other == name))
    }

    /// What the client has selected and the entity lacks, is null.
    fn absent(&self, item: &Value<'_>, out: &mut Vec<u8>) {
        for name in self.selected.into_iter().flatten() {
            let is_own = matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp");
            if !is_own && Edm::stored(item.get(&edm::stored_name(name))).is_none() {
                json::write_str(name, out);
                out.extend_from_slice(b":null,");
            }
        }
    }
}

/// A property with a text, and a comma behind it.
fn push(out: &mut Vec<u8>, name: &str, value: &str) {
    json::write_str(name, out);
    out.push(b':');
    json::write_str(value, out);
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::super::Body;
    use super::*;

    fn shown(metadata: Metadata, selected: Option<&[String]>) -> String {
        let text = r#"{"PartitionKey":"p","RowKey":"it's","n":1,"l":"2","l@odata.type":"Edm.Int64","d":3.0}"#;
        let body = Body::read(text.as_bytes(), None).expect("an entity");
        let renderer = Renderer { metadata, base: "http://h/", account: "acct", table: "t", selected };
        let mut out = Vec::new();
        renderer.single(&body.doc.root(), 16_517_980_679_267_336, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn three_levels_tell_more_and_more() {
        let time = "2022-05-06T00:47:47.9267336Z";
        let etag = r#""odata.etag":"W/\"datetime'2022-05-06T00%3A47%3A47.9267336Z'\"","#;
        let keys = r#""PartitionKey":"p","RowKey":"it's","#;
        assert_eq!(
            shown(Metadata::None, None),
            format!(r#"{{{keys}"n":1,"l":"2","d":3.0,"Timestamp":"{time}"}}"#)
        );
        let head = r#""odata.metadata":"http://h/t/$metadata#t/@Element","#;
        assert_eq!(
            shown(Metadata::Minimal, None),
            format!(
                r#"{{{head}{etag}{keys}"n":1,"l@odata.type":"Edm.Int64","l":"2","d":3.0,"Timestamp":"{time}"}}"#
            )
        );
        let full = shown(Metadata::Full, None);
        for part in [
            r#""odata.type":"acct.t","#,
            r#""odata.id":"http://h/t(PartitionKey='p',RowKey='it%27%27s')","#,
            r#""odata.editLink":"t(PartitionKey='p',RowKey='it%27%27s')","#,
            r#""Timestamp@odata.type":"Edm.DateTime","#,
        ] {
            assert!(full.contains(part), "{part} in {full}");
        }
    }

    #[test]
    fn only_what_is_selected_is_shown() {
        let selected = ["n".to_owned(), "missing".to_owned(), "RowKey".to_owned()];
        assert_eq!(shown(Metadata::None, Some(&selected)), r#"{"RowKey":"it's","n":1,"missing":null}"#);
    }
}
