//! Which partition key a container should have: its own items as the sample, a workload from the request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use orrery_advisor::limits::{SAMPLE_BYTES_MAX, SAMPLE_ITEMS_MAX};
use orrery_advisor::{AdviceError, Settings, Workload};
use orrery_cluster::limits::PAGE_BYTES_MAX;
use orrery_cluster::store::{FeedCursor, Item, Lsn};
use orrery_cluster::{AccessChoice, ChangesFrom, Consistency, Container, PageOptions, Scope};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinError;

use super::call::{Answer, Call, bad_request};
use crate::advise::{Format, render, sampling, today};

/// Questions that are worked on at once: each keeps a core busy.
static AT_ONCE: Semaphore = Semaphore::const_new(1);
/// How long one question may be worked on.
const WORK_TIME_MAX: Duration = Duration::from_secs(60);
/// How long one place of the feed may be looked at.
const PAGE_TIME_MAX: Duration = Duration::from_secs(1);

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
    sampling::ITEMS_DEFAULT
}

pub async fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::POST])?;
    let question: Question = call.json()?;
    let turn = AT_ONCE.try_acquire().map_err(|_| {
        let message = "Another question is being worked on; ask again in a few seconds.";
        Denial::new(StatusCode::TOO_MANY_REQUESTS, message)
    })?;
    let format = question.format;
    let mut workload = question.workload;
    let sample = match workload.items.fields.is_empty() {
        true => take_sample(call, container, question.sample.clamp(1, SAMPLE_ITEMS_MAX)).await?,
        false => Vec::new(),
    };
    let usage = container.usage();
    workload.items.stored.get_or_insert(usage.items as f64);
    let settings = Settings {
        today: today(),
        partitions: question.partitions,
        candidates: question.candidates,
        limits: call.db.options().limits,
        deadline: Some(Instant::now() + WORK_TIME_MAX),
    };
    let work = move || orrery_advisor::advise(&workload, &sample, &settings);
    let report = work_aside(turn, work).await.map_err(|_| broken())?.map_err(refuse)?;
    let text = render(&report, format).map_err(|_| broken())?;
    Ok(match format {
        Format::Html => Answer::html(text),
        Format::Table => Answer { kind: "text/plain; charset=utf-8", ..Answer::html(text) },
        Format::Json => Answer { kind: "application/json", ..Answer::html(text) },
    })
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

async fn take_sample(
    call: &Call<'_>,
    container: &Arc<Container>,
    wanted: usize,
) -> Result<Vec<Value>, Denial> {
    let ranges: Vec<u32> = container.ranges().iter().map(|range| range.id).collect();
    let each = wanted.div_ceil(ranges.len().max(1));
    let page = PageOptions {
        items_max: each.min(sampling::PAGE_ITEMS),
        bytes_max: PAGE_BYTES_MAX,
        time_max: PAGE_TIME_MAX,
        continuation: None,
        consistency: Consistency::Session,
        session: None,
        access: AccessChoice::Auto,
        properties: None,
        order: Default::default(),
    };
    let (mut items, mut bytes) = (Vec::new(), 0);
    for range_id in ranges {
        let scope = Scope::Range { range_id, epk: None };
        let now = call.db.changes(container, &scope, ChangesFrom::Now, &page).await?;
        let mut walk = sampling::Walk::over(now.seen.lsn.0, each);
        while let Some(after) = walk.next_place() {
            let from = ChangesFrom::After(FeedCursor::after(Lsn(after)));
            let found = call.db.changes(container, &scope, from, &page).await?;
            walk.came_to(found.seen.lsn.0);
            for item in &found.changes {
                bytes += item.header.json_bytes as usize;
                if bytes > SAMPLE_BYTES_MAX || items.len() == wanted {
                    return Ok(items);
                }
                items.push(json(item));
            }
        }
    }
    Ok(items)
}

/// An item as clients see it, as far as the advisor looks.
fn json(item: &Item) -> Value {
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
