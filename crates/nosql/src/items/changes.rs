//! The change feed.
//!
//! `A-IM` says which one: the incremental feed has the latest version of each item, the full-fidelity feed every version
//! and delete. The continuation is an ETag that tells up to which LSN the client has seen everything, and is
//! opaque to it. It comes with every answer, also with the 304 that says there is nothing new: processors
//! that get none start over.

use std::io::Write;
use std::sync::Arc;

use http::header::ETAG;
use http::{HeaderValue, StatusCode};
use orrery_cluster::store::{ChangeKind, FeedCursor, HistoryEntry, Item, Lsn, TICKS_PER_SECOND};
use orrery_cluster::{ChangePage, ChangesFrom, Container};
use orrery_doc::{PartitionKeyDef, Segment, Value, json};

use crate::binary_json::encode;
use crate::call::Call;
use crate::errors::Refusal;
use crate::headers::RequestHeaders;
use crate::items::change_filter::ChangeFilter;
use crate::items::render::Renderer;
use crate::items::{options, scope};
use crate::respond::Reply;

/// A request on `docs` with `A-IM`: what was written since. A body is a query that says which items are meant.
pub(crate) async fn read(
    call: &Call<'_>,
    container: &Arc<Container>,
    mode: &str,
    body: &[u8],
) -> Result<Reply, Refusal> {
    let from = start(call.headers)?;
    let filter = ChangeFilter::parse(call.db, container, body)?;
    let scope = scope::of_request(container, call.headers)?;
    let options = options::page(call.headers, call.db.account().consistency, call.page_bytes)?;
    let renderer = Renderer::new(container);
    let mode = mode.trim();
    if mode.eq_ignore_ascii_case("incremental feed") {
        let mut page = call.db.changes(container, &scope, from, &options).await?;
        if let Some(filter) = &filter {
            page.changes = filter.items(&renderer, page.changes)?;
        }
        let body = match call.headers.change_feed_format {
            None => renderer.with_lsn().feed(&page.changes),
            Some(_) => {
                renderer.entries(page.changes.len(), |i, out| write_latest(&renderer, &page.changes[i], out))
            }
        };
        Ok(reply(call, container, page, body))
    } else if mode.eq_ignore_ascii_case("full-fidelity feed") {
        let mut page = call.db.all_changes(container, &scope, from, &options).await?;
        if let Some(filter) = &filter {
            page.changes = filter.entries(&renderer, page.changes)?;
        }
        let key = &container.definition.key;
        let body =
            renderer.entries(page.changes.len(), |i, out| write_entry(&renderer, key, &page.changes[i], out));
        Ok(reply(call, container, page, body))
    } else {
        Err(Refusal::unsupported("A change feed other than the incremental and the full-fidelity feed"))
    }
}

fn reply<C>(call: &Call<'_>, container: &Arc<Container>, page: ChangePage<C>, body: Vec<u8>) -> Reply {
    let reply = match page.changes.is_empty() && page.is_last {
        true => Reply::empty(StatusCode::NOT_MODIFIED),
        false if call.headers.wants_binary_feed() => Reply::ok(encode::of_text(&body)),
        false => Reply::ok(body),
    };
    // The pull model of .NET reads the count of every page, also of the one that ends the feed.
    let reply = reply.page(page.changes.len(), None);
    reply.header(ETAG, etag(page.seen)).receipt(page.receipt).in_container(container)
}

/// An LSN in quotes; behind it the place of the last change, if its transaction did not fit into one page.
fn etag(seen: FeedCursor) -> HeaderValue {
    let text = match seen.is_whole() {
        true => format!("\"{}\"", seen.lsn.0),
        false => format!("\"{}.{}\"", seen.lsn.0, seen.place),
    };
    HeaderValue::from_str(&text).expect("quoted numbers are ASCII")
}

fn parse_etag(text: &str) -> Option<FeedCursor> {
    let text = text.trim_matches('"');
    match text.split_once('.') {
        None => Some(FeedCursor::after(Lsn(text.parse().ok()?))),
        Some((lsn, place)) => Some(FeedCursor { lsn: Lsn(lsn.parse().ok()?), place: place.parse().ok()? }),
    }
}

