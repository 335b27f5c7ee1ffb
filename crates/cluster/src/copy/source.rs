//! Reading the source of a job: items in the order of the key space, and changes in the order of the writes.

use std::sync::Arc;

use orrery_store::limits::{JOB_PAGE_BYTES, JOB_PAGE_ITEMS};
use orrery_store::{Fault, FeedCursor, HistoryEntry, Item, ItemKey, Scan, View};

use super::job::Interval;
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, HistoryError, Result};
use crate::range::Range;

/// Some items of an interval, in key order.
pub(super) struct WalkedPage {
    pub items: Vec<(ItemKey, Item)>,
    pub is_last: bool,
}

/// Some changes of an interval, in their order.
pub(super) struct ChangedPage {
    pub changes: Vec<HistoryEntry>,
    pub seen: FeedCursor,
}

/// Counts what a page holds.
struct Fill {
    items: usize,
    bytes: usize,
    items_max: usize,
}

impl Fill {
    /// A page is never more than what the job may copy in a second.
    fn new(rate: u32) -> Fill {
        Fill { items: 0, bytes: 0, items_max: JOB_PAGE_ITEMS.min(rate as usize) }
    }

    fn is_full(&self) -> bool {
        self.items >= self.items_max || self.bytes >= JOB_PAGE_BYTES
    }

    fn add(&mut self, bytes: u32) {
        self.items += 1;
        self.bytes += bytes as usize;
    }
}

/// The partition that an interval lies in, which must not end within it.
fn range_of<'c>(container: &'c Container, interval: &Interval) -> Result<&'c Arc<Range>> {
    let range = container.range_of(&interval.min);
    range.replica.check_there()?;
    match range.epk().max >= interval.max {
        true => Ok(range),
        false => Err(ErrorKind::RangeGone.into()),
    }
}

pub(super) fn walk(db: &Db, source: &Container, interval: &Interval, rate: u32) -> Result<WalkedPage> {
    db.world().blocking(|| {
        let range = range_of(source, interval)?;
        let lsn = range.replica.partition.lsn();
        let snapshot = db.inner.committer.snapshot_owned();
        let view = range.replica.view(&snapshot, lsn);
        let (mut items, mut fill, mut is_last) = (Vec::new(), Fill::new(rate), true);
        let after = interval.after.as_ref().map(|place| place.key());
        let scanned = view.scan(&interval.epk(), after.as_ref(), |key, item| {
            if fill.is_full() {
                is_last = false;
                return Scan::Stop;
            }
            fill.add(item.header.json_bytes);
            items.push((key, item));
            Scan::Continue
        });
        scanned.map_err(refuse)?;
        Ok(WalkedPage { items, is_last })
    })
}

/// The changes of an interval behind its cursor. The source has recorded them since before the cursor was set; should
/// some be gone all the same, the job must not go on as if nothing had happened.
pub(super) fn changes(db: &Db, source: &Container, interval: &Interval, rate: u32) -> Result<ChangedPage> {
    db.world().blocking(|| {
        let range = range_of(source, interval)?;
        let lsn = range.replica.partition.lsn();
        let snapshot = db.inner.committer.snapshot_owned();
        let view = range.replica.view(&snapshot, lsn);
        let (mut changes, mut fill, mut is_last) = (Vec::new(), Fill::new(rate), true);
        let (start, mut last) = (interval.cursor(), interval.cursor());
        check_kept(&view, start)?;
        let read = view.history(&interval.epk(), start, |at, entry| {
            // After a merge two entries may have the same cursor, so a page never ends between such.
            if fill.is_full() && at > last {
                is_last = false;
                return Scan::Stop;
            }
            last = at;
            if let Some(entry) = entry {
                fill.add(entry.item.header.json_bytes);
                changes.push(entry);
            }
            Scan::Continue
        });
        read.map_err(refuse)?;
        let end = if is_last { FeedCursor::after(lsn).max(start) } else { last };
        Ok(ChangedPage { changes, seen: end })
    })
}

/// Refuses a cursor behind which something of the history is missing. Where there are no bounds, nothing was recorded.
fn check_kept(view: &View<'_>, start: FeedCursor) -> Result<()> {
    let floor = view.history_bounds().map_err(refuse)?.map_or(view.lsn(), |bounds| bounds.floor);
    match start < FeedCursor::after(floor) {
        true => Err(HistoryError::Outlived.into()),
        false => Ok(()),
    }
}

/// How many writes of the source's partitions are still to be looked at, and the intervals that have some. A page may
/// end within a transaction; what is left of it counts as a write.
pub(super) fn pending(source: &Container, intervals: &[Interval]) -> (u64, Vec<usize>) {
    let (mut sum, mut behind) = (0, Vec::new());
    for (place, interval) in intervals.iter().enumerate() {
        let lsn = source.range_of(&interval.min).replica.partition.lsn();
        if interval.cursor() < FeedCursor::after(lsn) {
            sum += lsn.0.saturating_sub(interval.lsn).max(1);
            behind.push(place);
        }
    }
    (sum, behind)
}

pub(super) fn refuse(error: Fault) -> crate::error::Error {
    error.into()
}
