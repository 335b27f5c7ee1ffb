//! SELECT DISTINCT without an order: the first of equal rows counts.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::{Carry, Flow, Out, PageEnd};
use crate::error::{QueryError, Result};
use crate::eval::{Context, Env, SEEN_BYTES, expand_and_forget};
use crate::limits;
use crate::program::Level;
use crate::steward::Held;

pub(super) struct Distinct<'x> {
    seen: HashSet<Box<[u8]>>,
    /// The row at hand in canonical form; kept so that a row seen before costs no allocation.
    key: Vec<u8>,
    held: Held<'x>,
    /// Rows that earlier pages answered.
    emitted_before: u64,
    /// Rows that this page answered.
    emitted: u64,
    full: bool,
}

impl<'x> Distinct<'x> {
    pub fn new(cx: &Context<'x>, emitted_before: u64) -> Self {
        let (seen, key) = (HashSet::new(), Vec::new());
        Self { seen, key, held: cx.holds_nothing(), emitted_before, emitted: 0, full: false }
    }

    pub fn feed<'a>(
        &mut self,
        level: &'a Level,
        env: &mut Env<'a, '_>,
        out: &mut Out<'_, '_>,
    ) -> Result<Flow> {
        let mut flow = Flow::More;
        let _ = expand_and_forget(level, env, &mut |env| {
            let value = level.select.eval(env)?;
            if value.is_undefined() {
                return Ok(ControlFlow::Continue(()));
            }
            self.key.clear();
            let capacity = self.key.capacity();
            value.write_canonical_within(&mut self.key, env.cx.row_bytes_max())?;
            self.held.add(self.key.capacity() - capacity)?;
            env.worked((self.key.len() / limits::WORK_BYTES) as u64)?;
            if self.seen.contains(self.key.as_slice()) {
                return Ok(ControlFlow::Continue(()));
            }
            let place = self.seen.len() as u64;
            if place >= level.offset + self.emitted_before {
                let taken = self.emitted_before + self.emitted;
                if level.limit.is_some_and(|limit| taken >= limit) {
                    flow = Flow::Done;
                    return Ok(ControlFlow::Break(()));
                }
                if out.is_full() {
                    self.full = true;
                    flow = Flow::Full;
                    return Ok(ControlFlow::Break(()));
                }
                out.push(&value, env.cx)?;
                self.emitted += 1;
            }
            self.held.add(self.key.len() + SEEN_BYTES)?;
            if self.held.bytes() > limits::RUN_BYTES {
                return Err(QueryError::LimitExceeded("DISTINCT meets too many different rows."));
            }
            self.seen.insert(self.key.as_slice().into());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(flow)
    }

    pub fn finish(self, level: &Level) -> PageEnd {
        let taken = self.emitted_before + self.emitted;
        if !self.full || level.limit.is_some_and(|limit| taken >= limit) {
            return PageEnd::Done;
        }
        PageEnd::Continue(Carry::Emitted(taken))
    }
}
