//! Decimal numbers: BSON's of 128 bits, CQL's decimal and varint.

use std::cmp::Ordering;
use std::fmt::Write as _;

/// The most bytes of the integer inside a varint or decimal: 2,466 digits. The digits of an integer cost the square of
/// its length, so that a longer one would cost more than its bytes let expect.
pub const MAX_INTEGER_BYTES: usize = 1024;

/// BSON's decimal128, in the bytes in which BSON has it: the binary integer form of IEEE 754-2008, little endian. All
/// of its 2^128 patterns are kept, also those that are other ways to write a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Decimal128([u8; 16]);

/// CQL's decimal: an integer divided by a power of ten.
#[derive(Clone, Copy)]
pub struct DecimalRef<'a> {
    scale: i32,
    unscaled: VarintRef<'a>,
}

/// CQL's varint: an integer of any length, in the two's complement with its most significant byte first.
#[derive(Clone, Copy)]
pub struct VarintRef<'a>(&'a [u8]);

impl<'a> VarintRef<'a> {
    /// None for no bytes, or for more than [`MAX_INTEGER_BYTES`].
    pub fn new(bytes: &'a [u8]) -> Option<VarintRef<'a>> {
        (1..=MAX_INTEGER_BYTES).contains(&bytes.len()).then_some(VarintRef(bytes))
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn number(self) -> Number {
        Number::Finite(Decimal { exponent: 0, ..integer(self.0) })
    }
}

impl<'a> DecimalRef<'a> {
    /// The number `unscaled / 10^scale`, under the terms of [`VarintRef::new`].
    pub fn new(scale: i32, unscaled: &'a [u8]) -> Option<DecimalRef<'a>> {
        VarintRef::new(unscaled).map(|unscaled| DecimalRef { scale, unscaled })
    }

    pub fn scale(self) -> i32 {
        self.scale
    }

    pub fn unscaled(self) -> VarintRef<'a> {
        self.unscaled
    }

    pub(crate) fn number(self) -> Number {
        Number::Finite(Decimal { exponent: -i64::from(self.scale), ..integer(self.unscaled.0) })
    }
}

impl Decimal128 {
    const EXPONENT_BIAS: i64 = 6176;
    const LARGEST: u128 = 10u128.pow(34) - 1;

    pub fn from_bytes(bytes: [u8; 16]) -> Decimal128 {
        Decimal128(bytes)
    }

    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    pub(crate) fn number(self) -> Number {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0x1f {
            0x1f => return Number::Nan,
            0x1e => return Number::Infinite { negative },
            _ => {}
        }
        // With two leading ones the coefficient is larger than 34 digits can be, and counts as zero.
        let is_large = (bits >> 125) & 3 == 3;
        let exponent = (bits >> if is_large { 111 } else { 113 }) & 0x3fff;
        let coefficient = if is_large { 0 } else { bits & ((1 << 113) - 1) };
        let coefficient = if coefficient > Self::LARGEST { 0 } else { coefficient };
        Number::Finite(Decimal {
            negative,
            digits: coefficient.to_string().into_bytes(),
            exponent: exponent as i64 - Self::EXPONENT_BIAS,
        })
    }
}

/// What a decimal type can say.
pub(crate) enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Decimal),
}

