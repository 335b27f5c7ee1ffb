//! JSON text in and out.

mod parse;
mod write;

pub use parse::{DEFAULT_MAX_DEPTH, JsonError, JsonErrorKind, MAX_TEXT_BYTES, parse, parse_wide};
pub use write::{size, write, write_fields, write_str};

/// Whether text is ASCII and needs no escape. Signed, the bytes beyond ASCII are as low as control characters.
pub(crate) fn is_plain_ascii(bytes: &[u8]) -> bool {
    let special = |byte: u8| ((byte as i8) < 0x20) | (byte == b'"') | (byte == b'\\');
    let plain = |block: &[u8]| !block.iter().fold(false, |found, byte| found | special(*byte));
    let (blocks, rest) = bytes.as_chunks::<32>();
    blocks.iter().all(|block| plain(block)) && plain(rest)
}

/// How many bytes at the start of a string need no escape: everything before the first quote, backslash or
/// control character. Most of what is read and written is the inside of strings, so whole blocks are passed over
/// in a form that compilers turn into vector instructions.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let special = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    let (blocks, _) = bytes.as_chunks::<32>();
    let plain_block = |block: &[u8; 32]| !block.iter().fold(false, |found, byte| found | special(*byte));
    let start = blocks.iter().take_while(|block| plain_block(block)).count() * 32;
    let rest = &bytes[start..];
    start + rest.iter().position(|byte| special(*byte)).unwrap_or(rest.len())
}
