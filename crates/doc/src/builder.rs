//! Writes a document front to back.

mod typed;

use std::collections::HashMap;

use bytes::Bytes;

use crate::format::{
    CONTAINER_HEADER, Doc, FORMAT_VERSION, SCAN_LIMIT, TAG_ARRAY, TAG_DOUBLE, TAG_FALSE, TAG_INT, TAG_NULL,
    TAG_OBJECT, TAG_STRING, TAG_TRUE, TAG_UDT, read_blob, write_varint, zigzag,
};
use crate::typed::{Typed, write_payload};
use crate::value::{Value, rank_width};

/// Builds one document. Calls come in the order of the text they stand for: inside an object each
/// value follows its [`name`](DocBuilder::name).
///
/// A name given twice keeps its first place and its last value, as JSON readers commonly do.
/// Documents are far below the 4 GiB that an offset can reach, because every gateway limits its input.
pub struct DocBuilder {
    out: Vec<u8>,
    open: Vec<OpenContainer>,
    /// Entry offsets of all open containers, innermost last.
    offsets: Vec<u32>,
    /// Reused when a large object sorts its names.
    ranks: Vec<(u64, u32)>,
}

struct OpenContainer {
    start: usize,
    first_offset: usize,
    is_object: bool,
}

impl Default for DocBuilder {
    fn default() -> DocBuilder {
        DocBuilder::new()
    }
}

impl DocBuilder {
    pub fn new() -> DocBuilder {
        DocBuilder::with_capacity(256)
    }

    pub fn with_capacity(bytes: usize) -> DocBuilder {
        let mut out = Vec::with_capacity(bytes + 1);
        out.push(FORMAT_VERSION);
        DocBuilder { out, open: Vec::new(), offsets: Vec::new(), ranks: Vec::new() }
    }

    /// Ends the document. Nothing written gives the document `null`.
    pub fn finish(mut self) -> Doc {
        assert!(self.open.is_empty(), "every container must be ended before the document is");
        if self.out.len() == 1 {
            self.null();
        }
        Doc::from_trusted(Bytes::from(self.out))
    }

    /// How long the document is so far, without the tables of containers that are still open.
    pub fn byte_len(&self) -> usize {
        self.out.len()
    }

    /// How many containers are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether the innermost open container is an object; none when no container is open.
    pub(crate) fn in_object(&self) -> Option<bool> {
        self.open.last().map(|container| container.is_object)
    }

    pub fn begin_object(&mut self) -> &mut DocBuilder {
        self.begin(TAG_OBJECT)
    }

    pub fn begin_array(&mut self) -> &mut DocBuilder {
        self.begin(TAG_ARRAY)
    }

    pub fn name(&mut self, name: &str) -> &mut DocBuilder {
        debug_assert_eq!(self.in_object(), Some(true), "only objects have names");
        self.mark_entry();
        write_varint(name.len() as u64, &mut self.out);
        self.out.extend_from_slice(name.as_bytes());
        self
    }

    pub fn null(&mut self) -> &mut DocBuilder {
        self.tag(TAG_NULL)
    }

    pub fn bool(&mut self, value: bool) -> &mut DocBuilder {
        self.tag(if value { TAG_TRUE } else { TAG_FALSE })
    }

    pub fn int(&mut self, value: i64) -> &mut DocBuilder {
        self.tag(TAG_INT);
        write_varint(zigzag(value), &mut self.out);
        self
    }

