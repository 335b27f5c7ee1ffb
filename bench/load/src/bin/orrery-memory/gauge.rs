//! What a process uses, and what it says about it.

use orrery_testkit::Client;

pub const MIB: u64 = 1024 * 1024;

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub resident: u64,
    pub anonymous: u64,
}

pub fn used(process: u32) -> Used {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    Used { resident: field("VmRSS:"), anonymous: field("RssAnon:") }
}

/// The server's own figures.
#[derive(Clone, Debug, Default)]
pub struct Figures(String);

impl Figures {
    pub fn of(port: u16) -> Figures {
        let reply = Client::new(port).send_raw("GET", "/metrics", &[], b"").unwrap_or_default();
        Figures(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// A figure without labels, in MiB.
    pub fn mib(&self, name: &str) -> u64 {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or(0.0) as u64 / MIB
    }
}
