//! What the server adds to every item, made from the item's header when somebody asks for it.

use orrery_doc::{Value, json};
use orrery_query::{SystemField, SystemProperties, SystemValue};
use orrery_store::ItemHeader;

use crate::resource::ResourceKind;
use crate::rid::Rid;

/// System properties of one item of a container.
#[derive(Clone, Copy)]
pub struct ItemProperties {
    pub database: Rid,
    pub container: Rid,
    pub header: ItemHeader,
}

impl ItemProperties {
    fn rid(&self) -> Rid {
        Rid::child(self.container, ResourceKind::Item, self.header.rid)
    }
}

impl SystemProperties for ItemProperties {
    fn read(&self, field: SystemField) -> SystemValue {
        let (database, container, rid) = (self.database, self.container, self.rid());
        match field {
            SystemField::Rid => SystemValue::Text(rid.to_string()),
            SystemField::SelfLink => {
                SystemValue::Text(format!("dbs/{database}/colls/{container}/docs/{rid}/"))
            }
            SystemField::Etag => SystemValue::Text(self.header.etag.to_header()),
            SystemField::Attachments => SystemValue::Text("attachments/".into()),
            SystemField::Ts => SystemValue::Int(self.header.ts() as i64),
        }
    }

    /// Pieces instead of a format: this is done for every item of every answer.
    fn write_json(&self, out: &mut Vec<u8>) {
        let rid = self.rid().text();
        let etag = self.header.etag.to_text();
        for piece in [
            b"\"_rid\":\"",
            rid.as_bytes(),
            b"\",\"_self\":\"dbs/",
            self.database.text().as_bytes(),
            b"/colls/",
            self.container.text().as_bytes(),
            b"/docs/",
            rid.as_bytes(),
            b"/\",\"_etag\":\"\\\"",
            &etag[1..etag.len() - 1],
            b"\\\"\",\"_attachments\":\"attachments/\",\"_ts\":",
        ] {
            out.extend_from_slice(piece);
        }
        json::write(Value::Int(self.header.ts() as i64), out);
    }
}
