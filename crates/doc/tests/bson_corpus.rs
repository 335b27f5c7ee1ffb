//! MongoDB's own corpus of BSON: every value of it goes into a document and comes back as the same bytes.
//!
//! The corpus is not part of this repository; where it is not there, the test says so. The codec here is the test's.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::PathBuf;

use orrery_doc::{Decimal128, Doc, DocBuilder, Epk, ObjectRef, Typed, Value, json};

/// Takes bytes off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap()
    }

    fn length(&mut self) -> usize {
        u32::from_le_bytes(self.array()) as usize
    }

    fn cstring(&mut self) -> &'a str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = self.take(end);
        self.take(1);
        std::str::from_utf8(text).unwrap()
    }

    fn string(&mut self) -> &'a str {
        let length = self.length();
        std::str::from_utf8(&self.take(length)[..length - 1]).unwrap()
    }

    fn document(&mut self, is_array: bool, out: &mut DocBuilder) {
        let size = self.length();
        let mut body = Reader(&self.take(size - 4)[..size - 5]);
        if is_array {
            out.begin_array()
        } else {
            out.begin_object()
        };
        while let Some(kind) = body.0.first().copied() {
            body.take(1);
            let name = body.cstring();
            if !is_array {
                out.name(name);
            }
            body.value(kind, out);
        }
        if is_array {
            out.end_array()
        } else {
            out.end_object()
        };
    }

    fn value(&mut self, kind: u8, out: &mut DocBuilder) {
        match kind {
            0x01 => out.double(f64::from_le_bytes(self.array())),
            0x02 => out.str(self.string()),
            0x03 | 0x04 => {
                self.document(kind == 0x04, out);
                out
            }
            0x05 => {
                let length = self.length();
                let subtype = self.take(1)[0];
                out.binary(subtype, self.take(length))
            }
            0x06 => out.undefined(),
            0x07 => out.object_id(self.array()),
            0x08 => out.bool(self.take(1) == [1]),
            0x09 => out.date(i64::from_le_bytes(self.array())),
            0x0a => out.null(),
            0x0b => {
                let pattern = self.cstring();
                out.regex(pattern, self.cstring())
            }
            0x0c => {
                let collection = self.string();
                out.db_pointer(collection, self.array())
            }
            0x0d => out.code(self.string()),
            0x0e => out.symbol(self.string()),
            0x0f => {
                self.length();
                let code = self.string();
                let mut scope = DocBuilder::new();
                self.document(false, &mut scope);
                out.scoped_code(code, scope.finish().root().as_object().unwrap())
            }
            0x10 => out.int32(i32::from_le_bytes(self.array())),
            0x11 => {
                let increment = u32::from_le_bytes(self.array());
                out.timestamp(u32::from_le_bytes(self.array()), increment)
            }
            0x12 => out.int(i64::from_le_bytes(self.array())),
            0x13 => out.decimal128(Decimal128::from_bytes(self.array())),
            0x7f => out.max_key(),
            0xff => out.min_key(),
            other => panic!("BSON has no type {other:#x}"),
        };
    }
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn put_document<'a>(fields: impl Iterator<Item = (String, Value<'a>)>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in fields {
        let kind_at = out.len();
        out.push(0);
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out[kind_at] = put_value(value, out);
    }
    out.push(0);
    let size = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&size.to_le_bytes());
}

fn put_object(object: ObjectRef<'_>, out: &mut Vec<u8>) {
    put_document(object.iter().map(|(name, value)| (name.to_owned(), value)), out);
}

/// Appends a value and gives its type.
fn put_value(value: Value<'_>, out: &mut Vec<u8>) -> u8 {
    match value {
        Value::Null => 0x0a,
        Value::Bool(value) => {
            out.push(u8::from(value));
            0x08
        }
        Value::Int(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            0x12
        }
        Value::Double(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            0x01
        }
        Value::Str(text) => {
            put_string(text, out);
            0x02
        }
        Value::Array(array) => {
            put_document(array.iter().enumerate().map(|(i, value)| (i.to_string(), value)), out);
            0x04
        }
        Value::Object(object) => {
            put_object(object, out);
            0x03
        }
        Value::Typed(value) => put_typed(value, out),
        Value::Undefined | Value::Map(_) => panic!("BSON has no {value:?}"),
    }
}

