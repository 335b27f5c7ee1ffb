//! Transactional batches: operations on one logical partition that happen together or not at all.

use std::sync::Arc;

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use orrery_cluster::store::{Op, OpError};
use orrery_cluster::{Charge, Container, ErrorKind, Failure, Receipt, WriteReply};
use orrery_doc::PartitionKey;

use crate::call::Call;
use crate::errors::Refusal;
use crate::items::batch_body::{BatchBody, Form};
use crate::items::batch_reply::OpResult;
use crate::items::operation::Operation;
use crate::items::render::Renderer;
use crate::items::shape::Shape;
use crate::items::{batch_reply, batch_rows, key, options};
use crate::respond::{Owner, Reply};

pub(crate) async fn run(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let batch = BatchBody::parse(body)?;
    let (form, operations) = (batch.form(), batch.operations()?);
    let shape = Shape::of(container);
    let key = key::of_request(shape.key, call.headers.partition_key)?;
    let (ops, wrong) = plan(call, &shape, &key, &operations)?;
    let level = options::consistency(call.headers, call.db.account().consistency)?;
    let options = options::write(call.headers, level)?;
    let done = call.db.write_together(container, &key, ops, &options).await;
    let WriteReply { outcomes, charges, receipt } = match done {
        Ok(reply) => reply,
        Err(failure) if failure.error.kind.place().is_some() => {
            let (results, receipt) = failed(operations.len(), *failure, wrong);
            // Clients see by the missing owner that nothing was done.
            return Ok(Reply { owner: Owner::None, ..answer(container, form, results, receipt) });
        }
        Err(failure) => return Err(failure.error.into()),
    };
    let wants_minimal = call.headers.minimal_response && form.heeds_the_request();
    let results = outcomes.into_iter().zip(&charges).zip(&operations).map(|((outcome, charge), asked)| {
        OpResult::done(outcome, charge, asked.is_minimal.unwrap_or(wants_minimal))
    });
    Ok(answer(container, form, results.collect(), receipt))
}

/// What the database is to do. An operation that is wrong in itself ends the list, since nothing behind it is tried: it is
/// refused when its turn comes, and then the refusal says why.
fn plan(
    call: &Call<'_>,
    shape: &Shape<'_>,
    key: &PartitionKey,
    operations: &[Operation<'_>],
) -> Result<(Vec<Op>, Option<Refusal>), Refusal> {
    let mut ops = Vec::with_capacity(operations.len());
    for operation in operations {
        call.grant.check(operation.kind.act(), key)?;
        match operation.check_key(shape.key, key).and_then(|()| operation.to_op(shape, key)) {
            Ok(op) => ops.push(op),
            Err(refusal) => {
                ops.push(operation.wrong(&refusal));
                return Ok((ops, Some(refusal)));
            }
        }
    }
    Ok((ops, None))
}

/// Nothing happened: one operation says why, and all others depend on it. What was tried is charged.
fn failed(count: usize, failure: Failure, wrong: Option<Refusal>) -> (Vec<OpResult>, Receipt) {
    let Failure { mut error, charges } = failure;
    let receipt = error.receipt.take();
    let place = match &error.kind {
        // It is the answer of all that has no room, and the last operation tells it.
        ErrorKind::Op { error: OpError::AnswerTooLarge, .. } => count.saturating_sub(1),
        kind => kind.place().unwrap_or(0),
    };
    let refusal = wrong.filter(|_| error.is_wrong_op()).unwrap_or(Refusal::Db(error));
    let result = |i: usize| {
        let told = if i == place { OpResult::refused(&refusal) } else { OpResult::dependent() };
        told.charged(charges.get(i).map_or(0.0, Charge::total))
    };
    ((0..count).map(result).collect(), receipt.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use orrery_cluster::Error;
    use orrery_cluster::store::Fault;

    use super::*;

    #[test]
    fn a_fault_at_one_operation_of_a_batch_is_told_there() {
        let fault = Fault::TooMuchMemory { bytes: 9, most: 8 };
        let error = Error::from(ErrorKind::Fault { place: 1, fault });
        let (results, _) = failed(3, Failure { error, charges: Vec::new() }, None);
        let statuses: Vec<u16> = results.iter().map(|result| result.status.as_u16()).collect();
        assert_eq!(statuses, [424, 413, 424]);
    }
}