/// A finite number as it was written: its digits, at least one, times a power of ten.
pub(crate) struct Decimal {
    pub negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// The text that decimal types share: plain unless the exponent is positive or the number below 1e-6. It is a number
    /// of JSON too.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.digits.len() + 8);
        if self.negative {
            out.push('-');
        }
        let digits = std::str::from_utf8(&self.digits).unwrap_or_default();
        let count = digits.len() as i64;
        let scientific = count - 1 + self.exponent;
        if self.exponent > 0 || scientific < -6 {
            let (first, rest) = digits.split_at(1);
            out.push_str(first);
            if !rest.is_empty() {
                out.push('.');
                out.push_str(rest);
            }
            let _ = write!(out, "E{scientific:+}");
        } else if self.exponent == 0 {
            out.push_str(digits);
        } else if count + self.exponent > 0 {
            let (whole, fraction) = digits.split_at((count + self.exponent) as usize);
            let _ = write!(out, "{whole}.{fraction}");
        } else {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', (-self.exponent - count) as usize));
            out.push_str(digits);
        }
        out
    }

    /// The nearest double; infinite for numbers beyond all doubles.
    pub fn to_f64(&self) -> f64 {
        self.text().parse().unwrap_or(f64::NAN)
    }

    /// The same number without the way in which it was written.
    pub fn digits(&self) -> Digits {
        let first = self.digits.iter().position(|digit| *digit != b'0').unwrap_or(self.digits.len());
        let end = self.digits.iter().rposition(|digit| *digit != b'0').map_or(first, |last| last + 1);
        let digits: Vec<u8> = self.digits[first..end].iter().map(|digit| digit - b'0').collect();
        // The point stands in front of the first digit.
        let exponent = self.exponent + (self.digits.len() - first) as i64;
        Digits { negative: self.negative && !digits.is_empty(), exponent, digits }
    }
}

/// A finite number: `0.digits` times a power of ten, with no zero at either end of the digits. Zero has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digits {
    pub negative: bool,
    pub exponent: i64,
    pub digits: Vec<u8>,
}

impl Digits {
    pub fn of_i64(number: i64) -> Digits {
        let digits = number.unsigned_abs().to_string().into_bytes();
        Decimal { negative: number < 0, digits, exponent: 0 }.digits()
    }

    /// All digits of a finite double. No double has more than 767.
    pub fn of_f64(number: f64) -> Digits {
        let text = format!("{:.766e}", number.abs());
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
        let exponent = exponent.parse::<i64>().unwrap_or_default() - digits.len() as i64 + 1;
        Decimal { negative: number < 0.0, digits, exponent }.digits()
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    fn magnitude(&self, other: &Digits) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => (self.exponent, &self.digits).cmp(&(other.exponent, &other.digits)),
        }
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Digits) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Digits) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (negative, _) if negative => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

/// The digits of an integer in the two's complement, most significant byte first.
fn integer(bytes: &[u8]) -> Decimal {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    if bytes.len() <= 16 {
        let mut wide = [fill; 16];
        wide[16 - bytes.len()..].copy_from_slice(bytes);
        let digits = i128::from_be_bytes(wide).unsigned_abs().to_string().into_bytes();
        return Decimal { negative, digits, exponent: 0 };
    }
    Decimal { negative, digits: long_digits(&magnitude(bytes, negative)), exponent: 0 }
}

/// The magnitude in words of 64 bits, the lowest first.
fn magnitude(bytes: &[u8], negative: bool) -> Vec<u64> {
    let fill = if negative { 0xff } else { 0 };
    let mut words: Vec<u64> = bytes
        .rchunks(8)
        .map(|chunk| {
            let mut word = [fill; 8];
            word[8 - chunk.len()..].copy_from_slice(chunk);
            u64::from_be_bytes(word)
        })
        .collect();
    if negative {
        let mut carry = true;
        for word in &mut words {
            let (negated, carried) = (!*word).overflowing_add(u64::from(carry));
            (*word, carry) = (negated, carried);
        }
        if carry {
            words.push(1);
        }
    }
    words
}

/// The decimal digits of a number, taken from its end 19 at a time.
fn long_digits(words: &[u64]) -> Vec<u8> {
    const STEP: u128 = 10u128.pow(19);
    let mut words = words.to_vec();
    let mut groups: Vec<u64> = Vec::new();
    loop {
        while words.last() == Some(&0) {
            words.pop();
        }
        if words.is_empty() {
            break;
        }
        let mut rest = 0u128;
        for word in words.iter_mut().rev() {
            let part = rest << 64 | u128::from(*word);
            *word = (part / STEP) as u64;
            rest = part % STEP;
        }
        groups.push(rest as u64);
    }
    let mut text = groups.pop().unwrap_or(0).to_string();
    for group in groups.iter().rev() {
        let _ = write!(text, "{group:019}");
    }
    text.into_bytes()
}