fn put_typed(value: Typed<'_>, out: &mut Vec<u8>) -> u8 {
    let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    match value {
        Typed::Int32(number) => {
            put(&[&number.to_le_bytes()]);
            0x10
        }
        Typed::Binary { subtype, bytes } => {
            put(&[&(bytes.len() as u32).to_le_bytes(), &[subtype], bytes]);
            0x05
        }
        Typed::Undefined => 0x06,
        Typed::ObjectId(id) => {
            put(&[&id]);
            0x07
        }
        Typed::Date(milliseconds) => {
            put(&[&milliseconds.to_le_bytes()]);
            0x09
        }
        Typed::Regex { pattern, options } => {
            put(&[pattern.as_bytes(), &[0], options.as_bytes(), &[0]]);
            0x0b
        }
        Typed::DbPointer { collection, id } => {
            put_string(collection, out);
            out.extend_from_slice(&id);
            0x0c
        }
        Typed::Code(code) => {
            put_string(code, out);
            0x0d
        }
        Typed::Symbol(symbol) => {
            put_string(symbol, out);
            0x0e
        }
        Typed::ScopedCode(code) => {
            let mut inside = Vec::new();
            put_string(code.code(), &mut inside);
            put_object(code.scope().as_object().unwrap(), &mut inside);
            put(&[&(inside.len() as u32 + 4).to_le_bytes(), &inside]);
            0x0f
        }
        Typed::Timestamp { seconds, increment } => {
            put(&[&increment.to_le_bytes(), &seconds.to_le_bytes()]);
            0x11
        }
        Typed::Decimal128(number) => {
            put(&[&number.to_bytes()]);
            0x13
        }
        Typed::MaxKey => 0x7f,
        Typed::MinKey => 0xff,
        _ => panic!("BSON has no {:?}", Value::Typed(value)),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    Epk::from_hex(hex).unwrap().as_bytes().to_vec()
}

fn corpus() -> Option<Vec<(String, Doc)>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/mongo-bson-corpus");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("not run: the shared vectors mongo-bson-corpus are not there");
        return None;
    };
    let files = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"));
    let read = |path: PathBuf| {
        let doc = json::parse(&std::fs::read(&path).unwrap(), 128).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), doc)
    };
    Some(files.map(read).collect())
}

#[test]
fn every_valid_case_comes_back_as_the_same_bytes() {
    let Some(corpus) = corpus() else { return };
    let mut cases = 0;
    for (file, doc) in &corpus {
        let Some(valid) = doc.root().get("valid").as_array() else { continue };
        for case in valid.iter() {
            let name = format!("{file}: {:?}", case.get("description"));
            let bson = bytes(case.get("canonical_bson").as_str().unwrap());
            let mut builder = DocBuilder::new();
            Reader(&bson).document(false, &mut builder);
            let doc = Doc::from_bytes(builder.finish().into_bytes()).unwrap();
            let mut out = Vec::new();
            put_object(doc.root().as_object().unwrap(), &mut out);
            assert_eq!(Epk::from_bytes(&out), Epk::from_bytes(&bson), "{name}");
            check_decimal(&doc, case, &name);
            cases += 1;
        }
    }
    assert!(cases > 500, "{cases}");
}

/// The digits of a decimal are those of the corpus, unless JSON cannot say them.
fn check_decimal(doc: &Doc, case: Value<'_>, name: &str) {
    let shown = json::parse(case.get("canonical_extjson").as_str().unwrap().as_bytes(), 128).unwrap();
    let Some(text) = shown.root().get("d").get("$numberDecimal").as_str() else { return };
    let json = match text.parse::<f64>() {
        Ok(number) if number.is_nan() || text.ends_with("Infinity") => {
            assert!(!number.is_finite());
            "null".to_owned()
        }
        Ok(number) if number.is_infinite() => format!("\"{text}\""),
        _ => text.to_owned(),
    };
    assert_eq!(format!("{:?}", doc.root().get("d")), json, "{name}");
}
