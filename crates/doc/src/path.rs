//! Paths to a place inside a document.

use std::fmt;

/// The longest path text that is read.
const MAX_PATH_BYTES: usize = 4096;
/// The most segments a path may have; documents nest no deeper.
const MAX_SEGMENTS: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    Name(String),
    Index(usize),
}

/// A sequence of names and array positions, read from the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Path(Vec<Segment>);

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("a path must start with '/'")]
    NoLeadingSlash,
    #[error("a path must not have an empty segment")]
    EmptySegment,
    #[error("a quoted segment must end with a quote, followed by '/' or the end of the path")]
    BadQuote,
    #[error("'~' must be followed by 0 or 1")]
    BadTilde,
    #[error("a path must have at most {MAX_PATH_BYTES} bytes and {MAX_SEGMENTS} segments")]
    TooLong,
}

impl Path {
    pub fn new(segments: Vec<Segment>) -> Path {
        Path(segments)
    }

    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Reads a property path as partition keys and unique keys use it: `/a/b/"quoted name"`.
    pub fn parse_property(text: &str) -> Result<Path, PathError> {
        let mut rest = check_start(text)?;
        let mut segments = Vec::new();
        loop {
            let name = if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
                let (name, after) = read_quoted(&rest[1..], quote)?;
                rest = after;
                name
            } else {
                let end = rest.find('/').unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                rest = after;
                name.to_owned()
            };
            if name.is_empty() {
                return Err(PathError::EmptySegment);
            }
            push(&mut segments, name)?;
            if rest.is_empty() {
                return Ok(Path(segments));
            }
            rest = rest.strip_prefix('/').ok_or(PathError::BadQuote)?;
        }
    }

    /// Reads a JSON pointer (RFC 6901) as patch operations use it: `/a/0/~1b`. Whether a segment is a
    /// name or a position depends on what it meets, so all segments are names here.
    pub fn parse_pointer(text: &str) -> Result<Path, PathError> {
        let rest = check_start(text)?;
        let mut segments = Vec::new();
        for part in rest.split('/') {
            let mut name = String::with_capacity(part.len());
            let mut characters = part.chars();
            while let Some(character) = characters.next() {
                match (character, character == '~') {
                    (_, true) => match characters.next() {
                        Some('0') => name.push('~'),
                        Some('1') => name.push('/'),
                        _ => return Err(PathError::BadTilde),
                    },
                    (character, false) => name.push(character),
                }
            }
            push(&mut segments, name)?;
        }
        Ok(Path(segments))
    }

    /// The path as a JSON pointer.
    pub fn to_pointer(&self) -> String {
        let mut out = String::new();
        for segment in &self.0 {
            out.push('/');
            match segment {
                Segment::Name(name) => out.push_str(&name.replace('~', "~0").replace('/', "~1")),
                Segment::Index(index) => out.push_str(&index.to_string()),
            }
        }
        out
    }

    /// Whether this path is `other` or leads to something inside of it.
    pub fn starts_with(&self, other: &Path) -> bool {
        self.0.starts_with(&other.0)
    }
}

/// The path in property form; names that could be misread are quoted.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            match segment {
                Segment::Name(name) if needs_quotes(name) => {
                    write!(f, "/\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))?;
                }
                Segment::Name(name) => write!(f, "/{name}")?,
                Segment::Index(index) => write!(f, "/{index}")?,
            }
        }
        Ok(())
    }
}

fn check_start(text: &str) -> Result<&str, PathError> {
    if text.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    text.strip_prefix('/').ok_or(PathError::NoLeadingSlash)
}

fn push(segments: &mut Vec<Segment>, name: String) -> Result<(), PathError> {
    if segments.len() == MAX_SEGMENTS {
        return Err(PathError::TooLong);
    }
    segments.push(Segment::Name(name));
    Ok(())
}

/// Reads a quoted segment whose opening quote is already taken.
fn read_quoted(text: &str, quote: char) -> Result<(String, &str), PathError> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            character if character == quote => return Ok((name, &text[at + 1..])),
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\'' | '\\' | '/'))) => name.push(escaped),
                _ => return Err(PathError::BadQuote),
            },
            character => name.push(character),
        }
    }
    Err(PathError::BadQuote)
}

fn needs_quotes(name: &str) -> bool {
    name.is_empty() || name.contains(['/', '"', '\'', '\\', ' ', '*', '?', '[', ']'])
}
