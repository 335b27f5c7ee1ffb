//! What the server adds to every item, made from the item's header when a client or a query asks for it.

use orrery_cluster::store::ItemHeader;
use orrery_cluster::{Container, ItemProperties, ResourceKind, Rid};
use orrery_doc::{Value, json};
use orrery_query::{SystemField, SystemProperties, SystemValue};

use crate::items::version::{self, Version};

/// The properties of this protocol, for queries.
pub(crate) static PROPERTIES: &dyn ItemProperties = &Properties;

#[derive(Debug)]
struct Properties;

impl ItemProperties for Properties {
    fn read(&self, container: &Container, header: &ItemHeader, field: SystemField) -> SystemValue {
        of(container, header).read(field)
    }

    fn write_json(&self, container: &Container, header: &ItemHeader, out: &mut Vec<u8>) {
        of(container, header).write_json(out);
    }
}

fn of(container: &Container, header: &ItemHeader) -> PropertiesOf {
    PropertiesOf {
        database: container.database,
        container: container.resource.rid,
        by_time: version::is_by_time(container),
        header: *header,
    }
}

/// System properties of one item of a container.
#[derive(Clone, Copy)]
pub(crate) struct PropertiesOf {
    pub database: Rid,
    pub container: Rid,
    /// Whether the time of the write is shown as the version.
    pub by_time: bool,
    pub header: ItemHeader,
}

impl PropertiesOf {
    fn rid(&self) -> Rid {
        Rid::child(self.container, ResourceKind::Item, self.header.rid)
    }

    fn version(&self) -> Version {
        Version::of_item(self.by_time, &self.header)
    }
}

impl SystemProperties for PropertiesOf {
    fn read(&self, field: SystemField) -> SystemValue {
        let (database, container, rid) = (self.database, self.container, self.rid());
        match field {
            SystemField::Rid => SystemValue::Text(rid.to_string()),
            SystemField::SelfLink => {
                SystemValue::Text(format!("dbs/{database}/colls/{container}/docs/{rid}/"))
            }
            SystemField::Etag => SystemValue::Text(self.version().to_header()),
            SystemField::Attachments => SystemValue::Text("attachments/".into()),
            SystemField::Ts => SystemValue::Int(self.header.ts() as i64),
        }
    }

    /// Pieces instead of a format: this is done for every item of every answer.
    fn write_json(&self, out: &mut Vec<u8>) {
        let rid = self.rid().text();
        let etag = self.version().to_text();
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
