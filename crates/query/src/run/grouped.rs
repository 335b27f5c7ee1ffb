//! GROUP BY and aggregates: one pass over all rows, results in the order of the group keys, or of the groups' first items
//! where the caller asks for it. A page that does not hold all groups says in its carry which.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::{Carry, Flow, GroupOrder, Groups, Out, PageEnd, emitted};
use crate::ast::Direction;
use crate::error::Result;
use crate::eval::{Context, Env, drop_doubles, expand_and_forget};
use crate::limits;
use crate::program::{Grouping, Level};
use crate::sort_key::sort_key;
use crate::value::Val;

pub(super) struct Grouped<'x> {
    groups: Groups<'x>,
    emitted_before: u64,
    /// Rows of the first item that are not to be counted.
    passed: u64,
    order: GroupOrder,
}

impl<'x> Grouped<'x> {
    /// Begins a page. Aggregates without groups also take what a page of rows ended with: they are about the rows
    /// that are left, and need no further page.
    pub fn start(grouping: &Grouping, cx: &Context<'x>, carry: Option<&Carry>) -> Result<Self> {
        let (emitted_before, passed, order) = match carry {
            Some(Carry::Streaming { done_of_item, .. }) if grouping.keys.is_empty() => {
                (0, *done_of_item, GroupOrder::Keys)
            }
            Some(Carry::EmittedAsCreated(rows)) => (*rows, 0, GroupOrder::Creation),
            other => (emitted(other)?, 0, GroupOrder::Keys),
        };
        Ok(Self { groups: Groups::new(grouping, cx), emitted_before, passed, order })
    }

    /// Answers the groups in the order in which their first items were created.
    pub fn order_by_creation(&mut self) {
        self.order = GroupOrder::Creation;
    }

    /// `place` is the number of the item, in big-endian bytes, where its caller has one.
    pub fn feed<'a>(&mut self, level: &'a Level, env: &mut Env<'a, '_>, place: &[u8]) -> Result<Flow> {
        let Some(grouping) = &level.grouping else { return Ok(Flow::Done) };
        let mut passed = std::mem::take(&mut self.passed);
        let item = place.try_into().map_or(0, u64::from_be_bytes);
        let mut row = 0;
        let _ = expand_and_forget(level, env, &mut |env| {
            row += 1;
            if passed > 0 {
                passed -= 1;
            } else {
                self.groups.at(item, row);
                self.groups.add(grouping, env)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Flow::More)
    }

    /// The rows fed last stand for so many more like them.
    pub fn feed_again(&mut self, count: u64) {
        self.groups.count_again(count);
    }

    pub fn feed_shortcut(&mut self, count: u64, extreme: &Val<'_>) -> Result<()> {
        self.groups.add_known(count, extreme)
    }

    pub fn finish<'a>(
        self,
        level: &'a Level,
        env: &mut Env<'a, '_>,
        out: &mut Out<'_, '_>,
    ) -> Result<PageEnd> {
        let rows = self.groups.results(self.order, level, env)?;
        let first = level.offset.saturating_add(self.emitted_before);
        let last = level.limit.map_or(u64::MAX, |limit| level.offset.saturating_add(limit));
        let mut emitted = self.emitted_before;
        for (place, row) in (0u64..).zip(&rows) {
            if place < first {
                continue;
            }
            if place >= last {
                break;
            }
            if out.is_full() {
                return Ok(PageEnd::Continue(match self.order {
                    GroupOrder::Keys => Carry::Emitted(emitted),
                    GroupOrder::Creation => Carry::EmittedAsCreated(emitted),
                }));
            }
            out.push(row, env.cx)?;
            emitted += 1;
        }
        Ok(PageEnd::Done)
    }
}

impl Groups<'_> {
    /// The result rows of all groups, ordered and without duplicates where the query asks for it.
    pub(crate) fn results<'a>(
        self,
        order: GroupOrder,
        level: &'a Level,
        env: &mut Env<'a, '_>,
    ) -> Result<Vec<Val<'a>>> {
        let mut rows = Vec::new();
        let (results, _held) = self.into_results(order);
        for (keys, aggregates) in results {
            env.group_keys = keys;
            env.aggregates = aggregates;
            let value = level.select.eval(env)?;
            if value.is_undefined() {
                continue;
            }
            let mut order = Vec::with_capacity(level.order_by.len());
            for (node, _) in &level.order_by {
                order.push(sort_key(node.eval(env)?));
            }
            // The row, its order and the list of both, which doubles when it grows.
            let row_bytes = 2 * size_of::<(Vec<Val<'_>>, Val<'_>)>() + limits::ALLOCATION_BYTES;
            env.live.add(size_of_val(order.as_slice()) + row_bytes)?;
            rows.push((order, value));
        }
        rows.sort_by(|(a, _), (b, _)| compare(level, a, b));
        let mut rows: Vec<Val<'a>> = rows.into_iter().map(|(_, value)| value).collect();
        if level.distinct {
            drop_doubles(&mut rows, env)?;
        }
        Ok(rows)
    }
}

/// Compares order keys, each in its own direction.
pub(crate) fn compare(level: &Level, a: &[Val<'_>], b: &[Val<'_>]) -> Ordering {
    for ((a, b), (_, direction)) in a.iter().zip(b).zip(&level.order_by) {
        let order = match direction {
            Direction::Ascending => a.order(b),
            Direction::Descending => b.order(a),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}
