//! ORDER BY over several partitions, from the orders of their indexes.
//!
//! Every partition delivers its entries in the order of their terms, so the smallest term among those that
//! come next is the next of all. Only the items of the runs that make the page are fetched: as many as one
//! large partition would need, and not a page from each.
//!
//! This way serves the usual case and leaves the rest to others: every item has a value to order by, no run is long,
//! and the filter lets enough items pass. When it meets anything else it gives up, and all that it cost is the
//! items fetched until then.

use orrery_query::{Carry, Flow, Sink};
use orrery_store::index::{IndexReader, ItemLoader, OrderedCursor, OrderedEntry, Places};
use orrery_store::limits::{BLOCKING_QUERY_TIME_MAX, ORDER_RUN_MERGED_MAX};

use super::note::Method;
use super::page::{Feed, PageRun};
use super::tally::Tally;
use super::term_order::{FETCH_COST, Order, last_row, pays_off, spend_at_once, spend_max};
use super::visit::{Visit, stored};
use crate::error::{ErrorKind, Result};
use crate::turns::at_length;
use crate::world::Deadline;

/// Answers a page over all partitions of the visits, if their indexes deliver the order and that pays off.
pub(super) fn answer<S: Sink + Default>(visits: &mut [Visit<'_>]) -> Result<Option<(S, Option<Carry>)>> {
    let Some(orders) = orders_of(visits)? else { return Ok(None) };
    let some = visits.iter().map(spend_at_once).min().unwrap_or(0);
    let all = visits.iter().map(spend_max).fold(0, u64::saturating_add);
    // As for one partition: what takes long is begun once more.
    let tallies: Vec<Tally> = visits.iter().map(|visit| visit.tally.clone()).collect();
    let answer = merge(visits, &orders, some.min(all))?;
    if answer.is_some() || some >= all {
        return Ok(answer);
    }
    for (visit, tally) in visits.iter_mut().zip(tallies) {
        visit.tally = tally;
    }
    at_length(true, || merge(visits, &orders, all))
}

fn merge<S: Sink + Default>(
    visits: &mut [Visit<'_>],
    orders: &[Order],
    spend_max: u64,
) -> Result<Option<(S, Option<Carry>)>> {
    let Some(first) = visits.first() else { return Ok(None) };
    let mut run: PageRun<'_, S> = first.request.start()?;
    let after = last_row(first);
    let readers: Vec<IndexReader<'_>> = visits.iter().map(Visit::reader).collect();
    let mut lists = Vec::with_capacity(visits.len());
    for ((visit, order), reader) in visits.iter().zip(orders).zip(&readers) {
        let from = after.map(|after| order.run_of(&after.keys));
        let cursor = order.cursor(reader, from.as_deref());
        lists.push(List::open(cursor, visit.view.loader())?);
    }
    let deadline = first.request.steward.world().deadline(BLOCKING_QUERY_TIME_MAX);
    let mut merge = Merge { lists, backward: orders[0].backward, spend_max, deadline };
    let answered = merge.fill(visits, &readers, &mut run)?;
    for (visit, reader) in visits.iter_mut().zip(&readers) {
        visit.count_entries(reader);
        visit.note.method = Method::Order;
    }
    if answered { run.finish().map(Some) } else { Ok(None) }
}

/// The order of each partition, if all have one that leaves nothing to look for elsewhere.
fn orders_of(visits: &mut [Visit<'_>]) -> Result<Option<Vec<Order>>> {
    let mut orders = Vec::with_capacity(visits.len());
    for visit in visits {
        let order = Order::of(visit)?.filter(Order::is_all_in_index);
        match order {
            Some(order) if pays_off(visit, &order)? => orders.push(order),
            _ => return Ok(None),
        }
    }
    Ok(Some(orders))
}

/// The entries of one partition, and the one that comes next.
struct List<'r> {
    cursor: OrderedCursor<'r>,
    head: Option<OrderedEntry>,
    loader: ItemLoader<'r>,
    places: Places,
}

impl<'r> List<'r> {
    fn open(mut cursor: OrderedCursor<'r>, loader: ItemLoader<'r>) -> Result<List<'r>> {
        let head = cursor.next_entry().map_err(stored)?;
        Ok(List { cursor, head, loader, places: Places::default() })
    }

    /// Takes the places of a run, if it comes next here; false if they are more than `most`.
    fn take_run(&mut self, run: &[u8], most: usize) -> Result<bool> {
        self.places.clear();
        while let Some(entry) = self.head.take_if(|head| head.run() == run) {
            if self.places.len() >= most || !self.places.push(entry.place()) {
                return Ok(false);
            }
            self.head = self.cursor.next_entry().map_err(stored)?;
        }
        Ok(true)
    }

    /// Feeds the items of the run.
    fn feed(&mut self, visit: &mut Visit<'_>, page: &mut dyn Feed) -> Result<()> {
        self.loader.expect(self.places.len(), visit.extent.items);
        for place in self.places.iter() {
            let item = visit.tally.loading(|| self.loader.load(place)).map_err(stored)?;
            if !visit.view.is_over(&item) {
                visit.feed(page, &item)?;
            }
        }
        Ok(())
    }
}

struct Merge<'r> {
    lists: Vec<List<'r>>,
    backward: bool,
    /// Above this cost, scanning would have been cheaper.
    spend_max: u64,
    deadline: Deadline,
}

impl Merge<'_> {
    /// Feeds run after run until the page is full; false if this is not the way.
    fn fill(
        &mut self,
        visits: &mut [Visit<'_>],
        readers: &[IndexReader<'_>],
        page: &mut dyn Feed,
    ) -> Result<bool> {
        while let Some(run) = self.next_run() {
            let mut left = ORDER_RUN_MERGED_MAX;
            for (list, visit) in self.lists.iter_mut().zip(visits.iter_mut()) {
                if !list.take_run(&run, left)? {
                    return Ok(false);
                }
                left -= list.places.len();
                list.feed(visit, page)?;
            }
            if page.end_ties()? != Flow::More {
                return Ok(true);
            }
            if self.deadline.is_past() {
                return Err(ErrorKind::TimedOut.into());
            }
            let fetched: u64 = visits.iter().map(|visit| u64::from(visit.tally.meter.items_scanned)).sum();
            let entries: u64 = readers.iter().map(IndexReader::entries_read).sum();
            if fetched.saturating_mul(FETCH_COST).saturating_add(entries) > self.spend_max {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The terms that come next of all.
    fn next_run(&self) -> Option<Vec<u8>> {
        let heads = self.lists.iter().filter_map(|list| list.head.as_ref()).map(OrderedEntry::run);
        let next = if self.backward { heads.max() } else { heads.min() };
        next.map(<[u8]>::to_vec)
    }
}
