//! Transactional batches: operations on one logical partition that happen together or not at all.

use std::sync::Arc;

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use orrery_cluster::store::Op;
use orrery_cluster::{Container, Error, ErrorKind, Receipt, WriteReply};

use crate::call::Call;
use crate::errors::Refusal;
use crate::items::batch_body::{BatchBody, Form};
use crate::items::batch_reply::OpResult;
use crate::items::render::Renderer;
use crate::items::shape::Shape;
use crate::items::{batch_reply, batch_rows, key, options};
use crate::respond::Reply;

pub(crate) async fn run(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let batch = BatchBody::parse(body)?;
    let (form, operations) = (batch.form(), batch.operations()?);
    let shape = Shape::of(container);
    let key = key::of_request(shape.key, call.headers.partition_key)?;
    let mut ops: Vec<Op> = Vec::with_capacity(operations.len());
    for operation in &operations {
        call.grant.check(operation.kind.act(), &key)?;
        match operation.check_key(shape.key, &key).and_then(|()| operation.to_op(&shape, &key)) {
            Ok(op) => ops.push(op),
            Err(refusal) => return Ok(failed(container, form, operations.len(), ops.len(), &refusal)),
        }
    }
    let options = options::write(call.headers, call.db.account().consistency)?;
    let WriteReply { outcomes, charges, receipt } = match call.db.write(container, &key, ops, &options).await
    {
        Ok(reply) => reply,
        Err(Error { kind: kind @ ErrorKind::Op { place, .. }, receipt }) => {
            let refusal = Refusal::Db(Error { kind, receipt });
            return Ok(failed(container, form, operations.len(), place, &refusal));
        }
        Err(error) => return Err(error.into()),
    };
    let is_minimal = |place: usize| call.headers.minimal_response || operations[place].is_minimal;
    let results = outcomes.into_iter().zip(&charges).enumerate();
    let results =
        results.map(|(place, (outcome, charge))| OpResult::done(outcome, charge, is_minimal(place)));
    Ok(answer(container, form, results.collect(), receipt))
}

/// Nothing happened: the operation at `place` says why, and all others depend on it.
fn failed(container: &Arc<Container>, form: Form, count: usize, place: usize, refusal: &Refusal) -> Reply {
    let result = |i: usize| if i == place { OpResult::refused(refusal) } else { OpResult::dependent() };
    answer(container, form, (0..count).map(result).collect(), refusal.receipt().cloned().unwrap_or_default())
}

/// The answer to any batch, in the form in which it was asked.
pub(crate) fn answer(
    container: &Arc<Container>,
    form: Form,
    mut results: Vec<OpResult>,
    receipt: Receipt,
) -> Reply {
    batch_reply::limit(&mut results);
    let status = batch_reply::status(&results);
    let renderer = Renderer::new(container);
    let reply = match form {
        Form::Json => Reply::new(status, batch_reply::render(renderer, &results)),
        Form::HybridRow => Reply::new(status, batch_rows::render(renderer, &results))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
    };
    reply.receipt(receipt).in_container(container)
}
