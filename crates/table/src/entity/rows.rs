//! Rows of a query, written straight into the body that shows them as entities.

use std::sync::OnceLock;

use orrery_doc::{Doc, DocBuilder, Value};
use orrery_query::{Fields, QueryError, Result, Sink, Val};

use super::Renderer;
use crate::metadata::Metadata;

/// The names in which a row holds the item, the time of its last write, and the manner in which it is shown.
pub(super) const ITEM: &str = "e";
pub(super) const WRITTEN: &str = "w";
pub(super) const MANNER: &str = "m";

/// How a body begins and ends. What else it tells comes between the bracket and the name, once all rows are known.
const HEAD: &[u8] = b"{\"value\":[";
const TAIL: &[u8] = b"]}";
/// The most that is reserved for rows to come.
const ROOM_BYTES_MAX: usize = 64 * 1024;

/// The entities of a page as a list.
#[derive(Debug, Default)]
pub(super) struct EntityRows {
    /// Empty until there is a row.
    body: Vec<u8>,
    count: usize,
    row_bytes: usize,
    /// As the first row says it: all of a page have the same.
    manner: OnceLock<Manner>,
}

impl EntityRows {
    /// The body, with what stands in front of a list. It can be taken once; the figures stay.
    pub fn take_body(&mut self, renderer: &Renderer<'_>) -> Vec<u8> {
        let mut body = std::mem::take(&mut self.body);
        if body.is_empty() {
            body.extend_from_slice(HEAD);
        }
        let mut told = Vec::new();
        renderer.head_of_list(&mut told);
        if !told.is_empty() {
            body.splice(1..1, told);
        }
        body.extend_from_slice(TAIL);
        body
    }

    /// Takes an item that no query has found.
    pub fn show(&mut self, renderer: &Renderer<'_>, item: &Value<'_>, written: u64) {
        let start = self.begin_row();
        renderer.row(item, written, &mut self.body);
        self.end_row(start);
    }

    /// Appends what comes before a row, and says where the row begins.
    fn begin_row(&mut self) -> usize {
        match self.count {
            0 => self.body.extend_from_slice(HEAD),
            // A page that has a second row mostly has many.
            1 => {
                self.body.reserve((self.row_bytes * 32).min(ROOM_BYTES_MAX));
                self.body.push(b',');
            }
            _ => self.body.push(b','),
        }
        self.body.len()
    }

    fn end_row(&mut self, start: usize) {
        self.count += 1;
        self.row_bytes += self.body.len() - start;
    }
}

impl Sink for EntityRows {
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()> {
        let before = self.body.len();
        let start = self.begin_row();
        let manner = self.manner.get_or_init(|| Manner::of(row));
        manner.write_row(row, &mut self.body, bytes_max).inspect_err(|_| self.body.truncate(before))?;
        self.end_row(start);
        Ok(())
    }

    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()> {
        self.manner.get_or_init(|| Manner::of(row)).write_row(row, held, bytes_max)
    }

    fn push_held(&mut self, held: &[u8]) {
        let start = self.begin_row();
        self.body.extend_from_slice(held);
        self.end_row(start);
    }

    fn len(&self) -> usize {
        self.count
    }

    fn byte_len(&self) -> usize {
        self.row_bytes
    }

    fn memory_bytes(&self) -> usize {
        self.body.capacity() + TAIL.len()
    }
}

/// How a client wants entities to be shown. A sink begins with nothing, so the rows tell it.
#[derive(Debug, Clone)]
struct Manner {
    metadata: Metadata,
    base: String,
    account: String,
    table: String,
    selected: Option<Vec<String>>,
}

impl Manner {
    /// Without a word about it in the row, entities are shown whole and without metadata.
    fn of(row: &Val<'_>) -> Manner {
        let manner = row.get(MANNER);
        let text = |name: &str| manner.get(name).as_str().unwrap_or_default().to_owned();
        let metadata = match manner.get("level").as_i64() {
            Some(2) => Metadata::Full,
            Some(1) => Metadata::Minimal,
            _ => Metadata::None,
        };
        let selected = manner.get("selected");
        let selected = selected.as_list().map(|names| {
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
        });
        Manner { metadata, base: text("base"), account: text("account"), table: text("table"), selected }
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer {
            metadata: self.metadata,
            base: &self.base,
            account: &self.account,
            table: &self.table,
            selected: self.selected.as_deref(),
        }
    }

    fn write_row(&self, row: &Val<'_>, out: &mut Vec<u8>, bytes_max: usize) -> Result<()> {
        let (start, renderer) = (out.len(), self.renderer());
        let written = row.get(WRITTEN).as_i64().and_then(|time| u64::try_from(time).ok()).unwrap_or_default();
        match row.get(ITEM) {
            Val::Object(Fields::Row(item)) => renderer.row(&item.doc.root(), written, out),
            Val::Object(Fields::Stored(item)) => renderer.row(&Value::Object(item), written, out),
            made => renderer.row(&made.row_document(bytes_max)?.root(), written, out),
        }
        if out.len() - start > bytes_max {
            out.truncate(start);
            return Err(QueryError::LimitExceeded("A row of the answer is too long."));
        }
        Ok(())
    }
}

