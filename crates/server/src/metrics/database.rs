//! The database's own numbers as Prometheus reads them.

use std::fmt::Display;

use orrery_cluster::MemoryUse;
use orrery_cluster::stats::{AlertStats, RangeStats, Stats};

use super::{counter, gauge, header, line};

/// Physical partitions that have lines of their own. A label for each of any number would burden the system that collects
/// them; further ones are only counted, those of later containers first.
const RANGES_MAX: usize = 1_000;

/// `shows_names` says whether readers may know what databases and containers are called.
pub fn write_database(stats: &Stats, shows_names: bool, out: &mut String) {
    let engine = &stats.engine;
    for (name, help, value) in [
        ("orrery_commit_groups_total", "Groups of transactions made durable together.", stats.commit_groups),
        ("orrery_commit_batches_total", "Transactions committed.", stats.commit_batches),
        ("orrery_commit_refused_total", "Transactions that the engine refused.", stats.commit_refused),
        ("orrery_engine_commits_total", "Batches written by the engine.", engine.commits),
        ("orrery_engine_disk_full_total", "Batches refused for want of space.", engine.refused_disk_full),
        ("orrery_engine_delayed_total", "Batches slowed down by compaction.", engine.delayed),
        ("orrery_engine_delayed_microseconds_total", "Time spent in those delays.", engine.delayed_micros),
        ("orrery_engine_compactions_total", "Compactions finished.", engine.compactions),
    ] {
        counter(out, name, help, value);
    }
    for (name, help, value) in [
        ("orrery_engine_journal_bytes", "Journals not yet superseded by tables.", engine.journal_bytes),
        ("orrery_engine_memtable_bytes", "Write buffers.", engine.memtable_bytes),
        ("orrery_engine_level0_runs", "Overlapping runs in the first level.", engine.level0_runs),
        ("orrery_engine_tables", "Table files.", engine.tables),
        ("orrery_engine_cache_bytes", "The block cache.", engine.cache_bytes),
        ("orrery_engine_table_bytes", "Tables.", engine.table_bytes),
        (
            "orrery_engine_pinned_bytes",
            "Filters and indexes that tables keep in memory.",
            engine.pinned_bytes,
        ),
    ] {
        gauge(out, name, help, value);
    }
    gauge(out, "orrery_memory_budget_bytes", "Memory that the server may use.", stats.memory_bytes);
    write_memory(&stats.memory, out);
    let shown = stats.ranges.len().min(RANGES_MAX);
    let hidden = (stats.ranges.len() - shown) as u64;
    gauge(
        out,
        "orrery_partitions_without_metrics",
        "Partitions over the number that have lines here.",
        hidden,
    );
    write_ranges(&stats.ranges[..shown], shows_names, out);
    write_alerts(&stats.alerts, out);
}

/// How the consumers of the memory budget stand.
fn write_memory(memory: &[MemoryUse], out: &mut String) {
    type Metric = (&'static str, &'static str, &'static str, fn(&MemoryUse) -> u64);
    let metrics: [Metric; 6] = [
        ("orrery_memory_share_bytes", "gauge", "What a consumer may use of the memory budget.", |m| {
            m.share_bytes
        }),
        ("orrery_memory_used_bytes", "gauge", "What it uses.", |m| m.used_bytes),
        ("orrery_memory_highest_bytes", "gauge", "The most that it used at once.", |m| m.highest_bytes),
        ("orrery_memory_waiting", "gauge", "Requests that wait for memory.", |m| m.waiting),
        ("orrery_memory_waited_total", "counter", "Requests that had to wait for memory.", |m| m.waited),
        ("orrery_memory_refused_total", "counter", "Requests that got none.", |m| m.refused),
    ];
    for (name, kind, help, value) in metrics {
        header(out, name, help, kind);
        for usage in memory {
            line(out, format_args!("{name}{{consumer=\"{}\"}} {}", usage.consumer.name(), value(usage)));
        }
    }
}

/// One line per physical partition and metric; a metric's lines must stand together.
fn write_ranges(ranges: &[RangeStats], shows_names: bool, out: &mut String) {
    type Metric = (&'static str, &'static str, &'static str, fn(&RangeStats) -> Box<dyn Display>);
    let metrics: [Metric; 13] = [
        ("orrery_partition_items", "gauge", "Items held.", |r| Box::new(r.items)),
        ("orrery_partition_bytes", "gauge", "Bytes held.", |r| Box::new(r.bytes)),
        ("orrery_partition_lsn", "gauge", "The newest sequence number.", |r| Box::new(r.lsn)),
        ("orrery_partition_request_units_total", "counter", "Request units charged.", |r| {
            Box::new(r.units_total)
        }),
        ("orrery_partition_request_units_highest", "gauge", "The most request units of a second.", |r| {
            Box::new(r.units_per_second_highest)
        }),
        ("orrery_partition_requests_total", "counter", "Requests served.", |r| Box::new(r.requests)),
        ("orrery_partition_throughput", "gauge", "Request units a second that it may use; 0 is any.", |r| {
            Box::new(r.throughput)
        }),
        (
            "orrery_partition_request_units_per_second",
            "gauge",
            "Request units a second, of the last ten seconds.",
            |r| Box::new(r.units_per_second),
        ),
        (
            "orrery_partition_largest_logical_bytes",
            "gauge",
            "The largest logical partition written to.",
            |r| Box::new(r.largest_logical_bytes),
        ),
        ("orrery_partition_throttled_total", "counter", "Requests answered with 429.", |r| {
            Box::new(r.throttled)
        }),
        (
            "orrery_logical_partition_near_limit_total",
            "counter",
            "Writes to a logical partition over 80 % of its size limit.",
            |r| Box::new(r.writes_near_limit),
        ),
        (
            "orrery_logical_partition_full_total",
            "counter",
            "Writes refused because a logical partition is full.",
            |r| Box::new(r.writes_over_limit),
        ),
        (
            "orrery_partition_expired_total",
            "counter",
            "Items deleted because their time to live was over.",
            |r| Box::new(r.items_expired),
        ),
    ];
    for (name, kind, help, value) in metrics {
        header(out, name, help, kind);
        for range in ranges {
            let (id, value) = (range.range_id, value(range));
            if shows_names {
                let (database, container) = (Label(&range.database), Label(&range.container));
                let labels = format_args!("database=\"{database}\",container=\"{container}\",range=\"{id}\"");
                line(out, format_args!("{name}{{{labels}}} {value}"));
            } else {
                let rid = range.container_rid.to_string();
                line(out, format_args!("{name}{{container=\"{}\",range=\"{id}\"}} {value}", Label(&rid)));
            }
        }
    }
}

/// How many alerts of each kind hold now, and how often they were raised.
fn write_alerts(alerts: &[AlertStats], out: &mut String) {
    header(out, "orrery_alerts", "Alerts that hold now.", "gauge");
    for alert in alerts {
        line(out, format_args!("orrery_alerts{{kind=\"{}\"}} {}", alert.kind.name(), alert.current));
    }
    header(out, "orrery_alerts_raised_total", "Alerts raised.", "counter");
    for alert in alerts {
        line(
            out,
            format_args!("orrery_alerts_raised_total{{kind=\"{}\"}} {}", alert.kind.name(), alert.raised),
        );
    }
}

/// A label value: names of containers may hold any character, and three of them must be escaped.
struct Label<'a>(&'a str);

impl Display for Label<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(Label("a\"b\\c\nd").to_string(), "a\\\"b\\\\c\\nd");
    }
}
