//! Why a script did not do its work, by what the caller must do.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The text is not a program. Refuse to store it, or answer that the stored one cannot run.
    #[error("{0}")]
    Syntax(String),
    /// The text is a program, but it is not a function.
    #[error("The script is not a function.")]
    NotAFunction,
    /// A limit on the text of a script, or on the body that it answers.
    #[error("The {what} of a script may have {limit} bytes.")]
    TooLarge { what: &'static str, limit: usize },
    /// The arguments, or the body given to a trigger, are not JSON.
    #[error("The arguments of the script are not JSON.")]
    Arguments,
    /// The script threw, or a promise it answered was rejected. The answer is a bad request with
    /// [`ScriptError::text`] as its message, and `number` as its sub-status if there is one.
    #[error("{message}")]
    Threw { message: String, stack: String, number: Option<u32> },
    /// The script used up its time and was stopped.
    #[error("The script ran for longer than {} ms and was stopped.", limit.as_millis())]
    TimedOut { limit: Duration },
    /// The script used up its memory and did not recover by itself.
    #[error("The script used more than {limit_bytes} bytes of memory and was stopped.")]
    OutOfMemory { limit_bytes: usize },
    /// The script started more promise jobs than it may.
    #[error("The script started more than {limit} promise jobs and was stopped.")]
    TooManyJobs { limit: u32 },
    /// A query names a function that was not given.
    #[error("There is no user-defined function named '{0}'.")]
    UnknownFunction(String),
    /// The engine could not be set up. Nothing ran; trying again is fine.
    #[error("The script engine is not available: {0}")]
    Engine(String),
}

impl ScriptError {
    /// The message in the form clients of the service know: the exception, then its stack.
    pub fn text(&self) -> String {
        match self {
            ScriptError::Threw { message, stack, .. } => {
                let mut text = format!(
                    "Encountered exception while executing Javascript. Exception = {message}\r\n\
                     Stack trace: {message}"
                );
                for frame in stack.lines() {
                    text.push('\n');
                    text.push_str(frame);
                }
                text
            }
            other => other.to_string(),
        }
    }
}
