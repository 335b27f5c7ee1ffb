//! The feed of conflicts. An account with one write region never has any, so it is always empty.

use http::Method;
use orrery_cluster::{Container, ErrorKind, ru};
use std::sync::Arc;

use crate::call::Call;
use crate::envelope;
use crate::errors::{Own, Refusal};
use crate::headers::RequestHeaders;
use crate::items;
use crate::respond::Reply;

pub(crate) fn serve(
    call: &Call<'_>,
    container: &Arc<Container>,
    conflict: Option<&str>,
) -> Result<Reply, Refusal> {
    match (call.trace.method, conflict) {
        (&Method::GET | &Method::HEAD | &Method::DELETE, Some(_)) => Err(Own::NotFound.into()),
        (&Method::GET | &Method::HEAD, None) => page(container, call.headers),
        (&Method::POST, None) if call.headers.is_query => {
            let headers = call.headers;
            if headers.partition_key.is_none()
                && headers.range_id.is_none()
                && !headers.enable_cross_partition
            {
                return Err(Own::CrossPartitionDisabled.into());
            }
            page(container, headers)
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// Of a range that is gone nothing is told: the conflicts that it had are among those of its successors.
fn page(container: &Arc<Container>, headers: &RequestHeaders<'_>) -> Result<Reply, Refusal> {
    if let Some(range) = headers.range_id {
        container.lsn_of(items::range_id(range)?).ok_or(ErrorKind::RangeGone)?;
    }
    let empty = envelope::wrap(Some(container.resource.rid), "Conflicts", &[]);
    Ok(Reply::ok(empty).charge("catalog read", ru::METADATA_READ).page(0, None).in_container(container))
}