/// A continuation says more than a time, so it is looked at first. A time is that of a second, and what was written within
/// it is not asked for.
fn start(headers: &RequestHeaders<'_>) -> Result<ChangesFrom, Refusal> {
    match (headers.if_none_match.map(str::trim), headers.if_modified_since) {
        (Some("*"), _) => Ok(ChangesFrom::Now),
        (Some(etag), _) => parse_etag(etag).map(ChangesFrom::After).ok_or_else(|| {
            Refusal::bad_request("The continuation of the change feed in If-None-Match is invalid.")
        }),
        (None, Some(time)) => {
            let time = parse_time(time)
                .ok_or_else(|| Refusal::bad_request("The time in If-Modified-Since is invalid."))?;
            let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(ChangesFrom::Time(since.as_secs().saturating_add(1).saturating_mul(TICKS_PER_SECOND)))
        }
        (None, None) => Ok(ChangesFrom::Beginning),
    }
}

/// A time as HTTP writes it. Go names the zone by its other name.
fn parse_time(text: &str) -> Option<std::time::SystemTime> {
    let text = text.trim();
    let utc = ["UTC", "+0000"].into_iter().find_map(|zone| text.strip_suffix(zone));
    match utc {
        Some(time) => httpdate::parse_http_date(&format!("{time}GMT")).ok(),
        None => httpdate::parse_http_date(text).ok(),
    }
}

/// The latest version in the form that keeps what the server says apart from the item.
fn write_latest(renderer: &Renderer, item: &Item, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"current\":");
    renderer.write_item(item, out);
    let (lsn, time) = (item.header.lsn.0, item.header.ts());
    write!(out, ",\"metadata\":{{\"lsn\":{lsn},\"crts\":{time}}}}}")
        .expect("writing to memory does not fail");
}

/// One change. A delete shows the last version; what a replace wrote over is not shown, only when that was written.
fn write_entry(renderer: &Renderer, key: &PartitionKeyDef, entry: &HistoryEntry, out: &mut Vec<u8>) {
    const MEMORY: &str = "writing to memory does not fail";
    let (operation, expired) = match entry.kind {
        ChangeKind::Created => ("create", None),
        ChangeKind::Replaced => ("replace", None),
        ChangeKind::Deleted => ("delete", Some(false)),
        ChangeKind::Expired => ("delete", Some(true)),
    };
    let image: &[u8] = if expired.is_some() { b"{\"current\":{},\"previous\":" } else { b"{\"current\":" };
    out.extend_from_slice(image);
    renderer.write_item(&entry.item, out);
    let (lsn, time) = (entry.at.lsn.0, entry.time / TICKS_PER_SECOND);
    write!(out, ",\"metadata\":{{\"lsn\":{lsn},\"crts\":{time},\"operationType\":\"{operation}\"")
        .expect(MEMORY);
    if let Some(previous) = entry.previous {
        write!(out, ",\"previousImageLSN\":{}", previous.0).expect(MEMORY);
    }
    if let Some(expired) = expired {
        write!(out, ",\"timeToLiveExpired\":{expired},\"id\":").expect(MEMORY);
        json::write(Value::Str(&entry.key.id.to_string()), out);
        out.extend_from_slice(b",\"partitionKey\":");
        write_key(key, &entry.item, out);
    }
    out.extend_from_slice(b"}}");
}

/// The values at the paths of the partition key, each under its path; those that the item does not have are left out.
fn write_key(key: &PartitionKeyDef, item: &Item, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut separator = None;
    for path in &key.paths {
        let value = item.root().get(path);
        if matches!(value, Value::Undefined) {
            continue;
        }
        out.extend(separator.replace(b','));
        let names: Vec<&str> = path.segments().iter().filter_map(name).collect();
        json::write(Value::Str(&names.join("/")), out);
        out.push(b':');
        json::write(value, out);
    }
    out.push(b'}');
}

