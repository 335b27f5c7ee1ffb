//! Threads that merge tables.
//!
//! A merge that finds the disk full is tried again later; the tables are as they were.
//!
//! The threads run at normal priority. A merge ends with syncs under a lock that readers need, and on
//! a busy machine a thread of low priority holds it for hundreds of milliseconds.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsm_tree::{AbstractTree, Table};
use parking_lot::{Condvar, Mutex};

use super::error::read_error;
use super::shared::{Fuse, Shared};
use super::tree::Tree;
use super::tuning::Tuning;
use super::{EngineError, Keyspace};

/// How long a compactor waits before it looks again while writes come in. Flushes end without
/// telling us.
const POLL: Duration = Duration::from_millis(25);
/// Looks without a commit or a merge before a compactor tidies up, and before it waits for the next
/// commit.
const TIDY_POLLS: u32 = 80;
const IDLE_POLLS: u32 = 200;
/// Trees have seven levels.
const LAST_LEVEL: usize = 6;
/// A tree is untidy when more than one part in this many lies above its last level.
const UNTIDY_SHARE: u64 = 10;
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Compactors {
    signal: Arc<Signal>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    merges: AtomicU64,
}

#[derive(Default)]
struct State {
    stop: bool,
    /// Counts commits, roughly: enough to know whether there was one.
    commits: u64,
    sleepers: u32,
    /// Keyspaces in which a merge is under way; the tree allows several, but two threads in one tree
    /// mostly block each other.
    busy: [bool; Keyspace::ALL.len()],
}

impl Compactors {
    pub fn start(shared: &Arc<Shared>) -> Compactors {
        let signal = Arc::new(Signal::default());
        let threads = (0..shared.tuning.compactors).map(|number| {
            let (shared, signal) = (Arc::clone(shared), Arc::clone(&signal));
            let name = format!("compactor-{number}");
            let thread = thread::Builder::new().name(name).spawn(move || run(&shared, &signal));
            thread.expect("the system gives us a thread at start")
        });
        let threads = Mutex::new(threads.collect());
        Compactors { signal, threads }
    }

    /// For an engine that is only read.
    pub fn none() -> Compactors {
        Compactors { signal: Arc::default(), threads: Mutex::default() }
    }

    /// Tells sleeping compactors that there was a commit.
    pub fn wake(&self) {
        let mut state = self.signal.state.lock();
        state.commits += 1;
        if state.sleepers > 0 {
            self.signal.changed.notify_all();
        }
    }

    /// Starts no further merge.
    pub fn stop(&self) {
        self.signal.state.lock().stop = true;
        self.signal.changed.notify_all();
    }

    /// Stops, and waits for merges under way.
    pub fn join(&self) {
        self.stop();
        for thread in self.threads.lock().drain(..) {
            // A compactor that panicked has nothing more to do, and we are on our way out.
            let _ = thread.join();
        }
    }

    pub fn merges(&self) -> u64 {
        self.signal.merges.load(Ordering::Relaxed)
    }
}

fn run(shared: &Shared, signal: &Signal) {
    let _fuse = Fuse(shared);
    let (mut idle, mut last_seen) = (0, 0);
    loop {
        let seen = {
            let state = signal.state.lock();
            if state.stop {
                return;
            }
            state.commits
        };
        if std::mem::replace(&mut last_seen, seen) != seen {
            idle = 0;
        }
        match merge_some(shared, signal, idle >= TIDY_POLLS) {
            Ok(has_merged) => {
                shared.merges_lack_room.store(false, Ordering::Relaxed);
                if !has_merged {
                    idle += 1;
                    rest(signal, seen, idle);
                }
            }
            // The tables are as they were, and there may be room later.
            Err(error) if error.is_full_disk() => {
                shared.merges_lack_room.store(true, Ordering::Relaxed);
                thread::sleep(FAILURE_PAUSE);
            }
            // A tree that cannot be merged grows until it cannot be read.
            Err(error) => return shared.stop(&format!("a merge failed: {error}")),
        }
    }
}

/// Waits a moment, or until the next commit when there has been nothing to do for a while.
fn rest(signal: &Signal, seen: u64, idle: u32) {
    let mut state = signal.state.lock();
    if state.stop {
        return;
    }
    if idle < IDLE_POLLS || state.commits != seen {
        signal.changed.wait_for(&mut state, POLL);
        return;
    }
    state.sleepers += 1;
    signal.changed.wait(&mut state);
    state.sleepers -= 1;
}

/// Does one merge where it is needed most. Returns whether there was one to do.
fn merge_some(shared: &Shared, signal: &Signal, tidy: bool) -> Result<bool, EngineError> {
    let mut order: Vec<_> = shared.existing_trees().collect();
    order.sort_by_key(|(_, tree)| std::cmp::Reverse(tree.runs()));
    for (keyspace, tree) in order {
        if std::mem::replace(&mut signal.state.lock().busy[keyspace as usize], true) {
            continue;
        }
        let merged = merge(shared, keyspace, tree, tidy);
        signal.state.lock().busy[keyspace as usize] = false;
        if merged? {
            signal.merges.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        }
    }
    Ok(false)
}

fn merge(shared: &Shared, keyspace: Keyspace, merged: &Tree, tidy: bool) -> Result<bool, EngineError> {
    let tree = &merged.tree;
    let before = tree.current_version();
    let id = before.id();
    let threshold = merged.level0_threshold(&shared.tuning, shared.merge_bytes);
    let strategy = match tidy && is_untidy(tree, &shared.tuning) {
        true => shared.tuning.tidy_strategy(),
        false => shared.tuning.strategy(threshold, tree.disk_space()),
    };
    tree.compact(Arc::new(strategy), shared.points.oldest()).map_err(read_error)?;
    let after = tree.current_version();
    // A flush that ended meanwhile also changes the version; looking once more than needed is cheap.
    let is_changed = after.id() != id;
    if is_changed {
        merged.count_runs();
        let kept: HashSet<_> = after.iter_tables().map(Table::id).collect();
        for table in before.iter_tables().filter(|table| !kept.contains(&table.id())) {
            shared.blocks.note_replaced(tree.id(), table);
        }
        shared.leftovers.hold_version(keyspace, before);
        shared.note_trees()?;
    }
    Ok(is_changed)
}

/// Whether what lies above the last level, where deleted data may hide, is a large part of the tree.
fn is_untidy(tree: &lsm_tree::AnyTree, tuning: &Tuning) -> bool {
    let above: usize = (0..LAST_LEVEL).map(|level| tree.level_table_count(level).unwrap_or(0)).sum();
    above as u64 * tuning.table_bytes * UNTIDY_SHARE > tree.disk_space()
}
