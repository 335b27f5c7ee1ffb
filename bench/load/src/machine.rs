//! What the machine says: processor time of a process, and how busy everybody else is.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Clock ticks a second, as Linux shows processor time to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time that a process has used, children not counted, in steps of a tick.
pub fn processor_seconds(process: u32) -> f64 {
    ticks_of(&format!("/proc/{process}/stat"), 11..13)
}

/// The processor time of a process, thread by thread: the system counts those in nanoseconds, and the whole in ticks,
/// which are too coarse for a load of half a second.
pub struct Threads {
    process: u32,
    nanos: HashMap<String, u64>,
    ticks: f64,
}

impl Threads {
    pub fn of(process: u32) -> Threads {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let nanos = tasks.filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let nanos = text.split_whitespace().next()?.parse().ok()?;
            Some((task.file_name().to_string_lossy().into_owned(), nanos))
        });
        Threads { process, nanos: nanos.collect(), ticks: processor_seconds(process) }
    }

    /// Seconds of processor time since then. What a thread did that has ended meanwhile is not seen.
    pub fn seconds_since(&self) -> f64 {
        let now = Threads::of(self.process);
        let used = now
            .nanos
            .iter()
            .map(|(thread, nanos)| nanos.saturating_sub(self.nanos.get(thread).copied().unwrap_or(0)));
        match used.sum::<u64>() {
            // Not every system counts so.
            0 => now.ticks - self.ticks,
            nanos => nanos as f64 / 1e9,
        }
    }
}

/// Bytes that a process has caused to be written to disk.
pub fn written_bytes(process: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()).unwrap_or(0)
}

/// The sum of some fields of a process's line, counted after its name, in seconds.
fn ticks_of(path: &str, fields: Range<usize>) -> f64 {
    let stat = fs::read_to_string(path).unwrap_or_default();
    // The name in brackets may hold blanks.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(fields.start).take(fields.len());
    ticks.filter_map(|text| text.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}

/// Processor time used so far, by the whole machine and by this run.
pub struct Busy {
    machine: f64,
    ours: f64,
}

impl Busy {
    pub fn now() -> Busy {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|text| text.parse().ok()).collect();
        // user, nice, system, (idle, iowait), irq, softirq, steal
        let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|place| ticks.get(*place)).sum::<f64>();
        // The four times of a process: its own, and those of children that have ended.
        let ours = ticks_of("/proc/self/stat", 11..15);
        Busy { machine: busy / TICKS_PER_SECOND, ours }
    }

    /// Seconds that other programs used.
    pub fn others_since(&self, before: &Busy) -> f64 {
        (self.machine - before.machine - (self.ours - before.ours)).max(0.0)
    }
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes of all files below a folder.
pub fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => folder_bytes(&entry.path()),
        Ok(data) => data.len(),
        // Files come and go while a server runs.
        Err(_) => 0,
    });
    sizes.sum()
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_processor_time_of_a_process_is_that_of_its_threads() {
        let before = Threads::of(std::process::id());
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                let (began, mut sum) = (Instant::now(), 0_u64);
                while began.elapsed() < Duration::from_millis(30) {
                    sum = std::hint::black_box(sum.wrapping_add(1));
                }
                // Looked at while the thread is still there.
                (sum, before.seconds_since())
            });
            let (_, used) = busy.join().expect("it does not panic");
            assert!(used > 0.0, "{used}");
        });
    }
}
