//! Where the rows of a page go.
//!
//! Every protocol has its own form for rows: one writes JSON into the body of its answer, another one documents. A sink
//! takes them as values and writes them once, in its own form. Rows that have to wait for their place in an order wait
//! in that form too.

use orrery_doc::Doc;

use crate::error::Result;
use crate::value::Val;

/// Takes the rows of a page, one after the other. A page that is begun anew begins with a sink that is empty.
pub trait Sink {
    /// Takes a row of at most so many bytes; a longer one is refused and leaves no trace.
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()>;

    /// Appends a row to `held`, in the form of this sink, until it is known whether it is answered.
    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()>;

    /// Takes a row that was held.
    fn push_held(&mut self, held: &[u8]);

    /// How many rows it has.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long all rows are together, without what stands between them: pages are limited and charged by it.
    fn byte_len(&self) -> usize;

    /// What it takes in memory.
    fn memory_bytes(&self) -> usize;
}

/// Rows as documents, for protocols that send something else than JSON.
#[derive(Debug, Default, Clone)]
pub struct Documents {
    rows: Vec<Doc>,
    bytes: usize,
}

impl Documents {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Doc> {
        self.rows.iter()
    }

    fn take(&mut self, row: Doc) {
        self.bytes += row.bytes().len();
        self.rows.push(row);
    }
}

impl Sink for Documents {
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()> {
        self.take(row.row_document(bytes_max)?);
        Ok(())
    }

    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()> {
        held.extend_from_slice(row.row_document(bytes_max)?.bytes());
        Ok(())
    }

    fn push_held(&mut self, held: &[u8]) {
        self.take(Doc::from_trusted(held.to_vec().into()));
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn byte_len(&self) -> usize {
        self.bytes
    }

    fn memory_bytes(&self) -> usize {
        self.bytes + size_of::<Doc>() * self.rows.capacity()
    }
}
