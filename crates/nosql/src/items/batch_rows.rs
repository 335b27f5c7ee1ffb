//! Batches in HybridRow: rows to operations, results to rows.

use crate::errors::{Refusal, code, push_json_string};
use crate::hybrid_row::schema::RESULT;
use crate::hybrid_row::{RecordWriter, Row, Value};
use crate::items::batch_reply::OpResult;
use crate::items::operation::{Content, Kind, Operation, OwnKey, directive};
use crate::items::render::Renderer;

/// The number that the protocol gives to items; batches have no others.
const DOCUMENT: i32 = 2;

/// Columns that only programs fill which set undocumented properties of a request, each with what it would do. Without
/// them the operation would not be what was asked for.
const UNSUPPORTED: [(&str, &str); 3] = [
    ("effectivePartitionKey", "A batch operation with an effective partition key"),
    ("binaryId", "A batch operation with a binary id"),
    ("timeToLiveInSeconds", "A batch operation with a time to live of its own"),
];

/// The operation of one row.
pub(crate) fn operation<'a>(row: &Row<'a>) -> Result<Operation<'a>, Refusal> {
    if row.int32("resourceType") != Some(DOCUMENT) {
        return Err(Refusal::bad_request("The resource type of a batch operation must be that of items."));
    }
    let unsupported = UNSUPPORTED.iter().find(|(column, _)| row.get(column).is_some());
    Ok(Operation {
        kind: kind(row.int32("operationType"))?,
        id: row.text("id"),
        key: row.text("partitionKey").map_or(OwnKey::Absent, OwnKey::Text),
        content: Content::Bytes(row.binary("resourceBody").unwrap_or_default()),
        if_match: row.text("ifMatch").filter(|etag| !etag.is_empty()),
        if_none_match: row.text("ifNoneMatch").filter(|etag| !etag.is_empty()),
        directive: directive(row.text("indexingDirective")),
        is_minimal: row.bool("minimalReturnPreference"),
        unsupported: unsupported.map(|(_, feature)| *feature),
    })
}

fn kind(number: Option<i32>) -> Result<Kind, Refusal> {
    Ok(match number {
        Some(0) => Kind::Create,
        Some(1) => Kind::Patch,
        Some(2) => Kind::Read,
        Some(4) => Kind::Delete,
        Some(5) => Kind::Replace,
        Some(20) => Kind::Upsert,
        Some(other) => {
            return Err(Refusal::bad_request(format!(
                "The operation type '{other}' of a batch operation is not known."
            )));
        }
        None => return Err(Refusal::bad_request("A batch operation has no operation type.")),
    })
}

/// The rows that clients read.
pub(crate) fn render(renderer: Renderer, results: &[OpResult]) -> Vec<u8> {
    let items: usize = results.iter().flat_map(|r| &r.item).map(|item| item.header.json_bytes as usize).sum();
    let mut out = RecordWriter::with_capacity(items + results.len() * 420);
    let mut body = Vec::new();
    for result in results {
        body.clear();
        if let Some(item) = &result.item {
            renderer.write_item(item, &mut body);
        } else if let Some(message) = &result.message {
            write_error(result, message, &mut body);
        }
        let etag = result.header.map(|header| renderer.version(&header).to_header());
        out.push(&row(result, etag.as_deref(), &body));
    }
    out.finish()
}

fn row<'a>(result: &OpResult, etag: Option<&'a str>, body: &'a [u8]) -> Row<'a> {
    // Sub-statuses are small numbers; the column has a sign all the same.
    let substatus = i32::try_from(result.substatus).unwrap_or(i32::MAX);
    let mut row = Row::new(&RESULT)
        .with("statusCode", Value::Int32(i32::from(result.status.as_u16())))
        .with("subStatusCode", Value::Int32(substatus));
    if let Some(etag) = etag {
        row = row.with("eTag", Value::Utf8(etag));
    }
    if !body.is_empty() {
        row = row.with("resourceBody", Value::Binary(body));
    }
    if let Some(wait) = result.retry_after_ms {
        row = row.with("retryAfterMilliseconds", Value::UInt32(wait));
    }
    row.with("requestCharge", Value::Float64(result.charge))
}

/// A failed operation says why where a good one shows its item: the client makes it the message of its exception.
fn write_error(result: &OpResult, message: &str, out: &mut Vec<u8>) {
    let mut text = format!("{{\"code\":\"{}\",\"message\":", code(result.status));
    push_json_string(&mut text, message);
    text.push('}');
    out.extend_from_slice(text.as_bytes());
}
