//! What is told of partitions, in the shapes that pages and terminals show.

use orrery_doc::{Epk, EpkRange};
use orrery_store::Lsn;

use super::sketch::Window;
use super::windows::{Cell, Slot};

/// One physical partition.
#[derive(Clone, Debug)]
pub struct PartitionInsight {
    pub id: u32,
    pub range: EpkRange,
    /// The shares of the whole key space at which it begins and ends, from 0 to 1.
    pub share: (f64, f64),
    pub parents: Vec<u32>,
    pub lsn: Lsn,
    pub items: u64,
    pub bytes: u64,
    /// RU/s that it may use; zero means unlimited.
    pub throughput: f64,
    pub use_of: Use,
}

/// What a partition or a container has served.
#[derive(Clone, Debug, Default)]
pub struct Use {
    /// Since the server started, or the partition was made.
    pub requests_total: u64,
    pub units_total: f64,
    pub throttled_total: u64,
    /// Sums of the last ten seconds and the last minute.
    pub ten_seconds: Slot,
    pub minute: Slot,
    /// The window asked for, oldest first: seconds of a minute, minutes of an hour, hours of a day.
    pub window: Vec<Slot>,
}

/// All partitions of a container, in the order of the key space.
#[derive(Clone, Debug)]
pub struct ContainerInsight {
    pub window: Window,
    /// When the last slot of each window ended, in seconds since 1970.
    pub until: u64,
    /// The container as a whole; it goes on when partitions split.
    pub whole: Use,
    pub partitions: Vec<PartitionInsight>,
}

/// A physical partition's part of the heat map: a row for each bucket, a cell for each second or minute.
#[derive(Clone, Debug)]
pub struct HeatRows {
    pub id: u32,
    pub share: (f64, f64),
    pub rows: Vec<Vec<Cell>>,
}

/// What makes a logical partition hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotBy {
    Units,
    Requests,
    Throttled,
}

/// A logical partition that did much.
#[derive(Clone, Debug, PartialEq)]
pub struct HotPartitionKey {
    pub range_id: u32,
    pub key: String,
    pub units: f64,
    pub requests: f64,
    pub throttled: f64,
    /// By how much the units may be overstated or another key have been missed.
    pub error: f64,
}

/// A logical partition that holds much.
#[derive(Clone, Debug, PartialEq)]
pub struct LargePartitionKey {
    pub range_id: u32,
    pub epk: Epk,
    /// None if no item is left from which it could be read.
    pub key: Option<String>,
    pub bytes: u64,
    /// Known when sizes were looked up, not when writes told them.
    pub items: Option<u64>,
}
