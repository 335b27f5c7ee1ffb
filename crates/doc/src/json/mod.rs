//! JSON text in and out.

mod parse;
mod write;

pub use parse::{DEFAULT_MAX_DEPTH, JsonError, JsonErrorKind, MAX_TEXT_BYTES, parse};
pub use write::{size, write, write_fields, write_str};

/// How many bytes at the start of a string need no escape: everything before the first quote, backslash or
/// control character. Eight bytes are looked at together, because most of what is read and written is the
/// inside of strings.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Sets the high bit of bytes below `limit`. A borrow can set it in bytes further up too, but never below
    // the first true one, and only the first one counts.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let (words, tail) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | backslash;
        if found != 0 {
            return i * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    let rest = tail.iter().position(|byte| !plain(byte)).unwrap_or(tail.len());
    bytes.len() - tail.len() + rest
}
