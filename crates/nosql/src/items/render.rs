//! Items as the JSON text that clients see.
//!
//! The body is copied from the stored document field by field, and the system properties follow from
//! the item's header, all into one buffer that is large enough from the start. No tree is built.
//! Every point read passes through here.

use std::io::Write;

use orrery_cluster::store::{Item, ItemHeader};
use orrery_cluster::{Container, Rid};
use orrery_doc::{Value, json};
use orrery_query::{Fields, Row, Sink, SystemField, SystemProperties, SystemValue, Val};

use crate::items::body_rows::{Binary, BodyRows};
use crate::items::system_properties::PropertiesOf;
use crate::items::version::{self, Version};

/// What the server adds to every item; clients send these back and they are never stored.
pub const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/// Room for the system properties of an item, of which links are the longest part.
const SYSTEM_BYTES: usize = 288;

/// Writes items of one container.
#[derive(Clone, Copy)]
pub struct Renderer {
    database: Rid,
    container: Rid,
    by_time: bool,
    with_lsn: bool,
    without_links: bool,
}

impl Renderer {
    pub fn new(container: &Container) -> Renderer {
        let by_time = version::is_by_time(container);
        Renderer { by_time, ..Renderer::of(container.database, container.resource.rid) }
    }

    pub fn of(database: Rid, container: Rid) -> Renderer {
        Renderer { database, container, by_time: false, with_lsn: false, without_links: false }
    }

    /// Change feeds also tell the LSN of each item.
    pub fn with_lsn(self) -> Renderer {
        Renderer { with_lsn: true, ..self }
    }

    /// Leaves out where the item and its attachments are, if the client wants it so.
    pub fn without_links(self, without_links: bool) -> Renderer {
        Renderer { without_links, ..self }
    }

    /// The text of one item.
    pub fn item(&self, item: &Item) -> Vec<u8> {
        let mut out = Vec::with_capacity(capacity(item));
        self.write_item(item, &mut out);
        out
    }

    /// A page: `{"_rid":"<container>","Documents":[...],"_count":n}`.
    pub fn feed(&self, items: &[Item]) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + items.iter().map(capacity).sum::<usize>());
        self.begin_feed(&mut out);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            self.write_item(item, &mut out);
        }
        end_feed(items.len(), &mut out);
        out
    }

    /// The same page in the binary form.
    pub fn binary_feed(&self, items: &[Item]) -> Vec<u8> {
        let mut rows = BodyRows::<Binary>::default();
        for item in items {
            let system = self.properties(&item.header);
            let row = Row { doc: item.root(), system: Some(&system), place: &[] };
            let pushed = rows.push(&Val::Object(Fields::Row(&row)), usize::MAX);
            pushed.expect("an item is no longer than a row may be");
        }
        rows.take_body(self.container, None)
    }

    /// A page of so many entries, each written by its place.
    pub fn entries(&self, count: usize, mut write: impl FnMut(usize, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        self.begin_feed(&mut out);
        for place in 0..count {
            if place > 0 {
                out.push(b',');
            }
            write(place, &mut out);
        }
        end_feed(count, &mut out);
        out
    }

    pub fn write_item(&self, item: &Item, out: &mut Vec<u8>) {
        out.push(b'{');
        let body = item.doc.root().as_object();
        if body.is_some_and(|body| json::write_fields(body, &[], out)) {
            out.push(b',');
        }
        self.write_system(&item.header, out);
        out.push(b'}');
    }

    /// The same properties for those who ask for single ones, as queries do.
    pub fn properties(&self, header: &ItemHeader) -> PropertiesOf {
        let Renderer { database, container, by_time, .. } = *self;
        PropertiesOf { database, container, by_time, header: *header }
    }

    pub fn version(&self, header: &ItemHeader) -> Version {
        Version::of_item(self.by_time, header)
    }

    fn write_system(&self, header: &ItemHeader, out: &mut Vec<u8>) {
        match self.without_links {
            true => write_unlinked(&self.properties(header), out),
            false => self.properties(header).write_json(out),
        }
        if self.with_lsn {
            write!(out, ",\"_lsn\":{}", header.lsn.0).expect("writing to memory does not fail");
        }
    }

    fn begin_feed(&self, out: &mut Vec<u8>) {
        write!(out, "{{\"_rid\":\"{}\",\"Documents\":[", self.container)
            .expect("writing to memory does not fail");
    }
}

