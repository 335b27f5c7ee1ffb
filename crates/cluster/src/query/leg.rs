//! What is left of a leg, in the order of creation.
//!
//! Two ways find the rows of a filter: the oldest items are gone through one by one, or the places of all candidates are collected
//! from the index and only those items are. The first is cheaper where most items pass; the second where few do, or
//! where those that do were created at about the same time, as is usual: what is open is new, what is done is old. No
//! count of entries tells one from the other. So unless the index is sure to pay off, the leg is begun without it, as a
//! *trial*: after each item, what the page has looked at in vain, or is going to, is weighed against the entries that would
//! have to be read, both as what has been seen of the leg lets expect. Once the entries are cheaper, the rest of the leg
//! goes by them.

use orrery_query::Steward;
use orrery_store::index::{IndexReader, Places};
use orrery_store::limits::{CREATION_ITEMS_MAX, CREATION_SORTED_BYTES};
use orrery_store::{Members, Scan};

use super::choose::Chosen;
use super::key_order::{Keeper, open};
use super::page::Feed;
use super::visit::{Visit, stored};
use crate::cursor::Leg;
use crate::error::{ErrorKind, Result};
use crate::request::AccessChoice;
use crate::ru;

/// Feeds what is left of a leg.
pub(super) fn feed<'r>(
    visit: &mut Visit<'_>,
    run: &mut dyn Feed,
    keeper: &mut Keeper,
    leg: &Leg,
    reader: &'r IndexReader<'r>,
    chosen: Option<Chosen>,
) -> Result<()> {
    let held = visit.extent.size.bytes.min(CREATION_SORTED_BYTES) as usize;
    visit.request.steward.hold(held).map_err(ErrorKind::Query)?;
    let is_tried = chosen.as_ref().is_some_and(|chosen| !chosen.is_sure)
        && visit.extent.size.finds_oldest_soon(wanted(visit));
    let mut walk = LegWalk { visit, run, keeper, after: leg.seen };
    open(walk.visit, reader, None)?;
    if !is_tried || walk.tries()? {
        let places = match chosen {
            Some(chosen) => collect(walk.visit, reader, chosen)?,
            None => None,
        };
        let members = places.as_ref().map_or(Members::All, Members::At);
        walk.visits(members, None)?;
    }
    visit.request.steward.release(held);
    Ok(())
}

/// Rows of a page, and the one behind it; `None` when all items have to be seen.
fn wanted(visit: &Visit<'_>) -> Option<usize> {
    let request = visit.request;
    (!request.program.is_blocking()).then_some(request.page.items_max.saturating_add(1))
}

/// The places of the candidates; `None` where they are so many that a scan looks at few more.
fn collect<'r>(visit: &mut Visit<'_>, reader: &'r IndexReader<'r>, chosen: Chosen) -> Result<Option<Places>> {
    let most = match visit.request.page.access {
        AccessChoice::IndexAlways => CREATION_ITEMS_MAX,
        _ => (visit.extent.items / 4 * 3).min(CREATION_ITEMS_MAX),
    } as usize;
    let collect_max = Some(most);
    let Some(mut cursor) = open(visit, reader, Some(Chosen { collect_max, ..chosen }))? else {
        return Ok(None);
    };
    let mut places = Places::default();
    let is_whole = visit.tally.looking_up(|| {
        while let Some(place) = cursor.current() {
            if places.len() >= most || !places.push(place) {
                return Ok(false);
            }
            cursor.advance()?;
        }
        Ok(true)
    });
    if !is_whole.map_err(stored)? {
        open(visit, reader, None)?;
        return Ok(None);
    }
    visit.request.steward.hold(places.memory_bytes()).map_err(ErrorKind::Query)?;
    Ok(Some(places))
}

/// A walk through a leg, and the last item that it has passed.
struct LegWalk<'w, 'v> {
    visit: &'w mut Visit<'v>,
    run: &'w mut dyn Feed,
    keeper: &'w mut Keeper,
    after: Option<u64>,
}

impl LegWalk<'_, '_> {
    /// Goes without the index; returns whether it is to be asked about what is left.
    fn tries(&mut self) -> Result<bool> {
        let mut trial = Trial::begin(self.visit, self.run.rows());
        self.visits(Members::All, Some(&mut trial))?;
        Ok(trial.is_lost)
    }

    fn visits(&mut self, members: Members<'_>, mut trial: Option<&mut Trial>) -> Result<()> {
        let LegWalk { visit, run, keeper, after } = self;
        let world = visit.request.steward.world().clone();
        let started = world.monotonic();
        let (view, epk, size, wanted) =
            (visit.view, visit.extent.epk.clone(), visit.extent.size, wanted(visit));
        let scanned = view.scan_created(&epk, *after, members, size, wanted, |item| {
            *after = Some(item.header.rid);
            if keeper.take_or_pass(visit, *run, &[], &item) == Scan::Stop {
                return Scan::Stop;
            }
            match &mut trial {
                Some(trial) => trial.goes_on(run.rows()),
                None => Scan::Continue,
            }
        });
        scanned.map_err(stored)?;
        visit.tally.scanned(world.since(started));
        Ok(())
    }
}

/// What has been seen of a leg without the index.
struct Trial {
    /// Items of the leg, and rows that are looked for.
    items: f64,
    wanted: f64,
    /// As many index entries cost what it costs to look at one of the items.
    entries_for_item: f64,
    rows_before: usize,
    seen: f64,
    is_lost: bool,
}

impl Trial {
    fn begin(visit: &Visit<'_>, rows_before: usize) -> Trial {
        let size = visit.extent.size;
        let rows = wanted(visit).map_or(size.items, |wanted| wanted as u64);
        Trial {
            items: size.items as f64,
            wanted: rows as f64,
            entries_for_item: ru::entries_for_item(size.bytes / size.items.max(1)),
            rows_before,
            seen: 0.0,
            is_lost: false,
        }
    }

    /// After another item.
    fn goes_on(&mut self, rows: usize) -> Scan {
        self.seen += 1.0;
        let rows = rows.saturating_sub(self.rows_before) as f64;
        // One more of either than was seen: the first items say little.
        let rows_for_item = (rows + 1.0) / (self.seen + 1.0);
        let left = (self.wanted - rows).max(1.0);
        let in_vain = (self.seen - rows).max(0.0);
        let in_vain_yet = in_vain * left / (rows + 1.0);
        self.is_lost = in_vain.max(in_vain_yet) * self.entries_for_item > self.items * rows_for_item;
        if self.is_lost { Scan::Stop } else { Scan::Continue }
    }
}
