//! The pulse of a connection: whether its peer still does its part.
//!
//! A slow or malicious peer can hold a connection in three ways: by starting the headers of a
//! request and never ending them, by not reading the answer, or by doing nothing at all. The usual
//! defence arms a timer at each step of each request, which costs more than a point read is worth.
//! Here a connection has one coarse clock that ticks a few times per timeout. Reads, writes and
//! requests note only the tick at which something began (one relaxed store, no look at the time),
//! and at each tick the notes are compared with the timeouts. A timeout is thus late by at most one
//! tick, and a connection that works costs nothing.
//!
//! Large answers are watched one by one as well: a peer may read just enough to look alive, and one that speaks HTTP/2 need
//! not keep the socket from being written to. They hold memory, and when others wait for that they have to be read
//! at a fair rate.
//!
//! Notes are plain atomics because HTTP/2 runs its requests on other tasks. They are independent
//! hints: a stale one delays a verdict by a tick and never makes a wrong one, so relaxed ordering
//! is enough.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use orrery_gateway::Unsent;
use tokio::time::MissedTickBehavior;

use super::Timeouts;
use crate::limits;

/// The note of something that is not going on; the clock starts at 1.
const NOT: u32 = 0;

pub struct Pulse {
    tick: AtomicU32,
    /// Requests being answered.
    in_flight: AtomicU32,
    /// Since when headers that have begun are not complete.
    head_since: AtomicU32,
    /// Since when the peer has not taken bytes that are ready to be sent.
    write_since: AtomicU32,
    /// Since when no request is in flight.
    idle_since: AtomicU32,
    /// See [`Pulse::expect_other_bytes`].
    sends_other_bytes: AtomicBool,
    /// The last answer was given before its request was there in full: what still comes is taken in before the socket is
    /// closed. Else the system would tell the peer that the connection is broken, and the peer would never see the answer.
    lingers: AtomicBool,
    /// Large answers that may not be sent yet.
    unsent: Mutex<Vec<Weak<Unsent>>>,
}

/// Why a connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    Headers,
    Write,
    Idle,
}

/// A request in flight, until it is dropped. It keeps what its work needs of the connection, so that a request counts
/// one reference and not several.
pub struct Beat<P: AsRef<Pulse>>(P);

impl Pulse {
    pub fn new() -> Pulse {
        Pulse {
            tick: AtomicU32::new(1),
            in_flight: AtomicU32::new(0),
            head_since: AtomicU32::new(NOT),
            write_since: AtomicU32::new(NOT),
            idle_since: AtomicU32::new(1),
            sends_other_bytes: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            unsent: Mutex::default(),
        }
    }

    /// The first request may come: bytes seen so far belonged to the TLS handshake.
    pub fn begin(&self) {
        self.head_since.store(NOT, Relaxed);
        self.idle_since.store(self.tick.load(Relaxed), Relaxed);
    }

    /// The peer sends bytes between requests that begin none, as HTTP/2 does with pings and window updates.
    pub fn expect_other_bytes(&self) {
        self.sends_other_bytes.store(true, Relaxed);
    }

    /// The answer ends the connection, and something of the request is perhaps still on its way.
    pub fn linger(&self) {
        self.lingers.store(true, Relaxed);
    }

    pub fn lingers(&self) -> bool {
        self.lingers.load(Relaxed)
    }

    /// An answer is large and handed to the connection.
    pub fn sending(&self, answer: Weak<Unsent>) {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        unsent.retain(|answer| answer.strong_count() > 0);
        unsent.push(answer);
    }

    /// Resolves when the peer is overdue; until then it keeps the clock ticking. Asks whether others wait for the memory
    /// that answers hold.
    pub async fn overdue(&self, timeouts: &Timeouts, is_wanted: impl Fn() -> bool) -> Overdue {
        let schedule = Schedule::of(timeouts);
        let mut clock = tokio::time::interval(schedule.tick);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            clock.tick().await;
            let now = self.tick.load(Relaxed).wrapping_add(1).max(1);
            self.tick.store(now, Relaxed);
            if let Some(overdue) = self.verdict(now, &schedule) {
                return overdue;
            }
            if self.is_unread(timeouts.write, &is_wanted) {
                return Overdue::Write;
            }
        }
    }

    fn verdict(&self, now: u32, schedule: &Schedule) -> Option<Overdue> {
        let older = |note: &AtomicU32, ticks: u32| {
            let since = note.load(Relaxed);
            since != NOT && now.wrapping_sub(since) > ticks
        };
        if older(&self.write_since, schedule.write) {
            return Some(Overdue::Write);
        }
        if self.in_flight.load(Relaxed) > 0 {
            return None;
        }
        if self.lingers.load(Relaxed) {
            return older(&self.idle_since, schedule.write).then_some(Overdue::Write);
        }
        // A peer that sends nothing but other bytes is idle.
        if !self.sends_other_bytes.load(Relaxed) && older(&self.head_since, schedule.header) {
            return Some(Overdue::Headers);
        }
        older(&self.idle_since, schedule.idle).then_some(Overdue::Idle)
    }

    /// Whether an answer has been on its way for too long.
    fn is_unread(&self, write: Duration, is_wanted: impl Fn() -> bool) -> bool {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        if unsent.is_empty() {
            return false;
        }
        unsent.retain(|answer| answer.strong_count() > 0);
        let is_wanted = !unsent.is_empty() && is_wanted();
        unsent.iter().filter_map(Weak::upgrade).any(|answer| {
            let most = write + Duration::from_secs(answer.bytes() / limits::UNSENT_BYTES_PER_SECOND_MIN);
            (is_wanted && answer.is_overdue()) || answer.age() > most
        })
    }

    /// Bytes have come from the peer.
    pub fn received(&self) {
        if self.in_flight.load(Relaxed) == 0 && self.head_since.load(Relaxed) == NOT {
            self.head_since.store(self.tick.load(Relaxed), Relaxed);
        }
    }

    /// The peer has taken bytes, or has not.
    pub fn sent<T>(&self, outcome: &Poll<T>) {
        let blocked = self.write_since.load(Relaxed) != NOT;
        match outcome {
            Poll::Pending if !blocked => self.write_since.store(self.tick.load(Relaxed), Relaxed),
            Poll::Ready(_) if blocked => self.write_since.store(NOT, Relaxed),
            _ => {}
        }
    }
}

