//! Histories, and their notation:
//!
//! ```text
//! # session  begin-end  what  key=value …  place
//! A 1-2 write x=1 y=2 @5       acknowledged at LSN 5; both keys in one transaction
//! A 3-? write x=3              nobody knows whether it was carried out
//! A 4-5 refused x=4            certainly not carried out
//! B 6-7 read x=1@5 z=none @5   what was seen, with its place, and how far the replica says it is
//! B 8-9 read q/x=none @2.7     a key of the partition q; version 2, LSN 7
//! ```

use std::fmt;

/// Where a transaction stands in the log of its partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Counts changes of the account's regions.
    pub version: u32,
    pub lsn: u64,
}

impl Place {
    pub fn lsn(lsn: u64) -> Place {
        Place { version: 0, lsn }
    }
}

/// One item of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub key: String,
    /// The value and the place of its write; none when there was no item.
    pub value: Option<(u64, Place)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A transaction of one partition. Without a place nobody knows whether it was carried out.
    Write { writes: Vec<(String, u64)>, place: Option<Place> },
    /// A write that was told not to have happened.
    Refused { writes: Vec<(String, u64)> },
    /// What one answer shows of one partition, and how far that is by its own word.
    Read { seen: Vec<Seen>, at: Place },
}

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Requests of a session follow each other, and share a token.
    pub session: String,
    pub partition: String,
    pub begin: u64,
    /// None when there was no answer.
    pub end: Option<u64>,
    pub action: Action,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    pub events: Vec<Event>,
}

impl History {
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Reads the notation. What is wrong with it is told with its line.
    pub fn parse(text: &str) -> Result<History, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let events = lines
            .filter(|line| !line.is_empty())
            .map(|line| parse_event(line).ok_or_else(|| line.to_owned()));
        events.collect::<Result<_, _>>().map(|events| History { events })
    }
}

fn parse_event(line: &str) -> Option<Event> {
    let mut words = line.split_whitespace();
    let (session, moments, verb) = (words.next()?, words.next()?, words.next()?);
    let (begin, end) = moments.split_once('-')?;
    let end = if end == "?" { None } else { Some(end.parse().ok()?) };
    let mut words: Vec<&str> = words.collect();
    let place = match words.last().and_then(|word| word.strip_prefix('@')) {
        Some(place) => {
            words.pop();
            Some(parse_place(place)?)
        }
        None => None,
    };
    let mut partition = "";
    let mut pairs = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=')?;
        let (of, key) = key.split_once('/').unwrap_or(("", key));
        partition = of;
        pairs.push((key, value));
    }
    let write = |(key, value): &(&str, &str)| -> Option<(String, u64)> {
        Some(((*key).to_owned(), value.parse().ok()?))
    };
    let writes = || pairs.iter().map(write).collect::<Option<Vec<_>>>();
    let action = match verb {
        "write" => Action::Write { writes: writes()?, place },
        "refused" => Action::Refused { writes: writes()? },
        "read" => {
            let seen = pairs.iter().map(|(key, value)| parse_seen(key, value)).collect::<Option<_>>()?;
            Action::Read { seen, at: place? }
        }
        _ => return None,
    };
    Some(Event {
        session: session.to_owned(),
        partition: partition.to_owned(),
        begin: begin.parse().ok()?,
        end,
        action,
    })
}

fn parse_seen(key: &str, value: &str) -> Option<Seen> {
    let value = match value {
        "none" => None,
        value => {
            let (value, place) = value.split_once('@')?;
            Some((value.parse().ok()?, parse_place(place)?))
        }
    };
    Some(Seen { key: key.to_owned(), value })
}

fn parse_place(text: &str) -> Option<Place> {
    let (version, lsn) = text.split_once('.').unwrap_or(("0", text));
    Some(Place { version: version.parse().ok()?, lsn: lsn.parse().ok()? })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            0 => write!(f, "@{}", self.lsn),
            version => write!(f, "@{version}.{}", self.lsn),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.end.map_or_else(|| "?".to_owned(), |end| end.to_string());
        write!(f, "{} {}-{end}", self.session, self.begin)?;
        let partition =
            if self.partition.is_empty() { String::new() } else { format!("{}/", self.partition) };
        let all = |f: &mut fmt::Formatter<'_>, verb, writes: &[(String, u64)]| {
            write!(f, " {verb}")?;
            writes.iter().try_for_each(|(key, value)| write!(f, " {partition}{key}={value}"))
        };
        match &self.action {
            Action::Write { writes, place } => {
                all(f, "write", writes)?;
                place.map_or(Ok(()), |place| write!(f, " {place}"))
            }
            Action::Refused { writes } => all(f, "refused", writes),
            Action::Read { seen, at } => {
                write!(f, " read")?;
                for Seen { key, value } in seen {
                    match value {
                        Some((value, place)) => write!(f, " {partition}{key}={value}{place}")?,
                        None => write!(f, " {partition}{key}=none")?,
                    }
                }
                write!(f, " {at}")
            }
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}
