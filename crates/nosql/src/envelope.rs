//! Resources as JSON text, and the feeds that list them.

use bytes::Bytes;
use orrery_cluster::{Resource, Rid, limits};
use orrery_doc::{Doc, json};

use crate::address::catalog_rid;
use crate::call::Call;
use crate::errors::Refusal;
use crate::headers::MaxItemCount;
use crate::respond::Reply;

/// What the server adds to resources. Clients send these back, and nothing of it is stored.
const SYSTEM_PROPERTIES: [&str; 13] = [
    "id",
    "_rid",
    "_self",
    "_etag",
    "_ts",
    "_colls",
    "_users",
    "_docs",
    "_sprocs",
    "_triggers",
    "_udfs",
    "_conflicts",
    "statistics",
];

/// Parses the body of a request on a resource: a JSON object.
pub(crate) fn parse_body(body: &[u8]) -> Result<Doc, Refusal> {
    let doc = json::parse(body, limits::RESOURCE_DEPTH_MAX)
        .map_err(|error| Refusal::bad_request(format!("The input content is invalid JSON: {error}")))?;
    if doc.root().as_object().is_none() {
        return Err(Refusal::bad_request("The input content is invalid because it is not a JSON object."));
    }
    Ok(doc)
}

/// The `id` that a new resource must have.
pub(crate) fn required_id(doc: &Doc) -> Result<&str, Refusal> {
    doc.root().get("id").as_str().ok_or_else(|| {
        Refusal::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        )
    })
}

/// Opens `{"id":...` and writes the stored properties; the caller adds system properties and closes.
pub(crate) fn begin_resource(resource: &Resource, body: &Doc, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    json::write_str(&resource.id, out);
    if let Some(object) = body.root().as_object() {
        for (name, value) in object.iter().filter(|(name, _)| !SYSTEM_PROPERTIES.contains(name)) {
            push_name(out, name);
            json::write(value, out);
        }
    }
}

pub(crate) fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    json::write_str(name, out);
    out.push(b':');
}

pub(crate) fn push_text(out: &mut Vec<u8>, name: &str, value: &str) {
    push_name(out, name);
    json::write_str(value, out);
}

pub(crate) fn push_number(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    push_name(out, name);
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Wraps rows: `{"_rid":"<owner>","<array>":[...],"_count":n}`.
pub(crate) fn wrap(owner: Option<Rid>, array: &str, rows: &[Vec<u8>]) -> Bytes {
    let size: usize = rows.iter().map(|row| row.len() + 1).sum();
    let mut out = Vec::with_capacity(size + 96);
    out.extend_from_slice(b"{\"_rid\":\"");
    if let Some(rid) = owner {
        out.extend_from_slice(rid.to_string().as_bytes());
    }
    out.push(b'"');
    push_name(&mut out, array);
    out.push(b'[');
    for (place, row) in rows.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(row);
    }
    out.push(b']');
    push_number(&mut out, "_count", rows.len());
    out.push(b'}');
    Bytes::from(out)
}

/// One page of a list of resources in the order of their RIDs. The continuation is the last RID shown,
/// so a resource that comes or goes between two pages neither repeats nor hides others.
pub(crate) fn list<'r, T: 'r>(
    call: &Call<'_>,
    owner: Option<Rid>,
    array: &str,
    resources: impl Iterator<Item = &'r T>,
    rid: impl Fn(&T) -> Rid,
    render: impl Fn(&T) -> Vec<u8>,
) -> Result<Reply, Refusal> {
    let after = match call.headers.continuation {
        Some(text) => Some(catalog_rid(text).ok_or_else(invalid_continuation)?),
        None => None,
    };
    let most = page_size(call.headers.max_item_count);
    let mut rest =
        resources.skip_while(|resource| after.is_some_and(|after| rid(resource) <= after)).peekable();
    let (mut rows, mut last, mut bytes) = (Vec::new(), None, 0);
    while rows.len() < most && bytes < limits::PAGE_BYTES_MAX {
        let Some(resource) = rest.next() else { break };
        let row = render(resource);
        bytes += row.len();
        last = Some(rid(resource));
        rows.push(row);
    }
    let continuation = rest.peek().and(last).map(|rid| rid.to_string());
    Ok(Reply::ok(wrap(owner, array, &rows)).page(rows.len(), continuation))
}

pub(crate) fn page_size(asked: MaxItemCount) -> usize {
    asked.or(limits::PAGE_ITEMS_DEFAULT, limits::PAGE_ITEMS_MAX)
}

pub(crate) fn invalid_continuation() -> Refusal {
    Refusal::bad_request("The continuation token is not one that this feed has returned.")
}
