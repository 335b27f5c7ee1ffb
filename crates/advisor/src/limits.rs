//! What the advisor accepts and how hard it looks.

/// Operations of a workload, fields of its items, candidates of one comparison.
pub const OPERATIONS_MAX: usize = 500;
pub const FIELDS_MAX: usize = 100;
pub const CANDIDATES_MAX: usize = 32;
/// Candidates that are proposed where none are given.
pub const PROPOSALS_MAX: usize = 10;
/// Values that a field may list one by one.
pub const CHOICES_MAX: usize = 10_000;
/// Groups of values of a field, and bytes of a name or prefix.
pub const GROUPS_MAX: usize = 100;
pub const NAME_BYTES_MAX: usize = 256;
/// Items of a sample, and bytes of their JSON; further ones are left out.
pub const SAMPLE_ITEMS_MAX: usize = 20_000;
pub const SAMPLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a sampled value that are looked at; the rest only tells it from others.
pub const SAMPLE_VALUE_BYTES_MAX: usize = 256;
/// Paths of a sample that are looked at, and how deep they may lie.
pub const SAMPLE_PATHS_MAX: usize = 100;
pub const SAMPLE_DEPTH_MAX: usize = 4;
/// Bytes of the names of such a path, and different paths that are counted before the commonest are taken.
pub const SAMPLE_PATH_BYTES_MAX: usize = 1_024;
pub const SAMPLE_PATHS_COUNTED_MAX: usize = 10_000;
/// Different paths of a sample that operations and candidates may name together.
pub const NAMED_PATHS_MAX: usize = 200;
/// Characters of a candidate's text; parts of one of its levels; values of a suffix.
pub const CANDIDATE_BYTES_MAX: usize = 1_024;
pub const PARTS_MAX: usize = 4;
pub const BUCKETS_MAX: u32 = 10_000;
/// Physical partitions that are simulated.
pub const PARTITIONS_MAX: u32 = 256;
/// Items that stand for all those stored, and requests that stand for those of one operation.
/// A partition should meet so many of each that chance alone does not make it look hot.
pub const ROWS_MIN: usize = 20_000;
/// Values of all those items together, so that items with many paths do not fill the memory.
pub const ROW_VALUES_MAX: usize = 2_000_000;
pub const DRAWS_MIN: usize = 4_000;
pub const DRAWS_PER_PARTITION: usize = 400;
/// Keys that one query may name before it is taken to ask every partition.
pub const KEYS_ASKED_MAX: usize = 1_000;
/// Filters and paths of one operation, and writes of one transaction.
pub const FILTERS_MAX: usize = 32;
pub const WRITES_MAX: u32 = 100;
/// Items that one operation may name as touched.
pub const TOUCHED_MAX: usize = 1_000;
/// Hashes that a look at all items keeps at once, of about 16 bytes each.
pub const CENSUS_HASHES_MAX: usize = 4_000_000;
/// Days of a horizon; beyond it nobody plans.
pub const HORIZON_DAYS_MAX: f64 = 36_500.0;
/// How far ahead a full logical partition is foreseen.
pub const FORESIGHT_DAYS: f64 = 3_652.5;
/// Where all chance starts.
pub const SEED: u64 = 0x6f72_7265_7279;
