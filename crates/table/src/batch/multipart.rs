//! Reads a multipart message: parts between lines that begin with two dashes and the boundary.
//!
//! Lines may end with a line feed alone. Parts of a changeset are requests of HTTP, with a head and a body of their own.

use std::cell::Cell;

use crate::errors::{ONE_INPUT, Refusal};
use crate::headers::Verb;
use crate::limits::{BATCH_OPERATIONS_MAX, BOUNDARY_BYTES_MAX, PART_HEAD_BYTES_MAX};

#[derive(Debug)]
pub(super) enum Batch<'b> {
    /// A read by itself.
    Read(Part<'b>),
    Changes(Vec<Part<'b>>),
}

/// One request.
#[derive(Debug)]
pub(super) struct Part<'b> {
    pub method: &'b str,
    pub address: &'b str,
    heads: Vec<(&'b str, &'b str)>,
    pub body: &'b [u8],
}

impl<'b> Part<'b> {
    /// A header of the request, or of the part that it came in.
    pub fn header(&self, name: &str) -> Option<&'b str> {
        self.heads.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    pub fn verb(&self) -> Result<Verb, Refusal> {
        let method = http::Method::from_bytes(self.method.as_bytes()).map_err(|_| wrong())?;
        let headers =
            crate::headers::Headers { method_override: self.header("x-http-method"), ..Default::default() };
        headers.verb(&method)
    }
}

pub(super) fn parse<'b>(content_type: &str, body: &'b [u8]) -> Result<Batch<'b>, Refusal> {
    let outer = parts(body, boundary(content_type)?)?;
    let [part] = outer.as_slice() else { return Err(wrong()) };
    let (heads, content) = head(part)?;
    let kind = find(&heads, "content-type").unwrap_or_default();
    if !kind.trim_start().to_ascii_lowercase().starts_with("multipart/mixed") {
        let part = request(heads, content)?;
        return match part.verb()? {
            Verb::Get => Ok(Batch::Read(part)),
            _ => Ok(Batch::Changes(vec![part])),
        };
    }
    let inner = parts(content, boundary(kind)?)?;
    let requests = inner.into_iter().map(|part| {
        let (heads, content) = head(part)?;
        request(heads, content)
    });
    requests.collect::<Result<_, _>>().map(Batch::Changes)
}

fn wrong() -> Refusal {
    Refusal::invalid(ONE_INPUT)
}

fn boundary(content_type: &str) -> Result<&str, Refusal> {
    let parameters = content_type.split(';').filter_map(|parameter| parameter.split_once('='));
    let mut named = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"));
    let value = named.next().map(|(_, value)| value.trim().trim_matches('"')).unwrap_or_default();
    if value.is_empty() || value.len() > BOUNDARY_BYTES_MAX { Err(wrong()) } else { Ok(value) }
}

/// What stands between the lines of a boundary. The last one has two more dashes.
fn parts<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<&'b [u8]>, Refusal> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let at = Cell::new(0);
    let next_line = || {
        let start = at.get();
        let rest = body.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        at.set(start + length);
        Some((start, rest[..length].trim_ascii_end()))
    };
    while let Some((start, line)) = next_line() {
        let Some(rest) = line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary.as_bytes()))
        else {
            continue;
        };
        let is_end = rest == b"--";
        if !is_end && !rest.is_empty() {
            continue;
        }
        if let Some(open) = open {
            found.push(without_line_end(&body[open..start]));
            // One more is enough to know that there are too many.
            if found.len() > BATCH_OPERATIONS_MAX {
                return Ok(found);
            }
        }
        open = Some(at.get());
        if is_end {
            return Ok(found);
        }
    }
    Err(wrong())
}

/// The line end in front of a boundary belongs to the boundary.
fn without_line_end(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

type Heads<'b> = Vec<(&'b str, &'b str)>;

/// Headers up to an empty line, and what follows it.
fn head(text: &[u8]) -> Result<(Heads<'_>, &[u8]), Refusal> {
    let (mut heads, mut rest, mut taken) = (Vec::new(), text, 0);
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
        taken += line.len();
        if taken > PART_HEAD_BYTES_MAX {
            return Err(wrong());
        }
        let line = std::str::from_utf8(line.trim_ascii()).map_err(|_| wrong())?;
        if line.is_empty() {
            return Ok((heads, rest));
        }
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        heads.push((name.trim(), value.trim()));
        if end.is_none() {
            return Ok((heads, rest));
        }
    }
}

