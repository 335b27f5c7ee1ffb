//! Programs that answer each item at once.

use std::ops::ControlFlow;

use super::{Carry, Flow, Out, PageEnd, mismatch};
use crate::error::Result;
use crate::eval::{Env, expand_and_forget};
use crate::program::Level;

pub(super) struct Streaming {
    /// Rows passed over for OFFSET so far, on all pages.
    skipped: u64,
    /// Rows answered so far, on all pages.
    taken: u64,
    /// Rows of the current item that an earlier page dealt with already.
    done_of_item: u64,
    replay: Option<Replay>,
}

/// For a level that is fed from its first row on every page.
struct Replay {
    /// Rows that earlier pages answered and that are still to be passed over.
    answered: u64,
    full: bool,
}

impl Streaming {
    pub fn new(carry: Option<&Carry>) -> Result<Self> {
        match carry {
            None => Ok(Self { skipped: 0, taken: 0, done_of_item: 0, replay: None }),
            Some(Carry::Streaming { skipped, taken, done_of_item }) => {
                Ok(Self { skipped: *skipped, taken: *taken, done_of_item: *done_of_item, replay: None })
            }
            Some(_) => Err(mismatch()),
        }
    }

    /// Begins a page that sees all rows again, of which earlier pages answered so many.
    pub fn replayed(answered: u64) -> Self {
        let replay = Some(Replay { answered, full: false });
        Self { skipped: 0, taken: 0, done_of_item: 0, replay }
    }

    pub fn feed<'a>(
        &mut self,
        level: &'a Level,
        env: &mut Env<'a, '_>,
        out: &mut Out<'_, '_>,
    ) -> Result<Flow> {
        if level.limit.is_some_and(|limit| self.taken >= limit) {
            return Ok(Flow::Done);
        }
        let already_done = std::mem::take(&mut self.done_of_item);
        let mut seen = 0;
        let mut flow = Flow::More;
        let _ = expand_and_forget(level, env, &mut |env| {
            let value = level.select.eval(env)?;
            if value.is_undefined() {
                return Ok(ControlFlow::Continue(()));
            }
            seen += 1;
            if seen <= already_done {
                return Ok(ControlFlow::Continue(()));
            }
            if self.skipped < level.offset {
                self.skipped += 1;
                return Ok(ControlFlow::Continue(()));
            }
            if let Some(replay) = self.replay.as_mut().filter(|replay| replay.answered > 0) {
                replay.answered -= 1;
            } else if out.is_full() {
                self.done_of_item = seen - 1;
                flow = Flow::Full;
                return Ok(ControlFlow::Break(()));
            } else {
                out.push(&value, env.cx)?;
            }
            self.taken += 1;
            if level.limit.is_some_and(|limit| self.taken >= limit) {
                flow = Flow::Done;
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(replay) = &mut self.replay {
            replay.full |= flow == Flow::Full;
        }
        Ok(flow)
    }

    pub fn finish(self, level: &Level) -> PageEnd {
        if level.limit.is_some_and(|limit| self.taken >= limit) {
            return PageEnd::Done;
        }
        if let Some(replay) = self.replay {
            return if replay.full { PageEnd::Continue(Carry::Emitted(self.taken)) } else { PageEnd::Done };
        }
        PageEnd::Continue(Carry::Streaming {
            skipped: self.skipped,
            taken: self.taken,
            done_of_item: self.done_of_item,
        })
    }
}
