//! From an answer to its frame.
//!
//! Clients check consistency themselves, by the positions in each answer: an answer without them is repeated until time
//! is up. So every answer says how far its partition is, also one that says that something is wrong.

use bytes::Bytes;
use http::header::ETAG;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use orrery_cluster::store::Fault;
use orrery_cluster::{ErrorKind, Receipt};

use super::frame::Writer;
use super::place::Position;
use super::token::{Told, Welcome};
use crate::call::Trace;
use crate::errors::{Gone, Own, Refusal};
use crate::headers::{NEWEST_VERSION, names};
use crate::respond::{Reply, push_number};

/// An answer in two pieces: the second is often large, and belongs to the memory budget.
pub(crate) struct Framed {
    pub status: StatusCode,
    /// In request units.
    pub charge: f64,
    pub head: Vec<u8>,
    pub body: Bytes,
}

/// Which request is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addressee {
    pub activity: [u8; 16],
    pub transport: u32,
}

/// Writes an answer. `position` is asked where neither reply nor refusal says how far its partition is.
pub(crate) fn frame(
    to: Addressee,
    trace: &Trace<'_>,
    result: Result<Reply, Refusal>,
    position: impl FnOnce() -> Option<Position>,
) -> Framed {
    match result {
        Ok(reply) => answer(to, trace, reply, position),
        Err(refusal) => refuse(to, trace, &turned(refusal), position),
    }
}

/// A stopping server has done nothing of what it refuses, nor has one that does not lead the partition. The client may look for another,
/// which after a restart is this one.
fn turned(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Db(error) if is_elsewhere(&error.kind) => Own::Gone(Gone::Replica).into(),
        other => other,
    }
}

fn is_elsewhere(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::NoLead(_) | ErrorKind::Fault { fault: Fault::Stopping, .. })
}

fn answer(
    to: Addressee,
    trace: &Trace<'_>,
    reply: Reply,
    position: impl FnOnce() -> Option<Position>,
) -> Framed {
    let body = if *trace.method == Method::HEAD { Bytes::new() } else { reply.body };
    let mut out = begin(to, reply.status, !body.is_empty());
    if let Some(etag) = reply.etag {
        out.text(Told::Etag, std::str::from_utf8(&etag.to_text()).expect("an etag is ASCII"));
    }
    if let Some(count) = reply.item_count {
        out.number(Told::ItemCount, u32::try_from(count).unwrap_or(u32::MAX));
    }
    if let Some(continuation) = &reply.continuation {
        out.text(Told::ContinuationToken, continuation);
    }
    let mut scratch = String::with_capacity(128);
    if let Some(rid) = reply.owner.rid() {
        reply.owner.push_path(&mut scratch, String::push_str);
        out.text(Told::OwnerFullName, &scratch);
        out.text_by(Told::OwnerId, |out| out.extend_from_slice(rid.text().as_bytes()));
    }
    if let Some(usage) = &reply.usage {
        scratch.clear();
        usage.push(&mut scratch).expect("writing to a string cannot fail");
        out.text(Told::StorageResourceQuotaUsage, &scratch);
        out.text(Told::StorageMaxResourceQuota, usage.quota());
    }
    for (name, value) in &reply.extra {
        extra(&mut out, name, value);
    }
    let of_catalog = reply.catalog.map(|(lsn, item)| Position { range: None, lsn, item });
    let at = served(&reply.receipt).or(of_catalog).or_else(position);
    finish(out, trace, reply.status, &reply.receipt, at, body)
}

fn refuse(
    to: Addressee,
    trace: &Trace<'_>,
    refusal: &Refusal,
    position: impl FnOnce() -> Option<Position>,
) -> Framed {
    let wire = refusal.wire();
    let body = match *trace.method == Method::HEAD {
        true => Bytes::new(),
        false => Bytes::from(wire.body(trace.activity.as_str(), trace.path)),
    };
    let mut out = begin(to, wire.status, !body.is_empty());
    if wire.substatus != 0 {
        out.number(Told::SubStatus, wire.substatus);
    }
    if let Some(wait) = wire.retry_after_ms {
        out.number(Told::RetryAfterMilliseconds, wait);
    }
    let none = Receipt::default();
    let receipt = refusal.receipt().unwrap_or(&none);
    finish(out, trace, wire.status, receipt, served(receipt).or_else(position), body)
}

