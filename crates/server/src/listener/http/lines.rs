//! Line ends of HTTP/1: CR LF and nothing else.
//!
//! The parser below takes a bare LF for the end of a line. Where a proxy in front does not, the two disagree about where a
//! request ends, and a client of the proxy can hide one request in another (request smuggling). The parser has no
//! option for this, so heads are looked at on their way to it. To know which bytes are a head one must know how long
//! bodies are; that takes two headers and the sizes of chunks, which are read here just as far. A mistake in that could only
//! make this check too strict or too lenient: what requests there are is still decided by the parser alone.
//!
//! In place of a bare LF, and of all that follows it, the parser gets the end of a head that no parser takes: the client
//! gets 400 and the connection ends, as after anything else that is not HTTP. Well-formed traffic pays for one search for the
//! ends of its lines.

use memchr::memchr_iter;

use super::super::stream::Check;
use crate::limits;

const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Not HTTP, whatever stands before it, and the end of a head: the parser looks at no head before it is whole.
const SPOILED: &[u8] = b"\0\r\n\r\n";

/// Where in the conversation the next byte is.
enum Place {
    /// At the very beginning, with so many bytes that could be those of HTTP/2.
    Preface(usize),
    Head,
    /// In a body, with so many bytes to come.
    Body(u64),
    ChunkSize,
    /// In a chunk, with so many bytes to come; its line end counts.
    Chunk(u64),
    Trailers,
    /// Nothing that comes is looked at: HTTP/2, or a connection that is about to end.
    Through,
}

/// Follows the heads of a connection and finds the first line that ends as it must not.
pub struct Lines {
    place: Place,
    /// The beginning of a line that came in pieces, up to the length that the parser takes, and its last byte.
    started: Vec<u8>,
    last: u8,
    /// What the head has said so far.
    has_lines: bool,
    length: u64,
    is_chunked: bool,
}

impl Lines {
    pub fn new() -> Lines {
        Lines {
            place: Place::Preface(0),
            started: Vec::new(),
            last: 0,
            has_lines: false,
            length: 0,
            is_chunked: false,
        }
    }
}

impl Check for Lines {
    const INSTEAD: &'static [u8] = SPOILED;

    /// Looks at the bytes that come next; returns where among them a line ends as it must not.
    fn wrong_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.place {
                Place::Through => return None,
                Place::Preface(seen) => {
                    let wanted = &HTTP2_PREFACE[seen..];
                    let same = wanted.iter().zip(rest).take_while(|(a, b)| a == b).count();
                    if same == wanted.len() {
                        self.place = Place::Through;
                    } else if same == rest.len() {
                        self.place = Place::Preface(seen + same);
                        return None;
                    } else {
                        self.start(&HTTP2_PREFACE[..seen]);
                        self.place = Place::Head;
                    }
                }
                Place::Body(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.place = if taken == left { Place::Head } else { Place::Body(left - taken) };
                    at += taken as usize;
                }
                Place::Chunk(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.place = if taken == left { Place::ChunkSize } else { Place::Chunk(left - taken) };
                    at += taken as usize;
                }
                Place::Head if self.is_between_requests() && is_plain_read(rest) => return None,
                Place::Head | Place::ChunkSize | Place::Trailers => match self.take_lines(rest) {
                    Ok(taken) => at += taken,
                    Err(end) => {
                        self.place = Place::Through;
                        return Some(at + end);
                    }
                },
            }
        }
        None
    }
}

impl Lines {
    /// Takes the lines at the beginning of some bytes, up to where something else begins, and says how many bytes that
    /// were; or where a line ends as it must not.
    fn take_lines(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        let mut begin = 0;
        for end in memchr_iter(b'\n', bytes) {
            let is_split = end == begin;
            let before = if is_split { self.last } else { bytes[end - 1] };
            if before != b'\r' || is_split && self.started.is_empty() {
                return Err(end);
            }
            self.end_line(&bytes[begin..end]);
            begin = end + 1;
            if !matches!(self.place, Place::Head | Place::ChunkSize | Place::Trailers) {
                return Ok(begin);
            }
        }
        self.start(&bytes[begin..]);
        Ok(bytes.len())
    }

    fn is_between_requests(&self) -> bool {
        !self.has_lines && self.started.is_empty()
    }

    /// Keeps the beginning of a line whose end has not come yet.
    fn start(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let room = limits::MAX_HEADER_BYTES.saturating_sub(self.started.len());
        self.started.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.last = *last;
    }

    /// Takes a line with its CR, of which an earlier part may have been kept.
    fn end_line(&mut self, end: &[u8]) {
        if self.started.is_empty() {
            return self.line(&end[..end.len() - 1]);
        }
        let mut line = std::mem::take(&mut self.started);
        line.extend_from_slice(end);
        line.pop();
        self.line(&line);
        line.clear();
        self.started = line;
    }

    /// Behind a head comes its body, or the next one.
    fn end_head(&mut self) {
        self.has_lines = false;
        let (is_chunked, length) = (std::mem::take(&mut self.is_chunked), std::mem::take(&mut self.length));
        self.place = match length {
            _ if is_chunked => Place::ChunkSize,
            0 => Place::Head,
            length => Place::Body(length),
        };
    }

