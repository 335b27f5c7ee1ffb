//! The memory that requests take for their bodies and answers, and who has to go when others want it.
//!
//! A client decides how fast it sends and how fast it reads, so what is held for it is held for as long as it likes. Three
//! rules keep one client's leisure from being another's refusal:
//!
//! - **Small ones are not counted.** A connection of HTTP/1 carries one request at a time, so that the number of connections
//!   bounds them. Whatever large ones hold, small requests are read and answered.
//! - **Large ones take from the budget before they exist.** A body waits unread until its memory is there, and the client
//!   feels that its socket is full. When it has arrived it waits again, for the memory of what is made of it; clients that
//!   send slowly hold none of that. Large bodies get three quarters of the share for bodies, so that those of moderate size
//!   find room beside them. A page of a query is as large as what is free allows; where nothing is, pages are small, and
//!   the client comes back for the rest.
//! - **Leisure ends where others wait.** A body that does not come, and an answer that is not read, at a reasonable rate is
//!   given up when there is a queue, and only then.
//!
//! What is held travels inside the [`Bytes`] of the body or answer and is given back with the last of them, which for an
//! answer is when the connection has sent it or has ended.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_cluster::limits::{
    ANSWER_BYTES_PER_SECOND_MIN, ANSWER_PATIENCE, ANSWER_UNCOUNTED_BYTES, BODY_BYTES_PER_SECOND_MIN,
    BODY_LARGE_BYTES, BODY_PATIENCE, BODY_UNCOUNTED_BYTES, HEAD_UNCOUNTED_BYTES, HELD_GRACE,
    ITEM_ANSWER_BYTES_MAX, PAGE_BYTES_MAX, STREAM_UNCOUNTED_BYTES, WRITE_COPIES,
};
use orrery_cluster::{Consumer, Error, ErrorKind, Hold, Memory};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// How long a client waits that is told so because the server is overloaded: it finds the queues shorter. SDKs come back nine
/// times unless told otherwise, which together must be longer than an overload usually lasts.
pub const OVERLOADED_RETRY_MS: u32 = 500;

/// Places for large bodies are counted in these.
const PLACE_BYTES: u64 = 1024;
/// What a page takes while it is made: its items, and their text.
const PAGE_COPIES: u64 = 2;
/// A page takes one part in so many of what is free, so that something is always left for the next.
const PAGE_PART: u64 = 8;
/// Answers that found no memory may have one part in so many of what there is for answers.
const UNPLACED_PART: u64 = 4;
/// Heads that are long may have one part in so many of what there is for bodies.
const HEADS_PART: u64 = 4;
const UNPLACED_PAUSE: Duration = Duration::from_millis(50);

pub struct Room {
    memory: Memory,
    /// Places of [`PLACE_BYTES`] for large bodies.
    large: Arc<Semaphore>,
    large_waiting: AtomicUsize,
    /// Bytes of answers that were made and found no memory.
    unplaced: Arc<AtomicU64>,
    /// Bytes of the heads of requests over HTTP/2 that are long.
    heads: Arc<AtomicU64>,
    /// How long bodies and answers wait.
    patience: (Duration, Duration),
}

/// How many requests a connection may carry at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// One after the other.
    Connection,
    /// Many.
    Stream,
}

impl Carrier {
    pub fn of(version: http::Version) -> Carrier {
        match version {
            http::Version::HTTP_2 => Carrier::Stream,
            _ => Carrier::Connection,
        }
    }

    pub(crate) fn body_uncounted(self) -> u64 {
        match self {
            Carrier::Connection => BODY_UNCOUNTED_BYTES,
            Carrier::Stream => STREAM_UNCOUNTED_BYTES,
        }
    }

    fn answer_uncounted(self) -> usize {
        match self {
            Carrier::Connection => ANSWER_UNCOUNTED_BYTES,
            Carrier::Stream => STREAM_UNCOUNTED_BYTES as usize,
        }
    }
}

impl Room {
    pub fn new(memory: Memory) -> Room {
        let places = memory.shares().bodies / 4 * 3 / PLACE_BYTES;
        let large = Arc::new(Semaphore::new((places as usize).min(Semaphore::MAX_PERMITS)));
        Room {
            memory,
            large,
            large_waiting: AtomicUsize::new(0),
            unplaced: Arc::default(),
            heads: Arc::default(),
            patience: (BODY_PATIENCE, ANSWER_PATIENCE),
        }
    }

