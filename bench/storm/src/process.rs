//! What the kernel has put to this process's account; 0 where it does not tell.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Bytes resident now.
pub fn resident() -> u64 {
    field("status", "VmRSS:") * 1024
}

/// The most bytes that were ever resident.
pub fn peak() -> u64 {
    field("status", "VmHWM:") * 1024
}

/// Bytes that went to disk, or will.
pub fn written() -> u64 {
    field("io", "write_bytes:")
}

/// Seconds of processor time.
pub fn processor() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn field(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
