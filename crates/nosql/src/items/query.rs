//! Queries over items.

use std::sync::Arc;

use orrery_cluster::Container;

use crate::call::Call;
use crate::errors::Refusal;
use crate::respond::Reply;

pub(crate) async fn run(
    _call: &Call<'_>,
    _container: &Arc<Container>,
    _body: &[u8],
) -> Result<Reply, Refusal> {
    Err(Refusal::unsupported("Queries"))
}

pub(crate) fn plan(_call: &Call<'_>, _container: &Arc<Container>, _body: &[u8]) -> Result<Reply, Refusal> {
    Err(Refusal::unsupported("Query plans"))
}