    /// Memory for a body of so many bytes, none of which has been read.
    pub async fn body(&self, bytes: u64, carrier: Carrier) -> Result<Option<BodyHold>, Error> {
        if bytes <= carrier.body_uncounted() {
            return Ok(None);
        }
        let is_large = bytes > BODY_LARGE_BYTES;
        let began = Instant::now();
        let place = if is_large { Some(self.place(bytes).await?) } else { None };
        let patience = self.patience.0.saturating_sub(began.elapsed());
        let hold = self.memory.take(Consumer::Bodies, bytes, patience).await.ok_or_else(overloaded)?;
        Ok(Some(BodyHold { _hold: hold, _place: place, is_large, bytes, since: Instant::now() }))
    }

    /// Memory for what is made of a body of so many bytes, which has arrived. Bodies that wait for it hold their own; those
    /// who have it never wait for a body. The largest has all of it for itself.
    pub async fn write(&self, bytes: u64, carrier: Carrier) -> Result<Option<Hold>, Error> {
        if bytes <= carrier.body_uncounted() {
            return Ok(None);
        }
        let taken = (bytes * WRITE_COPIES).min(self.memory.shares().writes);
        let hold = self.memory.take(Consumer::Writes, taken, self.patience.0).await;
        hold.map(Some).ok_or_else(overloaded)
    }

