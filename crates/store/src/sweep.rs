//! Finding what is expired: see [`crate::Lifetimes`] for the two queues.

use std::ops::Bound;

use crate::engine::Keyspace;
use crate::view::{damaged, parse_place};
use crate::{DefaultTtl, FeedCursor, ItemKey, Lsn, OpError, Scan, TTL_BY_DEFAULT, View, keys, ttl};

/// Bytes before the place in an entry of the expiry queue: the generation, the path and the time.
const HEAD_BYTES: usize = 20;

/// Items that were found to be expired and still stored.
#[derive(Debug, Default)]
pub struct Overdue {
    pub items: Vec<ItemKey>,
    /// Nothing up to here lives by the default; a later search need not look there again.
    pub passed: Lsn,
    /// The search ended before the end of the queues.
    pub more: bool,
}

impl View<'_> {
    /// Whether anything may be stored that is expired. A yes may be wrong, a no never is.
    pub fn may_hold_expired(&self) -> Result<bool, OpError> {
        if !self.lifetimes.can_end() {
            return Ok(false);
        }
        Ok(self.first_own_end()? || self.first_written_is_over()?)
    }

    /// Looks for expired items, at most `most` of them and not further than `looked_at_max` entries.
    pub fn overdue(&self, passed: Lsn, most: usize, looked_at_max: usize) -> Result<Overdue, OpError> {
        let mut found = Overdue { passed, ..Overdue::default() };
        if !self.lifetimes.can_end() {
            return Ok(found);
        }
        for place in self.ended_by_themselves() {
            if found.items.len() >= most {
                found.more = true;
                return Ok(found);
            }
            found.items.push(parse_place(&place?[HEAD_BYTES..])?);
        }
        self.ended_by_default(&mut found, most, looked_at_max)?;
        Ok(found)
    }

    /// The entries of items whose own time is over.
    fn ended_by_themselves(&self) -> impl Iterator<Item = Result<bytes::Bytes, OpError>> + use<'_> {
        let generation = self.partition.spec.rid_generation;
        let behind_now = self.lifetimes.now().saturating_add(1);
        let lower = keys::index_prefix(generation, keys::EXPIRY_PATH, &[]);
        let upper = keys::index_prefix(generation, keys::EXPIRY_PATH, &behind_now.to_be_bytes());
        let entries =
            self.snapshot.keys(Keyspace::Index, Bound::Included(&lower), Bound::Excluded(&upper), false);
        entries.map(|key| match key {
            Ok(key) if key.len() > HEAD_BYTES => Ok(key),
            Ok(_) => Err(OpError::Damaged("an entry of the expiry queue".into())),
            Err(error) => Err(damaged(error)),
        })
    }

    fn first_own_end(&self) -> Result<bool, OpError> {
        Ok(self.ended_by_themselves().next().transpose()?.is_some())
    }

    /// Whether the oldest write is so old that an item of it could be expired by the default.
    fn first_written_is_over(&self) -> Result<bool, OpError> {
        let DefaultTtl::Seconds(seconds) = self.lifetimes.default_ttl() else { return Ok(false) };
        let mut is_over = false;
        self.feed_entries(FeedCursor::after(Lsn(0)), |_, key| {
            is_over = ttl::ends_at(self.fed_item(&key)?.header.time, seconds) <= self.lifetimes.now();
            Ok(Scan::Stop)
        })?;
        Ok(is_over)
    }

    /// Times grow with LSNs, so the first item that is too young ends the search.
    fn ended_by_default(
        &self,
        found: &mut Overdue,
        most: usize,
        looked_at_max: usize,
    ) -> Result<(), OpError> {
        let DefaultTtl::Seconds(seconds) = self.lifetimes.default_ttl() else { return Ok(()) };
        let (mut looked_at, mut found_here) = (0, false);
        self.feed_entries(FeedCursor::after(found.passed), |_, key| {
            if found.items.len() >= most || looked_at >= looked_at_max {
                found.more = true;
                return Ok(Scan::Stop);
            }
            looked_at += 1;
            let header = self.fed_item(&key)?.header;
            if ttl::ends_at(header.time, seconds) > self.lifetimes.now() {
                return Ok(Scan::Stop);
            }
            if header.ttl == TTL_BY_DEFAULT {
                found_here = true;
                found.items.push(key);
            } else if !found_here {
                // Items of one transaction share an LSN, and a later one of them may live by the default.
                found.passed = Lsn(header.lsn.0.saturating_sub(1));
            }
            Ok(Scan::Continue)
        })
    }
}
