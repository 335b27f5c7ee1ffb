//! One page's visit to one partition: what it may see, what it may use, and what it has done.

use std::sync::Arc;

use orrery_doc::{EpkRange, PartitionKey, Segment};
use orrery_query::{
    Carry, Flow, IndexPath, IndexStep, Indexes, Program, Sink, UserFunctions, check_order, plan_access,
};
use orrery_store::engine::Snapshot;
use orrery_store::index::IndexReader;
use orrery_store::indexing::path_hash;
use orrery_store::limits::{QUERY_BYTES_AT_ONCE, QUERY_ITEMS_AT_ONCE};
use orrery_store::{
    ActiveIndex, Fault, Item, ItemKey, Lifetimes, Lsn, PartSize, PartitionState, PathCounts, Position,
    Schema, View, WholeKey,
};

use super::choose::Chooser;
use super::note::PlanNote;
use super::offered::OfferedIndexes;
use super::page::{Feed, PageRun};
use super::steward::QuerySteward;
use super::tally::Tally;
use crate::catalog::Container;
use crate::cursor::Leg;
use crate::error::{Error, ErrorKind, Result};
use crate::feed::{Walk, part_size};
use crate::range::Range;
use crate::request::{AccessChoice, PageOptions, Scope};
use crate::turns;

/// What the client asked for, on all of its partitions.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub container: &'a Container,
    pub scope: &'a Scope,
    pub program: &'a Program,
    pub page: &'a PageOptions,
    pub carry: Option<&'a Carry>,
    pub functions: Option<&'a dyn UserFunctions>,
    pub steward: &'a QuerySteward,
}

impl<'a> Request<'a> {
    pub fn start<S: Sink + Default>(&self) -> Result<PageRun<'a, S>> {
        PageRun::start(*self)
    }
}

/// A snapshot and the index that is whole in it.
pub(super) struct Moment {
    pub snapshot: Arc<Snapshot>,
    pub schema: Arc<Schema>,
    pub lsn: Lsn,
    pub lifetimes: Lifetimes,
    /// Items of other keys in the same place are not there.
    pub key: Option<PartitionKey>,
}

impl Moment {
    pub fn view<'a>(&'a self, range: &'a Range) -> View<'a> {
        let key = self.key.as_ref().and_then(|key| WholeKey::of(&self.schema.key, key));
        View::new(&range.replica.partition, &self.snapshot, self.lsn, self.lifetimes).only(key)
    }
}

pub(super) struct Visit<'a> {
    pub request: Request<'a>,
    pub view: View<'a>,
    pub active: &'a ActiveIndex,
    pub extent: Extent,
    /// The item that the page before did not finish.
    pub resumed: Option<(ItemKey, Item)>,
    /// Items that were looked at in other partitions when the page was full.
    pub ahead: usize,
    /// Items of the whole partition.
    pub partition_items: u64,
    /// So many items are fetched before other tasks have their turn.
    pub items_at_once: usize,
    pub counts: Arc<PathCounts>,
    pub tally: Tally,
    pub note: PlanNote,
}

/// What a visit did.
pub(super) struct Work {
    pub tally: Tally,
    pub note: PlanNote,
}

/// The part of a partition's key space that is to be visited.
pub(super) struct Extent {
    pub epk: EpkRange,
    pub after: Option<Position>,
    /// Whether it is one logical partition.
    pub is_logical: bool,
    /// The whole partition.
    pub is_whole: bool,
    /// Items in it; at most so many when it is neither of the two.
    pub items: u64,
    pub size: PartSize,
    /// Where the order of creation holds.
    pub leg: Option<Leg>,
}

impl Extent {
    /// What of the range the walk is about to visit, as long as the program does not care for the order.
    fn new(
        view: &View<'_>,
        request: Request<'_>,
        range: &Range,
        walk: &Walk,
        state: &PartitionState,
    ) -> Result<Extent> {
        let size =
            part_size(view, request.container, walk.logical(request.container), state).map_err(stored)?;
        let epk = walk.rest_of(range);
        let is_logical = walk.logical(request.container).is_some();
        let is_whole = !is_logical && epk.contains_range(view.range());
        let after = walk.after().cloned();
        Ok(Extent { epk, after, is_logical, is_whole, items: size.items, size, leg: None })
    }
}

