//! Where the entries of a partition's sequences stand, which may not all be its own.
//!
//! The feed and the history of a partition are sequences under its number. A partition that others were split into
//! or merged into leaves its sequences behind, and nobody copies them: each successor goes on reading the part that
//! lies in its own range of the key space, and writes under its own number. Its LSNs begin above those of all that
//! came before, so a cursor stays good across splits and merges.
//!
//! At any moment a key belonged to exactly one partition, so the key and the LSN of a write tell under whose number
//! its entry stands. An entry leaves when its item is written again, whichever partition owns the item by then.

use std::ops::Bound;

use bytes::Bytes;
use orrery_doc::{Epk, EpkRange};

use crate::conflict;
use crate::engine::{self, Keyspace, Snapshot};
use crate::feed::FeedCursor;
use crate::history;
use crate::index::PlaceRange;
use crate::limits::SIBLINGS_PASSED_AT_ONCE;
use crate::{Fault, Lsn, PartitionSpec, keys};

/// A partition that is no more, and the part of its sequences that belongs to a successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub number: u32,
    pub range: EpkRange,
    /// The last LSN before its first.
    pub after: Lsn,
    /// Its last LSN.
    pub to: Lsn,
}

/// Three sequences have the same order and are read the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// One entry for each live item, under its last write.
    Latest,
    /// One entry for each write.
    History,
    /// One entry for each write that lost against another.
    Conflicts,
}

impl Sequence {
    fn key(self, partition: u32, lsn: u64, place: u16) -> Vec<u8> {
        match self {
            Sequence::Latest => keys::feed(partition, lsn, place).to_vec(),
            Sequence::History => keys::history(partition, lsn, place).to_vec(),
            Sequence::Conflicts => keys::conflict(partition, lsn, place).to_vec(),
        }
    }

    fn parse(self, key: &[u8]) -> Option<FeedCursor> {
        let (lsn, place) = match self {
            Sequence::Latest => keys::parse_feed(key),
            Sequence::History => keys::parse_history(key),
            Sequence::Conflicts => keys::parse_conflict(key),
        }?;
        Some(FeedCursor { lsn: Lsn(lsn), place })
    }

    /// The place of the item that an entry is about.
    fn place_in(self, value: &[u8]) -> Result<&[u8], Fault> {
        match self {
            Sequence::Latest => Ok(value),
            Sequence::History => history::place_in(value),
            Sequence::Conflicts => conflict::place_in(value),
        }
    }
}

/// An entry of a sequence.
pub(crate) struct Entry {
    pub at: FeedCursor,
    pub key: Bytes,
    pub value: Bytes,
    /// Others' entries are passed, but some of them are shown: a reader that finds nothing of its own has to see that
    /// it has come further, and must be able to stop.
    pub is_own: bool,
}

impl PartitionSpec {
    /// The last LSN before the partition's own first.
    pub fn base(&self) -> Lsn {
        self.sources.iter().map(|source| source.to).max().unwrap_or_default()
    }

    /// The number under which the feed entry of a write stands.
    pub(crate) fn number_of(&self, epk: &Epk, lsn: Lsn) -> u32 {
        let holds = |source: &&Source| source.after < lsn && lsn <= source.to && source.range.contains(epk);
        self.sources.iter().find(holds).map_or(self.number, |source| source.number)
    }

    /// What a successor that takes over `range` reads of this partition, whose last LSN is given.
    pub fn bequeath(&self, range: &EpkRange, last: Lsn) -> Vec<Source> {
        let own = Source { number: self.number, range: self.range.clone(), after: self.base(), to: last };
        let narrow = |source: &Source| {
            let range = source.range.intersection(range);
            (!range.is_empty()).then(|| Source { range, ..source.clone() })
        };
        let own = (own.after < own.to).then_some(&own);
        self.sources.iter().chain(own).filter_map(narrow).collect()
    }

