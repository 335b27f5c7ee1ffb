//! The process's memory, from the kernel's own account.

/// Bytes resident now; 0 where the kernel does not tell.
pub fn resident() -> u64 {
    status("VmRSS:")
}

/// The most bytes that were ever resident.
pub fn peak() -> u64 {
    status("VmHWM:")
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