impl<'a> Visit<'a> {
    pub fn new(request: Request<'a>, range: &'a Range, moment: &'a Moment, walk: &Walk) -> Result<Visit<'a>> {
        let view = moment.view(range);
        let state = view.state().map_err(stored)?;
        let partition_items = state.items;
        let extent = Extent::new(&view, request, range, walk, &state)?;
        let mut visit = Visit {
            request,
            view,
            active: &moment.schema.index,
            extent,
            resumed: None,
            ahead: 0,
            partition_items,
            items_at_once: items_at_once(&state),
            counts: view.path_counts(&state, moment.schema.index.generation).map_err(stored)?,
            tally: Tally::new(request.steward.world()),
            note: PlanNote::default(),
        };
        visit.plan()?;
        Ok(visit)
    }

    /// Goes through the items in the order of creation where that costs little. A program that must see all of them before
    /// it answers begins anew on each page, and has an order of its own; it may count what is left of a leg, though.
    pub fn in_order_of_creation(&mut self, range: &Range, walk: &mut Walk) {
        let program = self.request.program;
        if walk.leg().is_none() && (program.is_blocking() || !program.needs_items()) {
            return;
        }
        self.begin_leg(range, walk);
    }

    /// Goes through the items in the order of creation, if they are few.
    pub fn begin_leg(&mut self, range: &Range, walk: &mut Walk) {
        walk.begin_leg(range, self.extent.size);
        if walk.leg().is_some() {
            self.extent.leg = walk.leg().cloned();
            self.extent.epk = walk.part_of(range);
        }
    }

    /// Whether groups come in the order in which their first items were created: as at the service, where items are few.
    /// Pages keep to what the first of them did.
    pub fn has_groups_as_created(&self) -> bool {
        match self.request.carry {
            None => self.request.program.groups_as_created() && self.extent.size.is_small(),
            Some(carry) => matches!(carry, Carry::EmittedAsCreated(_)),
        }
    }

    /// Plans the access, unless no index may be asked. An order that no index serves is refused either way.
    fn plan(&mut self) -> Result<()> {
        let program = self.request.program;
        let indexes = OfferedIndexes::Ready(self.active);
        check_order(program, &indexes).map_err(ErrorKind::Query)?;
        self.note.scope_items = self.extent.items;
        if self.request.page.access == AccessChoice::ScanOnly || !program.needs_items() {
            return Ok(());
        }
        // An item that its owner kept out of the index would be missed. Every item in it has a time.
        if self.counts.get(path_hash(&["_ts"])) == Some(self.partition_items) {
            self.note.access = Some(plan_access(program, &indexes));
        }
        Ok(())
    }

    /// Whether items that are expired or of another key may be among those that are counted and that indexes name.
    pub fn may_hold_expired(&self) -> Result<bool> {
        self.view.may_hold_expired().map_err(stored)
    }

    /// Whether every value at this path is found in the index.
    pub fn covers(&self, path: &IndexPath) -> bool {
        OfferedIndexes::Ready(self.active).covers(path)
    }

    pub fn reader(&self) -> IndexReader<'a> {
        self.view.index(self.active.generation, &self.extent.epk, self.extent.after.as_ref())
    }

    pub fn chooser<'r>(&self, reader: &'r IndexReader<'r>, implied: &'r [IndexPath]) -> Chooser<'r> {
        Chooser {
            reader,
            choice: self.request.page.access,
            scope_items: self.extent.items,
            partition_items: self.partition_items,
            counts: self.counts.clone(),
            wanted: (!self.request.program.is_blocking()).then_some(self.request.page.items_max),
            implied,
            notes: Vec::new(),
        }
    }

    /// The paths of the partition key, when the scope is one logical partition: there they all have one value.
    pub fn implied_paths(&self) -> Vec<IndexPath> {
        if !self.extent.is_logical {
            return Vec::new();
        }
        let step = |segment: &Segment| match segment {
            Segment::Name(name) => Some(IndexStep::Name(name.as_str().into())),
            Segment::Index(_) => None,
        };
        let paths = self.request.container.definition.key.paths.iter();
        paths.filter_map(|path| path.segments().iter().map(step).collect()).map(IndexPath).collect()
    }

    /// Gives one loaded item to the program.
    pub fn feed(&mut self, run: &mut dyn Feed, item: &Item) -> Result<Flow> {
        turns::rest();
        self.tally.loaded(item);
        self.tally.evaluating(|| run.feed(item))
    }

    pub fn into_work(self) -> Work {
        Work { tally: self.tally, note: self.note }
    }

    /// Takes over what a reader has counted.
    pub fn count_entries(&mut self, reader: &IndexReader<'_>) {
        self.tally.meter.index_entries_read += reader.entries_read();
    }
}

/// About a millisecond's work: short pages are not worth a thread of their own, long ones would stop other tasks.
fn items_at_once(state: &PartitionState) -> usize {
    let bytes_of_item = (state.bytes / state.items.max(1)).max(1);
    usize::try_from(QUERY_BYTES_AT_ONCE / bytes_of_item).unwrap_or(usize::MAX).min(QUERY_ITEMS_AT_ONCE)
}

/// An error of the store while it was read.
pub(super) fn stored(error: Fault) -> Error {
    error.into()
}