fn name(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Name(name) => Some(name),
        Segment::Index(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use orrery_cluster::Rid;
    use orrery_cluster::store::{Etag, ItemHeader, ItemKey};
    use orrery_doc::{Epk, PartitionKeyKind, PartitionKeyVersion, Path};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_say_where_to_start() {
        let none = RequestHeaders::default;
        let time = Some("Thu, 01 Jan 1970 00:00:10 GMT");
        let etag = Some("\"12\"");
        let after = ChangesFrom::After(FeedCursor::after(Lsn(12)));
        let inside = ChangesFrom::After(FeedCursor { lsn: Lsn(12), place: 3 });
        for (headers, wanted) in [
            (none(), Some(ChangesFrom::Beginning)),
            (RequestHeaders { if_none_match: Some("*"), ..none() }, Some(ChangesFrom::Now)),
            (RequestHeaders { if_none_match: etag, ..none() }, Some(after)),
            (RequestHeaders { if_none_match: Some("12"), ..none() }, Some(after)),
            (RequestHeaders { if_none_match: Some("\"12.3\""), ..none() }, Some(inside)),
            (RequestHeaders { if_none_match: etag, if_modified_since: time, ..none() }, Some(after)),
            (RequestHeaders { if_modified_since: time, ..none() }, Some(ChangesFrom::Time(110_000_000))),
            (
                RequestHeaders { if_modified_since: Some("Thu, 01 Jan 1970 00:00:10 UTC"), ..none() },
                Some(ChangesFrom::Time(110_000_000)),
            ),
            (RequestHeaders { if_none_match: Some("x"), ..none() }, None),
            (RequestHeaders { if_none_match: Some("-1"), ..none() }, None),
            (RequestHeaders { if_none_match: Some("1.70000"), ..none() }, None),
            (RequestHeaders { if_modified_since: Some("yesterday"), ..none() }, None),
        ] {
            assert_eq!(start(&headers).ok(), wanted, "{headers:?}");
        }
    }

    #[test]
    fn continuations_come_back_as_they_went() {
        for cursor in [FeedCursor::after(Lsn(0)), FeedCursor { lsn: Lsn(7), place: 0 }] {
            assert_eq!(parse_etag(etag(cursor).to_str().expect("ASCII")), Some(cursor));
        }
    }

    proptest! {
        #[test]
        fn no_continuation_panics(text in "\\PC{0,30}") {
            let _ = parse_etag(&text);
        }
    }

    fn entry(kind: ChangeKind, previous: Option<u64>, body: &str) -> HistoryEntry {
        let doc = json::parse(body.as_bytes(), 128).expect("a test body");
        let time = 1_700_000_000 * TICKS_PER_SECOND;
        let header = ItemHeader {
            flags: 0,
            lsn: Lsn(5),
            place: 0,
            time,
            etag: Etag(1),
            ttl: 0,
            rid: 1,
            json_bytes: body.len() as u32,
            origin: None,
        };
        HistoryEntry {
            at: FeedCursor { lsn: Lsn(9), place: 0 },
            kind,
            time: time + 3 * TICKS_PER_SECOND,
            previous: previous.map(Lsn),
            key: ItemKey { epk: Epk::from_hex("0A").expect("hex"), id: "a\"b".into() },
            item: Item { header, doc },
            replaced: None,
        }
    }

    fn shown(entry: &HistoryEntry) -> serde_json::Value {
        let paths =
            ["/tenant", "/user/name", "/none"].map(|path| Path::parse_property(path).expect("a path"));
        let key = PartitionKeyDef {
            kind: PartitionKeyKind::MultiHash,
            version: PartitionKeyVersion::V2,
            paths: paths.to_vec(),
        };
        let renderer = Renderer::of(Rid::database(1), Rid::container(Rid::database(1), 2));
        let mut out = Vec::new();
        write_entry(&renderer, &key, entry, &mut out);
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn entries_tell_what_happened() {
        let body = r#"{"id":"a\"b","tenant":"t","user":{"name":null}}"#;
        let created = shown(&entry(ChangeKind::Created, None, body));
        assert_eq!(created["current"]["tenant"], "t");
        assert_eq!(created["current"]["_ts"], 1_700_000_000);
        assert_eq!(created.get("previous"), None);
        let metadata = serde_json::json!({"lsn": 9, "crts": 1_700_000_003, "operationType": "create"});
        assert_eq!(created["metadata"], metadata);
        let replaced = shown(&entry(ChangeKind::Replaced, Some(5), body));
        assert_eq!(replaced.get("previous"), None);
        assert_eq!(replaced["metadata"]["previousImageLSN"], 5);
        assert_eq!(replaced["metadata"]["operationType"], "replace");
        for (kind, expired) in [(ChangeKind::Deleted, false), (ChangeKind::Expired, true)] {
            let deleted = shown(&entry(kind, Some(5), body));
            assert_eq!(deleted["current"], serde_json::json!({}));
            assert_eq!(deleted["previous"]["tenant"], "t");
            let metadata = serde_json::json!({
                "lsn": 9, "crts": 1_700_000_003, "operationType": "delete", "previousImageLSN": 5,
                "timeToLiveExpired": expired, "id": "a\"b",
                "partitionKey": {"tenant": "t", "user/name": null},
            });
            assert_eq!(deleted["metadata"], metadata);
        }
    }
}
