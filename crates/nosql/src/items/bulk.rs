//! Bulk: a batch whose operations stand alone, all sent to one physical partition.
//!
//! Each operation brings its own partition key and is a transaction of its own. Operations on one item keep their
//! order; others run side by side, so that one group commit takes many of them. The number that may run at
//! once is bounded, however many items a request names.
//!
//! A client that asks to stop at the first failure gets its operations one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_cluster::store::{Action, Effect, ItemId, Op, Outcome, Target};
use orrery_cluster::{Charge, Container, Db, ErrorKind, ReadOptions, Receipt, Served, WriteOptions};
use orrery_doc::{PartitionKey, epk};
use tokio::task::JoinSet;

use crate::call::Call;
use crate::errors::Refusal;
use crate::items::batch_body::BatchBody;
use crate::items::batch_reply::{AnswerRoom, OpResult};
use crate::items::operation::Operation;
use crate::items::shape::Shape;
use crate::items::{batch, options, scope};
use crate::respond::Reply;

/// Operations of one request that run at once.
const LANES: usize = 32;

/// An operation that may run: which one it is, where it goes, and what it does.
struct Task {
    place: usize,
    key: PartitionKey,
    op: Op,
    is_minimal: bool,
    /// Why the operation is wrong in itself, if it is.
    wrong: Option<Refusal>,
}

/// An operation that has run, and what its partition said about itself.
struct Done {
    place: usize,
    result: OpResult,
    charge: Charge,
    served: Option<Served>,
}

/// What all operations of a request share.
#[derive(Clone)]
struct Shared {
    db: Db,
    container: Arc<Container>,
    read: ReadOptions,
    write: WriteOptions,
    room: Arc<AnswerRoom>,
}

pub(crate) async fn run(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let batch = BatchBody::parse(body)?;
    let operations = batch.operations()?;
    let range = range(call, container)?;
    let shape = Shape::of(container);
    let account = call.db.account().consistency;
    let shared = Shared {
        db: call.db.clone(),
        container: container.clone(),
        read: options::read(call.headers, account)?,
        write: options::write(call.headers, account)?,
        room: Arc::new(AnswerRoom::new()),
    };
    let mut results: Vec<Option<OpResult>> = vec![None; operations.len()];
    let mut tasks = Vec::with_capacity(operations.len());
    let wants_minimal = call.headers.minimal_response && batch.form().heeds_the_request();
    for numbered in operations.iter().enumerate() {
        match task(call, &shape, range.as_ref(), wants_minimal, numbered) {
            Ok(task) => tasks.push(task),
            Err(refusal) => results[numbered.0] = Some(OpResult::refused(&refusal)),
        }
    }
    let done = match call.headers.batch_continue_on_error {
        true => side_by_side(&shared, tasks).await,
        false => one_by_one(&shared, tasks, &results).await,
    };
    let mut receipt = Receipt::default();
    for done in done {
        receipt.charge.merge(done.charge);
        receipt.served = furthest(receipt.served, done.served);
        results[done.place] = Some(done.result);
    }
    let results = results.into_iter().map(|result| result.unwrap_or_else(OpResult::dependent));
    Ok(batch::answer(container, batch.form(), results.collect(), receipt))
}

/// The part of the key space that the request was sent to; all of it when the client names none.
pub(crate) fn range(call: &Call<'_>, container: &Container) -> Result<Option<orrery_doc::EpkRange>, Refusal> {
    let Some(text) = call.headers.range_id else { return Ok(None) };
    let id = scope::range_id(text)?;
    match container.ranges().into_iter().find(|range| range.id == id) {
        Some(range) => Ok(Some(range.range)),
        None => Err(ErrorKind::RangeGone.into()),
    }
}