    async fn place(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Error> {
        let places = u32::try_from(bytes.div_ceil(PLACE_BYTES)).unwrap_or(u32::MAX);
        if let Ok(place) = Arc::clone(&self.large).try_acquire_many_owned(places) {
            return Ok(place);
        }
        let _waiting = Waiting::new(&self.large_waiting);
        let place = timeout(self.patience.0, Arc::clone(&self.large).acquire_many_owned(places)).await;
        place.ok().and_then(Result::ok).ok_or_else(overloaded)
    }

    /// Whether a body has come too slowly for others to go on waiting for its memory.
    pub fn is_overdue(&self, body: &BodyHold) -> bool {
        let is_wanted = body.is_large && self.large_waiting.load(Ordering::Relaxed) > 0;
        (is_wanted || self.memory.is_wanted(Consumer::Bodies))
            && body.since.elapsed() > allowed(body.bytes, BODY_BYTES_PER_SECOND_MIN)
    }

    /// How large a page may be, and the memory for it.
    pub async fn page(&self, carrier: Carrier) -> Result<Page, Error> {
        let least = carrier.answer_uncounted();
        let most = PAGE_BYTES_MAX as u64 * PAGE_COPIES;
        let part = (self.memory.free(Consumer::Answers) / PAGE_PART).min(most);
        if part / PAGE_COPIES > least as u64
            && let Some(hold) = self.memory.try_take(Consumer::Answers, part)
        {
            return Ok(Page { bytes: (part / PAGE_COPIES) as usize, hold: Some(hold) });
        }
        let hold = match carrier {
            Carrier::Connection => None,
            Carrier::Stream => {
                let wanted = ANSWER_UNCOUNTED_BYTES as u64 * PAGE_COPIES;
                let taken = self.memory.take(Consumer::Answers, wanted, self.patience.1).await;
                Some(taken.ok_or_else(overloaded)?)
            }
        };
        Ok(Page { bytes: ANSWER_UNCOUNTED_BYTES, hold })
    }

    /// Memory for an answer that may be as large as an item, taken beforehand where it is short.
    pub async fn item(&self) -> Result<Option<Hold>, Error> {
        if !self.is_short() {
            return Ok(None);
        }
        let taken = self.memory.take(Consumer::Answers, ITEM_ANSWER_BYTES_MAX, self.patience.1).await;
        taken.map(Some).ok_or_else(overloaded)
    }

    fn is_short(&self) -> bool {
        self.wants_answers() || self.memory.free(Consumer::Answers) < 2 * ITEM_ANSWER_BYTES_MAX
    }

    /// Waits until few answers are without memory. To be asked before something is carried out whose answer may be large
    /// and cannot be refused any more, and of which only a few are carried out at once.
    pub async fn few_unplaced(&self) -> Result<(), Error> {
        let most = self.memory.shares().answers / UNPLACED_PART;
        let began = Instant::now();
        while self.unplaced.load(Ordering::Relaxed) > most {
            if began.elapsed() > self.patience.1 {
                return Err(overloaded());
            }
            sleep(UNPLACED_PAUSE).await;
        }
        Ok(())
    }

    /// The same for what many may carry out at once: room for an answer with an item. Half of the memory for answers is left
    /// to those whose answers are larger than what they wait for; where no more is to be had one or two go on without, and
    /// the others wait.
    pub async fn written(&self) -> Result<Written, Error> {
        let (answers, most) = (self.memory.shares().answers, ITEM_ANSWER_BYTES_MAX);
        let is_ample = self.memory.free(Consumer::Answers) >= answers / 2 + most;
        if is_ample && let Some(hold) = self.memory.try_take(Consumer::Answers, most) {
            return Ok(Written::Placed(hold));
        }
        let unplaced = (answers / UNPLACED_PART).max(most);
        if let Some(unplaced) = Unplaced::within(&self.unplaced, most, unplaced) {
            return Ok(Written::Unplaced(unplaced));
        }
        let taken = self.memory.take(Consumer::Answers, most, self.patience.1).await;
        taken.map(Written::Placed).ok_or_else(overloaded)
    }

    /// Room for the head of a request, of which a connection of HTTP/2 carries many at once, before anybody knows who sent
    /// them. All of them together may have one part in so many of what there is for bodies.
    pub fn head(&self, bytes: usize, carrier: Carrier) -> Result<Option<Head>, Error> {
        if carrier == Carrier::Connection || bytes <= HEAD_UNCOUNTED_BYTES {
            return Ok(None);
        }
        let most = self.memory.shares().bodies / HEADS_PART;
        Unplaced::within(&self.heads, bytes as u64, most).map(|held| Some(Head(held))).ok_or_else(overloaded)
    }

    /// Whether a request waits for the memory of answers.
    pub fn wants_answers(&self) -> bool {
        self.memory.is_wanted(Consumer::Answers)
    }

    /// Has an answer hold its memory until it is sent, if that is to be had at once; else the answer is left as it was.
    pub fn try_hold(&self, answer: &mut Bytes, carrier: Carrier) -> Option<Held> {
        if answer.len() <= carrier.answer_uncounted() {
            return Some(Held(None));
        }
        let hold = self.memory.try_take(Consumer::Answers, answer.len() as u64)?;
        Some(wrap(answer, hold, None))
    }

    /// Whether an answer would find its memory at once.
    pub fn has_room(&self, bytes: usize, carrier: Carrier, taken: Option<&Hold>) -> bool {
        let has = taken.map_or(0, Hold::bytes);
        bytes <= carrier.answer_uncounted()
            || bytes as u64 <= has
            || (!self.wants_answers() && bytes as u64 - has <= self.memory.free(Consumer::Answers))
    }

    /// Waits for the memory of an answer that is not made yet, and gives back what was taken meanwhile.
    pub async fn wait(&self, bytes: usize, taken: Option<Hold>) -> Result<Hold, Error> {
        drop(taken);
        let hold = self.memory.take(Consumer::Answers, bytes as u64, self.patience.1).await;
        hold.ok_or_else(overloaded)
    }

    /// Has the answer to something that was carried out, which cannot be refused any more, hold what was taken for it.
    pub async fn hold_written(
        &self,
        answer: &mut Bytes,
        carrier: Carrier,
        written: Written,
    ) -> Result<Held, Error> {
        let bytes = answer.len() as u64;
        match written {
            Written::Placed(hold) => self.hold(answer, carrier, Some(hold), false).await,
            Written::Unplaced(mut unplaced) if bytes > carrier.answer_uncounted() as u64 => {
                unplaced.resize(bytes);
                Ok(wrap(answer, self.memory.nothing(Consumer::Answers), Some(unplaced)))
            }
            Written::Unplaced(_) => Ok(Held(None)),
        }
    }

    /// The same, and waits for it; `taken` was taken beforehand. What was carried out cannot be refused any more, so its
    /// answer is sent all the same.
    pub async fn hold(
        &self,
        answer: &mut Bytes,
        carrier: Carrier,
        taken: Option<Hold>,
        can_refuse: bool,
    ) -> Result<Held, Error> {
        let bytes = answer.len() as u64;
        if answer.len() <= carrier.answer_uncounted() {
            return Ok(Held(None));
        }
        let mut held = taken.unwrap_or_else(|| self.memory.nothing(Consumer::Answers));
        held.shrink_to(bytes);
        let more = bytes - held.bytes();
        let mut unplaced = None;
        if more > 0 {
            unplaced = Some(Unplaced::new(&self.unplaced, more));
            match self.memory.take(Consumer::Answers, more, self.patience.1).await {
                Some(hold) => {
                    held.join(hold);
                    unplaced = None;
                }
                None if can_refuse => return Err(overloaded()),
                None => {}
            }
        }
        Ok(wrap(answer, held, unplaced))
    }
}

fn overloaded() -> Error {
    ErrorKind::Overloaded.into()
}

/// How long so many bytes may take where others wait.
fn allowed(bytes: u64, bytes_per_second: u64) -> Duration {
    HELD_GRACE + Duration::from_millis(bytes.saturating_mul(1000) / bytes_per_second)
}

/// Memory for a body.
pub struct BodyHold {
    _hold: Hold,
    _place: Option<OwnedSemaphorePermit>,
    is_large: bool,
    bytes: u64,
    since: Instant,
}

impl BodyHold {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The body, which gives the memory back when nobody needs it any more.
    pub fn keep(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Owned { bytes: body, _held: self })
    }
}

