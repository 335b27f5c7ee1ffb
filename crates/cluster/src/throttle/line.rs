//! Who was told to wait, and until when.
//!
//! A budget that is spent tells everybody who asks when to come back. If that were the moment at which one more request
//! fits, all of them would come back then and all but one would be refused again: clients try nine times and give
//! up, however much the budget could serve. So every wait that is told is a *seat*, and who is told later waits
//! behind all seats. What a seat will cost is not known; it counts as much as requests usually cost by now. A client
//! that comes back at its time is let in even if others have cost more; those who are told later pay for that.
//!
//! Seats are for clients that nobody knows. A request is recognised by what it asks for (its logical partition, its item,
//! what is to be done), because a client that tries again asks for the same. That decides three things:
//!
//! - Who comes back before its time is told what is left of its wait, and does not sit down twice.
//! - When the time of a seat has come nobody waits for it any more. Its units lie in the bucket by then, so a client that
//!   does not come back has delayed those behind it by its one request and no more. One that comes late, by some seconds
//!   at most, is let in all the same.
//! - Different clients may ask for the same. The second one looks as if the first came back too early, and is told
//!   the same time. When that time has come and one of them was let in, those who still come are clients of their own,
//!   and each gets a seat: such a crowd waits twice, where others wait once.
//!
//! Low priority sits behind everybody, and high priority only behind its own. A seat of low priority promises nothing as
//! long as the budget is short for high priority.
//!
//! Seats end where the patience of clients ends: who would wait longer is told so and gets none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::time::{Duration, Instant};

use orrery_store::limits::{WAIT_PROMISED_MAX, WAITS_PROMISED_MAX};

/// Waits are told in milliseconds, and timers are coarse.
const EARLY: Duration = Duration::from_millis(1);
/// How long a seat is kept for a client that is late.
const KEPT: Duration = Duration::from_secs(5);
/// How long those who were told one time together may come and get seats of their own.
const CROWD: Duration = Duration::from_millis(500);
/// Memory is given back when this many entries are no longer needed.
const ROOM_KEPT: usize = 1_024;

/// What a request is recognised by when it comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Who(pub u64);

impl Who {
    /// Two requests that hash alike are taken for clients that ask for the same.
    pub fn of(what: impl Hash) -> Who {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Who(hasher.finish())
    }
}

/// The seats of one bucket.
#[derive(Default)]
pub(super) struct Line {
    /// By the time that they end, and by a number that tells those of one time apart.
    seats: BTreeMap<Place, Seat>,
    guests: HashMap<Who, Guest>,
    counts: Counts,
    next: u64,
    /// Up to here nobody is waited for any more.
    waited_until: Option<Place>,
}

type Place = (Instant, u64);

/// How many are waited for of high and of low priority, and those of them that were put off once more.
#[derive(Default)]
struct Counts {
    high: usize,
    low: usize,
    put_off: usize,
}

struct Seat {
    who: Who,
    is_low: bool,
    is_put_off: bool,
    /// Others wait for it.
    is_counted: bool,
}

/// All who ask for the same.
#[derive(Default)]
struct Guest {
    /// Earliest first.
    places: VecDeque<Place>,
    /// How many were told the last of these times though it is not theirs.
    sharing: u32,
    /// How many of those may still come, and until when that is believed.
    crowd: u32,
    crowd_until: Option<Instant>,
}

/// A request before a bucket.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    pub who: Who,
    pub is_low: bool,
    /// What the bucket holds, and what it must hold more than for a request to pass.
    pub left: f64,
    pub floor: f64,
    /// What it must hold for a request that comes at its time.
    pub least: f64,
    /// What a request usually costs.
    pub usual: f64,
}

