//! The feed of conflicts. An account with one write region never has any, so it is always empty.

use http::Method;
use orrery_cluster::{Container, ru};
use std::sync::Arc;

use crate::call::Call;
use crate::envelope;
use crate::errors::{Own, Refusal};
use crate::respond::Reply;

pub(crate) fn serve(
    call: &Call<'_>,
    container: &Arc<Container>,
    conflict: Option<&str>,
) -> Result<Reply, Refusal> {
    match (call.trace.method, conflict) {
        (&Method::GET | &Method::HEAD | &Method::DELETE, Some(_)) => Err(Own::NotFound.into()),
        (&Method::GET | &Method::HEAD, None) => Ok(empty(container)),
        (&Method::POST, None) if call.headers.is_query => {
            if call.headers.partition_key.is_none() && !call.headers.enable_cross_partition {
                return Err(Own::CrossPartitionDisabled.into());
            }
            Ok(empty(container))
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

fn empty(container: &Arc<Container>) -> Reply {
    Reply::ok(envelope::wrap(Some(container.resource.rid), "Conflicts", &[]))
        .charge("catalog read", ru::METADATA_READ)
        .page(0, None)
        .in_container(container)
}
