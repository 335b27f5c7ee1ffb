//! Queries over the resources of the catalog: databases, containers, offers.
//!
//! There are few of these and they change rarely, so they are rendered and each query runs over all of them.
//! A continuation is the number of rows that earlier pages have shown.

use std::time::SystemTime;

use bytes::Bytes;
use orrery_cluster::{Rid, limits, ru};
use orrery_doc::{Doc, json};
use orrery_query::{Context, Row, compile};

use crate::call::Call;
use crate::envelope::{self, invalid_continuation, page_size};
use crate::errors::Refusal;
use crate::query_spec::QuerySpec;
use crate::respond::Reply;

/// Runs the query in the body over rendered resources and answers with one page.
pub(crate) fn serve(
    call: &Call<'_>,
    owner: Option<Rid>,
    array: &str,
    resources: impl Iterator<Item = Vec<u8>>,
    body: &Bytes,
) -> Result<Reply, Refusal> {
    let skipped = match call.headers.continuation {
        Some(text) => text.parse::<usize>().map_err(|_| invalid_continuation())?,
        None => 0,
    };
    let spec = QuerySpec::parse(body)?;
    let program = compile(&spec.text, &spec.parameters)?;
    let docs: Vec<Doc> = resources
        .map(|text| json::parse(&text, limits::JSON_DEPTH_MAX + 1).expect("a rendered resource is JSON"))
        .collect();
    let rows = docs.iter().map(|doc| Row::plain(doc.as_ref()));
    let results = program.run_all(rows, &Context::at(now_ticks(), 0))?;

    let mut bytes = 0;
    let page: Vec<Vec<u8>> = results
        .iter()
        .skip(skipped)
        .take(page_size(call.headers.max_item_count))
        .take_while(|row| {
            let fits = bytes < limits::PAGE_BYTES_MAX;
            bytes += row.len();
            fits
        })
        .map(<[u8]>::to_vec)
        .collect();
    let shown = skipped.saturating_add(page.len());
    let continuation = (shown < results.len()).then(|| shown.to_string());
    Ok(Reply::ok(envelope::wrap(owner, array, &page))
        .charge("catalog query", ru::METADATA_READ)
        .page(page.len(), continuation))
}

/// The current time in ticks of 100 ns since 1970.
fn now_ticks() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX)
}
