//! Rows of a query, written straight into the body that shows them, as text or in the binary form.

use std::fmt::Debug;
use std::marker::PhantomData;

use orrery_cluster::Rid;
use orrery_cluster::limits::RESOURCE_DEPTH_MAX;
use orrery_doc::json;
use orrery_query::{Result, Sink, Val};

use crate::binary_json::{PREAMBLE, encode};

/// The most that is reserved for rows to come.
const ROOM_BYTES_MAX: usize = 64 * 1024;
/// What comes behind the rows: brackets, the name and digits of the count.
const TAIL_BYTES: usize = 32;
const RID_BYTES: usize = 12;

/// How a body is written: `{"_rid":"<container>","Documents":[...],"_count":n}`.
pub(crate) trait Form: Debug + Default + Send {
    /// How it begins. Whose page it is, is filled in at the end.
    const HEAD: &'static [u8];
    /// Where the container's RID stands.
    const RID_START: usize;
    /// What stands between two rows.
    const BETWEEN: &'static [u8];

    fn write_row(row: &Val<'_>, out: &mut Vec<u8>, bytes_max: usize) -> Result<()>;

    /// Ends a body with so many rows. `"_explain"` is one more property, JSON that says how they were found.
    fn end(body: &mut Vec<u8>, count: usize, explanation: Option<&str>);
}

/// JSON as text.
#[derive(Debug, Default)]
pub(crate) struct Text;

impl Form for Text {
    const HEAD: &'static [u8] = br#"{"_rid":"............","Documents":["#;
    const RID_START: usize = 9;
    const BETWEEN: &'static [u8] = b",";

    fn write_row(row: &Val<'_>, out: &mut Vec<u8>, bytes_max: usize) -> Result<()> {
        row.write_row(out, bytes_max)
    }

    fn end(body: &mut Vec<u8>, count: usize, explanation: Option<&str>) {
        body.extend_from_slice(b"],\"_count\":");
        body.extend_from_slice(count.to_string().as_bytes());
        if let Some(explanation) = explanation {
            body.extend_from_slice(b",\"_explain\":");
            body.extend_from_slice(explanation.as_bytes());
        }
        body.push(b'}');
    }
}

/// Cosmos binary JSON; see [`crate::binary_json`].
#[derive(Debug, Default)]
pub(crate) struct Binary;

impl Binary {
    /// Where the length of the whole object stands, and that of the array of rows.
    const OBJECT_LENGTH: usize = 2;
    const ROWS_LENGTH: usize = Binary::HEAD.len() - 4;
}

impl Form for Binary {
    // An object of a length to be known, `_rid`, twelve letters, `Documents`, an array of a length to be known.
    const HEAD: &'static [u8] = b"\x80\xEC\0\0\0\0\x25\x8C............\x89Documents\xE4\0\0\0\0";
    const RID_START: usize = 8;
    const BETWEEN: &'static [u8] = b"";

    fn write_row(row: &Val<'_>, out: &mut Vec<u8>, bytes_max: usize) -> Result<()> {
        encode::write_row(row, out, bytes_max)
    }

    fn end(body: &mut Vec<u8>, count: usize, explanation: Option<&str>) {
        let set = |body: &mut Vec<u8>, at: usize| {
            let length = u32::try_from(body.len() - at - 4).expect("pages have a few megabytes");
            body[at..at + 4].copy_from_slice(&length.to_le_bytes());
        };
        debug_assert_eq!(body[0], PREAMBLE);
        set(body, Binary::ROWS_LENGTH);
        encode::write_str("_count", body);
        encode::write_int(count as i64, body);
        if let Some(explanation) = explanation {
            let explanation = json::parse(explanation.as_bytes(), RESOURCE_DEPTH_MAX);
            encode::write_str("_explain", body);
            encode::write_value(explanation.expect("it is our own").root(), body);
        }
        set(body, Binary::OBJECT_LENGTH);
    }
}

#[derive(Debug)]
pub(crate) struct BodyRows<F = Text> {
    /// Empty until there is a row.
    body: Vec<u8>,
    count: usize,
    row_bytes: usize,
    form: PhantomData<F>,
}

impl<F> Default for BodyRows<F> {
    fn default() -> Self {
        BodyRows { body: Vec::new(), count: 0, row_bytes: 0, form: PhantomData }
    }
}

impl<F: Form> BodyRows<F> {
    /// The body, with an explanation if there is one. It can be taken once; the figures stay.
    pub fn take_body(&mut self, container: Rid, explanation: Option<&str>) -> Vec<u8> {
        let mut body = std::mem::take(&mut self.body);
        if body.is_empty() {
            body.extend_from_slice(F::HEAD);
        }
        let rid = container.to_string();
        assert_eq!(rid.len(), RID_BYTES, "all RIDs of containers are of one length");
        body[F::RID_START..F::RID_START + RID_BYTES].copy_from_slice(rid.as_bytes());
        F::end(&mut body, self.count, explanation);
        body
    }

    /// Appends what comes before a row, and says where the row begins.
    fn begin_row(&mut self) -> usize {
        match self.count {
            0 => self.body.extend_from_slice(F::HEAD),
            // A page that has a second row mostly has many.
            1 => {
                self.body.reserve((self.row_bytes * 32).min(ROOM_BYTES_MAX));
                self.body.extend_from_slice(F::BETWEEN);
            }
            _ => self.body.extend_from_slice(F::BETWEEN),
        }
        self.body.len()
    }

