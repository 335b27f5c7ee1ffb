//! How the trees are set up. Each figure was measured with `bench/storm`; the record of what was tried
//! is `docs/decisions/0002-storage-engine-tuning.md` and `0010-merging-less.md`.

use std::path::Path;

use lsm_tree::compaction::Leveled;
use lsm_tree::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    PartitioningPolicy, PinningPolicy, RestartIntervalPolicy,
};
use lsm_tree::{CompressionType, Config, SequenceNumberCounter};

use super::Keyspace;

/// Knobs that the storm benchmark turns. Servers use the defaults.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Write buffer of one keyspace. It bounds memory, what a killed process replays, and how long
    /// a flush lasts.
    pub memtable_bytes: u64,
    /// Size of one table file. The last table of a compaction is synced under a lock that readers
    /// need, so small tables keep their stalls short.
    pub table_bytes: u64,
    /// Tables in the first level that start a compaction. The more there are, the less often the
    /// level below is rewritten for them, and the more places a read looks into meanwhile.
    pub level0_threshold: u8,
    /// Largest growth from one level to the next: how much of the next level is rewritten for a
    /// table of this one.
    pub level_ratio_max: f64,
    /// Compactions that may run at once.
    pub compactors: usize,
    /// Bytes of a data block.
    pub block_bytes: u32,
    /// Bytes of a journal segment.
    pub segment_bytes: u64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            memtable_bytes: 8 << 20,
            table_bytes: 8 << 20,
            level0_threshold: 8,
            level_ratio_max: 8.0,
            compactors: 1,
            block_bytes: 4 << 10,
            segment_bytes: 16 << 20,
        }
    }
}

impl Tuning {
    /// On a small volume everything is in proportion: some ten journal segments, the write buffers of all keyspaces
    /// and the tables of a merge must find room besides the data.
    pub fn for_volume(bytes: u64) -> Tuning {
        let usual = Tuning::default();
        Tuning {
            memtable_bytes: (bytes / 128).clamp(512 << 10, usual.memtable_bytes),
            table_bytes: (bytes / 128).clamp(512 << 10, usual.table_bytes),
            segment_bytes: (bytes / 64).clamp(1 << 20, usual.segment_bytes),
            ..usual
        }
    }

    /// How the tree of a keyspace is opened.
    pub(super) fn config(&self, keyspace: Keyspace, path: &Path, sequence: &SequenceNumberCounter) -> Config {
        let filter = match keyspace {
            Keyspace::Item | Keyspace::Meta => {
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0))
            }
            // These are read by ranges, which cannot use a filter.
            Keyspace::Index | Keyspace::Feed | Keyspace::Log => FilterPolicyEntry::None,
        };
        // What the tree thinks is visible does not matter: readers bring their own sequence numbers.
        let visible = SequenceNumberCounter::default();
        Config::new(path, sequence.clone(), visible)
            .data_block_size_policy(BlockSizePolicy::all(self.block_bytes))
            .data_block_restart_interval_policy(RestartIntervalPolicy::new([10, 16]))
            .data_block_compression_policy(CompressionPolicy::new([
                CompressionType::None,
                CompressionType::None,
                CompressionType::Lz4,
            ]))
            .filter_policy(FilterPolicy::all(filter))
            // A read asks the filters of all levels. They are a bit over a byte for each key, and
            // finding them among the cached blocks costs more than asking them.
            .filter_block_partitioning_policy(PartitioningPolicy::all(false))
            .filter_block_pinning_policy(PinningPolicy::all(true))
    }

    /// The strategy that our own compactors use on a tree of this size.
    ///
    /// Level sizes grow by a constant factor from a base, and the factor is chosen so that the
    /// growth ends at the tree's real size. A fixed factor would let the last level be hardly larger
    /// than the one above it, and what lies above the last level is what deleted data hides in.
    pub(super) fn strategy(&self, level0_threshold: u8, tree_bytes: u64) -> Leveled {
        let base = self.table_bytes * u64::from(level0_threshold);
        let growth = (tree_bytes as f64 / base as f64).max(2.0);
        let levels = (growth.ln() / self.level_ratio_max.ln()).ceil().max(1.0);
        let ratio = growth.powf(1.0 / levels).max(2.0) as f32;
        Leveled::default()
            .with_l0_threshold(level0_threshold)
            .with_table_target_size(self.table_bytes)
            .with_level_ratio_policy(vec![ratio])
    }

    /// The strategy for a tree of moderate size that nobody writes to: all goes to the last level but
    /// a few tables. It rewrites much, so it is not for trees in use nor for large ones.
    pub(super) fn tidy_strategy(&self) -> Leveled {
        Leveled::default()
            .with_l0_threshold(1)
            .with_table_target_size(self.table_bytes)
            .with_level_ratio_policy(vec![2.0])
    }
}
