//! Numbers for choices that nobody profits from guessing: a keyless generator.

use std::cell::Cell;

/// The generator of this thread, seeded by where it lies.
pub(super) fn of_thread() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE.with(|state| {
        let seeded = match state.get() {
            0 => std::ptr::from_ref(state) as u64 | 1,
            known => known,
        };
        state.set(next(seeded));
        shown(state.get())
    })
}

pub(super) fn next(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    x
}

/// The low bits of the generator are its weakest.
pub(super) fn shown(x: u64) -> u64 {
    x >> 24
}
