//! Partition key ranges: the map that clients route by.
//!
//! Clients read this as an incremental feed: they come back with the etag of the last page until the answer
//! is 304. A server that never says 304 would make them loop for ever. All ranges fit one page.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use orrery_cluster::{Container, RangeInfo, ResourceKind, Rid, ru};

use crate::call::Call;
use crate::envelope::{self, push_name, push_number, push_text};
use crate::errors::{Own, Refusal};
use crate::respond::Reply;

pub(crate) fn feed(call: &Call<'_>, container: &Arc<Container>) -> Result<Reply, Refusal> {
    if !matches!(*call.trace.method, Method::GET | Method::HEAD) {
        return Err(Own::MethodNotAllowed.into());
    }
    let ranges = container.ranges();
    let etag = feed_etag(&ranges);
    let value = HeaderValue::from_str(&etag).expect("the etag is ASCII");
    let is_current = call.headers.if_none_match.is_some_and(|seen| seen.trim() == etag);
    let reply = if is_current {
        Reply::empty(StatusCode::NOT_MODIFIED).page(0, None)
    } else {
        let rows: Vec<Vec<u8>> = ranges.iter().map(|range| render(container, range)).collect();
        let body = envelope::wrap(Some(container.resource.rid), "PartitionKeyRanges", &rows);
        Reply::ok(body).page(rows.len(), None)
    };
    Ok(reply.charge("catalog read", ru::METADATA_READ).in_container(container).header(header::ETAG, value))
}

/// Changes whenever a range comes, goes or changes: FNV-1a over what identifies them.
fn feed_etag(ranges: &[RangeInfo]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let parts = ranges.iter().flat_map(|range| [u64::from(range.id), range.etag.0]);
    for byte in parts.flat_map(u64::to_le_bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("\"{hash}\"")
}

fn render(container: &Container, range: &RangeInfo) -> Vec<u8> {
    // The first two numbers of a container's children are taken by the service itself.
    let number = u64::from(range.id) + 2;
    let rid = Rid::child(container.resource.rid, ResourceKind::PartitionKeyRange, number);
    let mut out = Vec::with_capacity(384);
    out.extend_from_slice(b"{\"_rid\":\"");
    out.extend_from_slice(rid.to_string().as_bytes());
    out.push(b'"');
    push_text(&mut out, "id", &range.id.to_string());
    push_text(&mut out, "_etag", &range.etag.to_header());
    push_text(&mut out, "minInclusive", &range.range.min.to_hex());
    push_text(&mut out, "maxExclusive", &range.range.max.to_hex());
    push_number(&mut out, "ridPrefix", range.id);
    let link = format!("dbs/{}/colls/{}/pkranges/{rid}/", container.database, container.resource.rid);
    push_text(&mut out, "_self", &link);
    push_number(&mut out, "throughputFraction", range.throughput_fraction);
    push_text(&mut out, "status", "online");
    push_name(&mut out, "parents");
    out.push(b'[');
    for (place, parent) in range.parents.iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        out.extend_from_slice(format!("{comma}\"{parent}\"").as_bytes());
    }
    out.push(b']');
    push_name(&mut out, "ownedArchivalPKRangeIds");
    out.extend_from_slice(b"[]");
    push_number(&mut out, "_ts", range.ts);
    push_number(&mut out, "_lsn", range.lsn.0);
    out.push(b'}');
    out
}