fn task(
    call: &Call<'_>,
    shape: &Shape<'_>,
    range: Option<&orrery_doc::EpkRange>,
    wants_minimal: bool,
    (place, operation): (usize, &Operation<'_>),
) -> Result<Task, Refusal> {
    let key = operation.key(shape.key)?;
    if range.is_some_and(|range| !range.contains(&epk(shape.key, &key))) {
        return Err(ErrorKind::RangeGone.into());
    }
    call.grant.check(operation.kind.act(), &key)?;
    let is_minimal = operation.is_minimal.unwrap_or(wants_minimal);
    Ok(match operation.to_op(shape, &key) {
        Ok(op) => Task { place, key, op, is_minimal, wrong: None },
        Err(refusal) => {
            let op = operation.wrong(&refusal);
            Task { place, key, op, is_minimal, wrong: Some(refusal) }
        }
    })
}

/// Runs operations on different items at once, and those on one item in order.
async fn side_by_side(shared: &Shared, tasks: Vec<Task>) -> Vec<Done> {
    let mut lanes: Vec<Vec<Task>> = Vec::new();
    let mut lane_of: HashMap<(String, Target), usize> = HashMap::new();
    for (next, task) in tasks.into_iter().enumerate() {
        let item = (task.key.to_json(), task.op.target.clone());
        let lane = *lane_of.entry(item).or_insert(next % LANES);
        if lanes.len() <= lane {
            lanes.resize_with(lane + 1, Vec::new);
        }
        lanes[lane].push(task);
    }
    let mut running = JoinSet::new();
    for lane in lanes.into_iter().filter(|lane| !lane.is_empty()) {
        let shared = shared.clone();
        running.spawn(async move {
            let mut done = Vec::with_capacity(lane.len());
            for task in lane {
                done.push(perform(&shared, task).await);
            }
            done
        });
    }
    let mut done = Vec::new();
    while let Some(lane) = running.join_next().await {
        // A lane can only fail by a bug; its operations are then reported as not done.
        done.extend(lane.unwrap_or_default());
    }
    done
}

/// Runs operations in order up to the first failure, those included that were refused before they could run.
async fn one_by_one(shared: &Shared, tasks: Vec<Task>, refused: &[Option<OpResult>]) -> Vec<Done> {
    let stop = refused.iter().position(Option::is_some).unwrap_or(refused.len());
    let mut done = Vec::with_capacity(tasks.len());
    for task in tasks.into_iter().take_while(|task| task.place < stop) {
        let one = perform(shared, task).await;
        let is_failure = one.result.is_failure();
        done.push(one);
        if is_failure {
            break;
        }
    }
    done
}

async fn perform(shared: &Shared, task: Task) -> Done {
    let Task { place, key, op, is_minimal, wrong } = task;
    let tried = match op.action {
        Action::Read => read(shared, &key, op).await,
        _ => write(shared, &key, op).await,
    };
    match tried {
        Ok((outcome, receipt)) => {
            let mut result = OpResult::done(outcome, &receipt.charge, is_minimal);
            // Here and not when all is done: until then the items of all operations would be held.
            result.fit(&shared.room);
            Done { place, result, charge: receipt.charge, served: receipt.served }
        }
        Err(refusal) => {
            let receipt = refusal.receipt().cloned().unwrap_or_default();
            let is_wrong = matches!(&refusal, Refusal::Db(error) if error.is_wrong_op());
            let told = wrong.filter(|_| is_wrong).unwrap_or(refusal);
            let result = OpResult::refused(&told).charged(receipt.charge.total());
            Done { place, result, charge: receipt.charge, served: receipt.served }
        }
    }
}

async fn read(shared: &Shared, key: &PartitionKey, op: Op) -> Result<(Outcome, Receipt), Refusal> {
    let options = ReadOptions { precondition: op.precondition, ..shared.read.clone() };
    let reply = shared.db.read(&shared.container, key, &op.target, &options).await?;
    let effect = if reply.not_modified { Effect::NotModified } else { Effect::Read };
    let outcome = Outcome { effect, item: reply.item, id: ItemId::default(), meter: Default::default() };
    Ok((outcome, reply.receipt))
}

async fn write(shared: &Shared, key: &PartitionKey, op: Op) -> Result<(Outcome, Receipt), Refusal> {
    let mut reply = shared.db.write(&shared.container, key, vec![op], &shared.write).await?;
    let outcome = reply.outcomes.pop().ok_or(ErrorKind::Unsupported("A write without operations"))?;
    Ok((outcome, reply.receipt))
}

/// The newest state that any operation saw: the client's session goes on from there.
fn furthest(left: Option<Served>, right: Option<Served>) -> Option<Served> {
    match (left, right) {
        (Some(left), Some(right)) if left.lsn >= right.lsn => Some(left),
        (left, right) => right.or(left),
    }
}