impl<P: AsRef<Pulse>> Beat<P> {
    /// A request is there, and its headers with it.
    pub fn of(holder: P) -> Beat<P> {
        let pulse = holder.as_ref();
        pulse.in_flight.fetch_add(1, Relaxed);
        pulse.head_since.store(NOT, Relaxed);
        Beat(holder)
    }

    pub fn holder(&self) -> &P {
        &self.0
    }
}

impl<P: AsRef<Pulse>> Drop for Beat<P> {
    fn drop(&mut self) {
        let pulse = self.0.as_ref();
        let before = pulse.in_flight.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a request ends once");
        if before == 1 {
            pulse.idle_since.store(pulse.tick.load(Relaxed), Relaxed);
        }
    }
}

/// The timeouts in ticks.
struct Schedule {
    tick: Duration,
    header: u32,
    write: u32,
    idle: u32,
}

impl Schedule {
    fn of(timeouts: &Timeouts) -> Schedule {
        let shortest = timeouts.header.min(timeouts.write).min(timeouts.idle);
        let tick = (shortest / limits::WATCHDOG_TICKS_PER_TIMEOUT)
            .clamp(limits::WATCHDOG_MIN_TICK, limits::WATCHDOG_MAX_TICK);
        let ticks = |timeout: Duration| {
            u32::try_from(timeout.as_nanos().div_ceil(tick.as_nanos())).unwrap_or(u32::MAX / 2)
        };
        Schedule {
            tick,
            header: ticks(timeouts.header),
            write: ticks(timeouts.write),
            idle: ticks(timeouts.idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SCHEDULE: Schedule = Schedule { tick: Duration::from_millis(10), header: 4, write: 8, idle: 100 };

    fn at(pulse: &Pulse, tick: u32) -> Option<Overdue> {
        pulse.tick.store(tick, Relaxed);
        pulse.verdict(tick, &SCHEDULE)
    }

    #[test]
    fn unfinished_headers_are_overdue_and_finished_ones_are_not() {
        let pulse = Arc::new(Pulse::new());
        pulse.received();
        assert_eq!(at(&pulse, 5), None);
        assert_eq!(at(&pulse, 6), Some(Overdue::Headers));
        let beat = Beat::of(Arc::clone(&pulse));
        assert_eq!(at(&pulse, 1000), None, "a request in flight is the handler's to time");
        drop(beat);
        assert_eq!(at(&pulse, 1001), None);
    }

    #[test]
    fn a_silent_connection_is_idle_long_before_it_is_overdue() {
        let pulse = Arc::new(Pulse::new());
        assert_eq!(at(&pulse, 101), None);
        assert_eq!(at(&pulse, 102), Some(Overdue::Idle));
    }

    #[test]
    fn pings_of_an_http2_peer_are_not_unfinished_headers() {
        let pulse = Arc::new(Pulse::new());
        drop(Beat::of(Arc::clone(&pulse)));
        pulse.expect_other_bytes();
        pulse.received();
        assert_eq!(at(&pulse, 50), None);
        assert_eq!(at(&pulse, 102), Some(Overdue::Idle));
    }

    #[test]
    fn what_is_left_of_a_refused_body_may_come_for_a_while() {
        let pulse = Arc::new(Pulse::new());
        let beat = Beat::of(Arc::clone(&pulse));
        beat.holder().linger();
        drop(beat);
        pulse.received();
        assert_eq!(at(&pulse, 9), None, "these are no headers");
        assert_eq!(at(&pulse, 10), Some(Overdue::Write));
    }

    #[test]
    fn a_peer_that_does_not_read_its_answer_is_overdue() {
        let pulse = Arc::new(Pulse::new());
        let _beat = Beat::of(Arc::clone(&pulse));
        pulse.sent::<()>(&Poll::Pending);
        assert_eq!(at(&pulse, 9), None);
        assert_eq!(at(&pulse, 10), Some(Overdue::Write));
        pulse.sent(&Poll::Ready(()));
        assert_eq!(at(&pulse, 11), None);
    }
}
