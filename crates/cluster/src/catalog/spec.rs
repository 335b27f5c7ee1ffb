//! What a container is, whichever gateway it was made through.

use orrery_doc::TermOrder;
use serde::{Deserialize, Serialize};

/// The protocol whose gateway made a container. Others may show it, but this one says what its definition means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Api {
    #[default]
    NoSql,
    Table,
    Mongo,
    Cassandra,
    Gremlin,
}

/// Names of the orders of terms, as records have them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "TermOrder", rename_all = "camelCase")]
pub(super) enum OrderName {
    Sql,
    Bson,
    Cql,
}
