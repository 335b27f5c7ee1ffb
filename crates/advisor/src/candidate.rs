//! Candidate keys and how they are written.
//!
//! ```text
//! /deviceId                      the value at a path
//! /tenantId,/userId,/id          a hierarchical key of up to three levels
//! /deviceId+/month               a synthetic key: values joined with "-"
//! /deviceId+month(/time)         a period of a time: year, month, day, hour, minute, second
//! /date+suffix(10)               a suffix that the writer draws, of ten
//! /date+hash(/vehicleId,400)     a suffix computed from a property, of 400
//! ```

use std::fmt;
use std::str::FromStr;

use orrery_doc::{Path, PathError};
use orrery_prices::limits::KEY_LEVELS_MAX;

use crate::calendar::Period;
use crate::limits;

/// A partition key to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub levels: Vec<Level>,
}

/// One level: a path, or several parts that the application joins to one string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Path(String),
    Period(Period, String),
    /// A number below this one, drawn for each item.
    Suffix(u32),
    /// A number below this one, computed from the value at the path.
    Hash(String, u32),
}

/// Why a text is not a candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CandidateError {
    #[error("a key has one to {KEY_LEVELS_MAX} levels, separated by commas")]
    Levels,
    #[error("a level has one to {} parts, separated by '+'", limits::PARTS_MAX)]
    Parts,
    #[error("a candidate has at most {} characters", limits::CANDIDATE_BYTES_MAX)]
    TooLong,
    #[error("{0:?}: {1}")]
    Path(String, PathError),
    #[error("{0:?} is not a path, and not month(/path), suffix(10) or hash(/path,10)")]
    Part(String),
    #[error("a suffix has 2 to {} values", limits::BUCKETS_MAX)]
    Buckets,
    #[error("a drawn suffix needs something in front of it")]
    OnlySuffix,
}

impl Candidate {
    pub fn parse(text: &str) -> Result<Candidate, CandidateError> {
        if text.len() > limits::CANDIDATE_BYTES_MAX {
            return Err(CandidateError::TooLong);
        }
        let levels = divide(text, ',');
        if levels.len() > KEY_LEVELS_MAX {
            return Err(CandidateError::Levels);
        }
        let levels = levels.into_iter().map(Level::parse).collect::<Result<_, _>>()?;
        Ok(Candidate { levels })
    }

    /// A key of one plain path.
    pub fn path(path: &str) -> Candidate {
        Candidate::levels(&[path])
    }

    /// A key of plain paths.
    pub fn levels(paths: &[&str]) -> Candidate {
        let level = |path: &&str| Level { parts: vec![Part::Path((*path).to_owned())] };
        Candidate { levels: paths.iter().map(level).collect() }
    }

    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.levels.iter().flat_map(|level| &level.parts)
    }

    pub fn kind(&self) -> &'static str {
        let plain = self.levels.iter().all(Level::is_plain);
        match (self.levels.len(), plain) {
            (1, true) => "single",
            (1, false) => "synthetic",
            (_, true) => "hierarchical",
            (_, false) => "hierarchical with synthetic levels",
        }
    }
}

impl Level {
    fn parse(text: &str) -> Result<Level, CandidateError> {
        let parts = divide(text, '+');
        if parts.len() > limits::PARTS_MAX {
            return Err(CandidateError::Parts);
        }
        let parts = parts.into_iter().map(Part::parse).collect::<Result<Vec<_>, _>>()?;
        if parts.iter().all(|part| matches!(part, Part::Suffix(_))) {
            return Err(CandidateError::OnlySuffix);
        }
        Ok(Level { parts })
    }

    /// Whether the level is the value at a path, as it is.
    pub fn is_plain(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Path(_)])
    }
}

impl Part {
    fn parse(text: &str) -> Result<Part, CandidateError> {
        let text = text.trim();
        if text.starts_with('/') {
            return check_path(text).map(Part::Path);
        }
        let unknown = || CandidateError::Part(text.to_owned());
        let (name, rest) = text.split_once('(').ok_or_else(unknown)?;
        let inside = rest.strip_suffix(')').ok_or_else(unknown)?;
        if let Some(period) = Period::ALL.into_iter().find(|period| period.name() == name) {
            return Ok(Part::Period(period, check_path(inside.trim())?));
        }
        match name {
            "suffix" => Ok(Part::Suffix(check_buckets(inside)?)),
            "hash" => {
                let (path, buckets) = inside.rsplit_once(',').ok_or_else(unknown)?;
                Ok(Part::Hash(check_path(path.trim())?, check_buckets(buckets)?))
            }
            _ => Err(unknown()),
        }
    }

    pub fn path_text(&self) -> Option<&str> {
        match self {
            Part::Path(path) | Part::Period(_, path) | Part::Hash(path, _) => Some(path),
            Part::Suffix(_) => None,
        }
    }
}

fn check_path(text: &str) -> Result<String, CandidateError> {
    match Path::parse_property(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(CandidateError::Path(text.to_owned(), why)),
    }
}

fn check_buckets(text: &str) -> Result<u32, CandidateError> {
    let buckets = text.trim().parse().map_err(|_| CandidateError::Buckets)?;
    if (2..=limits::BUCKETS_MAX).contains(&buckets) { Ok(buckets) } else { Err(CandidateError::Buckets) }
}

/// Cuts a text where the mark stands outside of quotes and brackets.
fn divide(text: &str, mark: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, _) if character == mark && depth == 0 => {
                pieces.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

impl FromStr for Candidate {
    type Err = CandidateError;

    fn from_str(text: &str) -> Result<Candidate, CandidateError> {
        Candidate::parse(text)
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, level) in self.levels.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            for (index, part) in level.parts.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { "+" })?;
                write!(f, "{part}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Path(path) => f.write_str(path),
            Part::Period(period, path) => write!(f, "{}({path})", period.name()),
            Part::Suffix(buckets) => write!(f, "suffix({buckets})"),
            Part::Hash(path, buckets) => write!(f, "hash({path},{buckets})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_alike() {
        for text in [
            "/deviceId",
            "/tenantId,/userId,/id",
            "/deviceId+/month",
            "/deviceId+month(/time)",
            "/date+suffix(10)",
            "/date+hash(/vehicle/id,400)",
            "/tenantId,/date+suffix(4)",
            "/\"a+b,c\"/d",
        ] {
            let candidate = Candidate::parse(text).expect(text);
            assert_eq!(candidate.to_string(), text);
        }
        assert_eq!(Candidate::parse("/a, /b").expect("spaces are fine").to_string(), "/a,/b");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "a",
            "/a,",
            "/a,/b,/c,/d",
            "/a+",
            "suffix(10)",
            "/a+suffix(1)",
            "/a+suffix(x)",
            "week(/a)",
            "month(/a",
            "hash(/a)",
            "/a+/b+/c+/d+/e",
        ] {
            assert!(Candidate::parse(text).is_err(), "{text}");
        }
        assert_eq!(Candidate::parse(&"/a".repeat(1000)), Err(CandidateError::TooLong));
    }
}
