//! One page in the making: the program at work, and the rows it has answered.

use orrery_doc::{Doc, DocBuilder};
use orrery_query::{Carry, Context, Flow, PageEnd, Program, Room, Row, Rows, Run, Sink, Val};
use orrery_store::Item;

use super::visit::Request;
use crate::catalog::Container;
use crate::error::{ErrorKind, Result};
use crate::item_properties::PropertiesOf;
use crate::request::PageOptions;

/// Who is given what was found.
pub(super) trait Feed {
    fn feed(&mut self, item: &Item) -> Result<Flow>;

    /// For a program that counts: there are so many items more.
    fn feed_count(&mut self, count: u64) -> Result<()>;

    /// For MIN and MAX: the item has one of the values that decide.
    fn feed_extreme(&mut self, item: &Item) -> Result<()>;

    /// For a program that counts by groups: there are so many items like this one, or like one without the value.
    fn feed_group(&mut self, item: Option<&Item>, count: u64) -> Result<()>;

    /// Says that all items fed from now on come behind all that were fed before, in the order that the program
    /// asks for.
    fn end_ties(&mut self) -> Result<Flow>;

    /// Whether the page has no room for another row.
    fn is_full(&self, page: &PageOptions) -> bool;

    /// How many rows the page has so far.
    fn rows(&self) -> usize;
}

/// A run with the rows it has produced.
pub(super) struct PageRun<'p, S = Rows> {
    container: &'p Container,
    page: &'p PageOptions,
    program: &'p Program,
    context: Context<'p>,
    run: Run<'p>,
    rows: S,
    /// There are no items left of which a streaming program could make rows.
    is_whole: bool,
}

impl<'p, S: Sink + Default> PageRun<'p, S> {
    pub fn start(request: Request<'p>) -> Result<PageRun<'p, S>> {
        let Request { container, program, page, carry, .. } = request;
        let context = context_now(&request);
        let room = Room { rows: page.items_max, bytes: page.bytes_max };
        let run = Run::start(program, &context, room, carry).map_err(ErrorKind::Query)?;
        Ok(PageRun { container, page, program, context, run, rows: S::default(), is_whole: false })
    }

    /// Groups come in the order in which their first items were created.
    pub fn order_groups_by_creation(&mut self) {
        self.run.order_groups_by_creation();
    }

    pub fn feed_nothing(&mut self) -> Result<()> {
        let flow = self.run.feed_nothing(&mut self.rows).map_err(ErrorKind::Query)?;
        self.is_whole = flow != Flow::Full && !self.program.is_blocking();
        Ok(())
    }

    pub fn finish(mut self) -> Result<(S, Option<Carry>)> {
        let end = self.run.finish(&mut self.rows).map_err(ErrorKind::Query)?;
        let carry = match end {
            PageEnd::Done => None,
            PageEnd::Continue(_) if self.is_whole => None,
            PageEnd::Continue(carry) => Some(carry),
        };
        Ok((self.rows, carry))
    }
}

impl<S: Sink> Feed for PageRun<'_, S> {
    fn feed(&mut self, item: &Item) -> Result<Flow> {
        let place = item.header.rid.to_be_bytes();
        let system = PropertiesOf::of(self.container, self.page, item);
        let row = Row { doc: item.root(), system: PropertiesOf::of_row(&system), place: &place };
        Ok(self.run.feed(&row, &mut self.rows).map_err(ErrorKind::Query)?)
    }

    fn feed_count(&mut self, count: u64) -> Result<()> {
        Ok(self.run.feed_shortcut(count, &Val::Undefined).map_err(ErrorKind::Query)?)
    }

    fn feed_extreme(&mut self, item: &Item) -> Result<()> {
        let system = PropertiesOf::of(self.container, self.page, item);
        let row = Row { doc: item.root(), system: PropertiesOf::of_row(&system), place: &[] };
        let value = self.program.shortcut_value(&row, &self.context).map_err(ErrorKind::Query)?;
        Ok(self.run.feed_shortcut(0, &value).map_err(ErrorKind::Query)?)
    }

    fn feed_group(&mut self, item: Option<&Item>, count: u64) -> Result<()> {
        let empty = empty_object();
        let system = item.and_then(|item| PropertiesOf::of(self.container, self.page, item));
        let row = match item {
            Some(item) => Row { doc: item.root(), system: PropertiesOf::of_row(&system), place: &[] },
            None => Row::plain(empty.as_ref()),
        };
        Ok(self.run.feed_group(&row, count, &mut self.rows).map_err(ErrorKind::Query)?)
    }

    fn end_ties(&mut self) -> Result<Flow> {
        Ok(self.run.end_ties(&mut self.rows).map_err(ErrorKind::Query)?)
    }

    fn is_full(&self, page: &PageOptions) -> bool {
        self.rows.len() >= page.items_max || self.rows.byte_len() >= page.bytes_max
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }
}

/// Appends the row of one group, made from one item of it and the number of all. Without an item it is the group of
/// those that lack the value.
pub(super) fn push_group(
    request: &Request<'_>,
    item: Option<&Item>,
    count: u64,
    rows: &mut dyn Sink,
) -> orrery_query::Result<()> {
    let context = context_now(request);
    let mut run = Run::start(request.program, &context, Room::UNLIMITED, None)?;
    match item {
        Some(item) => {
            let system = PropertiesOf::of(request.container, request.page, item);
            run.feed(&Row { doc: item.root(), system: PropertiesOf::of_row(&system), place: &[] }, rows)?;
        }
        None => {
            run.feed(&Row::plain(empty_object().as_ref()), rows)?;
        }
    }
    // The item that was fed has been counted.
    run.feed_shortcut(count.saturating_sub(1), &Val::Undefined)?;
    run.finish(rows)?;
    Ok(())
}

/// Stands for an item without the value that is asked for.
fn empty_object() -> Doc {
    let mut empty = DocBuilder::new();
    empty.begin_object();
    empty.end_object();
    empty.finish()
}

/// The carry with all of its keys, if one of the items has the row that it is about.
pub(super) fn complete(request: &Request<'_>, carry: &Carry, items: &[Item]) -> Result<Carry> {
    let context = context_now(request);
    let systems: Vec<_> =
        items.iter().map(|item| PropertiesOf::of(request.container, request.page, item)).collect();
    let rows = items.iter().zip(&systems).map(|(item, system)| Row {
        doc: item.root(),
        system: PropertiesOf::of_row(system),
        place: &[],
    });
    Ok(request.program.completed(carry, rows, &context).map_err(ErrorKind::Query)?)
}

/// What a program may know of the world.
pub(super) fn context_now<'a>(request: &Request<'a>) -> Context<'a> {
    let ticks = request.steward.world().now() as i64;
    let geospatial = request.container.definition.geospatial();
    Context {
        geospatial,
        udfs: request.functions,
        steward: Some(request.steward),
        ..Context::at(ticks, ticks as u64)
    }
}

/// Whether any row of the item passes the filter. A program whose first level is not its last cannot tell.
pub(super) fn accepts(request: &Request<'_>, context: &Context<'_>, item: &Item) -> bool {
    let system = PropertiesOf::of(request.container, request.page, item);
    let row = Row { doc: item.root(), system: PropertiesOf::of_row(&system), place: &[] };
    request.program.accepts(&row, context).unwrap_or(true)
}
