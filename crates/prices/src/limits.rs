//! Every limit of the service that a request can run into, in one place.
//!
//! Rooms above re-export this module; nothing else may spell such a number.
//! Values are those that the service documents.
//! What an operator may change lives in [`PartitionLimits`], with the service's value as its default.

use std::time::Duration;

/// Bytes of UTF-8 JSON that one item may have.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes that one request body may have; a batch shares it with its envelope.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024 + 256 * 1024;
/// Bytes of items that one page of a feed or query may carry.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a page of changes beyond which even one transaction is cut.
pub const CHANGE_PAGE_BYTES_MAX: u64 = 4 * PAGE_BYTES_MAX as u64;
/// The longest time for which a container may keep every version, in minutes.
pub const RETENTION_MINUTES_MAX: i64 = 30 * 24 * 60;
/// Entries of the history that one step erases.
pub const HISTORY_ERASED_PER_STEP: usize = 512;
/// Entries of sibling partitions in a sequence that is shared since a split: a reader passes so many before it is shown one,
/// and a step that erases a history passes about so many in all.
pub const SIBLINGS_PASSED_AT_ONCE: usize = 256;
pub const HISTORY_PASSED_PER_STEP: usize = 4_096;
/// Items of a logical partition, and their bytes, that are sorted to find its changes; more are found in the feed.
pub const FEED_SORTED_ITEMS_MAX: u64 = 10_000;
pub const FEED_SORTED_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Items of a page when the client leaves the choice to the server.
pub const PAGE_ITEMS_DEFAULT: usize = 1_000;
/// The most items of a page, whatever the client asks for.
pub const PAGE_ITEMS_MAX: usize = 10_000;
/// Most items that the server ranks for one query, of each score.
pub const RANKED_ROWS_MAX: usize = 10_000;
/// Parts of the key space with so few items, and bytes of them, are read in the order of creation.
pub const CREATION_ITEMS_MAX: u64 = 5_000;
pub const CREATION_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What of them is held and sorted at once; it is not counted, so it is little.
pub const CREATION_SORTED_BYTES: u64 = 1024 * 1024;
/// Depth of arrays and objects in a document.
pub const JSON_DEPTH_MAX: usize = 128;
/// Depth of the JSON of databases, containers and offers; the records that keep them add a few levels.
pub const RESOURCE_DEPTH_MAX: usize = 64;
/// Bytes of an item id.
pub const ID_BYTES_MAX: usize = 1_023;
/// Ids of items, in the bytes that a gateway makes of them: those of NoSQL have fewer, terms of typed values may have more.
pub const ITEM_ID_BYTES_MAX: usize = 4 * 1024;
/// Characters of the name of a database or container.
pub const NAME_CHARS_MAX: usize = 255;
/// Levels of a hierarchical partition key.
pub const KEY_LEVELS_MAX: usize = 3;
/// Operations of one batch.
pub const BATCH_OPS_MAX: usize = 100;
/// Operations of one patch.
pub const PATCH_OPS_MAX: usize = 10;
/// Unique keys of a container, and paths of each.
pub const UNIQUE_KEYS_MAX: usize = 10;
pub const UNIQUE_KEY_PATHS_MAX: usize = 16;
/// Seconds that an item may live at most.
pub const TTL_SECONDS_MAX: u32 = i32::MAX as u32;
/// Expired items that one step deletes, and entries that are looked at to find them.
pub const EXPIRED_PER_STEP: usize = 256;
pub const EXPIRED_LOOKED_AT_MAX: usize = 4_096;
/// Included or excluded paths of an indexing policy.
pub const INDEX_PATHS_MAX: usize = 1_500;
pub const COMPOSITE_INDEX_PATHS_MAX: usize = 8;
pub const COMPOSITE_INDEXES_MAX: usize = 100;
/// Values that one entry of a tuple index is made of.
pub const TUPLE_MEMBERS_MAX: usize = 8;
/// Paths whose items a partition counts in each index; the index has further paths, but nobody counts them.
pub const PATHS_COUNTED_MAX: usize = 4_096;
/// Items, and bytes of their documents, that one step of building an index takes.
pub const INDEX_BUILD_ITEMS: usize = 256;
pub const INDEX_BUILD_BYTES: usize = 1024 * 1024;
/// Containers whose index may be built at once.
pub const INDEX_BUILDS_MAX: usize = 2;
/// Places that one query may collect to bring them into key order.
pub const INDEX_COLLECTED_MAX: usize = 100_000;
/// Bytes that such a collection may have; ids may be long.
pub const INDEX_COLLECTED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Terms that are merged without being collected first.
pub const INDEX_MERGED_MAX: usize = 64;
/// Items, and about how many bytes of them, that a query fetches on a thread that other requests wait for.
pub const QUERY_ITEMS_AT_ONCE: usize = 128;
pub const QUERY_BYTES_AT_ONCE: u64 = 256 * 1024;
/// Items that a full page looks at to know whether anything follows.
pub const LOOK_AHEAD_ITEMS_MAX: usize = 1_024;
/// Partitions whose index orders one query merges, and items with equal values that it then fetches at once.
pub const ORDERS_MERGED_MAX: usize = 64;
pub const ORDER_RUN_MERGED_MAX: usize = 256;
/// Groups of one partition that are counted before the first is handed to the query that merges them.
pub const GROUPS_MERGED_MAX: usize = 10_000;
/// Partitions that one query which the server merges visits at the same time.
pub const MERGE_VISITS_AT_ONCE: usize = 4;
/// Batches of items that such a visit may be ahead, and what is in one at most.
pub const MERGE_BATCHES_WAITING: usize = 4;
pub const MERGE_BATCH_ITEMS: usize = 256;
pub const MERGE_BATCH_BYTES: u64 = 1024 * 1024;
pub const COMPUTED_PROPERTIES_MAX: usize = 20;
/// Containers that may share one database's throughput.
pub const SHARED_THROUGHPUT_CONTAINERS_MAX: usize = 25;
/// Users of a database and permissions of all its users. The service allows 500,000 and 2,000,000 for an account;
/// here each change copies the list that it changes, and a database takes all of them along when it goes.
pub const USERS_MAX: usize = 10_000;
pub const PERMISSIONS_MAX: usize = 20_000;
pub const ENCRYPTION_KEYS_MAX: usize = 20;
/// Roles of an account that are not built in, and assignments of roles.
pub const ROLE_DEFINITIONS_MAX: usize = 100;
pub const ROLE_ASSIGNMENTS_MAX: usize = 2_000;
/// What APIs keep about the account or a container, each below one name.
pub const SETTINGS_MAX: usize = 16;
/// Seconds that a resource token is good for: at least, by default, at most.
pub const TOKEN_SECONDS_MIN: u64 = 10;
pub const TOKEN_SECONDS_DEFAULT: u64 = 3_600;
pub const TOKEN_SECONDS_MAX: u64 = 86_400;
/// Scripts of a container.
pub const PROCEDURES_MAX: usize = 100;
pub const TRIGGERS_MAX: usize = 25;
pub const FUNCTIONS_MAX: usize = 50;
/// Bytes of the JSON of a script, and of a user, permission or encryption key.
pub const SCRIPT_BYTES_MAX: usize = 512 * 1024;
pub const CHILD_BYTES_MAX: usize = 16 * 1024;
/// Scripts that run at once; each holds a thread and may use its own memory.
pub const SCRIPTS_AT_ONCE_MAX: usize = 16;
pub const SCRIPT_MEMORY_BYTES: usize = 32 * 1024 * 1024;
/// Where memory is short a script gets half of what all scripts have, but not less than this; and so long one waits for it.
pub const SCRIPT_MEMORY_BYTES_MIN: usize = 8 * 1024 * 1024;
pub const SCRIPT_MEMORY_PATIENCE: Duration = Duration::from_secs(5);
/// How long a client waits for a script. One that used its time ends by itself a little earlier; one that built-in
/// functions keep from noticing is left alone and forgotten.
pub const SCRIPT_ANSWER_TIME_MAX: Duration = Duration::from_millis(5_400);
/// How often a script runs again because others wrote to its logical partition.
pub const SCRIPT_ATTEMPTS_MAX: usize = 12;
/// Writes of one script, and bytes of their items; further ones are not accepted.
pub const SCRIPT_WRITES_MAX: usize = 5_000;
pub const SCRIPT_WRITE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of what one transaction may hold in memory a script may fill one part in so many before that; the last write needs some too.
pub const SCRIPT_WRITES_PART: u64 = 2;
/// Items of a page of a query in a script, by default and at most.
pub const SCRIPT_PAGE_ITEMS_DEFAULT: usize = 100;
pub const SCRIPT_PAGE_ITEMS_MAX: usize = 1_000;
/// Compiled scripts that are remembered, and the bytes of their texts.
pub const SCRIPTS_CACHED_MAX: usize = 1_024;
pub const SCRIPTS_CACHED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes that the log of a script may have in a header, as it is encoded there; more would be too much for clients.
pub const SCRIPT_LOG_HEADER_BYTES_MAX: usize = 6 * 1024;
/// Triggers of each kind that one write may name.
pub const TRIGGERS_PER_WRITE_MAX: usize = 1;
/// Lowest manual throughput, its step, and the lowest autoscale ceiling and its step, all in RU/s.
pub const THROUGHPUT_MIN: u32 = 400;
pub const THROUGHPUT_STEP: u32 = 100;
pub const THROUGHPUT_MAX: u32 = 1_000_000;
pub const AUTOSCALE_MIN: u32 = 1_000;
pub const AUTOSCALE_STEP: u32 = 1_000;
/// RU/s that a new container gets when nobody says otherwise.
pub const THROUGHPUT_DEFAULT: u32 = 400;
/// RU/s of one physical partition of a serverless account.
pub const SERVERLESS_THROUGHPUT: u32 = 5_000;
/// Logical partitions that may be written to between planning a split and carrying it out; with more it is planned anew.
pub const SPLIT_TOUCHED_MAX: usize = 200_000;
/// Ranges that are remembered when others have succeeded them, for clients that still name them.
pub const GONE_RANGES_MAX: usize = 256;
/// Queries that are remembered to have been told that a range is gone.
pub const TOLD_QUERIES_MAX: usize = 1_024;
/// Ranges that a range remembers to come from, for session tokens that name them.
pub const PARENTS_MAX: usize = 256;
/// Partitions that one split may make.
pub const SPLIT_CHILDREN_MAX: u32 = 16;

