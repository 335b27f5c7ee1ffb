//! All limits of a script.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Limits {
    /// What the engine may allocate for one context, prelude and arguments included.
    pub memory_bytes: usize,
    /// The stack of the engine. It is a part of the thread's own, which must be a good deal larger.
    pub stack_bytes: usize,
    /// Wall time from the first statement to the last callback, the host's time included.
    pub time: Duration,
    /// After this time operations are no longer accepted, so that a script can stop and answer a continuation.
    pub accepting: Duration,
    /// Operations on the collection; further ones are not accepted.
    pub operations: u32,
    /// Promise jobs.
    pub jobs: u32,
    /// Arguments of one call. The engine itself takes twice as many, and more on a larger stack.
    pub arguments: u32,
    /// The text of a script.
    pub source_bytes: usize,
    /// The body a script answers.
    pub body_bytes: usize,
    /// Lines of the console that are kept; what comes later is dropped.
    pub log_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory_bytes: 64 << 20,
            stack_bytes: 512 << 10,
            time: Duration::from_secs(5),
            accepting: Duration::from_millis(4_000),
            operations: 100_000,
            jobs: 2_000_000,
            arguments: 32_767,
            source_bytes: 1 << 20,
            body_bytes: 4 << 20,
            log_bytes: 16 << 10,
        }
    }
}
