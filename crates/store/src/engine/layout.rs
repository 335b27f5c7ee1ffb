//! Where the blocks of a table lie, as its own index tells.

use std::fs::File;

use lsm_tree::table::{Block, BlockHandle, IndexBlock};
use lsm_tree::{CompressionType, Table};

/// The blocks of a table that readers meet.
pub(super) struct Layout {
    /// Of its index.
    pub index: Vec<BlockHandle>,
    /// With data, in the order of keys.
    pub data: Vec<BlockHandle>,
}

impl Layout {
    pub fn read(file: &File, table: &Table) -> lsm_tree::Result<Layout> {
        let compression = table.metadata.index_block_compression;
        let top = read_index(file, table.regions.tli, compression)?;
        let mut layout = Layout { index: vec![table.regions.tli], data: Vec::new() };
        let is_partitioned = table.regions.index.is_some();
        for entry in top.iter() {
            let handle = BlockHandle::new(entry.offset, entry.size);
            if !is_partitioned {
                layout.data.push(handle);
                continue;
            }
            let part = read_index(file, handle, compression)?;
            layout.index.push(handle);
            layout.data.extend(part.iter().map(|entry| BlockHandle::new(entry.offset, entry.size)));
        }
        Ok(layout)
    }
}

fn read_index(
    file: &File,
    handle: BlockHandle,
    compression: CompressionType,
) -> lsm_tree::Result<IndexBlock> {
    Ok(IndexBlock::new(Block::from_file(file, handle, compression)?))
}
