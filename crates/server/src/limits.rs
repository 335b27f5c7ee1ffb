//! Every bound that the server itself enforces, in one place.
//!
//! The numbers here are either fixed properties of the listener or the defaults of the options in
//! [`crate::config`]; the gateways and the engine keep theirs in their own rooms.

use std::time::Duration;

/// The port of the Table API unless an operator names one.
pub const TABLE_PORT: u16 = 8902;

/// Connections of a port served at once; one more is closed on arrival.
pub const MAX_CONNECTIONS: usize = 4096;

/// The largest request line plus headers that HTTP/1.1 and HTTP/2 accept. Session tokens of wide
/// containers are the longest honest header, and they stay below half of this.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The first bytes of a connection by which several protocols on one port are told apart. The frames and methods that
/// they begin with are told by far fewer.
pub const RECOGNITION_BYTES_MAX: usize = 64;
/// Records of TLS that are gathered before they go to the socket, where a protocol flushes only now and then. One write more
/// may come on top.
pub const GATHERED_BYTES_MAX: usize = 32 * 1024;
/// The longest method of HTTP that is recognised beside other protocols.
pub const HTTP_METHOD_BYTES_MAX: usize = 24;

/// Streams one HTTP/2 connection may have open.
pub const MAX_HTTP2_STREAMS: u32 = 256;

/// Flow-control windows: large enough that a 2 MiB item is not sent in 64 KiB steps.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const HTTP2_CONNECTION_WINDOW_BYTES_MIN: u32 = 128 * 1024;
/// What is in the windows is held before anybody has asked for memory, so that so many connections may fill what there
/// is for bodies.
const HTTP2_WINDOWS: u64 = 256;

/// The window of a connection where there are so many bytes for bodies.
pub fn http2_window_bytes(bodies: u64) -> u32 {
    let part = u32::try_from(bodies / HTTP2_WINDOWS).unwrap_or(u32::MAX);
    part.clamp(HTTP2_CONNECTION_WINDOW_BYTES_MIN, HTTP2_CONNECTION_WINDOW_BYTES)
}

/// Below this a memory budget is small: what is fast and takes more memory than is used is for larger ones.
const SMALL_BUDGET_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Where the memory budget is small, the system may hold only so much of an answer that is not read: it counts
/// against the container. Elsewhere the system decides by itself, up to 4 MiB.
const SMALL_SEND_BUFFER_BYTES: u32 = 256 * 1024;
/// Connections that wait to be accepted.
pub const LISTEN_BACKLOG: u32 = 1024;

/// What the system may hold of answers on a connection, if that is to be said.
pub fn send_buffer_bytes(budget: u64) -> Option<u32> {
    is_small(budget).then_some(SMALL_SEND_BUFFER_BYTES)
}

/// Whether a memory budget is small.
pub fn is_small(budget: u64) -> bool {
    budget < SMALL_BUDGET_BYTES
}

/// An answer that is not read, or not given a window of HTTP/2, at this rate is given up when the time for writing
/// has passed as well.
pub const UNSENT_BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

/// What is taken in of a body that was refused before it was there, so that its client comes to read the answer; a
/// client that sends more than this finds the connection broken. Nothing of it is kept.
pub const LINGER_BYTES_MAX: usize = 256 * 1024 * 1024;
pub const LINGER_READ_BYTES: usize = 16 * 1024;

/// An HTTP/2 peer that does not answer a ping within the timeout is gone.
pub const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
pub const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the accept loop rests after an error such as "too many open files", so that it does not spin.
pub const ACCEPT_ERROR_PAUSE: Duration = Duration::from_millis(50);

/// The watchdog of a connection looks this often within the shortest of its timeouts.
pub const WATCHDOG_TICKS_PER_TIMEOUT: u32 = 4;
pub const WATCHDOG_MIN_TICK: Duration = Duration::from_millis(10);
pub const WATCHDOG_MAX_TICK: Duration = Duration::from_secs(5);

/// No timeout may be set longer than this: a timer that far away is a mistake in the configuration.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Open files beyond the connections: those of the engine, which keeps its tables open as far as it may, and a few others.
pub const RESERVED_OPEN_FILES: u64 = 16 * 1024;
/// With fewer than these beyond the connections a server works, but opens files again and again.
pub const MIN_RESERVED_OPEN_FILES: u64 = 512;

/// The memory budget when nobody says otherwise, as a part of what the container allows and of what the machine has.
pub const BUDGET_OF_CONTAINER: Part = Part(3, 4);
pub const BUDGET_OF_MACHINE: Part = Part(1, 2);

/// So many of so many parts.
#[derive(Clone, Copy, Debug)]
pub struct Part(u64, u64);

impl Part {
    pub fn of(self, whole: u64) -> u64 {
        whole / self.1 * self.0
    }
}

/// Names on the certificate beyond the built-in ones.
pub const MAX_TLS_NAMES: usize = 64;

/// The longest name that DNS has.
pub const MAX_HOST_NAME_BYTES: usize = 253;

/// A configuration or key file larger than this is not one.
pub const MAX_CONFIG_FILE_BYTES: u64 = 1024 * 1024;

/// A seed is read whole; what is larger belongs into files of items, which are not.
pub const SEED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The account's own keys are 64 bytes; anything shorter than this is too weak to be meant.
pub const MIN_KEY_BYTES: usize = 16;
pub const MAX_KEY_BYTES: usize = 1024;
/// Different bytes that a key must have. Of sixteen random ones fewer than this are as good as impossible; what people type
/// to have some key has fewer.
pub const MIN_KEY_VALUES: usize = 8;

/// The leaf certificate is renewed when less than the margin of its life is left.
pub const CA_LIFETIME_DAYS: i64 = 3650;
pub const LEAF_LIFETIME_DAYS: i64 = 397;
pub const LEAF_RENEWAL_MARGIN_DAYS: i64 = 30;
/// How often a running server looks at its age.
pub const LEAF_CHECK_PERIOD: Duration = Duration::from_secs(60 * 60);
