//! The search of Wing and Gong: whether some order of the operations on a key explains all of them.
//!
//! Each operation takes effect at one moment between its begin and its end. So the next one in the order may be any that began
//! before the first end of those that are left. Each is tried, and given up when it is a read that does not show what was
//! written last. Which operations are done and what was written last is all that counts, so no such state is tried twice.

use std::collections::{BTreeMap, HashSet};

use super::history::{Action, History};
use super::{Broken, Violation};

/// States that are tried for one key. Histories of a few hundred operations with a dozen clients need a few thousand.
const STATES_MAX: usize = 3_000_000;

#[derive(Clone, Copy)]
struct Operation {
    event: usize,
    begin: u64,
    /// Never for a write of unknown fate, which may also not have happened.
    end: u64,
    is_write: bool,
    value: Option<u64>,
}

pub(super) fn check(history: &History) -> Result<(), Violation> {
    let mut keys: BTreeMap<(&str, &str), Vec<Operation>> = BTreeMap::new();
    for (event, of) in history.events.iter().enumerate() {
        let mut add = |key, value, is_write, end: Option<u64>| {
            let end = end.unwrap_or(u64::MAX);
            let list = keys.entry((of.partition.as_str(), key)).or_default();
            list.push(Operation { event, begin: of.begin, end, is_write, value });
        };
        match &of.action {
            Action::Write { writes, place } => {
                let end = of.end.filter(|_| place.is_some());
                writes.iter().for_each(|(key, value)| add(key, Some(*value), true, end));
            }
            Action::Read { seen, .. } => {
                seen.iter()
                    .for_each(|seen| add(&seen.key, seen.value.map(|(value, _)| value), false, of.end));
            }
            Action::Refused { .. } => {}
        }
    }
    keys.into_values().try_for_each(check_key)
}

/// Which operations are done, and the value that is there.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    done: Vec<u64>,
    value: Option<u64>,
}

impl State {
    fn has(&self, place: usize) -> bool {
        self.done[place / 64] >> (place % 64) & 1 == 1
    }

    fn with(&self, place: usize, operation: &Operation) -> State {
        let mut next = self.clone();
        next.done[place / 64] |= 1 << (place % 64);
        if operation.is_write {
            next.value = operation.value;
        }
        next
    }
}

fn check_key(mut operations: Vec<Operation>) -> Result<(), Violation> {
    operations.sort_by_key(|operation| (operation.begin, operation.end));
    let first = State { done: vec![0; operations.len().div_ceil(64)], value: None };
    let mut tried: HashSet<State> = HashSet::from([first.clone()]);
    let mut open = vec![first];
    // The operation at which the search came furthest is the one to look at.
    let mut furthest = 0;
    while let Some(state) = open.pop() {
        let left: Vec<usize> = (0..operations.len()).filter(|place| !state.has(*place)).collect();
        let first_end = left.iter().map(|place| operations[*place].end).min().unwrap_or(u64::MAX);
        if first_end == u64::MAX {
            // What is left need not have happened.
            return Ok(());
        }
        furthest = furthest.max(left[0]);
        // The last that is pushed is tried first: the operation that began first is the likeliest.
        let may_be_next = |place: &&usize| operations[**place].begin <= first_end;
        let candidates: Vec<usize> = left.iter().take_while(may_be_next).copied().collect();
        for place in candidates.into_iter().rev() {
            let operation = &operations[place];
            if operation.is_write || operation.value == state.value {
                let next = state.with(place, operation);
                if !tried.contains(&next) {
                    tried.insert(next.clone());
                    open.push(next);
                }
            }
        }
        if tried.len() > STATES_MAX {
            return Err(Violation { event: operations[furthest].event, broken: Broken::Undecided });
        }
    }
    Err(Violation { event: operations[furthest].event, broken: Broken::NotLinearizable })
}
