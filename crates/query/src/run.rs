//! One page of one partition.
//!
//! The caller owns the items and the paging; a [`Run`] only turns rows into results:
//!
//! ```text
//! let mut run = Run::start(&program, &cx, room, carry)?;
//! for item in items { match run.feed(&row, &mut out)? { More => {}, Full | Done => break } }
//! let end = run.finish(&mut out)?;   // Done, or Continue(carry)
//! ```
//!
//! `out` is a [`Sink`]: it decides in which form the rows leave.
//!
//! ```text
//!              row ──> FROM, JOIN ──> WHERE ──> streaming: SELECT ───────────────────> sink      carry: how many rows are out
//!                                       ├─────> sorted:    keys, the best that fit ──> sink      carry: the last row's keys
//!                                       ├─────> distinct:  rows seen ────────────────> sink      carry: how many rows are out
//!                                       └─────> grouped:   a state for each key ─────> sink      carry: how many groups are out
//! ```
//!
//! There are two kinds of programs. A *streaming* one answers each item at once and goes on, page
//! after page, from the item where it stopped: if `feed` said `Full`, from the same item again,
//! otherwise from the next. A *blocking* one (ORDER BY, GROUP BY, aggregates, DISTINCT) is fed from
//! the first item on every page, and its carry says which results are already out. That costs a scan
//! per page and no memory beyond the page, and needs no state on the server.
//!
//! A program whose only blocking part is ORDER BY can be fed in the order of an index instead
//! ([`Program::can_be_presorted`]): between two items that differ in the order keys the caller says
//! [`Run::end_ties`], and stops as soon as that says so. It may begin with the items that tie with the last row
//! of the page before, because the carry says which rows are out. An answer that needs no items at all is
//! given by [`Run::feed_shortcut`].

mod aggregate;
mod carry;
mod distinct;
mod grouped;
mod measured;
mod resume;
mod rows;
mod sink;
mod sorted;
mod streaming;

use crate::ast::{Binding, Collection, Query, SelectSpec, Source};
use crate::compile::{Program, Stage};
use crate::error::{QueryError, Result};
use crate::eval::{Context, Env};
use crate::program::AggregateKind;
use crate::row::Row;
use crate::steward::Held;
use crate::value::Val;

pub(crate) use aggregate::{GroupOrder, Groups};
pub use carry::{Carry, Position};
pub(crate) use grouped::compare;
pub use measured::Measured;
pub use resume::ResumePoint;
pub use rows::Rows;
pub use sink::{Documents, Sink};

/// How much may go into one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub rows: usize,
    pub bytes: usize,
}

impl Room {
    pub const UNLIMITED: Self = Self { rows: usize::MAX, bytes: usize::MAX };

    fn is_full(self, out: &dyn Sink) -> bool {
        out.len() >= self.rows || (!out.is_empty() && out.byte_len() >= self.bytes)
    }
}

/// Where the rows of a level go.
struct Out<'o, 'x> {
    room: Room,
    rows: &'o mut dyn Sink,
    held: &'o mut Held<'x>,
}

impl Out<'_, '_> {
    fn is_full(&self) -> bool {
        self.room.is_full(self.rows)
    }

    fn push(&mut self, value: &Val<'_>, cx: &Context<'_>) -> Result<()> {
        self.rows.push(value, cx.row_bytes_max())?;
        self.held.set(self.rows.memory_bytes())
    }

    fn push_held(&mut self, held: &[u8]) -> Result<()> {
        self.rows.push_held(held);
        self.held.set(self.rows.memory_bytes())
    }
}

/// What the caller should do after feeding a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Feed the next item.
    More,
    /// The page is full. A streaming program must see this same item again on the next page.
    Full,
    /// No further item can change the answer.
    Done,
}