fn begin(to: Addressee, status: StatusCode, has_payload: bool) -> Writer {
    let mut out = Writer::new(status.as_u16(), &to.activity);
    out.byte(Told::PayloadPresent, u8::from(has_payload));
    out.number(Told::TransportRequestId, to.transport);
    out
}

fn served(receipt: &Receipt) -> Option<Position> {
    let served = receipt.served.as_ref()?;
    Some(Position { range: Some(served.range_id), lsn: served.lsn, item: served.item_lsn })
}

fn finish(
    mut out: Writer,
    trace: &Trace<'_>,
    status: StatusCode,
    receipt: &Receipt,
    at: Option<Position>,
    body: Bytes,
) -> Framed {
    let charge = receipt.charge.total();
    out.float(Told::RequestCharge, charge);
    out.float(Told::BackendRequestDurationMilliseconds, trace.started.elapsed().as_micros() as f64 / 1000.0);
    if let Some(at) = at {
        positions(&mut out, at);
    }
    let payload = (!body.is_empty()).then_some(body.len());
    Framed { status, charge, head: out.finish(payload), body }
}

/// How far a partition is that has one replica: as far as any quorum of it.
fn positions(out: &mut Writer, at: Position) {
    debug_assert!(at.lsn.0 > 0, "clients take 0 for a replica that knows nothing");
    for token in
        [Told::Lsn, Told::LocalLsn, Told::QuorumAckedLsn, Told::QuorumAckedLocalLsn, Told::GlobalCommittedLsn]
    {
        out.position(token, at.lsn.0);
    }
    if let Some(item) = at.item {
        out.position(Told::ItemLsn, item.0);
        out.position(Told::ItemLocalLsn, item.0);
    }
    let mut text = String::with_capacity(24);
    if let Some(range) = at.range {
        push_number(&mut text, u64::from(range));
        out.text(Told::PartitionKeyRangeId, &text);
        text.clear();
    }
    at.push_session(&mut text);
    out.text(Told::SessionToken, &text);
    out.number(Told::CurrentWriteQuorum, 1);
    out.number(Told::CurrentReplicaSetSize, 1);
    out.number(Told::NumberOfReadRegions, 0);
    out.number(Told::XpRole, 1);
}

/// What only some answers say, which is text in either front end. Names that direct mode has no token for stay unsaid.
fn extra(out: &mut Writer, name: &HeaderName, value: &HeaderValue) {
    let texts = [
        (ETAG, Told::Etag),
        (names::ALT_CONTENT_PATH, Told::OwnerFullName),
        (names::CONTENT_PATH, Told::OwnerId),
        (names::INDEX_METRICS, Told::IndexUtilization),
        (names::QUERY_ADVICE, Told::QueryAdvice),
        (names::QUERY_EXECUTION_INFO, Told::QueryExecutionInfo),
        (names::QUERY_METRICS, Told::QueryMetrics),
        (names::RESOURCE_QUOTA, Told::StorageMaxResourceQuota),
        (names::RESOURCE_USAGE, Told::StorageResourceQuotaUsage),
        (names::SCRIPT_LOG_RESULTS, Told::LogResults),
    ];
    if let Some((_, token)) = texts.iter().find(|(known, _)| known == name) {
        out.text_by(*token, |out| out.extend_from_slice(value.as_bytes()));
    } else if *name == names::KEY_DELETE_PENDING {
        out.byte(Told::PendingPkDelete, u8::from(value == "true"));
    } else if *name == names::INDEX_PROGRESS
        && let Some(progress) = value.to_str().ok().and_then(|text| text.parse().ok())
    {
        out.number(Told::CollectionUpdateProgress, progress);
    }
}

