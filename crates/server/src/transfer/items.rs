//! Items as text: cutting them out of files and answers, and their partition keys.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};
use std::path::Path;

use anyhow::Context;
use orrery_doc::Segment;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes that an item of a file may have; the service takes less.
const ITEM_BYTES_MAX: usize = 16 * 1024 * 1024;

const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Cuts a stream into its items: the objects of JSON lines, of arrays, or of both one after the other.
pub struct Items<R> {
    reader: R,
    /// Bytes that have been taken.
    offset: u64,
}

impl<R: BufRead> Items<R> {
    /// Reads on from a place where an item has ended, or from the beginning.
    pub fn new(reader: R, offset: u64) -> Items<R> {
        Items { reader, offset }
    }

    /// How far it has come.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next item and where it ends.
    pub fn next(&mut self) -> Result<Option<(Vec<u8>, u64)>> {
        if !self.skip_to_item()? {
            return Ok(None);
        }
        let mut item = Vec::new();
        let (mut depth, mut in_text, mut escaped) = (0u32, false, false);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Err(wrong(self.offset, "the file ends within an item"));
            }
            let mut taken = 0;
            let mut ends = false;
            for byte in buffer {
                taken += 1;
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_text => escaped = true,
                    b'"' => in_text = !in_text,
                    b'{' | b'[' if !in_text => depth += 1,
                    b'}' | b']' if !in_text => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    ends = true;
                    break;
                }
            }
            item.extend_from_slice(&buffer[..taken]);
            self.reader.consume(taken);
            self.offset += taken as u64;
            if ends {
                return Ok(Some((item, self.offset)));
            }
            if item.len() > ITEM_BYTES_MAX {
                return Err(wrong(self.offset, "an item is larger than any may be"));
            }
        }
    }

    /// Passes what stands between items; false at the end.
    fn skip_to_item(&mut self) -> Result<bool> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let between = |byte: &u8| {
                byte.is_ascii_whitespace() || matches!(byte, b',' | b'[' | b']' | 0xEF | 0xBB | 0xBF)
            };
            let passed = buffer.iter().take_while(|byte| between(byte)).count();
            let next = buffer.get(passed).copied();
            self.reader.consume(passed);
            self.offset += passed as u64;
            match next {
                Some(b'{') => return Ok(true),
                Some(_) => return Err(wrong(self.offset, "there is something that is not an object")),
                None => {}
            }
        }
    }
}

/// The line in which a byte of a file stands, for people; an error is rare enough to read the file for it again.
pub fn line_of(path: &Path, offset: u64) -> u64 {
    let count = || -> Result<u64> {
        let mut reader = BufReader::new(File::open(path)?).take(offset);
        let mut lines = 1;
        loop {
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(lines);
            }
            lines += buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
            let taken = buffer.len();
            reader.consume(taken);
        }
    };
    count().unwrap_or_default()
}

fn wrong(offset: u64, what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("{what}, at byte {offset}"))
}

/// The items of a page, as the server wrote them.
pub fn of_page(body: &[u8]) -> serde_json::Result<Vec<&RawValue>> {
    #[derive(Deserialize)]
    struct Page<'b> {
        #[serde(borrow, rename = "Documents")]
        items: Vec<&'b RawValue>,
    }
    Ok(serde_json::from_slice::<Page<'_>>(body)?.items)
}

/// Writes an item without what the server has added to it; all else stays as it was written.
pub fn without_system(item: &str, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let members: Members<'_> = serde_json::from_str(item)?;
    out.push(b'{');
    let kept = members.0.iter().filter(|(name, _)| !SYSTEM_PROPERTIES.contains(&name.as_str()));
    for (place, (name, value)) in kept.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, name)?;
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    out.push(b'}');
    Ok(())
}

/// The members of an object in their order, values as text.
pub struct Members<'b>(pub Vec<(String, &'b RawValue)>);

impl<'de: 'b, 'b> Deserialize<'de> for Members<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Read).map(Members)
    }
}

/// Where the partition key of a container's items is.
#[derive(Clone, Debug)]
pub struct KeyPaths(Vec<orrery_doc::Path>);

impl KeyPaths {
    /// Reads the definition of a partition key.
    pub fn of(definition: &Value) -> anyhow::Result<KeyPaths> {
        let paths = definition["paths"].as_array().context("the container names no partition key")?;
        let path = |path: &Value| {
            let text = path.as_str().context("the path of a partition key is a string")?;
            orrery_doc::Path::parse_property(text).with_context(|| text.to_owned())
        };
        paths.iter().map(path).collect::<anyhow::Result<_>>().map(KeyPaths)
    }

