//! What a merge takes in memory, and how that is bounded.
//!
//! A merge reads its tables block by block and writes others. Two things of it stay in memory:
//!
//! - *The block in which each run is being read.* A block has 4 KiB of items, or one item that is larger: up to 2 MB. The
//!   first level has many runs, and all of them are merged at once. So each of its tables is looked at when it is new, and where
//!   blocks are large the level is merged early ([`level0_threshold`]); commits wait if it has too many runs all the same
//!   ([`runs_bytes_max`]).
//! - *Blocks whose last key goes into the index of the new table.* The index is written when the table is complete, and
//!   until then it refers to these keys where they were read, that is, to whole unpacked blocks. In a block of several items
//!   the last key is shortened, and kept apart; so these are the blocks of one large item, and a merge may hold as many of them,
//!   unpacked, as a table has. Large values were packed before they came to the tree (`packing`) and are not made
//!   smaller once more, so these blocks take what the table takes on disk, which is bounded at start.

use std::fs::File;

use lsm_tree::Table;

use super::layout::Layout;
use super::tuning::Tuning;

/// Of the memory for merges: what a table may have, what the blocks of all runs may take when the first level is merged, and
/// what they may take before commits wait.
const TABLE_PART: u64 = 2;
const RUNS_PART: u64 = 4;
const RUNS_MOST_PART: u64 = 2;

/// Bytes of the largest block of a table in the first level, where none is compressed. A table that cannot be read cannot be
/// merged either, and then that is noticed.
pub(super) fn largest_block(table: &Table) -> u64 {
    let layout = File::open(&*table.path).map_err(Into::into).and_then(|file| Layout::read(&file, table));
    let blocks = layout.map(|layout| layout.data).unwrap_or_default();
    blocks.iter().map(|block| u64::from(block.size())).max().unwrap_or(0)
}

/// The size of tables where a merge may take so much memory.
pub(super) fn table_bytes(tuning: &Tuning, memory: u64) -> u64 {
    tuning.table_bytes.min(memory / TABLE_PART)
}

/// Runs from which the first level is merged.
pub(super) fn level0_threshold(tuning: &Tuning, memory: u64, largest_block: u64) -> u8 {
    let runs = memory / RUNS_PART / largest_block.max(1);
    runs.clamp(1, u64::from(tuning.level0_threshold)) as u8
}

/// What the largest blocks of all runs of the first level may take together before commits wait for a merge.
pub(super) fn runs_bytes_max(memory: u64) -> u64 {
    memory / RUNS_MOST_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn runs_of_large_blocks_are_merged_early() {
        let threshold = |memory, block| level0_threshold(&Tuning::default(), memory, block);
        assert_eq!(threshold(16 * MIB, 0), 8);
        assert_eq!(threshold(16 * MIB, 5_000), 8);
        assert_eq!(threshold(16 * MIB, 2 * MIB), 2);
        assert_eq!(threshold(16 * MIB, 64 * MIB), 1);
        assert_eq!(threshold(128 * MIB, 2 * MIB), 8);
    }
}
