//! Answers to batches: 202 around the answers to their operations.

use http::StatusCode;
use orrery_cluster::store::Outcome;
use orrery_gateway::ActivityId;

use super::metadata_of;
use super::multipart::Part;
use crate::entity::{Change, Written};
use crate::errors::Refusal;
use crate::gateway::Call;
use crate::respond::Reply;

pub(super) fn of_success(
    call: &Call<'_>,
    parts: &[Part<'_>],
    changes: &[Change],
    outcomes: &[Outcome],
) -> Reply {
    let answers = parts.iter().zip(changes).zip(outcomes).map(|((part, change), outcome)| {
        let Change { table, kind, partition_key, row_key, .. } = change;
        let written = Written { table, kind: *kind, partition_key, row_key };
        let call = Call { metadata: metadata_of(call, part), ..*call };
        let reply = written.reply(&call, outcome, part.header("prefer"));
        one(&reply, part.header("content-id"))
    });
    whole(answers.collect(), true)
}

pub(super) fn of_read(part: &Part<'_>, reply: &Reply) -> Reply {
    let answer = one(reply, part.header("content-id"));
    whole(vec![answer], false).receipt(reply.receipt.clone())
}

/// One answer for all operations: why none of them happened.
pub(super) fn of_failure(
    call: &Call<'_>,
    refusal: &Refusal,
    place: Option<usize>,
    in_changeset: bool,
) -> Reply {
    let wire = refusal.wire();
    let body = wire.body(call.request.as_str(), place);
    let reply = Reply::new(wire.status, "application/json;odata=minimalmetadata", body);
    let whole = whole(vec![one(&reply, None)], in_changeset);
    match refusal.receipt() {
        Some(receipt) => whole.receipt(receipt.clone()),
        None => whole,
    }
}

/// An answer as a part of a message.
fn one(reply: &Reply, content_id: Option<&str>) -> Vec<u8> {
    let mut out = format!(
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 {} {}\r\n",
        reply.status.as_str(),
        reply.status.canonical_reason().unwrap_or_default()
    )
    .into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    };
    if let Some(id) = content_id {
        line("Content-ID", id.as_bytes());
    }
    line("Content-Type", reply.content_type.as_bytes());
    for (name, value) in &reply.headers {
        let name = match name.as_str() {
            "etag" => "ETag",
            "location" => "Location",
            "preference-applied" => "Preference-Applied",
            other => other,
        };
        line(name, value.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&reply.body);
    out.extend_from_slice(b"\r\n");
    out
}

/// All answers as one message, those to writes within a changeset.
fn whole(answers: Vec<Vec<u8>>, in_changeset: bool) -> Reply {
    let boundary = |kind: &str| format!("{kind}_{}", ActivityId::choose(None));
    let (batch, changeset) = (boundary("batchresponse"), boundary("changesetresponse"));
    let mut out = format!("--{batch}\r\n").into_bytes();
    if in_changeset {
        out.extend_from_slice(
            format!("Content-Type: multipart/mixed; boundary={changeset}\r\n\r\n").as_bytes(),
        );
        for answer in &answers {
            out.extend_from_slice(format!("--{changeset}\r\n").as_bytes());
            out.extend_from_slice(answer);
        }
        out.extend_from_slice(format!("--{changeset}--\r\n").as_bytes());
    } else {
        answers.iter().for_each(|answer| out.extend_from_slice(answer));
    }
    out.extend_from_slice(format!("--{batch}--\r\n").as_bytes());
    Reply::new(StatusCode::ACCEPTED, "multipart/mixed", out)
        .header(http::header::CONTENT_TYPE, &format!("multipart/mixed; boundary={batch}"))
}
