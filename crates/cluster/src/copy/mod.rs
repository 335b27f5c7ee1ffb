//! Copying a container into another while it is in use, and giving a container another partition key.
//!
//! A job walks the source by parts of the key space and copies what it finds; then it follows the changes that were
//! made meanwhile, until a moment in which nobody writes and nothing is left to follow: the *cut-over*.
//! To re-key a container is the same, into a container that nobody sees and that takes the other's name at the cut-over.
//!
//! ```text
//!   source  |── walk: intervals of the key space ──|── follow: pages of changes ──|held|   (re-key: the names change hands)
//!                  every item as it is                each named item as it is      last
//!   target  ────────────── copies, through the queues of its partitions ───────────────── serves
//!   record  ──interval──interval──interval──────────────── LSN ─────── LSN ───────── cut over
//! ```
//!
//! **Changes are invitations, not orders.** While a job is under way its source records every change, with the
//! version that it replaced. For each item that a page of changes names, the job reads the item *as it is now* and
//! brings the target in line: the copy of the current version at the place that the target's key gives it, and nothing
//! at the places of the versions that the page says were replaced or deleted. So an older version never overwrites a
//! newer one, doing a page twice is doing it once, and a crash costs one page.
//!
//! **Why this is exact.** A copy of some version lies in the target only because that version was current when the job
//! looked. If it is no longer current, the change that replaced it came later, so its record is still to be read, and
//! that record names the version and with it the place. When writes are held and all records are read, each item was
//! looked at after its last change.
//!
//! **Whose copy is it?** An item is known by its place in the source, which the copy's own properties tell. Before a
//! copy is deleted or overwritten the job asks whose it is. If it belongs to another item that, in one snapshot of the
//! source, wants the same place, then two items have the same id under the new key: a *collision*, and the job ends
//! with a report. If the other item no longer wants the place, its own change is still on the way.
//!
//! The copier writes through the queues of the target's partitions like everybody else, but pays no request units:
//! a bounded rate keeps it from starving others.

mod align;
mod control;
mod cut_over;
mod job;
mod run;
mod source;

pub(crate) use control::Jobs;
pub use control::{CopyRequest, JobPhase, JobReport, RekeyRequest};
pub use job::{
    Collision, CollisionCause, Collisions, ContainerName, CutOver, Interval, JobKind, JobMode, JobProgress,
    JobRecord, JobState, Place, RangeLsn,
};

#[cfg(test)]
mod tests;