/// The answer to the first frame of a connection.
pub(crate) fn welcome(activity: &[u8; 16], version: &str, idle_seconds: u32, silent_seconds: u32) -> Vec<u8> {
    let mut out = Writer::new(StatusCode::OK.as_u16(), activity);
    out.number(Welcome::ProtocolVersion, PROTOCOL_VERSION);
    out.text(Welcome::ClientVersion, version);
    out.text(Welcome::ServerAgent, "Orrery");
    out.text(Welcome::ServerVersion, concat!("version=", env!("CARGO_PKG_VERSION")));
    out.number(Welcome::IdleTimeoutInSeconds, idle_seconds);
    out.number(Welcome::UnauthenticatedTimeoutInSeconds, silent_seconds);
    out.finish(None)
}

/// Refuses a connection, and says what is spoken here. The body always follows the tokens.
pub(crate) fn turn_away(activity: &[u8; 16], trace: &str, refusal: &Refusal) -> Vec<u8> {
    let wire = refusal.wire();
    let body = wire.body(trace, "/");
    let mut out = Writer::new(wire.status.as_u16(), activity);
    out.number(Welcome::ProtocolVersion, PROTOCOL_VERSION);
    out.text(Welcome::ClientVersion, NEWEST_VERSION);
    out.text(Welcome::ServerAgent, "Orrery");
    out.text(Welcome::ServerVersion, concat!("version=", env!("CARGO_PKG_VERSION")));
    let mut frame = out.finish(Some(body.len()));
    frame.extend_from_slice(&body);
    frame
}

/// The version of RNTBD itself. There is no other.
pub(crate) const PROTOCOL_VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// What an answer says by itself: of its partition, its rows and its charge.
    const TYPED: [HeaderName; 20] = [
        names::CONTINUATION,
        names::CURRENT_REPLICA_SET_SIZE,
        names::CURRENT_WRITE_QUORUM,
        names::GLOBAL_COMMITTED_LSN,
        names::ITEM_COUNT,
        names::ITEM_LLSN,
        names::ITEM_LSN,
        names::LLSN,
        names::LSN,
        names::NUMBER_OF_READ_REGIONS,
        names::QUORUM_ACKED_LLSN,
        names::QUORUM_ACKED_LSN,
        names::RANGE_ID,
        names::REQUEST_CHARGE,
        names::REQUEST_DURATION,
        names::RETRY_AFTER_MS,
        names::SESSION_TOKEN,
        names::SUBSTATUS,
        names::TRANSPORT_REQUEST_ID,
        names::XP_ROLE,
    ];
    /// What stays unsaid, and why.
    const UNSAID: [(HeaderName, &str); 14] = [
        (names::ACTIVITY_ID, "the head of each frame has it"),
        (names::COLLECTION_PARTITION_INDEX, "clients read containers over HTTPS"),
        (names::COLLECTION_SERVICE_INDEX, "clients read containers over HTTPS"),
        (names::EXPLAIN, "ours; no frame can ask for it"),
        (names::GATEWAY_VERSION, "no gateway is asked"),
        (names::LAST_STATE_CHANGE, "clients only show it"),
        (names::MAX_MEDIA_STORAGE, "clients read the account over HTTPS"),
        (names::MEDIA_STORAGE, "clients read the account over HTTPS"),
        (names::MIN_THROUGHPUT, "clients read offers over HTTPS"),
        (names::OFFER_REPLACE_PENDING, "clients read offers over HTTPS"),
        (names::QUERY_ACCESS, "ours; no frame can ask for it"),
        (names::SCHEMA_VERSION, "clients only show it"),
        (names::SERVICE_VERSION, "the greeting has it"),
        (names::SHARE_THROUGHPUT, "clients read containers over HTTPS"),
    ];

    #[test]
    fn every_header_of_answers_has_a_token_or_a_reason_to_have_none() {
        let begun = || Writer::new(200, &[0; 16]);
        for name in names::ALL.iter().copied().map(HeaderName::from_static) {
            let mut out = begun();
            extra(&mut out, &name, &HeaderValue::from_static("1"));
            let is_told = out.finish(None) != begun().finish(None) || TYPED.contains(&name);
            let is_unsaid = UNSAID.iter().any(|(unsaid, _)| *unsaid == name);
            assert!(is_told != is_unsaid, "{name}");
        }
    }
}
