//! SELECT DISTINCT without an order: the first of equal rows counts.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::{Carry, Flow, PageEnd, Room, Rows};
use crate::error::{QueryError, Result};
use crate::eval::{Env, expand};
use crate::limits;
use crate::program::Level;

pub(super) struct Distinct {
    seen: HashSet<Box<[u8]>>,
    /// The row at hand in canonical form; kept so that a row seen before costs no allocation.
    key: Vec<u8>,
    seen_bytes: usize,
    /// Rows that earlier pages answered.
    emitted_before: u64,
    /// Rows that this page answered.
    emitted: u64,
    full: bool,
}

impl Distinct {
    pub fn new(emitted_before: u64) -> Self {
        let (seen, key) = (HashSet::new(), Vec::new());
        Self { seen, key, seen_bytes: 0, emitted_before, emitted: 0, full: false }
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
            self.key.clear();
            value.write_canonical(&mut self.key);
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
                if room.is_full(out) {
                    self.full = true;
                    flow = Flow::Full;
                    return Ok(ControlFlow::Break(()));
                }
                out.push(&value)?;
                self.emitted += 1;
            }
            self.seen_bytes += self.key.len();
            if self.seen_bytes > limits::RUN_BYTES {
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
