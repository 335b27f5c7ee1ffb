//! How a database is opened, and what its account looks like.

use std::path::PathBuf;

use orrery_store::engine::{DiskOptions, EngineError};
use orrery_store::limits::PartitionLimits;

use crate::memory::MemoryShares;
use crate::request::Consistency;

#[derive(Clone, Debug)]
pub struct DbOptions {
    pub storage: Storage,
    pub durability: Durability,
    pub limits: PartitionLimits,
    /// Off only for tests that must not be slowed down.
    pub throttle: bool,
    pub account: Account,
    /// What requests may hold in memory, and what the engine may.
    pub memory: MemoryShares,
}

impl DbOptions {
    /// An account in memory that throttles nobody: what a program needs that brings its database along, as tests do. Where it is to be
    /// otherwise, `DbOptions { throttle: true, ..DbOptions::in_memory("name", "region") }` says so.
    pub fn in_memory(name: &str, region: &str) -> DbOptions {
        DbOptions {
            storage: Storage::Memory,
            durability: Durability::Durable,
            limits: PartitionLimits::default(),
            throttle: false,
            account: Account {
                name: name.to_owned(),
                region: region.to_owned(),
                consistency: Consistency::Session,
                serverless: false,
            },
            memory: MemoryShares::default(),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Storage {
    Memory,
    Disk {
        path: PathBuf,
        cache_bytes: u64,
        disk_bytes_max: Option<u64>,
        /// Of one keyspace; tests make it small so that little data makes many files.
        write_buffer_bytes: Option<u64>,
    },
}

/// How the engine is opened on what is stored; none where nothing is.
pub(crate) fn disk_options(options: &DbOptions) -> Option<DiskOptions> {
    let Storage::Disk { path, cache_bytes, disk_bytes_max, write_buffer_bytes } = &options.storage else {
        return None;
    };
    let mut disk = DiskOptions::new(path);
    disk.cache_bytes = *cache_bytes;
    disk.buffer_bytes = options.memory.write_buffers;
    disk.merge_bytes = options.memory.merges;
    disk.limit(*disk_bytes_max);
    if let Some(bytes) = write_buffer_bytes {
        disk.tuning.memtable_bytes = *bytes;
        disk.tuning.table_bytes = *bytes;
        disk.tuning.segment_bytes = 2 * *bytes;
    }
    Some(disk)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// An acknowledged write is on disk.
    Durable,
    /// An acknowledged write is on disk within a fraction of a second.
    Relaxed,
}

#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    pub region: String,
    pub consistency: Consistency,
    pub serverless: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the catalog is damaged: {0}")]
    Catalog(String),
    #[error(
        "the data has storage format {found}, and this version of the server reads formats {oldest} to {newest}"
    )]
    Format { found: u32, oldest: u32, newest: u32 },
}