    fn line(&mut self, line: &[u8]) {
        match self.place {
            Place::Head if line.is_empty() && self.has_lines => self.end_head(),
            // Empty lines in front of a request belong to no head.
            Place::Head if line.is_empty() => {}
            Place::Head => {
                self.has_lines = true;
                if !line.first().is_some_and(|first| matches!(first | 0x20, b'c' | b't')) {
                    return;
                }
                if let Some(value) = value_of(line, b"content-length:") {
                    self.length = number(value, 10).unwrap_or_default();
                } else if let Some(value) = value_of(line, b"transfer-encoding:") {
                    let tail = value.len().saturating_sub(b"chunked".len());
                    self.is_chunked = value[tail..].eq_ignore_ascii_case(b"chunked");
                }
            }
            Place::ChunkSize => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                self.place = match number(&line[..digits], 16) {
                    Some(0) => Place::Trailers,
                    Some(size) => Place::Chunk(size.saturating_add(2)),
                    None => Place::Through,
                };
            }
            Place::Trailers if line.is_empty() => self.place = Place::Head,
            _ => {}
        }
    }
}

/// Whether these bytes are whole requests without bodies, all of whose lines end as they must. So are most reads; for
/// them this is all that is looked at, in steps of many bytes: the loop has no branches, so that it is compiled to vector
/// instructions. What it does not recognise is read line by line.
fn is_plain_read(bytes: &[u8]) -> bool {
    // From the LF before a header that says how long a body is to the letters that tell it from others.
    const REACH: usize = 10;
    let Some(steps) = bytes.len().checked_sub(REACH) else { return false };
    if !bytes.starts_with(b"GET ") || !bytes.ends_with(b"\r\n\r\n") {
        return false;
    }
    let from = |offset: usize| &bytes[offset..offset + steps];
    let (here, next, ninth, tenth) = (from(0), from(1), from(9), from(REACH));
    let mut found = 0u8;
    for at in 0..steps {
        let is_bare = (next[at] == b'\n') & (here[at] != b'\r');
        // content-length and transfer-encoding, and a few that only look like them.
        let is_length = (next[at] | 0x20 == b'c') & (ninth[at] | 0x20 == b'l');
        let is_encoding = (next[at] | 0x20 == b't') & (tenth[at] | 0x20 == b'e');
        found |= u8::from(is_bare | ((here[at] == b'\n') & (is_length | is_encoding)));
    }
    let rest = &bytes[steps..];
    let has_bare_end = rest.iter().zip(&rest[1..]).any(|(before, byte)| *byte == b'\n' && *before != b'\r');
    found == 0 && !has_bare_end
}

/// What a header of this name says; the name comes with its colon.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, value) = line.split_at_checked(name.len())?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the first wrong end is when the bytes come in pieces of this size.
    fn wrong_end(bytes: &[u8], piece: usize) -> Option<usize> {
        let mut lines = Lines::new();
        bytes
            .chunks(piece)
            .enumerate()
            .find_map(|(index, piece_bytes)| lines.wrong_end(piece_bytes).map(|at| index * piece + at))
    }

    fn check(text: &str, wanted: Option<usize>) {
        for piece in [1, 2, 3, 7, 16, 1000] {
            assert_eq!(wrong_end(text.as_bytes(), piece), wanted, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn bare_line_feeds_in_heads_are_found() {
        for text in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3\r\nabc\r\n0\r\n\nGET",
            "PRI * HTTP/2.0\nrest",
            "PRI * HTTP/2.0\r\n\r\nSM\nrest",
        ] {
            let bare = text.bytes().zip(text.bytes().skip(1)).position(|(a, b)| a != b'\r' && b == b'\n');
            check(text, Some(bare.map_or(0, |before| before + 1)));
        }
    }

    /// What the shortcut for reads takes must be what line by line is taken as well, and leave the same place behind.
    #[test]
    fn reads_are_recognised_only_when_they_are_plain() {
        let plain = "GET /dbs HTTP/1.1\r\nHost: localhost\r\nCache-Control: no\r\nconnection: keep-alive\r\nTE: x\r\n\r\n";
        assert!(is_plain_read(plain.as_bytes()) && is_plain_read(plain.repeat(3).as_bytes()));
        for at in plain.match_indices("\r\n").map(|(at, _)| at) {
            let bare = format!("{}{}", &plain[..at], &plain[at + 1..]);
            assert!(!is_plain_read(bare.as_bytes()), "{bare:?}");
            for header in
                ["Content-Length: 4", "content-length:4", "Transfer-Encoding: chunked", "TRANSFER-ENCODING:x"]
            {
                let framed = format!("{}\r\n{header}{}", &plain[..at], &plain[at..]);
                let is_in_head = !plain[..at].ends_with("\r\n");
                assert!(!is_in_head || !is_plain_read(framed.as_bytes()), "{framed:?}");
            }
        }
        for other in [
            "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n",
            "GET ",
            "",
            "GET \r\n\r\n",
        ] {
            assert!(!is_plain_read(other.as_bytes()), "{other:?}");
        }
        // The body of a read that has one is a body.
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\n\n\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            None,
        );
    }

    #[test]
    fn line_feeds_of_bodies_and_of_http2_are_nobodys_business() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-LENGTH:  4 \r\nHost: a\r\n\r\na\nb\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n\n\n\n\r\nA\r\n\n\n\n\n\n\n\n\n\n\n\r\n0\r\nt: u\r\n\r\nGET /",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n\nanything\n",
        ] {
            check(text, None);
        }
    }
}
