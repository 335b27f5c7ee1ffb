//! As much XML as the settings of the service need: elements and their texts.
//!
//! Attributes, comments and declarations are read over. Documents that declare a type are refused, so no entity stands
//! for more than one character.

use crate::errors::Own;
use crate::limits::{XML_DEPTH_MAX, XML_ELEMENTS_MAX};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub name: String,
    /// What stands between its tags, without blanks around it; nothing where there are elements.
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    pub fn of_text(name: &str, text: &str) -> Element {
        Element { name: name.to_owned(), text: text.to_owned(), children: Vec::new() }
    }

    pub fn of(name: &str, children: Vec<Element>) -> Element {
        Element { name: name.to_owned(), text: String::new(), children }
    }

    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a child; empty if there is none.
    pub fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| &child.text)
    }

    pub fn write(&self, out: &mut String) {
        if self.text.is_empty() && self.children.is_empty() {
            out.extend(["<", &self.name, " />"]);
            return;
        }
        out.extend(["<", &self.name, ">"]);
        for letter in self.text.chars() {
            match letter {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                letter => out.push(letter),
            }
        }
        self.children.iter().for_each(|child| child.write(out));
        out.extend(["</", &self.name, ">"]);
    }

    /// The element as a document of its own.
    pub fn document(&self) -> String {
        let mut out = "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned();
        self.write(&mut out);
        out
    }
}

/// Reads a document; some clients put the mark of the byte order in front.
pub(crate) fn parse(bytes: &[u8]) -> Result<Element, Own> {
    let text = std::str::from_utf8(bytes).map_err(|_| Own::InvalidXml)?;
    let mut parser = Parser { rest: text.trim_start_matches('\u{FEFF}'), elements: 0 };
    parser.skip()?;
    let root = parser.element(0)?;
    parser.skip()?;
    if parser.rest.is_empty() { Ok(root) } else { Err(Own::InvalidXml) }
}

struct Parser<'t> {
    rest: &'t str,
    elements: usize,
}

impl<'t> Parser<'t> {
    /// Goes past blanks, declarations and comments.
    fn skip(&mut self) -> Result<(), Own> {
        loop {
            self.rest = self.rest.trim_start();
            let (start, end) = match self.rest {
                rest if rest.starts_with("<?") => ("<?", "?>"),
                rest if rest.starts_with("<!--") => ("<!--", "-->"),
                _ => return Ok(()),
            };
            self.rest = &self.rest[start.len()..];
            self.until(end)?;
        }
    }

    /// What stands in front of a mark, which is left behind.
    fn until(&mut self, mark: &str) -> Result<&'t str, Own> {
        let (before, after) = self.rest.split_once(mark).ok_or(Own::InvalidXml)?;
        self.rest = after;
        Ok(before)
    }

    /// An element, of which nothing is read yet.
    fn element(&mut self, depth: usize) -> Result<Element, Own> {
        self.elements += 1;
        if depth > XML_DEPTH_MAX || self.elements > XML_ELEMENTS_MAX {
            return Err(Own::InvalidXml);
        }
        self.rest = self.rest.strip_prefix('<').ok_or(Own::InvalidXml)?;
        let tag = self.until(">")?;
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name =
            tag.split([' ', '\t', '\r', '\n']).next().filter(|name| is_name(name)).ok_or(Own::InvalidXml)?;
        let mut element = Element::of(local(name), Vec::new());
        if is_empty {
            return Ok(element);
        }
        let mut text = String::new();
        loop {
            let open = self.rest.find('<').ok_or(Own::InvalidXml)?;
            unescape(&self.rest[..open], &mut text)?;
            self.rest = &self.rest[open..];
            if let Some(rest) = self.rest.strip_prefix("</") {
                self.rest = rest;
                if self.until(">")?.trim_end() != name {
                    return Err(Own::InvalidXml);
                }
                if element.children.is_empty() {
                    element.text = text.trim().to_owned();
                }
                return Ok(element);
            }
            if let Some(rest) = self.rest.strip_prefix("<![CDATA[") {
                self.rest = rest;
                text.push_str(self.until("]]>")?);
            } else if self.rest.starts_with("<!--") || self.rest.starts_with("<?") {
                self.skip()?;
            } else {
                element.children.push(self.element(depth + 1)?);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':'))
}

/// A name without the prefix of its namespace.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn unescape(text: &str, out: &mut String) -> Result<(), Own> {
    let mut pieces = text.split('&');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (entity, after) = piece.split_once(';').ok_or(Own::InvalidXml)?;
        let letter = match entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => entity.strip_prefix('#').and_then(|number| {
                let code = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)
            }),
        };
        out.push(letter.ok_or(Own::InvalidXml)?);
        out.push_str(after);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_texts_are_read_and_written() {
        let text = "\u{FEFF}<?xml version='1.0'?> <!-- x -->\n<a xmlns:i='u' b=\"1\"><i:b> x &amp; &#x41;&lt; </i:b><c/><c></c><d><![CDATA[<]]></d></a>\n";
        let root = parse(text.as_bytes()).expect("well formed");
        assert_eq!(root.text_of("b"), "x & A<");
        assert_eq!(root.children.len(), 4);
        assert_eq!(root.text_of("d"), "<");
        let mut written = String::new();
        root.write(&mut written);
        assert_eq!(written, "<a><b>x &amp; A&lt;</b><c /><c /><d>&lt;</d></a>");
        assert_eq!(parse(root.document().as_bytes()).ok(), Some(root));
    }

    #[test]
    fn other_documents_are_refused_and_cost_little() {
        let deep = format!("{}{}", "<a>".repeat(10_000), "</a>".repeat(10_000));
        let wide = format!("<a>{}</a>", "<b/>".repeat(XML_ELEMENTS_MAX));
        for text in [
            "",
            "a",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a>&x;</a>",
            "<a>&amp</a>",
            "<a>&#x110000;</a>",
            "< a/>",
            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
            "<a><!DOCTYPE b></a>",
            "<?xml",
            &deep,
            &wide,
        ] {
            assert!(
                matches!(parse(text.as_bytes()), Err(Own::InvalidXml)),
                "{}",
                &text[..text.len().min(40)]
            );
        }
        assert!(parse(&[0xFF, 0xFE]).is_err());
    }
}
