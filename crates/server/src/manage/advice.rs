//! Which partition key a container should have: its own items as the sample, a workload from the request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use orrery_advisor::limits::{CENSUS_HASHES_MAX, SAMPLE_BYTES_MAX, SAMPLE_ITEMS_MAX, SEED};
use orrery_advisor::{AdviceError, Census, Chance, Existing, Inquiry, Settings, Workload};
use orrery_cluster::store::{Item, ItemId};
use orrery_cluster::{Consumer, Container, Db};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinError;

use super::call::{Answer, Call, bad_request};
use super::workload::throughput_of;
use crate::advise::{Format, render, today};

/// Questions that are worked on at once: each keeps a core busy.
static AT_ONCE: Semaphore = Semaphore::const_new(1);
/// How long one question may be worked on, and how much of that all items may be looked at.
const WORK_TIME_MAX: Duration = Duration::from_secs(60);
const CENSUS_TIME_MAX: Duration = Duration::from_secs(30);
/// A question takes one part in so many of the share of all queries, as long as that is of use, and waits for it.
const QUERIES_PART: u64 = 4;
const MEMORY_PATIENCE: Duration = Duration::from_secs(5);
/// What sampled items take, as values whose members are found by name, for each byte of their text; and what a hash takes
/// whose table has just grown.
const BYTES_PER_SAMPLED: u64 = 4;
const BYTES_PER_HASH: u64 = 32;

/// What a question may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Means {
    bytes: u64,
    sample_bytes: usize,
    hashes: usize,
}

impl Means {
    /// Half for the sample and half for the look at all items, where the share of all queries has so many bytes.
    fn of(queries: u64) -> Means {
        let useful = |count: usize, each: u64| count as u64 * each;
        let (sample, hashes) =
            (useful(SAMPLE_BYTES_MAX, BYTES_PER_SAMPLED), useful(CENSUS_HASHES_MAX, BYTES_PER_HASH));
        let half = queries / QUERIES_PART / 2;
        let (sample, hashes) = (half.min(sample), half.min(hashes));
        Means {
            bytes: sample + hashes,
            sample_bytes: (sample / BYTES_PER_SAMPLED) as usize,
            hashes: (hashes / BYTES_PER_HASH) as usize,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    workload: Workload,
    #[serde(default)]
    candidates: Vec<String>,
    /// Items to take from the container.
    #[serde(default = "sample_default")]
    sample: usize,
    partitions: Option<u32>,
    #[serde(default)]
    format: Format,
}

fn sample_default() -> usize {
    SAMPLE_ITEMS_MAX
}

pub async fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::POST])?;
    let question: Question = call.json()?;
    let turn = AT_ONCE.try_acquire().map_err(|_| {
        let message = "Another question is being worked on; ask again in a few seconds.";
        Denial::new(StatusCode::TOO_MANY_REQUESTS, message)
    })?;
    let format = question.format;
    let memory = call.db.memory();
    let means = Means::of(memory.shares().queries);
    let held = memory.take(Consumer::Queries, means.bytes, MEMORY_PATIENCE).await.ok_or_else(|| {
        let message = "Other queries have the memory that this question needs; ask again in a few seconds.";
        Denial::new(StatusCode::TOO_MANY_REQUESTS, message)
    })?;
    let subject = Subject { db: call.db.clone(), container: container.clone(), means };
    let work = move || {
        let _held = held;
        subject.answer(question)
    };
    let text = work_aside(turn, work).await.map_err(|_| broken())??;
    Ok(match format {
        Format::Html => Answer::html(text),
        Format::Table => Answer { kind: "text/plain; charset=utf-8", ..Answer::html(text) },
        Format::Json => Answer { kind: "application/json", ..Answer::html(text) },
    })
}

/// The container that a question is about.
struct Subject {
    db: Db,
    container: Arc<Container>,
    means: Means,
}