    fn end_row(&mut self, start: usize) {
        self.count += 1;
        self.row_bytes += self.body.len() - start;
    }
}

impl<F: Form> Sink for BodyRows<F> {
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()> {
        let before = self.body.len();
        let start = self.begin_row();
        F::write_row(row, &mut self.body, bytes_max).inspect_err(|_| self.body.truncate(before))?;
        self.end_row(start);
        Ok(())
    }

    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()> {
        F::write_row(row, held, bytes_max)
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
        self.body.capacity() + TAIL_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Rid {
        Rid::container(Rid::database(0x7a1b_3300), 0x3c51_4600)
    }

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).expect("UTF-8")
    }

    #[test]
    fn rows_stand_in_the_body_as_they_came() {
        let mut rows = <BodyRows>::default();
        rows.push(&Val::Int(1), 100).expect("short");
        let mut held = Vec::new();
        rows.hold(&Val::text("two"), 100, &mut held).expect("short");
        rows.push_held(&held);
        rows.push(&Val::Null, 100).expect("short");
        assert_eq!((rows.len(), rows.byte_len()), (3, 1 + 5 + 4));
        let body = text(rows.take_body(container(), None));
        assert_eq!(body, r#"{"_rid":"ehszALxRRgA=","Documents":[1,"two",null],"_count":3}"#);
        assert_eq!((rows.len(), rows.byte_len()), (3, 10));
    }

    #[test]
    fn a_page_without_rows_is_whole() {
        let body = text(<BodyRows>::default().take_body(container(), None));
        assert_eq!(body, r#"{"_rid":"ehszALxRRgA=","Documents":[],"_count":0}"#);
        let body = text(<BodyRows>::default().take_body(container(), Some("{}")));
        assert_eq!(body, r#"{"_rid":"ehszALxRRgA=","Documents":[],"_count":0,"_explain":{}}"#);
    }

    #[test]
    fn a_row_that_is_too_long_leaves_no_trace() {
        for before in [0, 1, 2] {
            let mut rows = <BodyRows>::default();
            (0..before).for_each(|_| rows.push(&Val::Int(7), 100).expect("short"));
            assert!(rows.push(&Val::text("x".repeat(200)), 100).is_err());
            assert_eq!(rows.len(), before);
            rows.push(&Val::Int(8), 100).expect("short");
            let expected = [&["7"; 2][..before], &["8"]].concat().join(",");
            let body = text(rows.take_body(container(), None));
            assert!(body.contains(&format!("[{expected}]")), "{body}");
        }
    }

    #[test]
    fn memory_is_told_before_the_body_ends() {
        let mut rows = <BodyRows>::default();
        for number in 0..1_000 {
            rows.push(&Val::Int(number), 100).expect("short");
        }
        let told = rows.memory_bytes();
        assert!(rows.take_body(container(), None).len() <= told);
    }

    /// A page in the binary form, read back.
    fn read_back(rows: &mut BodyRows<Binary>) -> String {
        let body = rows.take_body(container(), None);
        let doc = crate::binary_json::decode(&body, 64).expect("the binary form");
        let mut out = Vec::new();
        json::write(doc.root(), &mut out);
        text(out)
    }

    #[test]
    fn binary_rows_read_back_as_the_same_page() {
        let empty = read_back(&mut BodyRows::default());
        assert_eq!(empty, r#"{"_rid":"ehszALxRRgA=","Documents":[],"_count":0}"#);
        let explained = BodyRows::<Binary>::default().take_body(container(), Some(r#"{"plan":[1]}"#));
        let explained = crate::binary_json::decode(&explained, 64).expect("the binary form");
        let mut plan = Vec::new();
        json::write(explained.root().get("_explain"), &mut plan);
        assert_eq!(text(plan), r#"{"plan":[1]}"#);
        let long = "é".repeat(40_000);
        let values = [
            r#"{"id":"a","name":"_rid","n":[0,31,32,255,256,-1,-32768,32768,-2147483648,2147483648]}"#.to_owned(),
            r#"{"":{},"a":[],"b":[[1.5,-0,1e300,9007199254740993,-9223372036854775808]],"c":{"d":{"e":null}}}"#
                .to_owned(),
            format!(r#"["{}","{}","{}",true,false,null]"#, "x".repeat(63), "y".repeat(64), "z".repeat(256)),
            format!(r#"{{"{}":"{long}","again":["{long}"]}}"#, "k".repeat(300)),
        ];
        let docs = values.each_ref().map(|text| json::parse(text.as_bytes(), 64).expect("JSON"));
        let (mut rows, mut held) = (BodyRows::<Binary>::default(), Vec::new());
        for (place, doc) in docs.iter().enumerate() {
            let row = Val::from(doc.root());
            if place % 2 == 0 {
                rows.push(&row, 1 << 20).expect("short");
            } else {
                held.clear();
                rows.hold(&row, 1 << 20, &mut held).expect("short");
                rows.push_held(&held);
            }
        }
        let shown = docs.each_ref().map(|doc| {
            let mut out = Vec::new();
            json::write(doc.root(), &mut out);
            text(out)
        });
        let expected = format!(r#"{{"_rid":"ehszALxRRgA=","Documents":[{}],"_count":4}}"#, shown.join(","));
        assert_eq!(read_back(&mut rows), expected);
    }

    #[test]
    fn a_binary_row_that_is_too_long_leaves_no_trace() {
        let mut rows = BodyRows::<Binary>::default();
        rows.push(&Val::Int(7), 100).expect("short");
        let list = Val::Array(orrery_query::List::Made(vec![Val::text("x".repeat(60)); 3].into()));
        assert!(rows.push(&list, 100).is_err());
        rows.push(&Val::Double(f64::NAN), 100).expect("short");
        assert_eq!(read_back(&mut rows), r#"{"_rid":"ehszALxRRgA=","Documents":[7,null],"_count":2}"#);
    }
}