/// Why a request does not pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shut {
    /// It has no seat; these units have to flow in until it may have one.
    New(f64),
    /// It came before its time.
    Early(Instant),
    /// It came at its time, but too much was spent; these units have to flow in.
    PutOff(f64),
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Seats that others wait for.
    pub fn waited_for(&self) -> usize {
        self.counts.high + self.counts.low
    }

    /// The seats before a request that has none.
    pub fn before(&self, is_low: bool) -> usize {
        if is_low { self.counts.high + self.counts.low } else { self.counts.high }
    }

    /// Whether a request may pass at this moment.
    pub fn ask(&mut self, asking: Asking, now: Instant) -> Result<(), Shut> {
        self.expire(now);
        let own = self.guests.get(&asking.who).and_then(|guest| guest.places.front().copied());
        let seat = own.and_then(|place| self.seats.get(&place)).filter(|seat| seat.is_counted);
        let before = self.before(asking.is_low).saturating_sub(usize::from(seat.is_some()));
        if asking.left > asking.floor + before as f64 * asking.usual {
            return Ok(());
        }
        // One unit, so that there is something left then.
        let lacking = asking.floor + 1.0 - asking.left;
        match own {
            Some((due, _)) if due <= now + EARLY => match asking.left > asking.least {
                true => Ok(()),
                false => Err(Shut::PutOff(lacking + self.counts.put_off as f64 * asking.usual)),
            },
            Some(own) if !self.is_of_crowd(asking.who, now) => {
                let last = self.guests.get(&asking.who).and_then(|guest| guest.places.back());
                Err(Shut::Early(last.map_or(own.0, |place| place.0)))
            }
            _ => Err(Shut::New(lacking + self.before(asking.is_low) as f64 * asking.usual)),
        }
    }

    /// Notes that a request was told to come back at a time.
    pub fn seat(&mut self, asking: Asking, shut: Shut, due: Instant, now: Instant) {
        let is_put_off = matches!(shut, Shut::PutOff(_));
        match shut {
            Shut::Early(_) => {
                if let Some(guest) = self.guests.get_mut(&asking.who) {
                    guest.sharing = guest.sharing.saturating_add(1);
                }
                return;
            }
            Shut::PutOff(_) => self.give_up(asking.who),
            Shut::New(_) => {}
        }
        if due.saturating_duration_since(now) > WAIT_PROMISED_MAX || self.seats.len() >= WAITS_PROMISED_MAX {
            return;
        }
        self.next += 1;
        let place = (due, self.next);
        let seat = Seat { who: asking.who, is_low: asking.is_low, is_put_off, is_counted: true };
        self.counts.add(&seat);
        self.seats.insert(place, seat);
        let guest = self.guests.entry(asking.who).or_default();
        if matches!(shut, Shut::New(_)) {
            guest.crowd = guest.crowd.saturating_sub(1);
        }
        let at = guest.places.partition_point(|other| *other <= place);
        guest.places.insert(at, place);
    }

    /// The request was let in: its seat is free, and all who shared its time are recognised when they come.
    pub fn take(&mut self, who: Who, now: Instant) {
        if self.seats.is_empty() {
            return;
        }
        self.give_up(who);
        if let Some(guest) = self.guests.get_mut(&who)
            && guest.places.is_empty()
        {
            guest.crowd = guest.crowd.saturating_add(std::mem::take(&mut guest.sharing));
            guest.crowd_until = Some(now + CROWD);
            if guest.crowd == 0 {
                self.guests.remove(&who);
            }
        }
        self.tidy(now);
    }

    /// Keeps the seat of a request that has to wait for something else as well.
    pub fn keep_until(&mut self, who: Who, until: Instant) {
        let Some(guest) = self.guests.get_mut(&who) else { return };
        let Some(place) = guest.places.front().copied().filter(|place| place.0 < until) else { return };
        guest.places.pop_front();
        let new = (until, place.1);
        let at = guest.places.partition_point(|other| *other <= new);
        guest.places.insert(at, new);
        if let Some(mut seat) = self.seats.remove(&place) {
            self.counts.remove(&seat);
            seat.is_counted = true;
            self.counts.add(&seat);
            self.seats.insert(new, seat);
        }
    }

    pub fn clear(&mut self) {
        *self = Line::default();
    }

    /// Frees the earliest seat of a request.
    fn give_up(&mut self, who: Who) {
        let place = self.guests.get_mut(&who).and_then(|guest| guest.places.pop_front());
        if let Some(seat) = place.and_then(|place| self.seats.remove(&place)) {
            self.counts.remove(&seat);
        }
    }

    fn is_of_crowd(&self, who: Who, now: Instant) -> bool {
        let guest = self.guests.get(&who);
        guest.is_some_and(|guest| guest.crowd > 0 && guest.crowd_until.is_some_and(|until| now <= until))
    }

    pub fn expire(&mut self, now: Instant) {
        let mut has_expired = false;
        let from = self.waited_until.map_or(Bound::Unbounded, Bound::Excluded);
        for (place, seat) in self.seats.range_mut((from, Bound::Unbounded)) {
            if place.0 > now {
                break;
            }
            self.counts.remove(seat);
            seat.is_counted = false;
            self.waited_until = Some(*place);
        }
        while let Some(entry) = self.seats.first_entry()
            && entry.key().0 + KEPT < now
        {
            let (place, seat) = entry.remove_entry();
            if let Some(guest) = self.guests.get_mut(&seat.who) {
                guest.places.retain(|other| *other != place);
            }
            has_expired = true;
        }
        if has_expired {
            self.tidy(now);
        }
    }

    /// Forgets whom nothing is known of, now and then, so that each seat pays for a bounded part of it.
    fn tidy(&mut self, now: Instant) {
        if self.guests.len() > 2 * self.seats.len() + ROOM_KEPT {
            self.guests.retain(|_, guest| {
                !guest.places.is_empty() || guest.crowd_until.is_some_and(|until| now <= until)
            });
            self.guests.shrink_to(ROOM_KEPT);
        }
    }
}

impl Counts {
    fn add(&mut self, seat: &Seat) {
        *self.of(seat) += 1;
        self.put_off += usize::from(seat.is_put_off);
    }

    /// A seat that is no longer waited for was taken out before.
    fn remove(&mut self, seat: &Seat) {
        if seat.is_counted {
            *self.of(seat) -= 1;
            self.put_off -= usize::from(seat.is_put_off);
        }
    }

    fn of(&mut self, seat: &Seat) -> &mut usize {
        if seat.is_low { &mut self.low } else { &mut self.high }
    }
}