    /// The partition key of an item as the request header shows it.
    pub fn header(&self, item: &Value) -> String {
        let value = |path: &orrery_doc::Path| {
            let mut segments = path.segments().iter();
            let found = segments.try_fold(item, |value, segment| match segment {
                Segment::Name(name) => value.get(name),
                Segment::Index(place) => value.get(place),
            });
            match found {
                None | Some(Value::Array(_) | Value::Object(_)) => Value::Object(serde_json::Map::new()),
                Some(value) => value.clone(),
            }
        };
        ascii(&Value::Array(self.0.iter().map(value).collect()).to_string())
    }
}

/// JSON in which everything beyond ASCII is escaped: headers carry nothing else.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for letter in json.chars() {
        match letter.is_ascii() {
            true => out.push(letter),
            false => {
                for unit in letter.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn cut(text: &str, buffer: usize) -> std::result::Result<Vec<String>, String> {
        let mut items = Items::new(BufReader::with_capacity(buffer, Cursor::new(text.as_bytes())), 0);
        let mut all = Vec::new();
        loop {
            match items.next() {
                Ok(Some((item, end))) => {
                    assert!(text[..end as usize].ends_with('}'), "an item ends where it says");
                    all.push(String::from_utf8(item).expect("text"));
                }
                Ok(None) => return Ok(all),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn lines_and_arrays_are_cut_alike() {
        let tricky = r#"{"a":"}]\"{","b":[{},[1]],"c":"\\"}"#;
        let lines = format!("{tricky}\n{{}}\r\n\n{{\"id\":\"1\"}}");
        let array = format!("\u{feff}[\n {tricky} ,{{}},\n{{\"id\":\"1\"}}]\n");
        for buffer in [1, 2, 3, 7, 4096] {
            let expected = Ok(vec![tricky.to_owned(), "{}".to_owned(), r#"{"id":"1"}"#.to_owned()]);
            assert_eq!(cut(&lines, buffer), expected);
            assert_eq!(cut(&array, buffer), expected);
            assert_eq!(cut("[]", buffer), Ok(vec![]));
            assert!(cut("{}\n7", buffer).is_err_and(|error| error.contains("byte 3")));
            assert!(cut("[{\"a\":1", buffer).is_err());
        }
    }

    #[test]
    fn items_keep_their_text() {
        let mut out = Vec::new();
        let item = r#"{"id":"1","n":1.10,"big":123456789012345678901,"_ts":5,"_rid":"x","o":{"_ts":1}}"#;
        without_system(item, &mut out).expect("an object");
        let expected = r#"{"id":"1","n":1.10,"big":123456789012345678901,"o":{"_ts":1}}"#;
        assert_eq!(String::from_utf8(out).expect("text"), expected);
        let page = br#"{"_rid":"r","Documents":[{"a":1},{"b":"]"}],"_count":2}"#;
        let items = of_page(page).expect("a page");
        assert_eq!(items.iter().map(|item| item.get()).collect::<Vec<_>>(), [r#"{"a":1}"#, r#"{"b":"]"}"#]);
    }

    #[test]
    fn a_byte_has_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("items");
        std::fs::write(&path, "{}\n{}\n\n{}").expect("written");
        for (offset, line) in [(0, 1), (2, 1), (3, 2), (5, 2), (9, 4), (900, 4)] {
            assert_eq!(line_of(&path, offset), line, "{offset}");
        }
    }

    #[test]
    fn keys_are_those_of_the_header() {
        let item = serde_json::json!({"a": {"b": "é\u{1F600}"}, "n": 1.5, "x": null, "o": {}, "q/r": true});
        for (paths, expected) in [
            (vec!["/a/b"], r#"["\u00e9\ud83d\ude00"]"#),
            (vec!["/n", "/x", "/none"], "[1.5,null,{}]"),
            (vec!["/o"], "[{}]"),
            (vec!["/\"q/r\""], "[true]"),
            (vec!["/'q/r'"], "[true]"),
        ] {
            let paths = KeyPaths::of(&serde_json::json!({"paths": paths})).expect("paths");
            assert_eq!(paths.header(&item), expected);
        }
        for wrong in
            [serde_json::json!({}), serde_json::json!({"paths": [1]}), serde_json::json!({"paths": ["a"]})]
        {
            assert!(KeyPaths::of(&wrong).is_err(), "{wrong}");
        }
    }
}
