//! A look at the copy of a partition that is here, which waits for nothing.
//!
//! A point read is one look, a plain function from the request to the answer. Where there are several copies, the one that is here may
//! have to catch up first; the look then says what to wait for, and whoever has the time for it looks again afterwards. A node
//! that is alone has nothing to wait for, and the compiler knows it: a [`Wait`] cannot be made yet, so a [`Look`] is as
//! small as its answer.

use std::convert::Infallible;

/// What a look has come to.
#[derive(Clone, Debug)]
pub enum Look<T> {
    Done(T),
    /// Look again when this is over.
    Wait(Wait),
}

/// What an answer has to wait for.
#[derive(Clone, Debug)]
pub struct Wait(Infallible);

impl Wait {
    /// Returns when it is worth looking again.
    pub async fn over(self) {
        match self.0 {}
    }
}

impl<T> Look<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Look::Done(answer) => Look::Done(change(answer)),
            Look::Wait(wait) => Look::Wait(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ReadReply;

    #[test]
    fn what_never_waits_costs_nothing() {
        assert_eq!(size_of::<Look<ReadReply>>(), size_of::<ReadReply>());
        assert_eq!(size_of::<Look<u64>>(), size_of::<u64>());
    }
}
