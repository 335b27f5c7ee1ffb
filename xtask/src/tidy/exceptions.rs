//! The places where a cap does not hold, each with its reason.

struct Exception {
    path: &'static str,
    /// The function that is longer than the cap, or none when it is the file.
    function: Option<&'static str>,
    #[expect(dead_code, reason = "a reason is for the reader")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

pub fn long_file(path: &str) -> bool {
    EXCEPTIONS.iter().any(|exception| exception.path == path && exception.function.is_none())
}

pub fn long_function(path: &str, function: &str) -> bool {
    EXCEPTIONS.iter().any(|exception| exception.path == path && exception.function == Some(function))
}

/// Complaints about exceptions for files that are no longer there.
pub fn stale(exists: impl Fn(&str) -> bool) -> Vec<String> {
    let gone = EXCEPTIONS.iter().filter(|exception| !exists(exception.path));
    gone.map(|exception| format!("{}: has an exception but is not there", exception.path)).collect()
}
