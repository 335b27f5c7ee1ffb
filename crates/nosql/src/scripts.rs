//! Running stored procedures, and triggers around writes.

mod forms;
mod links;
mod system;
mod tables_batch;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use orrery_cluster::limits::SCRIPT_LOG_HEADER_BYTES_MAX;
use orrery_cluster::store::{Effect, Op};
use orrery_cluster::{ChildKind, Container, ScriptOptions, TriggerNames};
use orrery_doc::PartitionKey;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::address::ContainerAddress;
use crate::call::Call;
use crate::children::{self, Branch};
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::items::version::Version;
use crate::items::{check_intended, key, point};
use crate::respond::Reply;

/// What a script wrote to its console goes into a header, so that all but these characters are encoded.
const LOG_ENCODED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// One script: a resource like others, but that a procedure can be run.
pub(crate) async fn one(
    call: &Call<'_>,
    branch: &Branch,
    address: &ContainerAddress,
    text: &str,
    body: Bytes,
) -> Result<Reply, Refusal> {
    match branch.kind == ChildKind::Procedure && *call.trace.method == Method::POST {
        true => execute(call, branch, &address.container, text, body).await,
        false => children::one(call, branch, text, body).await,
    }
}

/// Runs a procedure. The body is the list of its arguments, as `Function.apply` takes it.
async fn execute(
    call: &Call<'_>,
    branch: &Branch,
    container: &Arc<Container>,
    text: &str,
    body: Bytes,
) -> Result<Reply, Refusal> {
    check_intended(call, container)?;
    let Some(procedure) = branch.find(call.catalog, text) else {
        let procedure = system::find(text).filter(|_| !branch.by_rid).ok_or(Own::NotFound)?;
        return system::execute(call, procedure, container, &body).await;
    };
    let key = key::of_request(&container.definition.key, key::named(&container.definition, call.headers))?;
    let done = call.db.execute(container, &procedure, &key, body.to_vec(), &options(call)).await?;
    let reply = Reply::ok(done.body.unwrap_or_default()).receipt(done.receipt).in_container(container);
    Ok(with_log(call, reply, &done.log))
}

/// The triggers that a write names.
pub(crate) fn triggers(call: &Call<'_>) -> TriggerNames {
    let list = |header: Option<&str>| -> Vec<String> {
        let names = header.into_iter().flat_map(|text| text.split(','));
        names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    TriggerNames { pre: list(call.headers.pre_triggers), post: list(call.headers.post_triggers) }
}

/// Writes an item with its triggers, in one transaction.
pub(crate) async fn write(
    call: &Call<'_>,
    container: &Arc<Container>,
    key: &PartitionKey,
    op: Op,
    triggers: &TriggerNames,
) -> Result<Reply, Refusal> {
    let done = call.db.write_with_triggers(container, key, op, triggers, &options(call)).await?;
    let (effect, etag) = (done.outcome.effect, Version::of(container, &done.outcome.item.header));
    let status = point::status(effect);
    let reply = match (effect, done.body) {
        (_, Some(body)) if !call.headers.minimal_response && status != StatusCode::NO_CONTENT => {
            Reply::new(status, body).etag(etag)
        }
        (Effect::Deleted, _) => Reply::empty(status),
        _ if call.headers.minimal_response => Reply::empty(status).etag(etag),
        _ => Reply::new(status, point::shown(call, container, &done.outcome.item)).etag(etag),
    };
    Ok(with_log(call, reply.receipt(done.receipt).in_container(container), &done.log))
}

fn options(call: &Call<'_>) -> ScriptOptions {
    ScriptOptions { forms: forms::shared(), logging: call.headers.script_logging }
}

fn with_log(call: &Call<'_>, reply: Reply, log: &str) -> Reply {
    if !call.headers.script_logging {
        return reply;
    }
    let name: HeaderName = names::SCRIPT_LOG_RESULTS;
    reply.header(name, HeaderValue::from_str(&encoded(log)).expect("what is percent-encoded is ASCII"))
}

/// As much of the beginning of a log as fits into a header, in whole characters.
fn encoded(log: &str) -> String {
    let mut text = String::new();
    for (start, letter) in log.char_indices() {
        let before = text.len();
        text.extend(utf8_percent_encode(&log[start..start + letter.len_utf8()], &LOG_ENCODED));
        if text.len() > SCRIPT_LOG_HEADER_BYTES_MAX {
            text.truncate(before);
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_cut_where_their_header_would_be_too_long_for_clients() {
        assert_eq!(encoded("made 10"), "made%2010");
        for letter in ["x", " ", "é", "€", "😀"] {
            let each = encoded(letter).len();
            let cut = encoded(&letter.repeat(16 * 1024));
            assert_eq!(cut.len(), SCRIPT_LOG_HEADER_BYTES_MAX / each * each, "{letter}");
        }
    }
}
