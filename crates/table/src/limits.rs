//! Every bound of the Table room, in one place.

use std::time::Duration;

/// Characters of a table's name.
pub const TABLE_NAME_CHARS_MAX: usize = 254;
/// Bytes of a filter, and levels of `and` in `or`, of `or` in `and` and of `not` in it. Each is one of the condition that the
/// query of it has, besides the few of a comparison, and the language of queries allows 128.
pub const FILTER_BYTES_MAX: usize = 32 * 1024;
pub const FILTER_DEPTH_MAX: usize = 100;
/// Comparisons in a filter.
pub const FILTER_COMPARISONS_MAX: usize = 1_000;
/// Names in `$select`.
pub const SELECTED_MAX: usize = 255;

/// Operations of a batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Bytes of the head of a part of a batch, and of a boundary.
pub const PART_HEAD_BYTES_MAX: usize = 16 * 1024;
pub const BOUNDARY_BYTES_MAX: usize = 128;

/// Entities of a page when the client does not say, and the most.
pub const PAGE_ENTITIES_DEFAULT: usize = 1_000;
pub const PAGE_ENTITIES_MAX: usize = 5_000;
/// How long one page may take; the client comes back for the rest.
pub const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Tables of a page.
pub const PAGE_TABLES_MAX: usize = 1_000;

/// How far a client's clock may be off.
pub const DATE_WINDOW: Duration = Duration::from_secs(15 * 60);
/// Bytes of a token of Entra ID, which may list many groups.
pub const BEARER_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a header that is signed.
pub const SIGNED_HEADER_BYTES_MAX: usize = 8 * 1024;
/// Levels and elements of a body of XML.
pub const XML_DEPTH_MAX: usize = 8;
pub const XML_ELEMENTS_MAX: usize = 1_000;
/// Stored access policies of a table, and characters of their names.
pub const POLICIES_MAX: usize = 5;
pub const POLICY_NAME_CHARS_MAX: usize = 64;
/// Rules for pages of other origins, bytes of all of them, and origins of one.
pub const CORS_RULES_MAX: usize = 5;
pub const CORS_RULES_BYTES_MAX: usize = 2 * 1024;
pub const CORS_ORIGINS_MAX: usize = 64;
/// For how many days something may be asked to be kept.
pub const RETENTION_DAYS_MAX: u32 = 365;
/// Deepest nesting of a body.
pub const BODY_DEPTH_MAX: usize = 8;
