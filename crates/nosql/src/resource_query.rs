//! Queries over the resources of the catalog: databases, containers, offers.
//!
//! There are few of these and they change rarely, so they are rendered and each query runs over all of them.

use bytes::Bytes;
use orrery_cluster::{Rid, ru};

use crate::call::Call;
use crate::errors::Refusal;
use crate::respond::Reply;

pub(crate) fn serve(
    _call: &Call<'_>,
    _owner: Option<Rid>,
    _array: &str,
    _rows: impl Iterator<Item = Vec<u8>>,
    _body: &Bytes,
) -> Result<Reply, Refusal> {
    let _ = ru::METADATA_READ;
    Err(Refusal::unsupported("Queries over databases, containers and offers"))
}
