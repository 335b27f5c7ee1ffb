//! The change feed: what was written to a partition, in the order of the writes.
//!
//! There are two feeds. *Latest versions* has one entry for each live item, under the LSN of its last write; it is always
//! there and reaches back to the beginning. *All versions* has one entry for each write and delete, and is
//! there as far back as the container's policy says.
//!
//! A page never spans two partitions, and its continuation is a place in the partition's sequence of writes: everything
//! up to there has been seen. Pages end between transactions as long as these are of a decent size. LSNs of a
//! partition that another was split into continue above those of the other, so a continuation stays good for each
//! part of the key space that it was given for.

use std::sync::Arc;

use orrery_doc::EpkRange;
use orrery_store::limits::{CHANGE_PAGE_BYTES_MAX, PAGE_ITEMS_MAX};
use orrery_store::{Fault, FeedCursor, HistoryEntry, Item, Lsn, Meter, Scan, View};

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, ErrorKind, HistoryError, Result};
use crate::feed::{PageLimits, Step, Walk};
use crate::range::Range;
use crate::receipt::{Receipt, Served};
use crate::request::{PageOptions, Scope};
use crate::ru;
use crate::turns::Party;
use crate::world::World;

/// Where a reader of changes starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesFrom {
    Beginning,
    Now,
    /// Units of 100 ns since 1970.
    Time(u64),
    After(FeedCursor),
}

/// One page of changes.
#[derive(Clone, Debug)]
pub struct ChangePage<C> {
    pub changes: Vec<C>,
    /// What the reader has seen by now, also when the page is empty.
    pub seen: FeedCursor,
    /// Nothing is left for now. A page can be empty and not the last when its time was over.
    pub is_last: bool,
    pub receipt: Receipt,
}

/// One entry of a feed, as far as paging is concerned.
trait Change {
    fn bytes(&self) -> u64;
}

impl Change for Item {
    fn bytes(&self) -> u64 {
        u64::from(self.header.json_bytes)
    }
}

impl Change for HistoryEntry {
    fn bytes(&self) -> u64 {
        u64::from(self.item.header.json_bytes)
    }
}

impl Db {
    /// The latest versions of what was written within one physical partition; a scope that spans several is answered
    /// as gone, and the client asks each of its parts.
    pub async fn changes(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        from: ChangesFrom,
        page: &PageOptions,
    ) -> Result<ChangePage<Item>> {
        let is_key = matches!(scope, Scope::Key(key) if key.is_full(&container.definition.key));
        let read = |view: &View<'_>, epk: &EpkRange, found: &mut Found<Item>| {
            let start = match from {
                ChangesFrom::Beginning => FeedCursor::after(Lsn(0)),
                ChangesFrom::Now => FeedCursor::after(view.lsn()),
                ChangesFrom::Time(time) => FeedCursor::after(view.lsn_before(time).map_err(refuse)?),
                ChangesFrom::After(cursor) => cursor,
            };
            let visit = |at, item| found.take(at, item);
            let read =
                if is_key { view.changes_of_key(epk, start, visit) } else { view.changes(epk, start, visit) };
            read.map_err(refuse)?;
            Ok(start)
        };
        self.read_changes(container, scope, page, read).await
    }

    /// Every version and delete within one physical partition, as far back as the container keeps them.
    pub async fn all_changes(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        from: ChangesFrom,
        page: &PageOptions,
    ) -> Result<ChangePage<HistoryEntry>> {
        let retention = container.definition.retention().ok_or(HistoryError::NotKept)?;
        let oldest = self.world().now().saturating_sub(crate::history::ticks(retention));
        let read = |view: &View<'_>, epk: &EpkRange, found: &mut Found<HistoryEntry>| {
            let start = match from {
                ChangesFrom::Beginning | ChangesFrom::Time(_) => return Err(HistoryError::NoSuchStart.into()),
                ChangesFrom::Now => FeedCursor::after(view.lsn()),
                ChangesFrom::After(cursor) => cursor,
            };
            let floor = view.history_bounds().map_err(refuse)?.map_or(view.lsn(), |bounds| bounds.floor);
            let is_there = start.lsn > floor || start.lsn == floor && start.is_whole();
            let mut outlived = false;
            let mut visit = |at, entry: Option<HistoryEntry>| {
                // What is too old is gone, though nobody has erased it yet.
                outlived = entry.as_ref().is_some_and(|entry| entry.time < oldest);
                if outlived { Scan::Stop } else { found.take(at, entry) }
            };
            if is_there {
                view.history(epk, start, &mut visit).map_err(refuse)?;
            }
            if is_there && !outlived { Ok(start) } else { Err(HistoryError::Outlived.into()) }
        };
        self.read_changes(container, scope, page, read).await
    }

    async fn read_changes<C: Change>(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        page: &PageOptions,
        read: impl FnOnce(&View<'_>, &EpkRange, &mut Found<C>) -> Result<FeedCursor>,
    ) -> Result<ChangePage<C>> {
        self.read_page(Party::from(container.number), page, |page| {
            let (range, epk, lsn, snapshot) = self.where_it_is(container, |container| {
                let (range, epk) = range_of(container, scope)?;
                let lsn = self.admit(container, &range, page)?;
                let snapshot = self.inner.committer.snapshot_owned();
                range.replica.check_there()?;
                Ok((range, epk, lsn, snapshot))
            })?;
            let whole_key = scope.whole_key(&container.definition.key);
            let view = range.replica.view(&snapshot, lsn).only(whole_key);
            let mut found = Found::new(page, self.world());
            let start = read(&view, &epk, &mut found)?;
            let end = FeedCursor::after(lsn);
            let seen = found.stopped_at.unwrap_or(end).max(start);
            let charge = ru::feed(&found.meter, page.consistency);
            self.pay(container, &range, &charge);
            range.note(|insight| insight.scoped(container, scope, charge.total()));
            let served = Some(Served { range_id: range.descriptor.id, lsn, item_lsn: None });
            let receipt = Receipt { charge, served };
            Ok(ChangePage { is_last: found.stopped_at.is_none(), changes: found.changes, seen, receipt })
        })
        .await
    }
}