/// How far the times of a partition may run ahead of the clock, in seconds: that far they go on and wait for the clock, as
/// they do when it is set right. Beyond it, the clock was wrong once, and they follow it back.
pub const CLOCK_AHEAD_SECONDS_MAX: u64 = 60;

/// Burst: a partition below this rate banks what it leaves idle and may spend at this rate.
pub const BURST_RATE_MAX: u32 = 3_000;
pub const BURST_SECONDS: u32 = 300;
/// RU/s above which a new container starts with several partitions, and what each of those then carries.
pub const INITIAL_PARTITION_THROUGHPUT: u32 = 6_000;
/// Throughput buckets of a container.
pub const THROUGHPUT_BUCKETS: usize = 5;
/// Requests that a budget, or a throughput bucket, remembers to have told to wait; each takes about a hundred bytes
/// until it comes back. That is as many as clients have under way.
pub const WAITS_PROMISED_MAX: usize = 16_384;
/// The longest wait that is kept free for who was told it: the clients of the service wait that long in all.
pub const WAIT_PROMISED_MAX: Duration = Duration::from_secs(30);
/// Hours whose highest use is kept for each offer.
pub const THROUGHPUT_HOURS_MAX: usize = 30 * 24;
/// Copy jobs that the account remembers, also those that are over.
pub const JOBS_MAX: usize = 100;
/// Items or changes, and about how many bytes of them, that one step of a job copies; a crash costs as much at most.
pub const JOB_PAGE_ITEMS: usize = 1_000;
pub const JOB_PAGE_BYTES: usize = PAGE_BYTES_MAX;
/// Items and changes that a job copies in a second: by default, and at most.
pub const JOB_RATE_DEFAULT: u32 = 10_000;
pub const JOB_RATE_MAX: u32 = 1_000_000;
/// Items that a job keeps aside because they meet a unique key of another item, which may be about to go.
pub const JOB_PARKED_MAX: usize = 1_000;
/// How long writes to a source may wait for the cut-over of a job; then they go on and the job tries again.
pub const JOB_HOLD_TIME_MAX: Duration = Duration::from_secs(4);
/// How long a query that must see all items of its scope before it can answer may take.
pub const BLOCKING_QUERY_TIME_MAX: Duration = Duration::from_secs(30);
/// Feeds and queries that may have started and are not done, and those that may wait to start, for how long.
pub const LONG_STARTED_MAX: usize = 32;
pub const LONG_WAITING_MAX: usize = 1_024;
pub const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long one of them computes while others wait, and what it may have used in all to go before those that used more.
pub const LONG_SLICE: Duration = Duration::from_millis(3);
pub const LONG_USED_LITTLE: Duration = Duration::from_millis(10);
/// Of the share of all queries one may hold so much, and the page of a feed so much.
pub const QUERY_SHARE: u64 = 2;
pub const PAGE_SHARE: u64 = 16;
/// In what steps a query takes memory, and how long one waits that found none.
pub const QUERY_MEMORY_STEP: u64 = 256 * 1024;
/// A query over databases, containers and the like holds so much of them that nobody has taken.
pub const RESOURCES_UNCOUNTED_BYTES: usize = 64 * 1024;
pub const QUERY_MEMORY_PATIENCE: Duration = Duration::from_secs(5);
/// About what a compiled query takes for each byte of its text.
pub const PROGRAM_BYTES_PER_TEXT: u64 = 64;
/// Lists of the largest logical partitions that may be made at once.
pub const LOOK_UPS_MAX: usize = 4;
/// Items of one partition whose keys are all walked to choose some of them; of more, places of the feed are tried.
pub const SAMPLE_WALKED_ITEMS_MAX: u64 = 2_000_000;
/// Places of the feed that are tried for each item that is wanted.
pub const SAMPLE_TRIES_PER_ITEM: usize = 64;
/// Transactions that may wait for one partition, about how many bytes of documents they may bring along, and
/// the transactions that one group commits together.
pub const PARTITION_QUEUE_MAX: usize = 10_000;
pub const PARTITION_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const GROUP_TXNS_MAX: usize = 256;
/// Bytes of items that the reads of one transaction may answer; they all go into one page.
pub const TXN_READ_BYTES_MAX: usize = PAGE_BYTES_MAX;
/// What the writes of one commit take in memory when no further partition's join it.
pub const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a partition's group holds in memory, terms of its index included, when it takes no further transaction.
pub const GROUP_HELD_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What a group may hold that nobody has taken from the budget, and in what steps it takes more.
pub const GROUP_UNCOUNTED_BYTES: u64 = 32 * 1024;
pub const WRITES_STEP_BYTES: u64 = 256 * 1024;
/// What is made of a document that was sent while it is carried out: the document, its stored form, and the one that it replaces.
pub const WRITE_COPIES: u64 = 3;
/// Terms of documents beyond this size are counted before they are made.
pub const TERMS_COUNTED_BYTES: usize = 16 * 1024;
/// What a step of deleting expired items holds when it ends.
pub const EXPIRED_BYTES_PER_STEP: u64 = 1024 * 1024;
/// How long a transaction waits for memory that it turned out to need.
pub const WRITES_PATIENCE: Duration = Duration::from_secs(8);
/// Logical partitions whose size a physical partition remembers; the rest is read back when needed.
pub const SIZES_CACHED_MAX: usize = 256;

