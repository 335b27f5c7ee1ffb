//! What can be wrong with a query, in the service's own vocabulary.

use crate::ast::Span;

/// One finding, with the service's code and the place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    /// Offsets in UTF-16 code units, as the service counts them.
    pub location: Option<Span>,
    pub message: String,
}

/// The code of a finding: most are `SC` codes, a few are bare numbers or have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Sc(u16),
    Number(u16),
    None,
}

/// Why a query was refused or could not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The text is wrong: the client must change it (400).
    #[error("{}", .0.first().map_or("invalid query", |first| first.message.as_str()))]
    Invalid(Vec<Diagnostic>),
    /// The text is right, but this release cannot run it (400 with a clear message).
    #[error("{0}")]
    Unsupported(String),
    /// The query ranks (ORDER BY RANK): it runs as the queries of its plan, which the caller may carry out.
    #[error("ORDER BY RANK is not supported here.")]
    Ranked,
    /// A bound of `limits` was met while running (400 or 413 by the caller).
    #[error("{0}")]
    LimitExceeded(&'static str),
    /// A user-defined function used up its time (408 by the caller).
    #[error("{0}")]
    FunctionTimedOut(String),
    /// The steward has no memory for the run now; the same query may be run later (429 by the caller).
    #[error("There is no free memory for the query now. Please retry this request later.")]
    Busy,
    /// A continuation does not belong to this query or is damaged (400).
    #[error("{0}")]
    InvalidContinuation(&'static str),
}

pub type Result<T> = std::result::Result<T, QueryError>;

impl QueryError {
    pub fn at(code: u16, span: Span, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Diagnostic {
            code: Code::Sc(code),
            location: Some(span),
            message: message.into(),
        }])
    }

    pub fn bare(message: impl Into<String>) -> Self {
        Self::Invalid(vec![Diagnostic { code: Code::None, location: None, message: message.into() }])
    }

    /// The first `SC` code, for tests and logs.
    pub fn sc_code(&self) -> Option<u16> {
        match self {
            Self::Invalid(list) => list.iter().find_map(|d| match d.code {
                Code::Sc(code) => Some(code),
                _ => None,
            }),
            _ => None,
        }
    }

    /// The body that the service puts into the error message: `{"errors":[...]}`.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Invalid(list) if list.iter().any(|d| d.code != Code::None) => {
                out.push_str("{\"errors\":[");
                for (i, diagnostic) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    diagnostic.write_json(&mut out);
                }
                out.push_str("]}");
            }
            other => {
                out.push_str("{\"Errors\":[");
                crate::print::quote(&other.to_string(), &mut out);
                out.push_str("]}");
            }
        }
        out
    }

    /// Turns byte offsets into the service's UTF-16 offsets. Called once, where text enters.
    pub(crate) fn located_in(mut self, text: &str) -> Self {
        if let Self::Invalid(list) = &mut self {
            let spans = list.iter_mut().filter_map(|d| d.location.as_mut());
            to_utf16_offsets(text, spans.flat_map(|span| [&mut span.start, &mut span.end]).collect());
        }
        self
    }
}

impl Diagnostic {
    fn write_json(&self, out: &mut String) {
        use std::fmt::Write as _;
        out.push_str("{\"severity\":\"Error\"");
        if let Some(span) = self.location {
            write!(out, ",\"location\":{{\"start\":{},\"end\":{}}}", span.start, span.end)
                .expect("writing to a string cannot fail");
        }
        match self.code {
            Code::Sc(code) => write!(out, ",\"code\":\"SC{code}\""),
            Code::Number(code) => write!(out, ",\"code\":{code}"),
            Code::None => Ok(()),
        }
        .expect("writing to a string cannot fail");
        out.push_str(",\"message\":");
        crate::print::quote(&self.message, out);
        out.push('}');
    }
}

/// Counts the text once, however many offsets there are.
fn to_utf16_offsets(text: &str, mut offsets: Vec<&mut u32>) {
    offsets.sort_unstable();
    let (mut at, mut units) = (0, 0);
    for offset in offsets {
        let mut end = (*offset as usize).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        units += text[at..end].encode_utf16().count() as u32;
        at = end;
        *offset = units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_located_in_any_order() {
        let text = "é😀a'b";
        let finding = |start, end| Diagnostic {
            code: Code::None,
            location: Some(Span::new(start, end)),
            message: String::new(),
        };
        let error = QueryError::Invalid(vec![finding(7, 99), finding(0, 2), finding(4, 6), finding(2, 7)]);
        let QueryError::Invalid(list) = error.located_in(text) else { panic!("it stays what it is") };
        let found: Vec<_> = list.iter().map(|d| d.location.map(|span| (span.start, span.end))).collect();
        assert_eq!(found, [Some((4, 6)), Some((0, 1)), Some((1, 3)), Some((1, 4))]);
    }
}