/// The request in a part, whose own headers are `outer`.
fn request<'b>(outer: Heads<'b>, content: &'b [u8]) -> Result<Part<'b>, Refusal> {
    let end = content.iter().position(|byte| *byte == b'\n').ok_or_else(wrong)?;
    let line = std::str::from_utf8(content[..end].trim_ascii()).map_err(|_| wrong())?;
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(address), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong());
    };
    if !version.starts_with("HTTP/") {
        return Err(wrong());
    }
    let (mut heads, body) = head(&content[end + 1..])?;
    heads.extend(outer);
    Ok(Part { method, address, heads, body: body.trim_ascii() })
}

fn find<'b>(heads: &Heads<'b>, name: &str) -> Option<&'b str> {
    heads.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: &str = "--batch_1\nContent-Type: multipart/mixed; boundary=\"set_1\"\n\n\
        --set_1\nContent-Type: application/http\nContent-Transfer-Encoding: binary\nContent-ID: 0\n\n\
        POST http://h/t HTTP/1.1\nContent-Type: application/json\nPrefer: return-no-content\n\n{\"a\":1}\n\
        --set_1\nContent-Type: application/http\nContent-ID: 1\n\n\
        POST http://h/t(PartitionKey='p',RowKey='r') HTTP/1.1\nX-HTTP-Method: MERGE\nIf-Match: *\n\n{\"a\":2}\n\
        --set_1\n\nDELETE /t(PartitionKey='p',RowKey='r') HTTP/1.1\n\n\n\
        --set_1--\n\n--batch_1--\n";

    fn writes(text: &str) -> Option<Vec<String>> {
        match parse("multipart/mixed; boundary=batch_1", text.as_bytes()).ok()? {
            Batch::Read(_) => None,
            Batch::Changes(parts) => parts
                .iter()
                .map(|part| {
                    let body = std::str::from_utf8(part.body).ok()?;
                    Some(format!(
                        "{:?} {} {body} {:?}",
                        part.verb().ok()?,
                        part.address,
                        part.header("content-id")
                    ))
                })
                .collect(),
        }
    }

    #[test]
    fn requests_are_found_whatever_ends_the_lines() {
        let wanted = Some(vec![
            "Post http://h/t {\"a\":1} Some(\"0\")".to_owned(),
            "Merge http://h/t(PartitionKey='p',RowKey='r') {\"a\":2} Some(\"1\")".to_owned(),
            "Delete /t(PartitionKey='p',RowKey='r')  None".to_owned(),
        ]);
        assert_eq!(writes(WRITES), wanted);
        assert_eq!(writes(&WRITES.replace('\n', "\r\n")), wanted);
    }

    #[test]
    fn a_read_may_stand_by_itself() {
        let text = "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nAccept: x\r\n\r\n--b--\r\n";
        let Ok(Batch::Read(part)) = parse("multipart/mixed; boundary=b", text.as_bytes()) else {
            panic!("a read")
        };
        assert_eq!((part.method, part.header("accept")), ("GET", Some("x")));
    }

    #[test]
    fn broken_messages_are_refused() {
        for cut in [10, 60, 100, 150, WRITES.len() - 15] {
            assert_eq!(writes(&WRITES[..cut]), None, "{cut}");
        }
        for (from, to) in [
            ("HTTP/1.1", "FTP"),
            ("POST http", "POST a http"),
            ("Content-ID: 1", "Content-ID"),
            ("set_1--", "set_1"),
        ] {
            assert_eq!(writes(&WRITES.replace(from, to)), None, "{from}");
        }
        for content_type in
            ["", "multipart/mixed", "multipart/mixed; boundary=", "multipart/mixed; boundary=other"]
        {
            assert!(parse(content_type, WRITES.as_bytes()).is_err(), "{content_type}");
        }
        assert!(parse("multipart/mixed; boundary=b", &[0xFF; 1000]).is_err());
    }
}