/// How a page ended.
#[derive(Debug, Clone, PartialEq)]
pub enum PageEnd {
    /// The program has no more results for this partition.
    Done,
    /// There may be more. A streaming program says so whenever TOP or LIMIT do not end it: it cannot
    /// know whether items are left, the caller does.
    Continue(Carry),
}

/// One page in the making.
pub struct Run<'p> {
    cx: Context<'p>,
    room: Room,
    /// Levels whose rows are the items of the next.
    earlier: Vec<StageRun<'p>>,
    last: StageRun<'p>,
    /// What the rows of the page take.
    held: Held<'p>,
}

/// One level at work.
struct StageRun<'p> {
    stage: &'p Stage,
    values: &'p [Val<'static>],
    state: State<'p>,
}

enum State<'p> {
    Streaming(streaming::Streaming),
    Distinct(distinct::Distinct<'p>),
    Grouped(grouped::Grouped<'p>),
    Sorted(Box<sorted::Sorted<'p>>),
}

impl<'p> Run<'p> {
    /// Begins a page; `carry` is what the page before ended with.
    pub fn start(program: &'p Program, cx: &Context<'p>, room: Room, carry: Option<&Carry>) -> Result<Self> {
        let start = |stage, room, carry, replay| {
            let state = StageRun::state(stage, cx, room, carry, replay)?;
            Ok(StageRun { stage, values: &program.values, state })
        };
        let earlier = program.code.earlier.iter().map(|stage| start(stage, Room::UNLIMITED, None, false));
        let earlier = earlier.collect::<Result<Vec<_>>>()?;
        let replay = !earlier.is_empty();
        let last = start(&program.code.last, room, carry, replay)?;
        Ok(Self { cx: *cx, room, earlier, last, held: cx.holds_nothing() })
    }

    /// Gives one item to the program. Results that are certain go to `out` at once.
    pub fn feed(&mut self, row: &Row<'_>, out: &mut dyn Sink) -> Result<Flow> {
        let mut out = Out { room: self.room, rows: out, held: &mut self.held };
        let Some((first, rest)) = self.earlier.split_first_mut() else {
            return self.last.feed(row, &self.cx, &mut out);
        };
        let (mut rows, mut held) = (Documents::default(), self.cx.holds_nothing());
        let mut between = Out { room: Room::UNLIMITED, rows: &mut rows, held: &mut held };
        let flow = first.feed(row, &self.cx, &mut between)?;
        let later = pass_on(rest, &mut self.last, &self.cx, &rows, &mut out)?;
        Ok(if later == Flow::More { flow } else { later })
    }

    /// Says that all items fed from now on come behind all that were fed before, in the order that the program
    /// asks for. Rows up to here are answered; `Full` and `Done` end the page.
    pub fn end_ties(&mut self, out: &mut dyn Sink) -> Result<Flow> {
        match &mut self.last.state {
            State::Sorted(state) if self.earlier.is_empty() => {
                let mut out = Out { room: self.room, rows: out, held: &mut self.held };
                state.end_ties(&self.last.stage.level, &mut out)
            }
            _ => Ok(Flow::More),
        }
    }

    /// For a program whose answer can be read off an index: all counts grow by `count`, and MIN or MAX get to
    /// know `extreme`.
    pub fn feed_shortcut(&mut self, count: u64, extreme: &Val<'_>) -> Result<()> {
        if let State::Grouped(state) = &mut self.last.state {
            state.feed_shortcut(count, extreme)?;
        }
        Ok(())
    }

    /// For a program that only counts, group by group: an item that stands for so many of its group.
    pub fn feed_group(&mut self, row: &Row<'_>, count: u64, out: &mut dyn Sink) -> Result<()> {
        self.feed(row, out)?;
        if let State::Grouped(state) = &mut self.last.state {
            state.feed_again(count.saturating_sub(1));
        }
        Ok(())
    }

    /// For a program that [groups as created](Program::groups_as_created): groups come in the order in which their first
    /// items were created, whatever the order in which they are fed.
    pub fn order_groups_by_creation(&mut self) {
        if let State::Grouped(state) = &mut self.last.state {
            state.order_by_creation();
        }
    }

    /// For a query that [needs no items](Program::needs_items). `Full` says that its next page has more rows.
    pub fn feed_nothing(&mut self, out: &mut dyn Sink) -> Result<Flow> {
        let doc = orrery_doc::DocBuilder::new().finish();
        self.feed(&Row::plain(doc.as_ref()), out)
    }

    /// Ends the page: blocking programs answer now.
    pub fn finish(mut self, out: &mut dyn Sink) -> Result<PageEnd> {
        let mut out = Out { room: self.room, rows: out, held: &mut self.held };
        while !self.earlier.is_empty() {
            let first = self.earlier.remove(0);
            let (mut rows, mut held) = (Documents::default(), self.cx.holds_nothing());
            first.finish(&self.cx, &mut Out { room: Room::UNLIMITED, rows: &mut rows, held: &mut held })?;
            pass_on(&mut self.earlier, &mut self.last, &self.cx, &rows, &mut out)?;
        }
        self.last.finish(&self.cx, &mut out)
    }
}

/// Feeds the rows of one level to those behind it.
fn pass_on(
    stages: &mut [StageRun<'_>],
    last: &mut StageRun<'_>,
    cx: &Context<'_>,
    rows: &Documents,
    out: &mut Out<'_, '_>,
) -> Result<Flow> {
    for doc in rows.iter() {
        let row = Row::plain(doc.as_ref());
        let flow = match stages.split_first_mut() {
            None => last.feed(&row, cx, out)?,
            Some((first, rest)) => {
                let (mut rows, mut held) = (Documents::default(), cx.holds_nothing());
                let mut between = Out { room: Room::UNLIMITED, rows: &mut rows, held: &mut held };
                let flow = first.feed(&row, cx, &mut between)?;
                let later = pass_on(rest, last, cx, &rows, out)?;
                if later == Flow::More { flow } else { later }
            }
        };
        if flow != Flow::More {
            return Ok(flow);
        }
    }
    Ok(Flow::More)
}

impl<'p> StageRun<'p> {
    /// `replay`: the level is fed from its first row on every page, though it streams.
    fn state(
        stage: &'p Stage,
        cx: &Context<'p>,
        room: Room,
        carry: Option<&Carry>,
        replay: bool,
    ) -> Result<State<'p>> {
        let level = &stage.level;
        Ok(if let Some(grouping) = &level.grouping {
            State::Grouped(grouped::Grouped::start(grouping, cx, carry)?)
        } else if !level.order_by.is_empty() {
            State::Sorted(Box::new(sorted::Sorted::new(level, cx, room, carry)?))
        } else if level.distinct {
            State::Distinct(distinct::Distinct::new(cx, emitted(carry)?))
        } else if replay {
            State::Streaming(streaming::Streaming::replayed(emitted(carry)?))
        } else {
            State::Streaming(streaming::Streaming::new(carry)?)
        })
    }

    fn feed(&mut self, row: &Row<'_>, cx: &Context<'_>, out: &mut Out<'_, '_>) -> Result<Flow> {
        let level = &self.stage.level;
        let mut env = Env::new(self.stage.slots, self.values, cx, Some(row));
        match &mut self.state {
            State::Streaming(state) => state.feed(level, &mut env, out),
            State::Distinct(state) => state.feed(level, &mut env, out),
            State::Grouped(state) => state.feed(level, &mut env, row.place),
            State::Sorted(state) => state.feed(level, &mut env, row.place, out.rows),
        }
    }

    fn finish(self, cx: &Context<'_>, out: &mut Out<'_, '_>) -> Result<PageEnd> {
        let level = &self.stage.level;
        match self.state {
            State::Streaming(state) => Ok(state.finish(level)),
            State::Distinct(state) => Ok(state.finish(level)),
            State::Grouped(state) => {
                let mut env = Env::new(self.stage.slots, self.values, cx, None);
                state.finish(level, &mut env, out)
            }
            State::Sorted(state) => state.finish(level, out),
        }
    }
}

impl Program {
    /// Whether items in the order of an index give the rows in order, so that a page needs no more items than
    /// it answers.
    pub fn can_be_presorted(&self) -> bool {
        let level = &self.code.last.level;
        let rows_tell = !level.distinct || level.keys_are_rows;
        self.code.earlier.is_empty() && level.grouping.is_none() && rows_tell && !level.order_by.is_empty()
    }

    /// Whether the order of the items is seen in a row: in one of MAKELIST or MAKESET.
    pub fn lists_items(&self) -> bool {
        let is_list = |kind| matches!(kind, AggregateKind::MakeList | AggregateKind::MakeSet);
        let grouping = self.code.last.level.grouping.as_ref();
        grouping.is_some_and(|grouping| grouping.aggregates.iter().any(|aggregate| is_list(aggregate.kind)))
    }

    /// Whether a page can be answered from few items, and each of them in no time: such a page is not worth a thread.
    pub fn is_light(&self) -> bool {
        (!self.is_blocking() || self.can_be_presorted()) && self.code.last.level.is_light()
    }

    /// Whether each item has at least one row, whatever is in it.
    pub fn answers_every_item(&self) -> bool {
        let Query { select, from: Some(from), filter: None, .. } = self.query() else { return false };
        let [Source { collection: Collection::Path { steps, .. }, binding, .. }] = from.sources.as_slice()
        else {
            return false;
        };
        // An object is there even if none of its members is.
        let is_there = matches!(select.spec, SelectSpec::Star(_) | SelectSpec::List(_));
        steps.is_empty() && !matches!(binding, Binding::Each(_)) && is_there && !self.is_blocking()
    }

    /// The value of a query without FROM.
    pub(crate) fn evaluate_alone(&self, cx: &Context<'_>) -> Result<Val<'static>> {
        let mut env = Env::new(self.code.last.slots, &self.values, cx, None);
        Ok(self.code.last.level.select.eval(&mut env)?.to_owned_val())
    }

    /// Whether the item passes the condition: the question of a conditional patch.
    pub fn accepts(&self, row: &Row<'_>, cx: &Context<'_>) -> Result<bool> {
        if !self.code.earlier.is_empty() {
            return Err(QueryError::bare("A condition must be about one item."));
        }
        let mut env = Env::new(self.code.last.slots, &self.values, cx, Some(row));
        let mut found = false;
        let _ = crate::eval::expand(&self.code.last.level, &mut env, &mut |_| {
            found = true;
            Ok(std::ops::ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Runs the whole program over items in memory.
    pub fn run_all<'r>(&self, rows: impl IntoIterator<Item = Row<'r>>, cx: &Context<'_>) -> Result<Rows> {
        let mut out = Rows::default();
        let mut run = Run::start(self, cx, Room::UNLIMITED, None)?;
        if self.needs_items() {
            for row in rows {
                if run.feed(&row, &mut out)? != Flow::More {
                    break;
                }
            }
        } else {
            run.feed_nothing(&mut out)?;
        }
        run.finish(&mut out)?;
        Ok(out)
    }
}

fn emitted(carry: Option<&Carry>) -> Result<u64> {
    match carry {
        None => Ok(0),
        Some(Carry::Emitted(rows)) => Ok(*rows),
        Some(_) => Err(mismatch()),
    }
}

fn mismatch() -> QueryError {
    QueryError::InvalidContinuation("The continuation belongs to another query.")
}

fn canonical(value: &Val<'_>, most: usize) -> Result<Box<[u8]>> {
    let mut key = Vec::new();
    value.write_canonical_within(&mut key, most)?;
    Ok(key.into())
}
