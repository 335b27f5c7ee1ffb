//! Options of requests and the shapes of answers at the `Db` boundary.

use std::sync::Arc;
use std::time::Duration;

use orrery_doc::{EpkRange, PartitionKey, PartitionKeyDef, prefix_range};
pub use orrery_prices::Consistency;
use orrery_store::{Item, Meter, Outcome, Precondition, WholeKey};

use crate::cursor::Cursor;
use crate::item_properties::ItemProperties;
use crate::memory::Hold;
use crate::query::PlanNote;
use crate::receipt::Receipt;
use crate::session::SessionToken;

#[derive(Clone, Debug)]
pub struct ReadOptions {
    pub consistency: Consistency,
    pub session: Option<SessionToken>,
    pub precondition: Precondition,
}

#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    pub session: Option<SessionToken>,
}

/// Answer to a point read.
#[derive(Clone, Debug)]
pub struct ReadReply {
    pub item: Item,
    /// True when the client's version is current: answer without a body.
    pub not_modified: bool,
    pub receipt: Receipt,
}

/// Answer to a transaction: one outcome for each operation, in order.
#[derive(Clone, Debug)]
pub struct WriteReply {
    pub outcomes: Vec<Outcome>,
    /// The charge of each operation; they add up to the receipt's.
    pub charges: Vec<crate::receipt::Charge>,
    pub receipt: Receipt,
}

/// Which items a feed or query runs over.
#[derive(Clone, Debug)]
pub enum Scope {
    /// The whole container, partition by partition.
    Container,
    /// One physical partition, optionally cut to a part of its key space.
    Range { range_id: u32, epk: Option<EpkRange> },
    /// Any part of the key space.
    Epk(EpkRange),
    /// One logical partition, or all below a hierarchical prefix.
    Key(PartitionKey),
    /// What of a hierarchical prefix lies in a physical partition, in a part of the key space, or in both.
    Below { key: PartitionKey, range_id: Option<u32>, epk: Option<EpkRange> },
}

impl Scope {
    /// The key that items must have, or its first levels.
    pub(crate) fn key(&self) -> Option<&PartitionKey> {
        match self {
            Scope::Key(key) | Scope::Below { key, .. } => Some(key),
            Scope::Container | Scope::Range { .. } | Scope::Epk(_) => None,
        }
    }

    /// The same, when items of other keys may lie where the scope is.
    pub(crate) fn whole_key<'a>(&'a self, def: &'a PartitionKeyDef) -> Option<WholeKey<'a>> {
        self.key().and_then(|key| WholeKey::of(def, key))
    }

    /// The one physical partition that is asked.
    pub fn range_id(&self) -> Option<u32> {
        match self {
            Scope::Range { range_id, .. } => Some(*range_id),
            Scope::Below { range_id, .. } => *range_id,
            Scope::Container | Scope::Epk(_) | Scope::Key(_) => None,
        }
    }

    /// The part of the key space that is meant, of whichever physical partitions.
    pub fn covered(&self, def: &PartitionKeyDef) -> EpkRange {
        match self {
            Scope::Container | Scope::Range { epk: None, .. } => EpkRange::full(),
            Scope::Epk(epk) | Scope::Range { epk: Some(epk), .. } => epk.clone(),
            Scope::Key(key) | Scope::Below { key, epk: None, .. } => prefix_range(def, key),
            Scope::Below { key, epk: Some(epk), .. } => prefix_range(def, key).intersection(epk),
        }
    }
}

#[derive(Clone, Debug)]
pub struct PageOptions {
    pub items_max: usize,
    pub bytes_max: usize,
    pub time_max: Duration,
    /// What an earlier page returned.
    pub continuation: Option<Cursor>,
    pub consistency: Consistency,
    pub session: Option<SessionToken>,
    /// How a query may find its items.
    pub access: AccessChoice,
    /// What queries see of items besides what is stored.
    pub properties: Option<&'static dyn ItemProperties>,
    /// In which order items come that the query does not order.
    pub order: ItemOrder,
}

/// The order of items where nothing else is asked for. It belongs to the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemOrder {
    /// That of their creation where they are few, and that of their keys where they are many.
    #[default]
    Creation,
    /// By place, and in a place by id: within a logical partition that is an order clients rely on.
    Keys,
}

/// How a query may find its items. The rows are the same whatever is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessChoice {
    /// By cost.
    #[default]
    Auto,
    /// Never through an index.
    ScanOnly,
    /// Through an index wherever one can be used, whatever it costs.
    IndexAlways,
}

/// One page of items.
#[derive(Clone, Debug)]
pub struct FeedPage {
    pub items: Vec<Item>,
    pub continuation: Option<Cursor>,
    pub receipt: Receipt,
}

/// One page of query results, in the form of the sink that took them.
#[derive(Clone, Debug, Default)]
pub struct QueryPage<S = orrery_query::Rows> {
    pub rows: S,
    /// What was looked at for this page.
    pub meter: Meter,
    /// How the items were found, and what that took.
    pub plan: PlanNote,
    pub continuation: Option<Cursor>,
    pub receipt: Receipt,
    /// What the rows hold of the memory budget.
    pub memory: Option<Arc<Hold>>,
}

/// Throughput as a client provisions it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    Manual(u32),
    /// `increment_percent` is kept for the client; raising the ceiling by itself is the service's own affair.
    Autoscale {
        max: u32,
        increment_percent: Option<u32>,
    },
}

impl Throughput {
    /// The RU/s that partitions are sized and throttled for.
    pub fn ceiling(self) -> u32 {
        match self {
            Throughput::Manual(units) | Throughput::Autoscale { max: units, .. } => units,
        }
    }
}
