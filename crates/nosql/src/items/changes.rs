//! The change feed.
//!
//! The continuation is an ETag that holds the LSN up to which the client has seen everything. It comes with every
//! answer, also with the 304 that says there is nothing new: processors that get none start over.

use std::sync::Arc;

use http::header::ETAG;
use http::{HeaderValue, StatusCode};
use orrery_cluster::store::{Lsn, TICKS_PER_SECOND};
use orrery_cluster::{ChangesFrom, Container};

use crate::call::Call;
use crate::errors::Refusal;
use crate::headers::RequestHeaders;
use crate::items::render::Renderer;
use crate::items::{options, scope};
use crate::respond::Reply;

/// A GET of `docs` with `A-IM`: the latest versions of what was written since.
pub(crate) async fn read(call: &Call<'_>, container: &Arc<Container>, mode: &str) -> Result<Reply, Refusal> {
    if !mode.trim().eq_ignore_ascii_case("incremental feed") {
        return Err(Refusal::unsupported("A change feed other than the incremental feed"));
    }
    let from = start(call.headers)?;
    let scope = scope::of_request(&container.definition.key, call.headers)?;
    let options = options::page(call.headers, call.db.account().consistency)?;
    let page = call.db.changes(container, &scope, from, &options).await?;
    let reply = match page.items.is_empty() {
        true => Reply::empty(StatusCode::NOT_MODIFIED),
        false => {
            Reply::ok(Renderer::new(container).with_lsn().feed(&page.items)).page(page.items.len(), None)
        }
    };
    let seen = format!("\"{}\"", page.seen.0);
    let etag = HeaderValue::from_str(&seen).expect("a quoted number is ASCII");
    Ok(reply.header(ETAG, etag).receipt(page.receipt).in_container(container))
}

/// A continuation says more than a time, so it is looked at first.
fn start(headers: &RequestHeaders<'_>) -> Result<ChangesFrom, Refusal> {
    match (headers.if_none_match.map(str::trim), headers.if_modified_since) {
        (Some("*"), _) => Ok(ChangesFrom::Now),
        (Some(etag), _) => {
            let lsn = etag.trim_matches('"').parse().map_err(|_| {
                Refusal::bad_request("The continuation of the change feed in If-None-Match is invalid.")
            })?;
            Ok(ChangesFrom::After(Lsn(lsn)))
        }
        (None, Some(time)) => {
            let time = httpdate::parse_http_date(time)
                .map_err(|_| Refusal::bad_request("The time in If-Modified-Since is invalid."))?;
            let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(ChangesFrom::Time(since.as_secs() * TICKS_PER_SECOND))
        }
        (None, None) => Ok(ChangesFrom::Beginning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_where_to_start() {
        let none = RequestHeaders::default;
        let time = Some("Thu, 01 Jan 1970 00:00:10 GMT");
        let etag = Some("\"12\"");
        for (headers, wanted) in [
            (none(), Some(ChangesFrom::Beginning)),
            (RequestHeaders { if_none_match: Some("*"), ..none() }, Some(ChangesFrom::Now)),
            (RequestHeaders { if_none_match: etag, ..none() }, Some(ChangesFrom::After(Lsn(12)))),
            (
                RequestHeaders { if_none_match: etag, if_modified_since: time, ..none() },
                Some(ChangesFrom::After(Lsn(12))),
            ),
            (RequestHeaders { if_modified_since: time, ..none() }, Some(ChangesFrom::Time(100_000_000))),
            (RequestHeaders { if_none_match: Some("x"), ..none() }, None),
            (RequestHeaders { if_none_match: Some("-1"), ..none() }, None),
            (RequestHeaders { if_modified_since: Some("yesterday"), ..none() }, None),
        ] {
            assert_eq!(start(&headers).ok(), wanted, "{headers:?}");
        }
    }
}
