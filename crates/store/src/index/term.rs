//! Where the terms of an entry end.

use crate::indexing::term_len;

/// The terms at the start of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermLength {
    pub bytes: usize,
    /// They hold only the beginning of a long value, so that other values may share them.
    pub cut: bool,
}

/// Measures the terms at the start of the bytes: one for each part, up to and including the first that was cut.
/// `parts` says of which parts the bits are turned, because they are descending.
pub fn measure(bytes: &[u8], parts: &[bool]) -> Option<TermLength> {
    let mut length = 0;
    for &turned in parts {
        let (term, complete) = term_len(bytes.get(length..)?, turned)?;
        length += term;
        if !complete {
            return Some(TermLength { bytes: length, cut: true });
        }
    }
    Some(TermLength { bytes: length, cut: false })
}
