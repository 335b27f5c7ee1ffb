//! Whether a history of reads and writes keeps what a consistency level promises.
//!
//! A history is data ([`History`]): who asked for what, when, and what the answer was. It may come from clients of a real server,
//! from a simulation, or from a text. Nothing else is looked at, so the checker knows nothing about how the answers came about.
//!
//! ```text
//!                       what every level promises                        what one adds
//!  +-----------------------------------------------------------------+
//!  | eventual     only committed versions are read                   |
//!  | +-----------------------------------------------------------+   |
//!  | | prefix     what one answer shows is one state of the log  |   |
//!  | | +---------------------------+ +------------------------+  |   |
//!  | | | session    what a session | | bounded    at most K   |  |   |
//!  | | |   wrote and read stays    | |   writes and T behind  |  |   |
//!  | | +---------------------------+ +------------------------+  |   |
//!  | | strong     as if there were one copy: all of the above    |   |
//!  | +-----------------------------------------------------------+   |
//!  +-----------------------------------------------------------------+
//! ```
//!
//! **The log.** Each partition has one sequence of transactions, and each transaction a [`Place`] in it: the version of the
//! account's regions and the LSN. Answers carry places, so the log need not be guessed: an acknowledged write says its place, and
//! a write whose fate is unknown gets one when a read shows what it wrote. One that no read ever shows explains nothing and is
//! taken not to have happened.
//!
//! **A read** shows several items of one partition at once. Each of them stands in the log from its own write up to the next
//! one of its key, so the read is explained by the places where all these spans meet. No such place: no state of the log
//! looked like that (half a transaction, for example). The levels then ask for a place that is late enough: behind what the session
//! has seen, behind all but K writes, behind all that were acknowledged when the read began.
//!
//! **Strong** is checked once more without places, per key, by the search of Wing and Gong ([`linear`]): is there an order of the
//! operations, each at a moment between its begin and its end, in which every read shows the write before it?
//!
//! Values must differ in all writes of a history, or a read would not tell what it has seen. Moments are of one clock.
//! After a change of regions, places of the new version are above all others. A forced failover that loses acknowledged writes
//! is not modelled: to the checker they are missing.
//!
//! To use it: record events with [`History::push`], and ask [`History::check`]. A [`Violation`] names the event and the
//! promise that was broken; [`History`] prints itself in the notation that [`History::parse`] reads, so that a
//! history that was found becomes a test.

mod history;
mod linear;
mod log;
mod promises;

pub use history::{Action, Event, History, Place, Seen};

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Strong,
    /// At most so many writes and so much time behind.
    Bounded {
        writes: usize,
        time: u64,
    },
    Session,
    ConsistentPrefix,
    Eventual,
}

/// The promise that was broken, and by which event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The number of the event in the history.
    pub event: usize,
    pub broken: Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A read shows a value that nobody wrote to that key.
    NeverWritten,
    /// A read shows a value of a write that was refused.
    RefusedWrite,
    /// A read shows a value of a write that began after its end.
    FromTheFuture,
    /// A read shows a value at another place of the log than its write has.
    OtherPlace,
    /// Two transactions have one place.
    SamePlace,
    /// A write that began after the end of another is before it in the log.
    LogAgainstTime,
    /// No state of the log ever looked like this answer.
    NoSuchState,
    /// The state that the answer says it shows is not the one that it shows.
    BehindItsOwnWord,
    ReadYourWrites,
    MonotonicReads,
    MonotonicWrites,
    WritesFollowReads,
    /// More writes behind than is promised.
    TooManyWritesBehind,
    /// A write is missing that was acknowledged longer ago than is promised.
    TooOld,
    /// A write is missing that was acknowledged before the read began.
    Stale,
    /// No order of the operations on a key explains them.
    NotLinearizable,
    /// The search for an order took too long: the key has too many operations at once.
    Undecided,
}

impl History {
    /// Whether all answers are as the level promises. The first event that is not is named.
    pub fn check(&self, level: Level) -> Result<(), Violation> {
        let log = log::Log::of(self)?;
        promises::check(self, &log, level)?;
        if level == Level::Strong { linear::check(self) } else { Ok(()) }
    }
}
