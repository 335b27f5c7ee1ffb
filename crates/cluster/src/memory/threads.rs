//! What threads keep of the memory that they have freed.
//!
//! An allocator that is fast keeps, for each thread and each size, a little of what was freed: the next request of that size
//! is then served at once. Long work asks for all sizes, on one of dozens of threads, and then waits for its turn or ends; what
//! its thread keeps is of no use to anybody then, counts in no share, and added up to twice the budget. So long work and
//! scripts tell their thread to give it back when they pause. Short work does not: it takes little, and the next is at hand.
//!
//! How that is done only the program knows, since it chose the allocator, of which a process has one.

use std::sync::OnceLock;

static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// Says how a thread gives back what it keeps. The first to say it is heeded.
pub fn let_threads_give_back(how: fn()) {
    let _ = GIVE_BACK.set(how);
}

/// Gives back what this thread keeps; for threads that are about to pause.
pub(crate) fn give_back_of_this_thread() {
    if let Some(give_back) = GIVE_BACK.get() {
        give_back();
    }
}
