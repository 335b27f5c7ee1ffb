//! Finds, replicates, splits and serves partitions behind one [`Db`].

pub mod catalog;
mod changes;
mod committer;
pub mod copy;
mod cursor;
mod db;
mod elastic;
mod error;
mod feed;
#[cfg(test)]
mod golden;
mod history;
pub mod insight;
mod item_properties;
mod look;
mod memory;
mod offer;
mod options;
mod query;
mod range;
mod receipt;
mod recovery;
mod reindex;
mod request;
mod resource;
mod rid;
mod sample;
mod script;
mod session;
pub mod stats;
mod throttle;
pub mod throughput;
mod ttl;
mod turns;
pub mod verify;
mod world;

pub use catalog::{
    AccountRecord, Api, Catalog, Child, ChildKind, Container, ContainerDefinition, Database, RegionRecord,
    Usage,
};
pub use changes::{ChangePage, ChangesFrom};
pub use cursor::{Cursor, CursorPlace, Leg};
pub use db::Db;
pub use error::{Error, ErrorKind, Failure, HistoryError, QuotaKind, Result};
pub use item_properties::ItemProperties;
pub use look::{Look, Wait};
pub use memory::{Consumer, Hold, Memory, MemoryShares, MemoryUse, let_threads_give_back};
pub use offer::Offer;
pub use options::{Account, DbOptions, Durability, OpenError, Storage};
pub use orrery_prices::{limits, ru};
pub use orrery_script::{
    Collection as ScriptCollection, Quota as ScriptQuota, Refusal as ScriptRefusal, ScriptError,
};
pub use query::{Method, OfferedIndexes, PlanNote};
pub use range::{NoLead, RangeInfo};
pub use receipt::{Charge, ChargeLine, Receipt, Served};
pub use request::{
    AccessChoice, Consistency, FeedPage, ItemOrder, PageOptions, QueryPage, ReadOptions, ReadReply, Scope,
    Throughput, WriteOptions, WriteReply,
};
pub use resource::{Resource, ResourceKind};
pub use rid::Rid;
pub use sample::{Below, shares};
pub use script::{
    Forms, Link as ScriptLink, Outside, ScriptOptions, ScriptReply, TriggerNames, TriggeredReply,
};
pub use session::{RangeToken, SINGLE_REGION_VERSION, SessionToken};
pub use throttle::ThrottleCause;
pub use throughput::{Lane, Priority};
pub use world::{ByHand, World};

/// What gateways need of the store: operations and their outcomes, items, and places in a feed.
pub mod store {
    pub use orrery_store::{
        Action, ChangeKind, Edit, EditRefusal, Edited, Effect, Etag, Fault, FeedCursor, HistoryEntry, Item,
        ItemHeader, ItemId, ItemKey, ItemRid, Lsn, Meter, Op, OpError, Outcome, Precondition,
        TICKS_PER_SECOND, Target,
    };
}