/// What rows have to say about the manner in which a client wants them, if anything.
pub(super) fn manner_of(renderer: &Renderer<'_>) -> Option<Doc> {
    let level = match renderer.metadata {
        Metadata::None if renderer.selected.is_none() => return None,
        Metadata::None => 0,
        Metadata::Minimal => 1,
        Metadata::Full => 2,
    };
    let mut out = DocBuilder::new();
    out.begin_object();
    out.name("level").int(level);
    out.name("base").str(renderer.base);
    out.name("account").str(renderer.account);
    out.name("table").str(renderer.table);
    if let Some(selected) = renderer.selected {
        out.name("selected").begin_array();
        selected.iter().for_each(|name| {
            out.str(name);
        });
        out.end_array();
    }
    out.end_object();
    Some(out.finish())
}

#[cfg(test)]
mod tests {
    use super::super::Body;
    use super::*;

    const TIME: u64 = 16_517_980_679_267_336;

    fn renderer(metadata: Metadata, selected: Option<&[String]>) -> Renderer<'_> {
        Renderer { metadata, base: "http://h/", account: "acct", table: "t", selected }
    }

    fn entity(row_key: &str) -> Doc {
        let text = format!(
            r#"{{"PartitionKey":"p","RowKey":"{row_key}","n":1,"l":"2","l@odata.type":"Edm.Int64"}}"#
        );
        Body::read(text.as_bytes(), None).expect("an entity").doc
    }

    /// The row that a query makes of an item.
    fn row<'a>(item: &'a Doc, manner: Option<&'a Doc>) -> Val<'a> {
        let fields = [(ITEM, Val::from(item.root())), (WRITTEN, Val::Int(TIME as i64))];
        let manner = manner.map(|manner| (MANNER, Val::from(manner.root())));
        let fields = fields.into_iter().chain(manner);
        Val::object(fields.map(|(name, value)| (orrery_query::Text::Stored(name), value)).collect())
    }

    fn text(mut rows: EntityRows, renderer: &Renderer<'_>) -> String {
        String::from_utf8(rows.take_body(renderer)).expect("UTF-8")
    }

    #[test]
    fn rows_are_shown_as_their_items_are_at_every_level() {
        let items = ["a", "b", "c", "d"].map(entity);
        let selected = ["missing".to_owned(), "n".to_owned()];
        for metadata in [Metadata::None, Metadata::Minimal, Metadata::Full] {
            for selected in [None, Some(&selected[..])] {
                let renderer = renderer(metadata, selected);
                let (mut of_query, mut of_items) = (EntityRows::default(), EntityRows::default());
                let manner = manner_of(&renderer);
                for (place, item) in items.iter().enumerate() {
                    of_items.show(&renderer, &item.root(), TIME);
                    let row = row(item, manner.as_ref());
                    if place % 2 == 1 {
                        of_query.push(&row, 1_000).expect("short");
                        continue;
                    }
                    let mut held = Vec::new();
                    of_query.hold(&row, 1_000, &mut held).expect("short");
                    of_query.push_held(&held);
                }
                assert_eq!((of_query.len(), of_query.byte_len()), (4, of_items.byte_len()));
                assert_eq!(text(of_query, &renderer), text(of_items, &renderer));
            }
        }
    }

    #[test]
    fn a_list_without_entities_is_whole() {
        let shown = |metadata| text(EntityRows::default(), &renderer(metadata, None));
        assert_eq!(shown(Metadata::None), r#"{"value":[]}"#);
        let minimal = r#"{"odata.metadata":"http://h/$metadata#t","value":[]}"#;
        assert_eq!((shown(Metadata::Minimal), shown(Metadata::Full)), (minimal.into(), minimal.into()));
    }

    #[test]
    fn a_row_that_is_too_long_leaves_no_trace() {
        let (short, long) = (entity("a"), entity(&"x".repeat(240)));
        let renderer = renderer(Metadata::None, None);
        for before in [0, 1, 2] {
            let mut rows = EntityRows::default();
            (0..before).for_each(|_| rows.push(&row(&short, None), 200).expect("short"));
            let told = (rows.len(), rows.byte_len());
            assert!(rows.push(&row(&long, None), 200).is_err());
            let mut held = vec![7];
            assert!(rows.hold(&row(&long, None), 200, &mut held).is_err());
            assert_eq!((held, (rows.len(), rows.byte_len())), (vec![7], told));
            rows.push(&row(&short, None), 200).expect("short");
            let mut wanted = EntityRows::default();
            (0..=before).for_each(|_| wanted.show(&renderer, &short.root(), TIME));
            assert_eq!(text(rows, &renderer), text(wanted, &renderer));
        }
    }

    #[test]
    fn memory_is_told_before_the_body_ends() {
        let (item, mut rows) = (entity("a"), EntityRows::default());
        (0..1_000).for_each(|_| rows.push(&row(&item, None), 200).expect("short"));
        let told = rows.memory_bytes();
        assert!(rows.take_body(&renderer(Metadata::None, None)).len() <= told);
    }
}