impl Subject {
    fn answer(&self, question: Question) -> Result<String, Denial> {
        let begun = Instant::now();
        let mut workload = question.workload;
        let limits = self.db.options().limits;
        self.existing().complete(&mut workload, &limits);
        let settings = Settings {
            today: today(),
            partitions: question.partitions,
            candidates: question.candidates,
            limits,
            deadline: Some(begun + WORK_TIME_MAX),
        };
        let is_sampled = workload.items.fields.is_empty();
        let sample = if is_sampled { self.sample(question.sample)? } else { Vec::new() };
        let inquiry = Inquiry::new(&workload, &sample, &settings).map_err(refuse)?;
        let until = begun + CENSUS_TIME_MAX;
        let census = is_sampled.then(|| self.census(&inquiry, until)).transpose()?;
        let report = inquiry.answer(census).map_err(refuse)?;
        render(&report, question.format).map_err(|_| broken())
    }

    fn existing(&self) -> Existing {
        Existing {
            items: self.container.usage().items,
            partitions: self.container.ranges().len() as u32,
            throughput: throughput_of(&self.db, &self.container),
        }
    }

    fn sample(&self, wanted: usize) -> Result<Vec<Value>, Denial> {
        let mut chance = Chance::new(SEED);
        let wanted = wanted.clamp(1, SAMPLE_ITEMS_MAX);
        let mut below = |n: u64| chance.below(n);
        let items = self.db.sample(&self.container, wanted, self.means.sample_bytes, &mut below)?;
        Ok(items.iter().map(json).collect())
    }

    fn census(&self, inquiry: &Inquiry<'_>, until: Instant) -> Result<Census, Denial> {
        let mut census = inquiry.census(self.container.definition.unique_keys().paths().to_vec());
        census.hold_at_most(self.means.hashes);
        let all = self.db.visit_ids(&self.container, until, |id| census.note_id(id.as_bytes()))?;
        census.end_of_ids(all);
        let look = |id: &ItemId, item: &Item| census.look_at(id.as_bytes(), item.root());
        let all = self.db.visit_items(&self.container, until, look)?;
        census.end_of_items(all);
        Ok(census)
    }
}

/// Computes for seconds if it is asked to; that must not hold up those who serve requests. The turn belongs to the
/// work and not to the request: the work goes on when the client goes away.
async fn work_aside<T: Send + 'static>(
    turn: SemaphorePermit<'static>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let work = move || {
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await
}

/// An item as clients see it, as far as the advisor looks.
pub(super) fn json(item: &Item) -> Value {
    let mut text = Vec::with_capacity(item.header.json_bytes as usize);
    orrery_doc::json::write(item.root().root(), &mut text);
    let mut value: Value = serde_json::from_slice(&text).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.insert("_ts".to_owned(), item.header.ts().into());
    }
    value
}

fn refuse(error: AdviceError) -> Denial {
    bad_request(format!("{error}."))
}

fn broken() -> Denial {
    Denial::new(StatusCode::INTERNAL_SERVER_ERROR, "The advice could not be computed.")
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_question_takes_a_part_of_what_queries_have() {
        const MIB: u64 = 1 << 20;
        for queries in [15 * MIB, 27 * MIB, 126 * MIB, 2048 * MIB] {
            let Means { bytes, sample_bytes, hashes } = Means::of(queries);
            assert!(bytes <= queries / QUERIES_PART);
            let held = sample_bytes as u64 * BYTES_PER_SAMPLED + hashes as u64 * BYTES_PER_HASH;
            assert!(held <= bytes && hashes > 50_000, "{queries}: {sample_bytes} bytes and {hashes} hashes");
        }
        let much = Means::of(8192 * MIB);
        assert_eq!((much.sample_bytes, much.hashes), (SAMPLE_BYTES_MAX, CENSUS_HASHES_MAX));
    }

    #[tokio::test]
    async fn a_question_keeps_its_turn_when_whoever_asked_goes_away() {
        static TURNS: Semaphore = Semaphore::const_new(1);
        let (begin, begun) = oneshot::channel();
        let (end, ended) = mpsc::channel::<()>();
        {
            let turn = TURNS.try_acquire().expect("nobody else asks");
            let work = move || {
                let _ = begin.send(());
                let _ = ended.recv();
            };
            let mut question = pin!(work_aside(turn, work));
            tokio::select! {
                _ = &mut question => panic!("the work cannot be done yet"),
                begun = begun => begun.expect("the work has begun"),
            }
        }
        assert!(TURNS.try_acquire().is_err(), "the work goes on, so nobody else has a turn");
        drop(end);
        drop(TURNS.acquire().await.expect("the turn comes back when the work is done"));
    }
}