fn write_unlinked(properties: &PropertiesOf, out: &mut Vec<u8>) {
    let fields = [("_rid", SystemField::Rid), ("_etag", SystemField::Etag), ("_ts", SystemField::Ts)];
    for (place, (name, field)) in fields.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        json::write_str(name, out);
        out.push(b':');
        match properties.read(field) {
            SystemValue::Text(text) => json::write_str(&text, out),
            SystemValue::Int(number) => json::write(Value::Int(number), out),
            SystemValue::Absent => out.extend_from_slice(b"null"),
        }
    }
}

fn end_feed(count: usize, out: &mut Vec<u8>) {
    write!(out, "],\"_count\":{count}}}").expect("writing to memory does not fail");
}

fn capacity(item: &Item) -> usize {
    item.header.json_bytes as usize + SYSTEM_BYTES
}

#[cfg(test)]
mod tests {
    use orrery_cluster::store::{Etag, Lsn};

    use super::*;

    fn item(body: &str) -> Item {
        let doc = json::parse(body.as_bytes(), 128).expect("a test body");
        let header = ItemHeader {
            flags: 0,
            lsn: Lsn(12),
            place: 0,
            time: 1_700_000_000 * 10_000_000 + 5,
            etag: Etag(0x0000_d1a2_66b3_f4d1),
            ttl: 0,
            rid: 1,
            json_bytes: body.len() as u32,
            origin: None,
        };
        Item { header, doc }
    }

    fn renderer() -> Renderer {
        let database = Rid::database(0x7a1b_3300);
        Renderer::of(database, Rid::container(database, 0x3c51_4600))
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("UTF-8")
    }

    const SYSTEM: &str = "\"_rid\":\"ehszALxRRgABAAAAAAAAAA==\",\
        \"_self\":\"dbs/ehszAA==/colls/ehszALxRRgA=/docs/ehszALxRRgABAAAAAAAAAA==/\",\
        \"_etag\":\"\\\"0000d1a2-0000-0700-0000-66b3f4d10000\\\"\",\
        \"_attachments\":\"attachments/\",\"_ts\":1700000000";

    #[test]
    fn links_are_left_out_on_request() {
        let shown = text(renderer().without_links(true).item(&item(r#"{"id":"a"}"#)));
        let expected = r#"{"id":"a","_rid":"ehszALxRRgABAAAAAAAAAA==","_etag":"\"0000d1a2-0000-0700-0000-66b3f4d10000\"","_ts":1700000000}"#;
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_body_comes_first_and_system_properties_follow() {
        let body = r#"{"id":"a","n":1.5,"deep":{"x":[true,null]}"#;
        let out = renderer().item(&item(&format!("{body}}}")));
        assert_eq!(text(out), format!("{body},{SYSTEM}}}"));
    }

    #[test]
    fn an_empty_body_needs_no_comma() {
        assert_eq!(text(renderer().item(&item("{}"))), format!("{{{SYSTEM}}}"));
    }

    #[test]
    fn change_feeds_see_the_lsn() {
        let out = renderer().with_lsn().item(&item("{}"));
        assert_eq!(text(out), format!("{{{SYSTEM},\"_lsn\":12}}"));
    }

    #[test]
    fn the_buffer_never_grows() {
        let item = item(r#"{"id":"a","text":"0123456789"}"#);
        let out = renderer().with_lsn().item(&item);
        assert!(out.len() <= capacity(&item), "{} bytes", out.len());
    }

    #[test]
    fn pages_carry_owner_and_count() {
        let empty = renderer().feed(&[]);
        assert_eq!(text(empty), r#"{"_rid":"ehszALxRRgA=","Documents":[],"_count":0}"#);
        let two = text(renderer().feed(&[item("{}"), item("{}")]));
        assert!(two.ends_with("],\"_count\":2}"), "{two}");
        assert_eq!(two.matches("},{").count(), 1);
    }
}
