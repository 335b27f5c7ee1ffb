//! Every bound of the query room, in one place.

/// Longest accepted query text, in bytes.
pub const QUERY_BYTES: usize = 512 * 1024;

/// Deepest accepted nesting of expressions and subqueries. Every recursive walk (parser, printer,
/// compiler, evaluator, drop) is bounded by it, so it is chosen to fit a small thread stack.
pub const EXPRESSION_DEPTH: u32 = 128;

/// Most user-defined functions that one query may name, each time counted.
pub const USER_FUNCTIONS: usize = 10;

/// Most JOINs in one FROM clause.
pub const JOINS: usize = 10;

/// Conjunctions and disjunctions longer than this print flat instead of nested, so that text we
/// print always parses again within `EXPRESSION_DEPTH`.
pub const NESTED_LOGICAL_OPERANDS: usize = 32;

/// Longest string that `REPLICATE` may produce, in characters.
pub const REPLICATE_CHARS: usize = 10_000;

/// Longest string that a function or `||` may produce, in bytes.
pub const STRING_BYTES: usize = 4 * 1024 * 1024;

/// Most elements of an array that a function or subquery may produce.
pub const ARRAY_ITEMS: usize = 262_144;

/// Memory for one compiled regular expression, in bytes.
pub const REGEX_BYTES: usize = 1024 * 1024;

/// Steps of the slow engine that takes over from a regular expression's automaton when that grows too
/// large: states times bytes of text.
pub const REGEX_STEPS: u64 = 200_000_000;

/// Steps of the slow engine that count as one step of work: one match of full length is allowed for each document.
pub const REGEX_STEPS_PER_WORK: u64 = 16;

/// Longest run of a LIKE pattern between two `%` if it has wildcards, in characters.
pub const LIKE_WILD_PARTS: usize = 256;

/// Longest LIKE pattern, in bytes: as long as a query that has it in its text may be.
pub const LIKE_PATTERN_BYTES: usize = QUERY_BYTES;

/// Findings after which no more are looked for.
pub const FINDINGS: usize = 20;

/// Most points of a shape, as of the service.
pub const SHAPE_POINTS: usize = orrery_doc::geo::SHAPE_POINTS;

/// Rows that the expansion of one document (JOINs, subqueries) may visit.
pub const STEPS_PER_DOCUMENT: u64 = 1_000_000;

/// Work that the expressions over one document may do, in steps of about `WORK_BYTES` of text. It ends
/// queries that run an expensive function once per row of a subquery.
pub const WORK_PER_DOCUMENT: u64 = 20_000_000;

/// Steps of work, and rows visited, after which a run lets others go first if they wait.
pub const WORK_BEFORE_REST: u64 = 4_096;
pub const STEPS_BEFORE_REST: u64 = 512;

/// Bytes of text that count as one step of work.
pub const WORK_BYTES: usize = 32;

/// About how many other rows a row is compared with when it is sorted.
pub const SORT_COMPARISONS: usize = 16;

/// Bytes of strings, arrays and objects that the expressions over one document may make.
pub const MADE_BYTES_PER_DOCUMENT: u64 = 128 * 1024 * 1024;

/// Longest row that a query may answer, in bytes of JSON.
pub const ROW_BYTES: usize = 64 * 1024 * 1024;

/// Groups that one GROUP BY may hold in memory.
pub const GROUPS: usize = 200_000;

/// About what an allocation takes besides what it is for.
pub const ALLOCATION_BYTES: usize = 32;

/// Bytes that the blocking operators of one run may hold in memory, whatever its steward says.
pub const RUN_BYTES: usize = 256 * 1024 * 1024;

/// Most partition-key values that a filter may pin before the query is sent everywhere.
pub const PINNED_KEYS: usize = 1_000;

/// Largest count that TOP, OFFSET and LIMIT accept.
pub const ROW_COUNT: u64 = u32::MAX as u64;

/// Compiled queries are kept in so many parts, each with its own lock.
pub const CACHE_SHARDS: usize = 16;

/// Most texts that one part keeps, and about how many bytes they may take.
pub const CACHE_SHARD_TEXTS: usize = 64;
pub const CACHE_SHARD_BYTES: usize = 256 * 1024;

/// Texts of which one part remembers that they were seen once.
pub const CACHE_SEEN_TEXTS: usize = 128;

/// Longest text that is kept, in bytes.
pub const CACHED_TEXT_BYTES: usize = 2 * 1024;

/// About what a compiled query takes for each byte of its text.
pub const PROGRAM_BYTES_PER_TEXT: usize = 64;