    pub fn double(&mut self, value: f64) -> &mut DocBuilder {
        self.tag(TAG_DOUBLE);
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn str(&mut self, value: &str) -> &mut DocBuilder {
        self.tag(TAG_STRING);
        write_varint(value.len() as u64, &mut self.out);
        self.out.extend_from_slice(value.as_bytes());
        self
    }

    /// A scalar of a type that JSON does not have.
    pub fn typed(&mut self, value: Typed<'_>) -> &mut DocBuilder {
        self.tag(value.tag());
        write_payload(value, &mut self.out);
        self
    }

    /// Copies a value of any document; containers are copied as one slice. Undefined has no place in
    /// a document and becomes null: a caller that must leave it out asks before.
    pub fn value(&mut self, value: Value<'_>) -> &mut DocBuilder {
        match value {
            Value::Undefined | Value::Null => self.null(),
            Value::Bool(value) => self.bool(value),
            Value::Int(value) => self.int(value),
            Value::Double(value) => self.double(value),
            Value::Str(value) => self.str(value),
            Value::Array(array) => self.slice(array.encoded()),
            Value::Object(object) => self.slice(object.encoded()),
            Value::Map(map) => self.slice(map.encoded()),
            Value::Typed(value) => self.typed(value),
        }
    }

    /// Name and value in one call; an undefined value leaves the field out.
    pub fn field(&mut self, name: &str, value: Value<'_>) -> &mut DocBuilder {
        if !value.is_undefined() {
            self.name(name).value(value);
        }
        self
    }

    pub fn end_array(&mut self) -> &mut DocBuilder {
        let container = self.open.pop().expect("end_array follows begin_array");
        debug_assert!(!container.is_object, "an object ends with end_object");
        self.write_offsets(&container);
        self.close(&container)
    }

    pub fn end_object(&mut self) -> &mut DocBuilder {
        let container = self.open.pop().expect("end_object follows begin_object");
        debug_assert!(container.is_object, "an array ends with end_array");
        if self.offsets.len() - container.first_offset > SCAN_LIMIT {
            if self.sort_names(&container) {
                self.merge_duplicates(&container);
                self.sort_names(&container);
            }
        } else if self.repeats_name(&container) {
            self.merge_duplicates(&container);
        }
        self.write_offsets(&container);
        let len = self.offsets.len() - container.first_offset;
        match rank_width(len) {
            0 => {}
            2 => self.out.extend(self.ranks.iter().flat_map(|&(_, i)| (i as u16).to_le_bytes())),
            _ => self.out.extend(self.ranks.iter().flat_map(|&(_, i)| i.to_le_bytes())),
        }
        self.close(&container)
    }

    fn begin(&mut self, tag: u8) -> &mut DocBuilder {
        self.tag(tag);
        let start = self.out.len() - 1;
        // Size and count follow when the container ends.
        self.out.extend_from_slice(&[0; CONTAINER_HEADER - 1]);
        self.open.push(OpenContainer {
            start,
            first_offset: self.offsets.len(),
            is_object: matches!(tag, TAG_OBJECT | TAG_UDT),
        });
        self
    }

    fn tag(&mut self, tag: u8) -> &mut DocBuilder {
        if self.in_object() == Some(false) {
            self.mark_entry();
        }
        self.out.push(tag);
        self
    }

    fn slice(&mut self, encoded: &[u8]) -> &mut DocBuilder {
        if self.in_object() == Some(false) {
            self.mark_entry();
        }
        self.out.extend_from_slice(encoded);
        self
    }

    fn mark_entry(&mut self) {
        if let Some(container) = self.open.last() {
            self.offsets.push(offset_u32(self.out.len() - container.start));
        }
    }

    fn write_offsets(&mut self, container: &OpenContainer) {
        let offsets = &self.offsets[container.first_offset..];
        self.out.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    }

    fn close(&mut self, container: &OpenContainer) -> &mut DocBuilder {
        let len = offset_u32(self.offsets.len() - container.first_offset);
        let size = offset_u32(self.out.len() - container.start);
        self.out[container.start + 1..][..4].copy_from_slice(&size.to_le_bytes());
        self.out[container.start + 5..][..4].copy_from_slice(&len.to_le_bytes());
        self.offsets.truncate(container.first_offset);
        self
    }

    /// Whether a small object has a name twice. A 64-bit mask of name fingerprints answers "no" for
    /// nearly all objects without comparing names.
    fn repeats_name(&self, container: &OpenContainer) -> bool {
        let body = &self.out[container.start..];
        let offsets = &self.offsets[container.first_offset..];
        let mut seen = 0u64;
        for (i, &offset) in offsets.iter().enumerate() {
            let name = name_at(body, offset);
            let ends = match name {
                [] => 0,
                [first, .., last] => usize::from(*first) * 5 + usize::from(*last) * 3,
                [only] => usize::from(*only),
            };
            let bit = 1u64 << ((ends + name.len() * 11) & 63);
            if seen & bit != 0 && offsets[..i].iter().any(|&o| name_at(body, o) == name) {
                return true;
            }
            seen |= bit;
        }
        false
    }

    /// Fills `ranks` with the positions of the fields in name order; true if a name is there twice.
    fn sort_names(&mut self, container: &OpenContainer) -> bool {
        let body = &self.out[container.start..];
        let offsets = &self.offsets[container.first_offset..];
        let name = |i: u32| name_at(body, offsets[i as usize]);
        self.ranks.clear();
        // The first bytes of a name, compared as one number, decide nearly always.
        self.ranks.extend((0..offset_u32(offsets.len())).map(|i| (first_bytes(name(i)), i)));
        self.ranks.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| name(a.1).cmp(name(b.1))));
        self.ranks.windows(2).any(|pair| pair[0].0 == pair[1].0 && name(pair[0].1) == name(pair[1].1))
    }

    /// Rewrites the object's entries so that each name keeps its first place and its last value.
    fn merge_duplicates(&mut self, container: &OpenContainer) {
        let body = &self.out[container.start..];
        let offsets = &self.offsets[container.first_offset..];
        let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(offsets.len());
        let mut entries: Vec<&[u8]> = Vec::with_capacity(offsets.len());
        for (i, &offset) in offsets.iter().enumerate() {
            let end = offsets.get(i + 1).map_or(body.len(), |&next| next as usize);
            let entry = &body[offset as usize..end];
            let place = *places.entry(name_at(body, offset)).or_insert(entries.len());
            if place == entries.len() {
                entries.push(entry);
            } else {
                entries[place] = entry;
            }
        }
        let lengths: Vec<usize> = entries.iter().map(|entry| entry.len()).collect();
        let merged = entries.concat();
        self.out.truncate(container.start + CONTAINER_HEADER);
        self.out.extend_from_slice(&merged);
        self.offsets.truncate(container.first_offset);
        let mut offset = CONTAINER_HEADER;
        for length in lengths {
            self.offsets.push(offset_u32(offset));
            offset += length;
        }
    }
}

fn name_at(body: &[u8], offset: u32) -> &[u8] {
    read_blob(&body[offset as usize..]).map_or(&[], |(name, _)| name)
}

/// The first eight bytes as a number that sorts as they do; a shorter name sorts as if zeros followed.
fn first_bytes(name: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = name.len().min(8);
    bytes[..length].copy_from_slice(&name[..length]);
    u64::from_be_bytes(bytes)
}

fn offset_u32(offset: usize) -> u32 {
    u32::try_from(offset).expect("a document is smaller than 4 GiB")
}
