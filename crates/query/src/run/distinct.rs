//! SELECT DISTINCT without an order: the first of equal rows counts.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::{Carry, Flow, PageEnd, Room, Rows, canonical};
use crate::error::{QueryError, Result};
use crate::eval::{Env, expand};
use crate::limits;
use crate::program::Level;

pub(super) struct Distinct {
    seen: HashSet<Box<[u8]>>,
    seen_bytes: usize,
    /// Rows that earlier pages answered.
    emitted_before: u64,
    /// Rows that this page answered.
    emitted: u64,
    full: bool,
}

impl Distinct {
    pub fn new(emitted_before: u64) -> Self {
        Self { seen: HashSet::new(), seen_bytes: 0, emitted_before, emitted: 0, full: false }
    }

    pub fn feed<'a>(
        &mut self,
        level: &'a Level,
        env: &mut Env<'a, '_>,
        room: Room,
        out: &mut Rows,
    ) -> Result<Flow> {
        let mut flow = Flow::More;
        let _ = expand(level, env, &mut |env| {
            let value = level.select.eval(env)?;
            if value.is_undefined() {
                return Ok(ControlFlow::Continue(()));
            }
            let key = canonical(&value);
            if self.seen.contains(&key) {
                return Ok(ControlFlow::Continue(()));
            }
            let place = self.seen.len() as u64;
            if place >= level.offset + self.emitted_before {
                let taken = self.emitted_before + self.emitted;
                if level.limit.is_some_and(|limit| taken >= limit) {
                    flow = Flow::Done;
                    return Ok(ControlFlow::Break(()));
                }
                if room.is_full(out) {
                    self.full = true;
                    flow = Flow::Full;
                    return Ok(ControlFlow::Break(()));
                }
                out.push_with(|bytes| value.write_json(bytes));
                self.emitted += 1;
            }
            self.seen_bytes += key.len();
            if self.seen_bytes > limits::RUN_BYTES {
                return Err(QueryError::LimitExceeded("DISTINCT meets too many different rows."));
            }
            self.seen.insert(key);
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
