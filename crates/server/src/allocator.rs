//! How memory is taken from the system and given back.

use std::ffi::c_long;

use libmimalloc_sys::{mi_collect, mi_option_set_default, mi_option_t};

/// The system's allocator keeps an arena for each thread and gives little back; under a mix of large and small
/// requests its memory grows for hours.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`, which the bindings do not name: how long freed memory is kept, in milliseconds.
const PURGE_DELAY: mi_option_t = 15;
const PURGE_DELAY_MILLIS: c_long = 10;

/// Lets freed memory go back to the system soon. The allocator would keep it for a second, and each thread takes fresh
/// memory before that of others: queries that need a few megabytes each, on the threads that come and go with them, would
/// hold hundreds. `MIMALLOC_PURGE_DELAY` still has the last word.
pub fn give_back_soon() {
    // SAFETY: it changes one of the allocator's own numbers, which may be done at any time and by any thread.
    #[allow(unsafe_code, reason = "the allocator cannot be told otherwise")]
    unsafe {
        mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MILLIS);
    }
}

/// Has memory come from the system in pages of 4 KiB, or, where the system likes, of 2 MiB. The allocator asks for the large
/// ones, with which everything is up to a twentieth faster. But the first byte of one makes all of it resident, so that what
/// is held here and there takes several times its size: clients that sent large items and were refused, ten megabytes in
/// all, made 200 of them resident. Where the budget is small that is what kills the process.
pub fn take_small_pages(small: bool) {
    // A system without large pages may refuse to say so.
    let _ = rustix::thread::disable_transparent_huge_pages(small);
}

/// Gives back what this thread keeps of the memory that it has freed.
pub fn give_back_of_this_thread() {
    // SAFETY: it frees pages of this thread that nobody uses, as any call that allocates may do.
    #[allow(unsafe_code, reason = "the allocator cannot be told otherwise")]
    unsafe {
        mi_collect(true);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const ASKED: &str = "ORRERY_TEST_PURGE_DELAY";

    #[allow(unsafe_code, reason = "the allocator cannot be asked otherwise")]
    fn delay() -> c_long {
        // SAFETY: it reads one of the allocator's own numbers.
        unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) }
    }

    /// The variable has the option's name, so this also shows that the number is the right one.
    #[test]
    fn the_delay_is_ours_unless_the_variable_says_otherwise() {
        if let Ok(expected) = std::env::var(ASKED) {
            give_back_soon();
            assert_eq!(delay().to_string(), expected);
            return;
        }
        let test = "allocator::tests::the_delay_is_ours_unless_the_variable_says_otherwise";
        for (variable, expected) in [(None, "10"), (Some("77"), "77")] {
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            child.args(["--exact", test]).env(ASKED, expected).env_remove("MIMALLOC_PURGE_DELAY");
            child.envs(variable.map(|value| ("MIMALLOC_PURGE_DELAY", value)));
            let output = child.output().expect("it runs again");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}
