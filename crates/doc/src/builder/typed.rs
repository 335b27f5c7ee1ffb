//! What a builder offers for types that JSON does not have, one method for each.

use std::net::IpAddr;

use super::DocBuilder;
use crate::cell::{Cell, Content};
use crate::format::{TAG_CELL, TAG_LIST, TAG_MAP, TAG_SET, TAG_TUPLE, TAG_UDT, write_varint};
use crate::typed::{Decimal128, DecimalRef, Duration, ScopedCode, TimeOfDay, Typed, VarintRef};
use crate::value::{ObjectRef, Value};

impl DocBuilder {
    pub fn int32(&mut self, value: i32) -> &mut DocBuilder {
        self.typed(Typed::Int32(value))
    }

    pub fn int16(&mut self, value: i16) -> &mut DocBuilder {
        self.typed(Typed::Int16(value))
    }

    pub fn int8(&mut self, value: i8) -> &mut DocBuilder {
        self.typed(Typed::Int8(value))
    }

    pub fn float32(&mut self, value: f32) -> &mut DocBuilder {
        self.typed(Typed::Float32(value))
    }

    pub fn decimal128(&mut self, value: Decimal128) -> &mut DocBuilder {
        self.typed(Typed::Decimal128(value))
    }

    pub fn decimal(&mut self, value: DecimalRef<'_>) -> &mut DocBuilder {
        self.typed(Typed::Decimal(value))
    }

    pub fn varint(&mut self, value: VarintRef<'_>) -> &mut DocBuilder {
        self.typed(Typed::Varint(value))
    }

    pub fn binary(&mut self, subtype: u8, bytes: &[u8]) -> &mut DocBuilder {
        self.typed(Typed::Binary { subtype, bytes })
    }

    /// Milliseconds since 1970.
    pub fn date(&mut self, milliseconds: i64) -> &mut DocBuilder {
        self.typed(Typed::Date(milliseconds))
    }

    pub fn timestamp(&mut self, seconds: u32, increment: u32) -> &mut DocBuilder {
        self.typed(Typed::Timestamp { seconds, increment })
    }

    pub fn object_id(&mut self, id: [u8; 12]) -> &mut DocBuilder {
        self.typed(Typed::ObjectId(id))
    }

    pub fn uuid(&mut self, id: [u8; 16]) -> &mut DocBuilder {
        self.typed(Typed::Uuid(id))
    }

    pub fn time_uuid(&mut self, id: [u8; 16]) -> &mut DocBuilder {
        self.typed(Typed::TimeUuid(id))
    }

    pub fn regex(&mut self, pattern: &str, options: &str) -> &mut DocBuilder {
        self.typed(Typed::Regex { pattern, options })
    }

    pub fn code(&mut self, code: &str) -> &mut DocBuilder {
        self.typed(Typed::Code(code))
    }

    pub fn scoped_code(&mut self, code: &str, scope: ObjectRef<'_>) -> &mut DocBuilder {
        self.typed(Typed::ScopedCode(ScopedCode::new(code, scope)))
    }

    pub fn symbol(&mut self, symbol: &str) -> &mut DocBuilder {
        self.typed(Typed::Symbol(symbol))
    }

    pub fn db_pointer(&mut self, collection: &str, id: [u8; 12]) -> &mut DocBuilder {
        self.typed(Typed::DbPointer { collection, id })
    }

    /// BSON's undefined, which takes the place of a value.
    pub fn undefined(&mut self) -> &mut DocBuilder {
        self.typed(Typed::Undefined)
    }

    pub fn min_key(&mut self) -> &mut DocBuilder {
        self.typed(Typed::MinKey)
    }

    pub fn max_key(&mut self) -> &mut DocBuilder {
        self.typed(Typed::MaxKey)
    }

    pub fn inet(&mut self, address: IpAddr) -> &mut DocBuilder {
        self.typed(Typed::Inet(address))
    }

    /// CQL's date: days since 1970.
    pub fn day(&mut self, days: i32) -> &mut DocBuilder {
        self.typed(Typed::Day(days))
    }

    pub fn time(&mut self, time: TimeOfDay) -> &mut DocBuilder {
        self.typed(Typed::Time(time))
    }

    pub fn duration(&mut self, duration: Duration) -> &mut DocBuilder {
        self.typed(Typed::Duration(duration))
    }

    /// Lists, sets and tuples end with [`end_array`](DocBuilder::end_array).
    pub fn begin_list(&mut self) -> &mut DocBuilder {
        self.begin(TAG_LIST)
    }

    /// The caller gives the elements in order, each once.
    pub fn begin_set(&mut self) -> &mut DocBuilder {
        self.begin(TAG_SET)
    }

    pub fn begin_tuple(&mut self) -> &mut DocBuilder {
        self.begin(TAG_TUPLE)
    }

    /// A value of a user-defined type, which ends with [`end_object`](DocBuilder::end_object). The caller gives the
    /// fields in the order of the type.
    pub fn begin_user_defined(&mut self) -> &mut DocBuilder {
        self.begin(TAG_UDT)
    }

    /// A map: keys and values in turn, in the order of the keys.
    pub fn begin_map(&mut self) -> &mut DocBuilder {
        self.begin(TAG_MAP)
    }

    pub fn end_map(&mut self) -> &mut DocBuilder {
        let entries = self.offsets.len() - self.open.last().map_or(0, |container| container.first_offset);
        assert!(entries.is_multiple_of(2), "every key of a map has a value");
        self.end_array()
    }

    /// A value with the time of its writing, or the trace of a deletion.
    pub fn cell(&mut self, cell: &Cell<'_>) -> &mut DocBuilder {
        self.tag(TAG_CELL);
        let mut head = Vec::with_capacity(24);
        cell.write_head(&mut head);
        let start = self.out.len();
        self.out.extend_from_slice(&head);
        if let Content::Value(value) = cell.content {
            self.inside(value);
        }
        // The length is known only now. Most cells are scalars, so that there is little to move.
        let mut length = Vec::with_capacity(5);
        write_varint((self.out.len() - start) as u64, &mut length);
        self.out.splice(start..start, length);
        self
    }

    /// Writes a value that is part of another and no entry of the container around both.
    fn inside(&mut self, value: Value<'_>) {
        let open = std::mem::take(&mut self.open);
        self.value(value);
        self.open = open;
    }
}