/// The least memory that the process works with, and what of its budget is left for all that is not counted: the
/// program itself, stacks, connections, filters and indexes of tables, and the allocator's waste.
pub const MEMORY_BYTES_MIN: u64 = 128 * 1024 * 1024;
pub const MEMORY_BASE_BYTES: u64 = 48 * 1024 * 1024;
/// Of each share of the budget one part in so many is kept for what begins, out of reach of what grows.
pub const MEMORY_KEPT_FOR_NEWCOMERS: u64 = 4;
/// Requests that may wait for memory of one share.
pub const MEMORY_WAITING_MAX: usize = 1_024;
/// Bodies and answers up to these sizes are not counted: a connection has one of each at a time. Streams of HTTP/2 are
/// many, so that less of theirs is not.
pub const BODY_UNCOUNTED_BYTES: u64 = 8 * 1024;
pub const ANSWER_UNCOUNTED_BYTES: usize = 32 * 1024;
pub const STREAM_UNCOUNTED_BYTES: u64 = 1024;
/// Heads of requests over HTTP/2 up to this size are not counted; those of SDKs have half of it.
pub const HEAD_UNCOUNTED_BYTES: usize = 4 * 1024;
/// Bodies beyond this size leave a part of the memory for bodies to those that are smaller.
pub const BODY_LARGE_BYTES: u64 = 64 * 1024;
/// How long a body waits, unread, for memory, and how long an answer does before it is made.
pub const BODY_PATIENCE: Duration = Duration::from_secs(8);
pub const ANSWER_PATIENCE: Duration = Duration::from_secs(8);
/// Where others wait for its memory, a body has to come and an answer to be read at these rates, after a moment of grace.
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 1024 * 1024;
pub const ANSWER_BYTES_PER_SECOND_MIN: u64 = 1024 * 1024;
pub const HELD_GRACE: Duration = Duration::from_secs(2);
/// The largest answer with one item.
pub const ITEM_ANSWER_BYTES_MAX: u64 = 2 * 1024 * 1024 + 128 * 1024;

