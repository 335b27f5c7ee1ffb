//! A named thing of the catalog: what all resources have in common.

use orrery_doc::Doc;
use orrery_store::{Etag, Lsn};

use crate::catalog::ChildKind;
use crate::rid::Rid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceKind {
    Account,
    Database,
    Container,
    Offer,
    PartitionKeyRange,
    Item,
    Child(ChildKind),
}

/// What every stored resource carries; the rest of its JSON is `body`, without system properties.
#[derive(Clone, Debug)]
pub struct Resource {
    pub kind: ResourceKind,
    pub rid: Rid,
    pub id: String,
    pub body: Doc,
    pub etag: Etag,
    /// The change of the catalog that wrote it.
    pub lsn: Lsn,
    /// Seconds since 1970, the service's `_ts`.
    pub ts: u64,
}
