//! The limits of the protocol.

use std::time::Duration;

/// Bytes of a request.
pub const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How deep values are nested.
pub const DEPTH_MAX: usize = 64;
/// Items of a page, when the request does not say.
pub const PAGE_ITEMS: usize = 100;
/// For how long a page is looked for.
pub const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
