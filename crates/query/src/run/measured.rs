//! Rows of which only their number and length are wanted.

use crate::error::Result;
use crate::value::Val;

use super::Sink;

/// Tells when a page is full, as [`Rows`](super::Rows) would, and keeps nothing of it.
#[derive(Debug, Default)]
pub struct Measured {
    /// The last row.
    row: Vec<u8>,
    rows: usize,
    bytes: usize,
}

impl Sink for Measured {
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()> {
        self.row.clear();
        row.write_row(&mut self.row, bytes_max)?;
        self.rows += 1;
        self.bytes += self.row.len();
        Ok(())
    }

    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()> {
        row.write_row(held, bytes_max)
    }

    fn push_held(&mut self, held: &[u8]) {
        self.rows += 1;
        self.bytes += held.len();
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn byte_len(&self) -> usize {
        self.bytes
    }

    fn memory_bytes(&self) -> usize {
        self.row.capacity()
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::Value;

    use super::super::Rows;
    use super::*;

    #[test]
    fn what_is_measured_is_as_long_as_what_is_kept_and_takes_no_memory() {
        let (mut kept, mut measured) = (Rows::default(), Measured::default());
        let text = "x".repeat(1_000);
        for number in 0..1_000 {
            for row in [Val::from(Value::Int(number)), Val::from(Value::Str(&text)), Val::Undefined] {
                let pushed =
                    [kept.push(&row, 2_000), measured.push(&row, 2_000)].map(|pushed| pushed.is_ok());
                assert_eq!(pushed[0], pushed[1]);
            }
            let (mut first, mut second) = (Vec::new(), Vec::new());
            kept.hold(&Val::from(Value::Int(number)), 100, &mut first).expect("it is short");
            measured.hold(&Val::from(Value::Int(number)), 100, &mut second).expect("it is short");
            assert_eq!(first, second);
            kept.push_held(&first);
            measured.push_held(&second);
            assert_eq!((Sink::len(&kept), Sink::byte_len(&kept)), (measured.len(), measured.byte_len()));
        }
        assert!(measured.byte_len() > 1_000_000 && measured.memory_bytes() < 10_000);
    }
}
