//! Holds one physical partition: items, index, feed, transactions, request-unit metering.
//!
//! A [`Partition`] is a deterministic, synchronous state machine: no clock, no network, no randomness.
//! Time arrives in the [`Txn`]; everything else follows from what is stored.

mod ahead;
mod build;
mod conflict;
mod creation;
mod edit;
pub mod engine;
mod etag;
mod fault;
mod feed;
#[cfg(test)]
mod golden;
mod group;
mod history;
pub mod index;
pub mod indexing;
mod item;
mod item_id;
mod item_rid;
pub mod keys;
mod lineage;
mod log;
mod net_effect;
mod op;
mod owner;
mod partition;
mod partition_state;
mod path_counts;
mod schema;
mod schema_mark;
mod sizes;
mod split;
mod sweep;
mod terms;
mod ttl;
mod unique;
mod verify;
mod view;
mod whole_key;

pub use ahead::{Ahead, Stamp, Workbench};
pub use build::{Build, Reached};
pub use conflict::{Conflict, ConflictKind};
pub use creation::{Members, PartSize};
pub use edit::{Edit, EditRefusal, Edited};
pub use etag::Etag;
pub use fault::{Failed, Fault};
pub use feed::FeedCursor;
pub use group::{Done, Group, Lender, Prepared};
pub use history::{ChangeKind, HistoryBounds, HistoryEntry, Replaced};
pub use item::{
    DamagedItem, FLAG_ORIGIN, FLAG_UNINDEXED, FLAG_UNLINKED, Item, ItemHeader, Origin, TICKS_PER_SECOND,
};
pub use item_id::{ItemId, ItemIdTooLong};
pub use item_rid::ItemRid;
pub use keys::ItemKey;
pub use lineage::{Source, join};
pub use log::{Commit, EntryKind, LogEntry};
pub use op::{Action, Effect, Op, OpError, Outcome, Precondition, Target, Txn, TxnError};
pub use orrery_prices::{Meter, limits};
pub use owner::Owner;
pub use partition::{Applied, Partition, PartitionSpec};
pub use partition_state::{FIRST_LSN, PartitionState, RegionLsn, is_ahead};
pub use path_counts::PathCounts;
pub use schema::{ActiveIndex, IndexGeneration, Schema};
pub use schema_mark::SchemaMark;
pub use sizes::LogicalSize;
pub use split::{SplitPlan, merge, split};
pub use sweep::Overdue;
pub use ttl::{DefaultTtl, Lifetimes, TTL_BY_DEFAULT, TTL_NEVER};
pub use unique::UniqueKeys;
pub use verify::Verification;
pub use view::{Position, Scan, View};
pub use whole_key::WholeKey;

/// Place of a transaction in the history of its partition; grows by one with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);