/// How large a page may be.
pub struct Page {
    pub bytes: usize,
    pub hold: Option<Hold>,
}

/// What the sender of an answer may look at; nothing if it is small.
#[derive(Default)]
pub struct Held(pub Option<Weak<Unsent>>);

/// An answer of which something is not sent yet.
pub struct Unsent {
    bytes: u64,
    since: Instant,
    _hold: Hold,
    _unplaced: Option<Unplaced>,
}

impl Unsent {
    /// Whether its reader has had enough time for it, given that others want its memory.
    pub fn is_overdue(&self) -> bool {
        self.since.elapsed() > allowed(self.bytes, ANSWER_BYTES_PER_SECOND_MIN)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

fn wrap(answer: &mut Bytes, hold: Hold, unplaced: Option<Unplaced>) -> Held {
    let (bytes, since) = (answer.len() as u64, Instant::now());
    let unsent = Arc::new(Unsent { bytes, since, _hold: hold, _unplaced: unplaced });
    let told = Arc::downgrade(&unsent);
    *answer = Bytes::from_owner(Owned { bytes: std::mem::take(answer), _held: unsent });
    Held(Some(told))
}

/// Bytes and what goes with them.
struct Owned<T> {
    bytes: Bytes,
    _held: T,
}

impl<T> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes without memory, until dropped.
pub struct Unplaced {
    count: Arc<AtomicU64>,
    bytes: u64,
}

/// Room for an answer that cannot be refused any more.
pub enum Written {
    Placed(Hold),
    Unplaced(Unplaced),
}

/// Room for the head of a request, until dropped.
pub struct Head(#[expect(dead_code, reason = "it is given back when it is dropped")] Unplaced);

impl Unplaced {
    /// Counts so many bytes if there are no more than so many then.
    fn within(count: &Arc<AtomicU64>, bytes: u64, most: u64) -> Option<Unplaced> {
        let more = |before: u64| before.checked_add(bytes).filter(|sum| *sum <= most);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Unplaced { count: Arc::clone(count), bytes })
    }

    fn resize(&mut self, bytes: u64) {
        self.count.fetch_add(bytes, Ordering::Relaxed);
        self.count.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    fn new(count: &Arc<AtomicU64>, bytes: u64) -> Unplaced {
        count.fetch_add(bytes, Ordering::Relaxed);
        Unplaced { count: Arc::clone(count), bytes }
    }
}

impl Drop for Unplaced {
    fn drop(&mut self) {
        self.count.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A request that waits, until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use orrery_cluster::MemoryShares;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn room() -> Room {
        let moment = Duration::from_millis(50);
        let room = Room::new(Memory::new(MemoryShares::of(128 * MIB)));
        Room { patience: (moment, moment), ..room }
    }

    #[tokio::test]
    async fn large_bodies_leave_room_for_smaller_ones() {
        let room = room();
        let mut held = Vec::new();
        let refused = loop {
            match room.body(2 * MIB, Carrier::Connection).await {
                Ok(hold) => held.push(hold),
                Err(refusal) => break refusal,
            }
        };
        assert!(matches!(refused, Error { kind: ErrorKind::Overloaded, .. }));
        assert!(!held.is_empty() && held.len() < 5, "{} bodies of 2 MiB", held.len());
        for _ in 0..8 {
            held.push(room.body(BODY_LARGE_BYTES, Carrier::Connection).await.expect("there is room"));
        }
        assert!(
            room.body(BODY_UNCOUNTED_BYTES, Carrier::Connection).await.expect("no memory is taken").is_none()
        );
        assert!(room.body(BODY_UNCOUNTED_BYTES, Carrier::Stream).await.expect("there is room").is_some());
        drop(held);
        assert!(room.body(2 * MIB, Carrier::Connection).await.is_ok());
    }

    #[tokio::test]
    async fn pages_become_smaller_as_answers_are_held() {
        let room = room();
        let (mut held, mut sizes) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let page = room.page(Carrier::Connection).await.expect("a page is never refused");
            sizes.push(page.bytes);
            held.push(page.hold);
        }
        assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
        assert!(sizes[0] > 500_000 && sizes[199] == ANSWER_UNCOUNTED_BYTES, "{sizes:?}");
        drop(held);
        assert_eq!(room.page(Carrier::Connection).await.expect("a page").bytes, sizes[0]);
    }

    #[tokio::test]
    async fn what_an_answer_holds_is_given_back_with_the_last_of_its_bytes() {
        let room = room();
        let all = room.memory.free(Consumer::Answers);
        let mut small = Bytes::from(vec![7; ANSWER_UNCOUNTED_BYTES]);
        assert!(room.try_hold(&mut small, Carrier::Connection).is_some_and(|held| held.0.is_none()));
        let mut answer = Bytes::from(vec![7; 1_000_000]);
        let held = room.try_hold(&mut answer, Carrier::Connection).expect("there is room");
        let unsent = held.0.expect("it is large");
        assert_eq!(all - room.memory.free(Consumer::Answers), 1_000_000);
        let rest = answer.split_off(999_999);
        drop(answer);
        assert!(unsent.upgrade().is_some_and(|unsent| unsent.bytes() == 1_000_000));
        drop(rest);
        assert!(unsent.upgrade().is_none());
        assert_eq!(room.memory.free(Consumer::Answers), all);
    }

    #[tokio::test]
    async fn what_was_carried_out_is_answered_without_memory_too() {
        let room = room();
        let mut held = Vec::new();
        while let Some(hold) = room.memory.try_take(Consumer::Answers, MIB) {
            held.push(hold);
        }
        let mut answer = Bytes::from(vec![7; 4_000_000]);
        assert!(room.hold(&mut answer, Carrier::Connection, None, true).await.is_err());
        let sent = room.hold(&mut answer, Carrier::Connection, None, false).await.expect("it is answered");
        assert!(sent.0.is_some_and(|unsent| unsent.upgrade().is_some()));
        assert_eq!(answer.len(), 4_000_000);
        drop(answer);
        room.few_unplaced().await.expect("nothing is without memory");
    }

    /// When their answers are there it is too late.
    #[tokio::test]
    async fn what_cannot_be_refused_has_room_for_its_answer_before_it_is_carried_out() {
        let room = room();
        let answers = room.memory.shares().answers;
        let mut written = Vec::new();
        let refused = loop {
            match room.written().await {
                Ok(one) => written.push(one),
                Err(refusal) => break refusal,
            }
        };
        assert!(matches!(refused, Error { kind: ErrorKind::Overloaded, .. }));
        let most = (answers + answers / UNPLACED_PART).max(answers + ITEM_ANSWER_BYTES_MAX);
        let count = written.len() as u64;
        assert!(count >= 3 && count * ITEM_ANSWER_BYTES_MAX <= most, "{count} of {answers} bytes");
        // Those that turn out small give it back, and those that do not hold it until they are sent.
        let mut small = Bytes::from_static(b"small");
        let mut large = Bytes::from(vec![7; 1_500_000]);
        for one in written {
            let held = room.hold_written(&mut small, Carrier::Connection, one).await;
            assert!(held.expect("an answer").0.is_none());
        }
        assert_eq!(
            (room.memory.free(Consumer::Answers), room.unplaced.load(Ordering::Relaxed)),
            (answers, 0)
        );
        let all = room.memory.try_take(Consumer::Answers, answers);
        let without = room.written().await.expect("one goes on without");
        room.hold_written(&mut large, Carrier::Connection, without).await.expect("an answer");
        assert_eq!(room.unplaced.load(Ordering::Relaxed), 1_500_000);
        drop((large, all));
        assert_eq!(room.unplaced.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn long_heads_of_many_streams_are_bounded() {
        let room = room();
        let mut heads = Vec::new();
        while let Ok(head) = room.head(60_000, Carrier::Stream) {
            heads.push(head);
        }
        let held = heads.len() as u64 * 60_000;
        assert!(held > 0 && held <= room.memory.shares().bodies / HEADS_PART, "{held} bytes");
        // Who has a connection to himself is not concerned, and neither are usual heads.
        assert!(room.head(60_000, Carrier::Connection).is_ok());
        assert!(room.head(HEAD_UNCOUNTED_BYTES, Carrier::Stream).is_ok());
        heads.pop();
        assert!(room.head(60_000, Carrier::Stream).is_ok());
    }
}
