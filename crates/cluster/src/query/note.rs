//! What was done for a page, for those who ask.

use orrery_query::{Access, IndexPath};
use orrery_store::Meter;

use super::tally::QueryTimes;

/// How a page found its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The query needs no items.
    #[default]
    None,
    /// All items of the scope, in key order.
    Scan,
    /// Items that index entries name, in key order.
    Index,
    /// Items in the order of an index, which is the order that the query asks for.
    Order,
    /// The count of items or of index entries is the answer.
    Count,
    /// The first or last entry of an index decides.
    Extreme,
    /// The counts of equal index entries are the answer.
    Groups,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Scan => "scan",
            Method::Index => "index",
            Method::Order => "index order",
            Method::Count => "index count",
            Method::Extreme => "index end",
            Method::Groups => "index groups",
        }
    }
}

/// One condition that the index was asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafNote {
    pub path: IndexPath,
    pub path_hash: u64,
    /// Entries counted before the choice.
    pub entries: u64,
    /// Counting stopped before the end.
    pub more: bool,
    pub used: bool,
}

/// The chosen plan of one page on one partition, with what it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanNote {
    pub method: Method,
    /// What the planner offered; none when no index could be used.
    pub access: Option<Access>,
    /// The conditions that the index was asked about.
    pub leaves: Vec<LeafNote>,
    /// Partitions visited.
    pub partitions: u32,
    /// Items that the scope holds on them, at most.
    pub scope_items: u64,
    pub index_entries: u64,
    pub documents_loaded: u64,
    pub document_bytes: u64,
    pub times: QueryTimes,
}

impl PlanNote {
    /// Adds the visit of one partition. Of several, the first that found items says how.
    pub(super) fn add(&mut self, visit: PlanNote, meter: &Meter, times: QueryTimes) {
        if self.access.is_none() {
            self.access = visit.access;
        }
        if self.method == Method::None {
            self.method = visit.method;
            self.leaves = visit.leaves;
        }
        self.partitions += 1;
        self.scope_items += visit.scope_items;
        self.index_entries += meter.index_entries_read;
        self.documents_loaded += u64::from(meter.items_scanned);
        self.document_bytes += meter.bytes_scanned;
        self.times.add(times);
    }
}
