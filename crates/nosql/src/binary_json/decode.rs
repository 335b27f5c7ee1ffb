//! Values, numbers and containers, read front to back into the document format.

use orrery_doc::{Doc, DocBuilder};

use super::BinaryJsonErrorKind::{
    InvalidFrame, InvalidNumber, NameExpected, NotBinary, TooDeep, TrailingBytes, UnknownMarker,
};
use super::source::{Read, Source, width};
use super::strings::is_string;
use super::{BinaryJsonError, OUTPUT_BYTES_MAX, PREAMBLE};

const NULL: u8 = 0xD0;
const FALSE: u8 = 0xD1;
const TRUE: u8 = 0xD2;
const GUID: u8 = 0xD3;
const BYTES_FIRST: u8 = 0xDD;
const ARRAY_FIRST: u8 = 0xE0;
const OBJECT_FIRST: u8 = 0xE8;
const NUMBER_ARRAY_FIRST: u8 = 0xF0;
const NUMBER_ARRAYS_FIRST: u8 = 0xF2;

/// The first double that is too large for an `i64`.
const INT_END: f64 = 9_223_372_036_854_775_808.0;

/// Reads a body that holds exactly one value of any type.
///
/// Numbers are kept by value: whole ones that fit an `i64` become integers whatever form they came in, all
/// others doubles. `-0` is a double, as it is where text is read.
pub fn decode(body: &[u8], max_depth: usize) -> Result<Doc, BinaryJsonError> {
    let mut decoder = Decoder {
        source: Source::new(body, OUTPUT_BYTES_MAX),
        // A body can be announced much longer than any document that comes out of it.
        builder: DocBuilder::with_capacity((body.len() + body.len() / 4 + 16).min(OUTPUT_BYTES_MAX)),
        open: Vec::new(),
        max_depth: max_depth.min(orrery_doc::MAX_DEPTH),
    };
    if decoder.source.byte()? != PREAMBLE {
        return Err(BinaryJsonError { kind: NotBinary, offset: 0 });
    }
    decoder.document()?;
    Ok(decoder.builder.finish())
}

struct Decoder<'a> {
    source: Source<'a>,
    builder: DocBuilder,
    open: Vec<Frame>,
    max_depth: usize,
}

/// What is known about a container that is being read: where it ends, how many entries are left, or both.
struct Frame {
    is_object: bool,
    end: Option<usize>,
    left: Option<usize>,
}

enum Number {
    Int(i64),
    Double(f64),
}