    /// Each sequence by itself, oldest first; within each, times grow with LSNs.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = Source> {
        let own =
            Source { number: self.number, range: self.range.clone(), after: self.base(), to: Lsn(u64::MAX) };
        self.sources.iter().cloned().chain(std::iter::once(own))
    }

    /// The entries of one sequence of the feed, as [`PartitionSpec::walk`] shows them.
    pub(crate) fn walk_of(
        &self,
        snapshot: &Snapshot,
        source: &Source,
        after: FeedCursor,
        to: Lsn,
    ) -> Entries {
        Entries { streams: vec![Stream::open(snapshot, Sequence::Latest, self.number, source, after, to)] }
    }

    /// The first entry of a sequence of the feed behind a cursor, whosever it is.
    pub(crate) fn first_of_any(
        &self,
        snapshot: &Snapshot,
        source: &Source,
        after: FeedCursor,
        to: Lsn,
    ) -> Result<Option<Entry>, Fault> {
        // To the partition that wrote the sequence all of its entries are its own.
        let mut stream = Stream::open(snapshot, Sequence::Latest, source.number, source, after, to);
        stream.fill()?;
        Ok(stream.head)
    }

    /// The partition's own entries, as [`PartitionSpec::walk`] finds them.
    pub(crate) fn entries(
        &self,
        snapshot: &Snapshot,
        sequence: Sequence,
        after: FeedCursor,
        to: Lsn,
    ) -> impl Iterator<Item = Result<Entry, Fault>> + use<> {
        let is_wanted = |entry: &Result<Entry, Fault>| entry.as_ref().map_or(true, |entry| entry.is_own);
        self.walk(snapshot, sequence, after, to).filter(is_wanted)
    }

    /// The entries behind a cursor, up to an LSN, in the order of their cursors. After a merge two entries may have
    /// the same one. Among them is one in so many that are not the partition's own.
    pub(crate) fn walk(
        &self,
        snapshot: &Snapshot,
        sequence: Sequence,
        after: FeedCursor,
        to: Lsn,
    ) -> Entries {
        let streams = self
            .sequences()
            .filter(|source| FeedCursor::after(source.to) > after)
            .map(|source| Stream::open(snapshot, sequence, self.number, &source, after, to));
        Entries { streams: streams.collect() }
    }
}

/// Pieces of one sequence that lie side by side in the key space become one again.
pub fn join(mut sources: Vec<Source>) -> Vec<Source> {
    sources.sort_by(|a, b| (a.after, a.number).cmp(&(b.after, b.number)).then(a.range.min.cmp(&b.range.min)));
    sources.dedup_by(|next, kept| {
        let is_next = kept.number == next.number && kept.range.max == next.range.min;
        if is_next {
            kept.range.max = next.range.max.clone();
        }
        is_next
    });
    sources
}

/// The entries of several sequences, merged.
pub(crate) struct Entries {
    streams: Vec<Stream>,
}

struct Stream {
    entries: engine::Scan,
    sequence: Sequence,
    /// Set where others have a part in the sequence.
    range: Option<PlaceRange>,
    head: Option<Entry>,
    is_open: bool,
}

impl Stream {
    fn open(
        snapshot: &Snapshot,
        sequence: Sequence,
        own: u32,
        source: &Source,
        after: FeedCursor,
        to: Lsn,
    ) -> Stream {
        let (lsn, place) = after.next();
        let to = to.min(source.to).0;
        let lower = sequence.key(source.number, lsn, place);
        let upper = sequence.key(source.number, to, u16::MAX);
        let bounds = (Bound::Included(lower.as_slice()), Bound::Included(upper.as_slice()));
        Stream {
            entries: snapshot.range(Keyspace::Feed, bounds.0, bounds.1, false),
            sequence,
            range: (source.number != own).then(|| PlaceRange::new(&source.range, None)),
            head: None,
            is_open: true,
        }
    }

    /// Makes sure that the next entry is known, if there is one.
    fn fill(&mut self) -> Result<(), Fault> {
        let mut passed = 0;
        while self.is_open && self.head.is_none() {
            let Some(entry) = self.entries.next() else {
                self.is_open = false;
                break;
            };
            let (key, value) = entry?;
            let place = self.sequence.place_in(&value)?;
            let is_own = self.range.as_ref().is_none_or(|range| range.contains(place));
            passed += usize::from(!is_own);
            if is_own || passed == SIBLINGS_PASSED_AT_ONCE {
                let at = self.sequence.parse(&key);
                let at = at.ok_or_else(|| Fault::Damaged("a feed key".into()))?;
                self.head = Some(Entry { at, key, value, is_own });
            }
        }
        Ok(())
    }
}

impl Entries {
    fn take_first(&mut self) -> Result<Option<Entry>, Fault> {
        let mut first: Option<(usize, FeedCursor)> = None;
        for (place, stream) in self.streams.iter_mut().enumerate() {
            stream.fill()?;
            if let Some(entry) = &stream.head
                && first.is_none_or(|(_, at)| entry.at < at)
            {
                first = Some((place, entry.at));
            }
        }
        Ok(first.and_then(|(place, _)| self.streams[place].head.take()))
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take_first().transpose()
    }
}
