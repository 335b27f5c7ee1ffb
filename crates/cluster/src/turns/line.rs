//! A queue in which parties take turns.

use std::collections::VecDeque;

use super::Party;

/// Of so many turns of a party one goes to its old work, if it has both kinds.
const TURNS_PER_OLD: u32 = 4;

/// First come first served within a party, one after the other between parties.
pub(super) struct Line<T> {
    /// The party whose turn it is comes first. Only those are here that have something waiting.
    ring: VecDeque<Queue<T>>,
    len: usize,
}

struct Queue<T> {
    party: Party,
    /// Work that has used little so far, which goes first; and the rest.
    fresh: VecDeque<T>,
    old: VecDeque<T>,
    turns: u32,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line { ring: VecDeque::new(), len: 0 }
    }
}

impl<T> Line<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, party: Party, is_fresh: bool, waiter: T) {
        let place = self.ring.iter().position(|queue| queue.party == party);
        let place = place.unwrap_or_else(|| {
            self.ring.push_back(Queue { party, fresh: VecDeque::new(), old: VecDeque::new(), turns: 0 });
            self.ring.len() - 1
        });
        let queue = &mut self.ring[place];
        if is_fresh {
            queue.fresh.push_back(waiter)
        } else {
            queue.old.push_back(waiter)
        }
        self.len += 1;
    }

    /// The next whom `may` lets pass; its party then has its next turn after all others.
    pub fn next(&mut self, mut may: impl FnMut(Party, &T) -> bool) -> Option<(Party, T)> {
        let place = self.ring.iter().position(|queue| {
            let next = if queue.prefers_old() { queue.old.front() } else { queue.fresh.front() };
            next.is_some_and(|waiter| may(queue.party, waiter))
        })?;
        let mut queue = self.ring.remove(place)?;
        let waiter = if queue.prefers_old() { queue.old.pop_front() } else { queue.fresh.pop_front() }?;
        queue.turns = queue.turns.wrapping_add(1);
        self.len -= 1;
        let party = queue.party;
        if !queue.fresh.is_empty() || !queue.old.is_empty() {
            self.ring.push_back(queue);
        }
        Some((party, waiter))
    }
}

impl<T> Queue<T> {
    fn prefers_old(&self) -> bool {
        let is_its_turn = self.turns % TURNS_PER_OLD == TURNS_PER_OLD - 1;
        self.fresh.is_empty() || (is_its_turn && !self.old.is_empty())
    }
}
