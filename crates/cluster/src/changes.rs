//! The change feed: the latest version of each item, in the order of its last write.
//!
//! A partition's feed has one entry for each live item, under the LSN of its last write. The continuation is an LSN:
//! a page never ends inside a transaction, so everything up to that LSN has been seen.

use std::sync::Arc;

use orrery_store::{Item, Lsn, Meter, Scan, View};

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::feed::{PageLimits, Step, Walk};
use crate::receipt::{Receipt, Served};
use crate::request::{PageOptions, Scope};
use crate::ru;

/// Where a reader of changes starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesFrom {
    Beginning,
    Now,
    /// Units of 100 ns since 1970.
    Time(u64),
    After(Lsn),
}

/// One page of changes; an empty one means that nothing is left for now.
#[derive(Clone, Debug)]
pub struct ChangePage {
    pub items: Vec<Item>,
    /// What the reader has seen by now, also when the page is empty.
    pub seen: Lsn,
    pub receipt: Receipt,
}

impl Db {
    /// Changes within one physical partition; a scope that spans several is answered as gone, and the client
    /// asks each of its parts.
    pub async fn changes(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        from: ChangesFrom,
        page: &PageOptions,
    ) -> Result<ChangePage> {
        let _permit = self.inner.scans.acquire().await.map_err(|_| ErrorKind::Stopping)?;
        tokio::task::block_in_place(|| self.change_page(container, scope, from, page))
    }

    fn change_page(
        &self,
        container: &Container,
        scope: &Scope,
        from: ChangesFrom,
        page: &PageOptions,
    ) -> Result<ChangePage> {
        let walk = Walk::start(container, scope, None)?;
        let range = walk.range(container).cloned().ok_or(ErrorKind::RangeGone)?;
        if !walk.ends_within(&range) {
            return Err(ErrorKind::RangeGone.into());
        }
        let lsn = self.admit(container, &range, page.session.as_ref())?;
        let snapshot = self.inner.committer.snapshot_owned();
        let view = View::new(&range.partition, &snapshot, lsn);
        let refuse = |error| ErrorKind::Op { place: 0, error };
        let start = match from {
            ChangesFrom::Beginning => Lsn(0),
            ChangesFrom::Now => lsn,
            ChangesFrom::Time(time) => view.lsn_before(time).map_err(refuse)?,
            ChangesFrom::After(lsn) => lsn,
        };
        let mut found = Found::default();
        let mut limits = PageLimits::new(page);
        let within = walk.epk.intersection(range.epk());
        view.changes(&within, start, |item| found.take(item, lsn, &mut limits)).map_err(refuse)?;
        let seen = found.stopped_at.unwrap_or(lsn).max(start);
        let charge = ru::feed(&found.meter, page.consistency);
        self.pay(container, &range, &charge);
        let served = Some(Served { range_id: range.id, lsn, item_lsn: None });
        Ok(ChangePage { items: found.items, seen, receipt: Receipt { charge, served } })
    }
}

/// A page in the making.
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    meter: Meter,
    full: bool,
    /// The last whole transaction, when the page ended before the feed did.
    stopped_at: Option<Lsn>,
}

impl Found {
    fn take(&mut self, item: Item, newest: Lsn, limits: &mut PageLimits) -> Scan {
        let last = self.items.last().map(|item| item.header.lsn);
        // The snapshot may hold more than the LSN that the answer names; that belongs to the next page.
        if item.header.lsn > newest {
            return Scan::Stop;
        }
        if self.full && last != Some(item.header.lsn) {
            self.stopped_at = last;
            return Scan::Stop;
        }
        self.meter.items_scanned += 1;
        self.meter.bytes_scanned += u64::from(item.header.json_bytes);
        self.full |= limits.take(u64::from(item.header.json_bytes)) != Step::Continue;
        self.items.push(item);
        Scan::Continue
    }
}
