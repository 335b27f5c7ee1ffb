//! Segments and records: how rows stand one after the other in a body.

use super::crc::crc32;
use super::reader::{Read, Source};
use super::row::{Row, Value};
use super::schema::{RECORD_ID, SEGMENT, Schema};
use super::{HybridRowErrorKind as Kind, VERSION};

/// Version and schema id, which stand before segments and records.
const HEADER_BYTES: usize = 5;
/// A segment without sparse columns: presence bits and its length.
const SEGMENT_BYTES: usize = HEADER_BYTES + 1 + 4;
/// What stands before a row: its length and its sum.
const RECORD_BYTES: usize = HEADER_BYTES + 4 + 4;

/// The rows of a body, one by one. After an error there are no more.
pub struct Records<'a> {
    source: Source<'a>,
    schema: &'static Schema,
    has_segment: bool,
    is_over: bool,
}

impl<'a> Records<'a> {
    pub fn new(body: &'a [u8], schema: &'static Schema) -> Records<'a> {
        Records { source: Source::new(body), schema, has_segment: false, is_over: false }
    }

    fn read(&mut self) -> Read<Option<Row<'a>>> {
        // An empty body is not a body without rows: that one has a segment.
        while !self.source.is_at_end() || !self.has_segment {
            let mut ahead = self.source.clone();
            match ahead.row_header()? {
                id if id == SEGMENT.id => self.skip_segment()?,
                RECORD_ID if self.has_segment => return self.record().map(Some),
                RECORD_ID => return Err(ahead.error(Kind::NoSegment)),
                _ => return Err(ahead.error(Kind::Schema)),
            }
        }
        Ok(None)
    }

    /// A segment says how long it is itself. It is read all the same: a wrong length must not swallow records.
    fn skip_segment(&mut self) -> Read<()> {
        let mut ahead = self.source.clone();
        let start = ahead.taken();
        ahead.row_header()?;
        let error = ahead.error(Kind::SegmentLength);
        if ahead.byte()? != 1 {
            return Err(ahead.error(Kind::Presence));
        }
        let length = ahead.uint32()? as usize;
        if length < ahead.taken() - start {
            return Err(error);
        }
        Row::read(&mut self.source.part(length)?, &SEGMENT)?;
        self.has_segment = true;
        Ok(())
    }

    fn record(&mut self) -> Read<Row<'a>> {
        self.source.row_header()?;
        let (length, sum) = (self.source.uint32()? as usize, self.source.uint32()?);
        let error = self.source.error(Kind::Checksum);
        let mut ahead = self.source.clone();
        if crc32(ahead.take(length)?) != sum {
            return Err(error);
        }
        Row::read(&mut self.source.part(length)?, self.schema)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Read<Row<'a>>;

    fn next(&mut self) -> Option<Read<Row<'a>>> {
        if self.is_over {
            return None;
        }
        let read = self.read();
        self.is_over = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

/// Writes a body: one segment, then rows.
pub struct RecordWriter(Vec<u8>);

impl RecordWriter {
    pub fn with_capacity(bytes: usize) -> RecordWriter {
        let mut out = Vec::with_capacity(bytes + SEGMENT_BYTES);
        Row::new(&SEGMENT).with("length", Value::Int32(SEGMENT_BYTES as i32)).write(&mut out);
        RecordWriter(out)
    }

    pub fn push(&mut self, row: &Row<'_>) {
        let out = &mut self.0;
        out.push(VERSION);
        out.extend_from_slice(&RECORD_ID.to_le_bytes());
        let start = out.len() + RECORD_BYTES - HEADER_BYTES;
        out.resize(start, 0);
        row.write(out);
        let length = u32::try_from(out.len() - start).expect("an answer is far below four gigabytes");
        let sum = crc32(&out[start..]);
        out[start - 8..start - 4].copy_from_slice(&length.to_le_bytes());
        out[start - 4..start].copy_from_slice(&sum.to_le_bytes());
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}
