//! Who answers for what a run takes: its memory, and the time in which others wait.
//!
//! A run knows what it holds and not what there is, so it asks. A [`Steward`] says how much may be held and may keep the run
//! waiting; it is the caller, who also knows of all the other runs. Without one a run has its own limits only.
//!
//! Little things are not asked for: each part of a run ([`Held`]) may have [`FREE_BYTES`] and asks in steps beyond.

use crate::error::Result;
use crate::eval::Context;
use crate::limits;

/// What a part of a run holds without asking, and in what steps it asks for more.
pub(crate) const FREE_BYTES: usize = 16 * 1024;
const STEP_BYTES: usize = 64 * 1024;

pub trait Steward: Sync {
    /// The run is about to hold so many bytes more.
    fn hold(&self, bytes: usize) -> Result<()>;

    /// It holds so many bytes less.
    fn release(&self, bytes: usize);

    /// Said often and where the run can wait for a while.
    fn rest(&self);

    /// The longest text that may be made of one row, in bytes.
    fn row_bytes_max(&self) -> usize;
}

impl<'x> Context<'x> {
    pub(crate) fn rest(&self) {
        if let Some(steward) = self.steward {
            steward.rest();
        }
    }

    pub(crate) fn row_bytes_max(&self) -> usize {
        self.steward.map_or(limits::ROW_BYTES, |steward| steward.row_bytes_max().min(limits::ROW_BYTES))
    }

    pub(crate) fn holds_nothing(&self) -> Held<'x> {
        Held { steward: self.steward, bytes: 0, granted: FREE_BYTES }
    }
}

/// What one part of a run holds, until it is dropped.
pub(crate) struct Held<'x> {
    steward: Option<&'x dyn Steward>,
    bytes: usize,
    /// Up to here nobody needs to be asked.
    granted: usize,
}

impl Held<'_> {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn add(&mut self, bytes: usize) -> Result<()> {
        let sum = self.bytes.saturating_add(bytes);
        if sum > self.granted {
            self.ask(sum)?;
        }
        self.bytes = sum;
        Ok(())
    }

    /// Holds less, which others hear of when it is dropped: it may soon be more again.
    pub fn cut_to(&mut self, bytes: usize) {
        self.bytes = self.bytes.min(bytes);
    }

    /// Holds so much from now on; what is no longer needed goes back at once.
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        self.cut_to(bytes);
        let unused = self.granted.saturating_sub(bytes.max(FREE_BYTES)) / STEP_BYTES * STEP_BYTES;
        if unused > 0 {
            self.granted -= unused;
            self.steward.inspect(|steward| steward.release(unused));
        }
        self.add(bytes - self.bytes)
    }

    #[cold]
    fn ask(&mut self, sum: usize) -> Result<()> {
        let more = (sum - self.granted).next_multiple_of(STEP_BYTES);
        if let Some(steward) = self.steward {
            steward.hold(more)?;
        }
        self.granted += more;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(steward) = self.steward.filter(|_| self.granted > FREE_BYTES) {
            steward.release(self.granted - FREE_BYTES);
        }
    }
}