fn refuse(error: Fault) -> Error {
    error.into()
}

/// The one partition that the scope lies in, and the part of its key space that is meant.
fn range_of(container: &Container, scope: &Scope) -> Result<(Arc<Range>, EpkRange)> {
    if matches!(scope, Scope::Container) && container.ranges.len() > 1 {
        return Err(Error::invalid(
            "The change feed of a container with several physical partitions is read from each of them: name a \
             partition key range, a range of effective partition keys or a partition key.",
        ));
    }
    let walk = Walk::start(container, scope, None)?;
    let range = walk.range(container).cloned().ok_or(ErrorKind::RangeGone)?;
    if !walk.ends_within(&range) {
        return Err(ErrorKind::RangeGone.into());
    }
    let epk = walk.rest_of(&range);
    Ok((range, epk))
}

/// A page in the making.
struct Found<C> {
    changes: Vec<C>,
    meter: Meter,
    limits: PageLimits,
    full: bool,
    last: Option<FeedCursor>,
    /// How far the page goes, when it ended before the feed did.
    stopped_at: Option<FeedCursor>,
}

impl<C: Change> Found<C> {
    fn new(page: &PageOptions, world: &World) -> Found<C> {
        Found {
            changes: Vec::new(),
            meter: Meter::default(),
            limits: PageLimits::new(page, world),
            full: false,
            last: None,
            stopped_at: None,
        }
    }

    /// Takes the next change, or notes that there was one that does not concern the reader.
    fn take(&mut self, at: FeedCursor, change: Option<C>) -> Scan {
        if self.full
            && let Some(last) = self.last
        {
            let is_same_transaction = last.lsn == at.lsn;
            // Two partitions that were merged may each have a write at one place; a cursor cannot stand between them.
            let is_between = last != at;
            if !is_same_transaction || self.is_oversized() && is_between {
                self.stopped_at = Some(if is_same_transaction { last } else { FeedCursor::after(last.lsn) });
                return Scan::Stop;
            }
        }
        self.last = Some(at);
        match change {
            None => self.full |= self.limits.is_late(),
            Some(change) => {
                self.meter.items_scanned += 1;
                self.meter.bytes_scanned += change.bytes();
                self.full |= self.limits.take(change.bytes()) != Step::Continue;
                self.changes.push(change);
            }
        }
        Scan::Continue
    }

    /// A transaction so large that it does not fit into any page.
    fn is_oversized(&self) -> bool {
        self.changes.len() >= PAGE_ITEMS_MAX || self.meter.bytes_scanned >= CHANGE_PAGE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::request::{AccessChoice, Consistency};

    impl Change for u64 {
        fn bytes(&self) -> u64 {
            *self
        }
    }

    /// Feeds entries of (LSN, place, bytes) and shows what was taken and where the page ended.
    fn page(
        items_max: usize,
        entries: impl IntoIterator<Item = (u64, u16, Option<u64>)>,
    ) -> (usize, Option<(u64, u16)>) {
        let options = PageOptions {
            items_max,
            bytes_max: 1_000,
            time_max: Duration::from_secs(60),
            continuation: None,
            consistency: Consistency::Session,
            session: None,
            access: AccessChoice::Auto,
            properties: None,
            order: Default::default(),
        };
        let mut found = Found::new(&options, &World::Real);
        for (lsn, place, bytes) in entries {
            if found.take(FeedCursor { lsn: Lsn(lsn), place }, bytes) == Scan::Stop {
                break;
            }
        }
        (found.changes.len(), found.stopped_at.map(|at| (at.lsn.0, at.place)))
    }

    #[test]
    fn pages_end_between_transactions() {
        let small = Some(1);
        let entries = [(1, 0, small), (2, 0, small), (2, 1, small), (2, 4, small), (4, 0, small)];
        assert_eq!(page(1, entries), (1, Some((1, u16::MAX))));
        assert_eq!(page(2, entries), (4, Some((2, u16::MAX))));
        assert_eq!(page(4, entries), (4, Some((2, u16::MAX))));
        assert_eq!(page(5, entries), (5, None), "a full page at the end of the feed is the last one");
        let large = [(1, 0, Some(999)), (2, 0, small), (3, 0, small)];
        assert_eq!(page(100, large), (2, Some((2, u16::MAX))), "bytes count too");
    }

    #[test]
    fn what_does_not_concern_the_reader_moves_him_on() {
        let entries = [(1, 0, Some(1)), (2, 0, None), (3, 0, None), (4, 0, Some(1)), (5, 0, None)];
        assert_eq!(page(1, entries), (1, Some((1, u16::MAX))));
        assert_eq!(page(2, entries), (2, Some((4, u16::MAX))));
        assert_eq!(page(3, entries), (2, None));
    }

    #[test]
    fn a_giant_transaction_is_cut() {
        let count = PAGE_ITEMS_MAX as u16 + 10;
        let entries = (0..count).map(|place| (7, place, Some(0)));
        assert_eq!(page(1, entries), (PAGE_ITEMS_MAX, Some((7, PAGE_ITEMS_MAX as u16 - 1))));
        let entries = (0..100).map(|place| (7, place, Some(CHANGE_PAGE_BYTES_MAX / 4)));
        assert_eq!(page(1, entries), (4, Some((7, 3))));
    }
}
