//! The schemas of batches: which columns a row has, of which type, and where.

/// The layout of a row. Columns are in order: fixed, variable, sparse.
#[derive(Debug, PartialEq, Eq)]
pub struct Schema {
    pub id: u32,
    pub columns: &'static [Column],
}

#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Type,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int32,
    UInt32,
    Float64,
    Utf8,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Fixed,
    Variable,
    Sparse,
}

use Place::{Fixed, Sparse, Variable};

const fn column(name: &'static str, kind: Type, place: Place) -> Column {
    Column { name, kind, place }
}

/// What stands before all records. The last column is a set of schemas, which nobody sends and which is not read.
pub static SEGMENT: Schema = Schema {
    id: 0x7FFF_D8F0,
    columns: &[
        column("length", Type::Int32, Fixed),
        column("comment", Type::Utf8, Sparse),
        column("sdl", Type::Utf8, Sparse),
        column("schema", Type::Binary, Sparse),
    ],
};

/// The schema id of what stands before each row. It has two columns that are always there, and so no presence bits.
pub const RECORD_ID: u32 = 0x7FFF_D8F1;

/// One operation of a batch.
pub static OPERATION: Schema = Schema {
    id: 2_145_473_648,
    columns: &[
        column("operationType", Type::Int32, Fixed),
        column("resourceType", Type::Int32, Fixed),
        column("partitionKey", Type::Utf8, Variable),
        column("effectivePartitionKey", Type::Binary, Variable),
        column("id", Type::Utf8, Variable),
        column("binaryId", Type::Binary, Variable),
        column("resourceBody", Type::Binary, Variable),
        column("indexingDirective", Type::Utf8, Sparse),
        column("ifMatch", Type::Utf8, Sparse),
        column("ifNoneMatch", Type::Utf8, Sparse),
        column("timeToLiveInSeconds", Type::Int32, Sparse),
        column("minimalReturnPreference", Type::Bool, Sparse),
    ],
};

/// What became of one operation. Clients call the typed reader of each column, so the types must be exactly these.
pub static RESULT: Schema = Schema {
    id: 2_145_473_649,
    columns: &[
        column("statusCode", Type::Int32, Fixed),
        column("subStatusCode", Type::Int32, Fixed),
        column("eTag", Type::Utf8, Variable),
        column("resourceBody", Type::Binary, Variable),
        column("retryAfterMilliseconds", Type::UInt32, Sparse),
        column("requestCharge", Type::Float64, Sparse),
    ],
};

impl Schema {
    /// How many columns have a presence bit.
    pub fn placed(&self) -> usize {
        self.columns.iter().take_while(|column| column.place != Sparse).count()
    }

    /// Bytes of presence bits.
    pub fn presence_bytes(&self) -> usize {
        self.placed().div_ceil(8)
    }

    pub fn index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_their_places() {
        for schema in [&SEGMENT, &OPERATION, &RESULT] {
            assert!(schema.columns.is_sorted_by_key(|column| column.place), "{schema:?}");
            assert_eq!(schema.presence_bytes(), 1);
            // A boolean in a fixed place would be a presence bit, which is not read.
            let flag = schema.columns.iter().find(|column| column.kind == Type::Bool);
            assert!(flag.is_none_or(|column| column.place == Sparse));
        }
    }
}
