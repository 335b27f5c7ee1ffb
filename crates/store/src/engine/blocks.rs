//! The blocks that reads keep in memory, and how those of a replaced table leave.
//!
//! The tree's cache forgets a block when it needs the room for another, and for no other reason. Under updates every merge
//! replaces tables, and what was read of the old ones would stay until the cache is full: the cache of a server with little
//! data would grow to all that it may have, nearly all of it blocks that nobody can ever ask for again.
//!
//! So a merge notes the tables that it has replaced and where their blocks lie, which only the table's own index can tell.
//! When the last reader of a table has gone, its blocks are taken out, one by one. What is left belongs to tables that are
//! read, so the cache never holds more than these.
//!
//! The cache has no function that removes a block. But a block that is heavier than all that the cache may hold is not
//! admitted, and then the one that it would have replaced goes too; weights are told by a block's header. The tests below
//! hold the crate to it, and its version is pinned.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::{Block, BlockOffset};
use lsm_tree::{Cache, Checksum, GlobalTableId, Slice, Table, TreeId};
use parking_lot::Mutex;

use super::layout::Layout;

/// The cache is made of at least four parts, and none may be as large as the weight of which a block is refused. What
/// the system itself caches serves those who have more memory than this.
const CACHE_BYTES_MAX: u64 = 8 << 30;
/// What the cache counts is so many of so many parts of what it takes: it does not see its own entries, nor that the
/// allocator rounds blocks up.
const COUNTED: (u64, u64) = (8, 9);
/// Replaced tables whose blocks are remembered. There are more only where a reader holds on to many of them for minutes.
const REPLACED_MAX: usize = 4096;

pub(super) struct Blocks {
    cache: Arc<Cache>,
    replaced: Mutex<Vec<Replaced>>,
}

/// A table that no new reader finds.
struct Replaced {
    id: GlobalTableId,
    /// The table, its iterators and those of its index hold the other ends.
    path: Weak<PathBuf>,
    offsets: Vec<u64>,
}

impl Blocks {
    /// A cache that takes so many bytes.
    pub fn new(bytes: u64) -> Blocks {
        let counted = bytes.min(CACHE_BYTES_MAX) / COUNTED.1 * COUNTED.0;
        let cache = Arc::new(Cache::with_capacity_bytes(counted));
        Blocks { cache, replaced: Mutex::default() }
    }

    pub fn cache(&self) -> Arc<Cache> {
        Arc::clone(&self.cache)
    }

    pub fn bytes(&self) -> u64 {
        self.cache.size()
    }

    /// Notes that a table is no longer part of its tree. Its file is still there.
    pub fn note_replaced(&self, tree: TreeId, table: &Table) {
        // What cannot be read was not read before either, or leaves when the cache is full.
        let Ok(offsets) = offsets(table) else { return };
        let id = GlobalTableId::from((tree, table.id()));
        let mut replaced = self.replaced.lock();
        if replaced.len() < REPLACED_MAX {
            replaced.push(Replaced { id, path: Arc::downgrade(&table.path), offsets });
        }
    }

    /// Takes out the blocks of replaced tables that nobody reads any more.
    pub fn drop_replaced(&self) {
        let unread = |table: &mut Replaced| table.path.strong_count() == 0;
        let dropped: Vec<_> = self.replaced.lock().extract_if(.., unread).collect();
        for table in dropped {
            for offset in table.offsets {
                self.remove(table.id, offset);
            }
        }
    }

    fn remove(&self, id: GlobalTableId, offset: u64) {
        let header = Header {
            block_type: BlockType::Data,
            checksum: Checksum::from_raw(0),
            data_length: 0,
            uncompressed_length: u32::MAX,
        };
        let too_heavy = Block { header, data: Slice::empty() };
        self.cache.insert_block(id, BlockOffset(offset), too_heavy);
    }
}

/// Where the blocks of a table lie that may be in the cache: those with data, and those of its index.
fn offsets(table: &Table) -> lsm_tree::Result<Vec<u64>> {
    let layout = Layout::read(&File::open(&*table.path)?, table)?;
    Ok(layout.index.iter().chain(&layout.data).map(|block| *block.offset()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(length: usize) -> Block {
        let header = Header {
            block_type: BlockType::Data,
            checksum: Checksum::from_raw(0),
            data_length: 0,
            uncompressed_length: length as u32,
        };
        Block { header, data: Slice::new(&vec![7; length]) }
    }

    #[test]
    fn a_block_that_is_too_heavy_takes_the_one_in_its_place_along() {
        for bytes in [1 << 20, 64 << 20, CACHE_BYTES_MAX, u64::MAX] {
            let blocks = Blocks::new(bytes);
            let ids = [(1, 1), (1, 2), (2, 1)].map(GlobalTableId::from);
            for id in ids {
                blocks.cache.insert_block(id, BlockOffset(0), block(1000));
                blocks.cache.insert_block(id, BlockOffset(5000), block(1000));
            }
            let all = blocks.bytes();
            assert!(all > 6000, "{all} bytes");
            for id in ids {
                blocks.remove(id, 0);
                blocks.remove(id, 4711);
                assert!(blocks.cache.get_block(id, BlockOffset(0)).is_none());
                assert!(blocks.cache.get_block(id, BlockOffset(5000)).is_some());
            }
            assert_eq!(blocks.bytes(), all / 2, "with {bytes} bytes in all");
        }
    }
}