/// Budgets of physical and logical partitions that an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLimits {
    pub logical_partition_bytes: u64,
    /// At this size a partition splits.
    pub partition_bytes: u64,
    pub partition_throughput: u32,
    /// How long partitions may be provisioned with a small part of what they can give before they are merged.
    pub merge_after: Duration,
    /// How long every version is kept of containers that do not say it themselves; at most [`RETENTION_MINUTES_MAX`].
    pub retention: Option<Duration>,
}

impl PartitionLimits {
    /// What each partition of a new container carries when one is not enough: the service's 6,000 of 10,000, kept in
    /// proportion when an operator sets another budget.
    pub fn new_partition_throughput(&self) -> f64 {
        let share = f64::from(INITIAL_PARTITION_THROUGHPUT) / 10_000.0;
        (f64::from(self.partition_throughput) * share).max(1.0)
    }
}

impl Default for PartitionLimits {
    fn default() -> Self {
        const GB: u64 = 1024 * 1024 * 1024;
        Self {
            logical_partition_bytes: 20 * GB,
            partition_bytes: 50 * GB,
            partition_throughput: 10_000,
            merge_after: Duration::from_secs(600),
            retention: None,
        }
    }
}

/// How far LSNs and rids leap when the end of the journal was torn, and when an epoch begins: more than can have been given
/// out since the last sync.
pub const LEAP_LSNS: u64 = 1 << 20;

/// Regions of an account.
pub const REGIONS_MAX: usize = 16;
/// What the parts of an item's rid may be at most: 20 bits for the partition, 4 for the region, 36 for the count.
pub const RID_PARTITION_MAX: u32 = 0xF_FFFF;
pub const RID_REGION_MAX: u8 = 0xF;
pub const RID_COUNT_MAX: u64 = (1 << 36) - 1;

/// Bytes of the first frame of a connection in direct mode.
pub const DIRECT_CONTEXT_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the headers of a request in direct mode: as many as HTTP may have.
pub const DIRECT_HEADER_BYTES_MAX: usize = 64 * 1024;
/// Requests of a connection in direct mode that are not answered yet; clients open another connection beyond thirty.
pub const DIRECT_REQUESTS_MAX: usize = 256;
/// Bytes of headers that a request in direct mode may have for one of these places; one with more takes more of them.
pub const DIRECT_PLACE_BYTES: usize = 1024;
/// How long a connection in direct mode may last on which nobody has asked who may.
pub const DIRECT_SILENT_TIME_MAX: Duration = Duration::from_secs(60);
