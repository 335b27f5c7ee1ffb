//! What is written with one sync, and for whom a group waits.

use std::collections::BTreeSet;

use orrery_store::engine::Batch;
use orrery_store::limits::GROUP_BYTES_MAX;

use super::{Job, Waiting};

/// What is written with one sync. What makes room is a batch of its own: on a full disk it is taken and the other refused.
#[derive(Default)]
pub(super) struct CommitGroup {
    pub from: BTreeSet<u32>,
    pub growing: CommitShare,
    pub freeing: CommitShare,
}

#[derive(Default)]
pub(super) struct CommitShare {
    pub batch: Batch,
    pub waiting: Vec<Waiting>,
}

impl CommitGroup {
    pub fn of(job: Job) -> CommitGroup {
        let mut group = CommitGroup::default();
        group.add(job);
        group
    }

    pub fn add(&mut self, job: Job) {
        self.from.extend(job.from);
        let share = if job.batch.frees() { &mut self.freeing } else { &mut self.growing };
        // The first is taken as it is: most groups have one.
        match share.waiting.is_empty() {
            true => share.batch = job.batch,
            false => share.batch.merge(job.batch),
        }
        share.waiting.push(job.waiting);
    }

    pub fn has_room(&self) -> bool {
        self.growing.batch.held_bytes() + self.freeing.batch.held_bytes() < GROUP_BYTES_MAX
    }
}

/// Whose batches the next group waits for: those of the last two groups, since partitions that miss each
/// other take turns.
#[derive(Default)]
pub(super) struct Gathering {
    last: BTreeSet<u32>,
    before_last: BTreeSet<u32>,
}

impl Gathering {
    /// A group is written that has batches of these.
    pub fn note(&mut self, from: BTreeSet<u32>) {
        self.before_last = std::mem::replace(&mut self.last, from);
    }

    pub fn is_complete(&self, group: &CommitGroup) -> bool {
        self.last.union(&self.before_last).all(|partition| group.from.contains(partition))
    }
}
