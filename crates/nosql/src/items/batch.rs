//! Transactional batches: operations on one logical partition that happen together or not at all.

use std::sync::Arc;

use orrery_cluster::store::Op;
use orrery_cluster::{Container, Error, ErrorKind, Receipt, WriteReply};

use crate::call::Call;
use crate::errors::Refusal;
use crate::items::batch_reply::OpResult;
use crate::items::render::Renderer;
use crate::items::shape::Shape;
use crate::items::{batch_body, batch_reply, key, options};
use crate::respond::Reply;

pub(crate) async fn run(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let doc = batch_body::parse(body)?;
    let operations = batch_body::operations(&doc)?;
    let shape = Shape::of(container);
    let key = key::of_request(shape.key, call.headers.partition_key)?;
    let mut ops: Vec<Op> = Vec::with_capacity(operations.len());
    for operation in &operations {
        call.grant.check(operation.kind.act(), &key)?;
        match operation.to_op(&shape, &key) {
            Ok(op) => ops.push(op),
            Err(refusal) => return Ok(failed(container, operations.len(), ops.len(), &refusal)),
        }
    }
    let options = options::write(call.headers, call.db.account().consistency)?;
    let WriteReply { outcomes, charges, receipt } = match call.db.write(container, &key, ops, &options).await
    {
        Ok(reply) => reply,
        Err(Error { kind: kind @ ErrorKind::Op { place, .. }, receipt }) => {
            return Ok(failed(container, operations.len(), place, &Refusal::Db(Error { kind, receipt })));
        }
        Err(error) => return Err(error.into()),
    };
    let is_minimal = |place: usize| call.headers.minimal_response || operations[place].is_minimal;
    let results = outcomes.into_iter().zip(&charges).enumerate();
    let results =
        results.map(|(place, (outcome, charge))| OpResult::done(outcome, charge, is_minimal(place)));
    Ok(answer(container, results.collect(), receipt))
}

/// Nothing happened: the operation at `place` says why, and all others depend on it.
fn failed(container: &Arc<Container>, count: usize, place: usize, refusal: &Refusal) -> Reply {
    let result = |i: usize| if i == place { OpResult::refused(refusal) } else { OpResult::dependent() };
    answer(container, (0..count).map(result).collect(), refusal.receipt().cloned().unwrap_or_default())
}

/// The answer to any batch.
pub(crate) fn answer(container: &Arc<Container>, mut results: Vec<OpResult>, receipt: Receipt) -> Reply {
    batch_reply::limit(&mut results);
    let body = batch_reply::render(Renderer::new(container), &results);
    Reply::new(batch_reply::status(&results), body).receipt(receipt).in_container(container)
}
