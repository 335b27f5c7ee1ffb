//! The place of a number among all numbers, whatever their types.
//!
//! It is the nearest double, on which side of it the number lies, and, where it is not the double itself, the number's
//! own digits. So `1`, `1.0` and a decimal of one meet in one place, and every integer and decimal has its own.

use std::cmp::Ordering;

use super::TermOrder;
use crate::typed::{Digits, Number, Typed};
use crate::value::Value;

/// Where a number lies. Places compare as their numbers do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The bits of the nearest double, turned so that they sort as an unsigned number.
    pub bits: u64,
    pub side: Side,
    /// The number, unless it is the double itself.
    pub digits: Option<Digits>,
}

/// How a number lies to its double.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Below all doubles but the infinite one.
    FarBelow = 0x7e,
    Below = 0x7f,
    Same = 0x80,
    Above = 0x81,
    FarAbove = 0x82,
}

impl Place {
    /// The place of a number in the order of BSON or CQL; none for other values.
    pub fn of(value: Value<'_>, order: TermOrder) -> Option<Place> {
        let integer = |number: i64| Place::of_integer(number, order);
        Some(match value {
            Value::Int(number) => integer(number),
            Value::Double(number) => Place::of_double(number, order),
            Value::Typed(Typed::Int32(number)) => integer(i64::from(number)),
            Value::Typed(Typed::Int16(number)) => integer(i64::from(number)),
            Value::Typed(Typed::Int8(number)) => integer(i64::from(number)),
            Value::Typed(Typed::Float32(number)) => Place::of_double(f64::from(number), order),
            Value::Typed(value) => match value.decimal()? {
                Number::Nan => Place::of_double(f64::NAN, order),
                Number::Infinite { negative: false } => Place::of_double(f64::INFINITY, order),
                Number::Infinite { negative: true } => Place::of_double(f64::NEG_INFINITY, order),
                Number::Finite(number) => Place::of_decimal(number.to_f64(), number.digits(), order),
            },
            _ => return None,
        })
    }

    fn of_double(number: f64, order: TermOrder) -> Place {
        Place { bits: sortable(number, order), side: Side::Same, digits: None }
    }

    fn of_integer(number: i64, order: TermOrder) -> Place {
        let double = number as f64;
        match i128::from(number).cmp(&(double as i128)) {
            Ordering::Equal => Place::of_double(double, order),
            side => Place::beside(double, side, Digits::of_i64(number), order),
        }
    }

    fn of_decimal(nearest: f64, digits: Digits, order: TermOrder) -> Place {
        if digits.is_zero() {
            return Place::of_double(0.0, order);
        }
        if nearest.is_infinite() {
            let largest = f64::MAX.copysign(nearest);
            let side = if digits.negative { Side::FarBelow } else { Side::FarAbove };
            return Place { bits: sortable(largest, order), side, digits: Some(digits) };
        }
        match digits.cmp(&Digits::of_f64(nearest)) {
            Ordering::Equal => Place::of_double(nearest, order),
            side => Place::beside(nearest, side, digits, order),
        }
    }

    fn beside(double: f64, side: Ordering, digits: Digits, order: TermOrder) -> Place {
        let side = if side == Ordering::Less { Side::Below } else { Side::Above };
        Place { bits: sortable(double, order), side, digits: Some(digits) }
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        (self.bits, self.side).cmp(&(other.bits, other.side)).then_with(|| self.digits.cmp(&other.digits))
    }
}

/// The bits of a double as an unsigned number that sorts as the double does. Not-a-number is below all numbers, and the
/// two zeros are one; but CQL has it above all, and the negative zero below the other.
fn sortable(double: f64, order: TermOrder) -> u64 {
    let is_cql = order == TermOrder::Cql;
    if double.is_nan() {
        if is_cql { u64::MAX } else { 0 }
    } else if double == 0.0 && !(is_cql && double.is_sign_negative()) {
        1 << 63
    } else if double > 0.0 {
        double.to_bits() | 1 << 63
    } else {
        !double.to_bits()
    }
}

/// The number as SQL has it: the double, and the integer difference that rounding to it lost.
pub(super) fn sql_place(value: Value<'_>) -> (u64, i16) {
    match value {
        Value::Int(number) => {
            let double = number as f64;
            // At most 512: half of the distance between doubles just below 2^63.
            let difference = (i128::from(number) - double as i128) as i16;
            (sortable(double, TermOrder::Sql), difference)
        }
        Value::Double(double) => (sortable(double, TermOrder::Sql), 0),
        _ => (0, 0),
    }
}