impl Decoder<'_> {
    fn document(&mut self) -> Read<()> {
        self.value()?;
        while let Some(frame) = self.open.last_mut() {
            let at = self.source.at();
            if frame.is_complete(at).ok_or_else(|| self.source.error(InvalidFrame))? {
                if frame.is_object {
                    self.builder.end_object();
                } else {
                    self.builder.end_array();
                }
                self.open.pop();
                continue;
            }
            frame.left = frame.left.map(|left| left - 1);
            if frame.is_object {
                self.name()?;
            }
            self.value()?;
        }
        if self.source.is_at_end() { Ok(()) } else { Err(self.source.error(TrailingBytes)) }
    }

    fn name(&mut self) -> Read<()> {
        let marker = self.source.byte()?;
        if !is_string(marker) {
            return Err(self.source.marker_error(NameExpected));
        }
        // Two quotes and a colon.
        self.source.charge(3)?;
        let name = self.source.string(marker)?;
        self.builder.name(&name);
        Ok(())
    }

    /// Reads a value, or the beginning of a container whose entries follow.
    fn value(&mut self) -> Read<()> {
        let marker = self.source.byte()?;
        // One for the comma or bracket after the value and one for the shortest value there is.
        self.source.charge(2)?;
        if is_string(marker) {
            self.source.charge(1)?;
            let text = self.source.string(marker)?;
            self.builder.str(&text);
            return Ok(());
        }
        match marker {
            NULL => {
                self.builder.null();
            }
            FALSE | TRUE => {
                self.builder.bool(marker == TRUE);
            }
            GUID => {
                let text = self.source.guid_value()?;
                self.builder.str(&text);
            }
            BYTES_FIRST..=0xDF => {
                let text = self.source.bytes_value(width(marker - BYTES_FIRST))?;
                self.builder.str(&text);
            }
            ARRAY_FIRST..=0xE7 => self.container(marker - ARRAY_FIRST, false)?,
            OBJECT_FIRST..=0xEF => self.container(marker - OBJECT_FIRST, true)?,
            NUMBER_ARRAY_FIRST..=0xF1 => self.number_array(width(marker - NUMBER_ARRAY_FIRST))?,
            NUMBER_ARRAYS_FIRST..=0xF3 => self.number_arrays(marker - NUMBER_ARRAYS_FIRST)?,
            _ => self.number(marker)?,
        }
        Ok(())
    }

    /// The eight forms of arrays and of objects: empty, one entry, a length in three widths, a length and
    /// a count in three widths.
    fn container(&mut self, form: u8, is_object: bool) -> Read<()> {
        self.check_depth(1)?;
        let (end, left) = match form {
            0 | 1 => (None, Some(usize::from(form))),
            2..=4 => {
                let length = self.source.unsigned(width(form - 2))?;
                (Some(self.source.end_of(length)?), None)
            }
            _ => {
                let length = self.source.unsigned(width(form - 5))?;
                let count = self.source.unsigned(width(form - 5))?;
                (Some(self.source.end_of(length)?), Some(count))
            }
        };
        self.open.push(Frame { is_object, end, left });
        if is_object {
            self.builder.begin_object();
        } else {
            self.builder.begin_array();
        }
        Ok(())
    }

    /// An array of numbers that share one marker: the marker, their count, their bare payloads.
    fn number_array(&mut self, width: usize) -> Read<()> {
        self.check_depth(1)?;
        let marker = self.bare_marker()?;
        let count = self.source.unsigned(width)?;
        self.bare_numbers(marker, count)
    }

    /// An array of such arrays, all equally long: the head of the inner arrays, then the outer count.
    fn number_arrays(&mut self, form: u8) -> Read<()> {
        self.check_depth(2)?;
        if self.source.byte()? != NUMBER_ARRAY_FIRST + form {
            return Err(self.source.marker_error(UnknownMarker));
        }
        let marker = self.bare_marker()?;
        let inner = self.source.unsigned(width(form))?;
        let outer = self.source.unsigned(width(form))?;
        self.builder.begin_array();
        for _ in 0..outer {
            self.source.charge(2)?;
            self.bare_numbers(marker, inner)?;
        }
        self.builder.end_array();
        Ok(())
    }

    /// The marker of bare numbers. Only numbers of a given width can be bare.
    fn bare_marker(&mut self) -> Read<u8> {
        let marker = self.source.byte()?;
        if !matches!(marker, 0xCD..=0xCF | 0xD7..=0xDC) {
            return Err(self.source.marker_error(UnknownMarker));
        }
        Ok(marker)
    }

    fn bare_numbers(&mut self, marker: u8, count: usize) -> Read<()> {
        self.builder.begin_array();
        for _ in 0..count {
            self.source.charge(2)?;
            self.number(marker)?;
        }
        self.builder.end_array();
        Ok(())
    }

    fn number(&mut self, marker: u8) -> Read<()> {
        let number = self.source.number(marker)?;
        match number {
            Number::Int(value) => self.builder.int(value),
            Number::Double(value) => {
                // No number that is not whole has less than three letters.
                self.source.charge(2)?;
                self.builder.double(value)
            }
        };
        Ok(())
    }

    fn check_depth(&self, levels: usize) -> Read<()> {
        if self.open.len() + levels > self.max_depth {
            return Err(self.source.marker_error(TooDeep));
        }
        Ok(())
    }
}

impl Frame {
    /// Whether all entries are read; none if an entry went over the end, or length and count disagree.
    fn is_complete(&self, at: usize) -> Option<bool> {
        match (self.end, self.left) {
            (Some(end), _) if at > end => None,
            (Some(end), Some(left)) if (at == end) != (left == 0) => None,
            (Some(end), _) => Some(at == end),
            (None, left) => Some(left == Some(0)),
        }
    }
}

impl Source<'_> {
    fn number(&mut self, marker: u8) -> Read<Number> {
        let int = match marker {
            0x00..=0x1F => i64::from(marker),
            0xC8 | 0xD7 => i64::from(self.byte()?),
            0xD8 => i64::from(i8::from_le_bytes(self.array()?)),
            0xC9 | 0xD9 => i64::from(i16::from_le_bytes(self.array()?)),
            0xCA | 0xDA => i64::from(i32::from_le_bytes(self.array()?)),
            0xCB | 0xDB => i64::from_le_bytes(self.array()?),
            0xDC => i64::from(u32::from_le_bytes(self.array()?)),
            0xC7 => {
                let number = u64::from_le_bytes(self.array()?);
                return Ok(i64::try_from(number).map_or(Number::Double(number as f64), Number::Int));
            }
            0xCF => {
                let half = u16::from_le_bytes(self.array()?);
                return self.float(half_to_double(half));
            }
            0xCD => {
                let single = f32::from_le_bytes(self.array()?);
                return self.float(f64::from(single));
            }
            0xCC | 0xCE => {
                let double = f64::from_le_bytes(self.array()?);
                return self.float(double);
            }
            _ => return Err(self.marker_error(UnknownMarker)),
        };
        Ok(Number::Int(int))
    }

    fn float(&self, number: f64) -> Read<Number> {
        if !number.is_finite() {
            return Err(self.error(InvalidNumber));
        }
        let is_int = number.fract() == 0.0 && (-INT_END..INT_END).contains(&number);
        if is_int && !(number == 0.0 && number.is_sign_negative()) {
            return Ok(Number::Int(number as i64));
        }
        Ok(Number::Double(number))
    }
}

/// Half precision: a sign, five bits of exponent with a bias of 15, ten bits of fraction.
fn half_to_double(half: u16) -> f64 {
    let sign = if half >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(half >> 10 & 0x1F);
    let fraction = f64::from(half & 0x3FF);
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        0x1F => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}
