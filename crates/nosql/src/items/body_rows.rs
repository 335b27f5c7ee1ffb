//! Rows of a query, written straight into the body that shows them.

use orrery_cluster::Rid;
use orrery_query::{Result, Sink, Val};

/// How a page begins: `{"_rid":"<container>","Documents":[`. Whose page it is, is filled in at the end.
const HEAD: &[u8] = br#"{"_rid":"............","Documents":["#;
const RID_START: usize = 9;
const RID_BYTES: usize = 12;

/// The most that is reserved for rows to come.
const ROOM_BYTES_MAX: usize = 64 * 1024;
/// What comes behind the rows: brackets, the name and digits of the count.
const TAIL_BYTES: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct BodyRows {
    /// Empty until there is a row.
    body: Vec<u8>,
    count: usize,
    row_bytes: usize,
}

impl BodyRows {
    /// The body: `{"_rid":"<container>","Documents":[...],"_count":n}`. It can be taken once; the figures stay.
    pub fn take_body(&mut self, container: Rid) -> Vec<u8> {
        let mut body = std::mem::take(&mut self.body);
        if body.is_empty() {
            body.extend_from_slice(HEAD);
        }
        let rid = container.to_string();
        assert_eq!(rid.len(), RID_BYTES, "all RIDs of containers are of one length");
        body[RID_START..RID_START + RID_BYTES].copy_from_slice(rid.as_bytes());
        body.extend_from_slice(b"],\"_count\":");
        body.extend_from_slice(self.count.to_string().as_bytes());
        body.push(b'}');
        body
    }

    /// The same with one more property: `"_explain"`, JSON that says how the rows were found.
    pub fn take_explained_body(&mut self, container: Rid, explanation: &str) -> Vec<u8> {
        let mut body = self.take_body(container);
        body.pop();
        body.extend_from_slice(b",\"_explain\":");
        body.extend_from_slice(explanation.as_bytes());
        body.push(b'}');
        body
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

impl Sink for BodyRows {
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()> {
        let before = self.body.len();
        let start = self.begin_row();
        row.write_row(&mut self.body, bytes_max).inspect_err(|_| self.body.truncate(before))?;
        self.end_row(start);
        Ok(())
    }

    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()> {
        row.write_row(held, bytes_max)
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
        let mut rows = BodyRows::default();
        rows.push(&Val::Int(1), 100).expect("short");
        let mut held = Vec::new();
        rows.hold(&Val::text("two"), 100, &mut held).expect("short");
        rows.push_held(&held);
        rows.push(&Val::Null, 100).expect("short");
        assert_eq!((rows.len(), rows.byte_len()), (3, 1 + 5 + 4));
        let body = text(rows.take_body(container()));
        assert_eq!(body, r#"{"_rid":"ehszALxRRgA=","Documents":[1,"two",null],"_count":3}"#);
        assert_eq!((rows.len(), rows.byte_len()), (3, 10));
    }

    #[test]
    fn a_page_without_rows_is_whole() {
        let body = text(BodyRows::default().take_body(container()));
        assert_eq!(body, r#"{"_rid":"ehszALxRRgA=","Documents":[],"_count":0}"#);
        let body = text(BodyRows::default().take_explained_body(container(), "{}"));
        assert_eq!(body, r#"{"_rid":"ehszALxRRgA=","Documents":[],"_count":0,"_explain":{}}"#);
    }

    #[test]
    fn a_row_that_is_too_long_leaves_no_trace() {
        for before in [0, 1, 2] {
            let mut rows = BodyRows::default();
            (0..before).for_each(|_| rows.push(&Val::Int(7), 100).expect("short"));
            assert!(rows.push(&Val::text("x".repeat(200)), 100).is_err());
            assert_eq!(rows.len(), before);
            rows.push(&Val::Int(8), 100).expect("short");
            let expected = [&["7"; 2][..before], &["8"]].concat().join(",");
            let body = text(rows.take_body(container()));
            assert!(body.contains(&format!("[{expected}]")), "{body}");
        }
    }

    #[test]
    fn memory_is_told_before_the_body_ends() {
        let mut rows = BodyRows::default();
        for number in 0..1_000 {
            rows.push(&Val::Int(number), 100).expect("short");
        }
        let told = rows.memory_bytes();
        assert!(rows.take_body(container()).len() <= told);
    }
}
