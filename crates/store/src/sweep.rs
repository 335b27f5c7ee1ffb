//! Finding what is expired: see [`crate::Lifetimes`] for the two queues.

use std::ops::Bound;

use crate::engine::Keyspace;
use crate::index::PlaceRange;
use crate::limits::SIBLINGS_PASSED_AT_ONCE;
use crate::partition::PassedWrites;
use crate::partition_state::is_ahead;
use crate::view::parse_place;
use crate::{DefaultTtl, Fault, FeedCursor, ItemKey, Lsn, Scan, Source, TTL_BY_DEFAULT, View, keys, ttl};

/// Bytes before the place in an entry of the expiry queue: the generation, the path and the time.
const HEAD_BYTES: usize = 20;

/// Items with a life of their own that are passed before it is not worth knowing.
const LOOKED_AT_FIRST: usize = 16;

/// Items that were found to be expired and still stored.
#[derive(Debug, Default)]
pub struct Overdue {
    pub items: Vec<ItemKey>,
    /// The search ended before the end of the queues.
    pub more: bool,
}

impl View<'_> {
    /// Whether anything may be stored that is expired, or otherwise not there for this reader. A yes may be wrong, a no
    /// never is.
    pub fn may_hold_expired(&self) -> Result<bool, Fault> {
        if self.may_hold_foreign()? {
            return Ok(true);
        }
        if !self.lifetimes.can_end() {
            return Ok(false);
        }
        Ok(self.first_own_end()? || self.first_by_default_is_over()?)
    }

    /// Whether items of other keys may lie where the reader's own do.
    fn may_hold_foreign(&self) -> Result<bool, Fault> {
        let Some(key) = &self.only else { return Ok(false) };
        let Some((epk, owner)) = key.own_place() else { return Ok(true) };
        let size = self.logical_size(&epk)?;
        Ok(size.items > 0 && size.owner != owner)
    }

    /// Looks for expired items, at most `most` of them and not further than `looked_at_max` entries.
    /// It remembers how far items have a life of their own, so that they are not looked at each time.
    pub fn overdue(&self, most: usize, looked_at_max: usize) -> Result<Overdue, Fault> {
        let mut found = Overdue::default();
        if !self.lifetimes.can_end() {
            return Ok(found);
        }
        let scope = PlaceRange::new(self.range(), None);
        for (seen, place) in self.ended_by_themselves().enumerate() {
            let place = place?;
            if !scope.contains(&place[HEAD_BYTES..]) {
                if seen >= looked_at_max {
                    break;
                }
                continue;
            }
            if found.items.len() >= most {
                found.more = true;
                return Ok(found);
            }
            found.items.push(parse_place(&place[HEAD_BYTES..])?);
        }
        self.ended_by_default(&mut found, most, looked_at_max)?;
        Ok(found)
    }

    /// The entries of items whose own time is over.
    fn ended_by_themselves(&self) -> impl Iterator<Item = Result<bytes::Bytes, Fault>> + use<'_> {
        let generation = self.partition.spec.rid_generation;
        let behind_now = self.lifetimes.now().saturating_add(1);
        let lower = keys::index_prefix(generation, keys::EXPIRY_PATH, &[]);
        let upper = keys::index_prefix(generation, keys::EXPIRY_PATH, &behind_now.to_be_bytes());
        let entries =
            self.snapshot.keys(Keyspace::Index, Bound::Included(&lower), Bound::Excluded(&upper), false);
        entries.map(|key| match key {
            Ok(key) if key.len() > HEAD_BYTES => Ok(key),
            Ok(_) => Err(Fault::Damaged("an entry of the expiry queue".into())),
            Err(error) => Err(error.into()),
        })
    }

    /// Entries of other partitions stand among ours; many of them are taken for a sign that ours may be there too.
    fn first_own_end(&self) -> Result<bool, Fault> {
        let scope = PlaceRange::new(self.range(), None);
        for (seen, place) in self.ended_by_themselves().enumerate() {
            if seen == LOOKED_AT_FIRST || scope.contains(&place?[HEAD_BYTES..]) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the oldest write of an item that lives by the default is so old that it is expired.
    fn first_by_default_is_over(&self) -> Result<bool, Fault> {
        let DefaultTtl::Seconds(seconds) = self.lifetimes.default_ttl() else { return Ok(false) };
        let (mut is_over, mut looked_at) = (false, 0);
        let (passed, _) = self.partition.passed_at(self.state()?.lsn, self.lifetimes.now());
        for source in self.partition.spec.sequences() {
            self.feed_entries_of(&source, begin_in(&passed, &source), |fed| {
                let header = self.fed_item(&fed.key)?.header;
                let is_ahead = is_ahead(header.time, self.lifetimes.now());
                if !is_ahead && ttl::ends_at(header.time, seconds) > self.lifetimes.now() {
                    return Ok(Scan::Stop);
                }
                looked_at += 1;
                if is_ahead && looked_at < LOOKED_AT_FIRST {
                    return Ok(Scan::Continue);
                }
                // A sweep that had to pass so many of others' entries does not look for its own behind them.
                is_over = !fed.is_own || header.ttl == TTL_BY_DEFAULT || looked_at == LOOKED_AT_FIRST;
                Ok(if is_over { Scan::Stop } else { Scan::Continue })
            })?;
            if is_over {
                break;
            }
        }
        Ok(is_over)
    }

    /// In each sequence times grow with LSNs, so the first item that is too young ends its search. Items that were written
    /// while the clock was ahead say nothing about those behind them, and are passed until the clock has come there.
    fn ended_by_default(&self, found: &mut Overdue, most: usize, looked_at_max: usize) -> Result<(), Fault> {
        let DefaultTtl::Seconds(seconds) = self.lifetimes.default_ttl() else { return Ok(()) };
        let as_of = self.state()?.lsn;
        let (begin, mut until) = self.partition.passed_at(as_of, self.lifetimes.now());
        let (mut passed, mut looked_at) = (PassedWrites::clone(&begin), 0);
        for source in self.partition.spec.sequences() {
            let mut found_here = false;
            self.feed_entries_of(&source, begin_in(&begin, &source), |fed| {
                if found.items.len() >= most || looked_at >= looked_at_max {
                    found.more = true;
                    return Ok(Scan::Stop);
                }
                looked_at += if fed.is_own { 1 } else { SIBLINGS_PASSED_AT_ONCE };
                let header = self.fed_item(&fed.key)?.header;
                let is_ahead = is_ahead(header.time, self.lifetimes.now());
                if is_ahead {
                    until = until.min(header.time);
                } else if ttl::ends_at(header.time, seconds) > self.lifetimes.now() {
                    return Ok(Scan::Stop);
                }
                if !is_ahead && fed.is_own && header.ttl == TTL_BY_DEFAULT {
                    found_here = true;
                    found.items.push(fed.key);
                } else if !found_here {
                    passed.insert(source.number, fed.at);
                }
                Ok(Scan::Continue)
            })?;
            if found.more {
                break;
            }
        }
        // A search that found nothing and did not come to the end goes on from here, so it comes there at last.
        self.partition.set_passed(passed, as_of, until);
        Ok(())
    }
}

/// Where the search of a sequence begins.
fn begin_in(passed: &PassedWrites, source: &Source) -> FeedCursor {
    passed.get(&source.number).copied().unwrap_or(FeedCursor::after(Lsn(0)))
}
