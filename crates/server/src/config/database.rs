//! The part of the configuration that the database reads, in its own words.

use std::time::Duration;

use orrery_cluster::limits::PartitionLimits;
use orrery_cluster::{Account, DbOptions, MemoryShares, Storage};

use super::{Config, Consistency, Durability, memory};

impl Config {
    pub fn database(&self) -> DbOptions {
        let memory = self.memory();
        DbOptions {
            storage: self.storage(&memory),
            durability: match self.durability {
                Durability::Durable => orrery_cluster::Durability::Durable,
                Durability::Relaxed => orrery_cluster::Durability::Relaxed,
            },
            limits: PartitionLimits {
                logical_partition_bytes: self.logical_partition_bytes,
                partition_bytes: self.partition_bytes,
                partition_throughput: self.partition_throughput,
                merge_after: self.merge_after_seconds,
                retention: self.retention(),
            },
            throttle: !self.no_throttle,
            account: self.account(),
            memory,
        }
    }

    fn retention(&self) -> Option<Duration> {
        let minutes = u64::from(self.change_feed_retention_minutes);
        (minutes > 0).then(|| Duration::from_secs(minutes * 60))
    }

    fn memory(&self) -> MemoryShares {
        let shares = MemoryShares::of(self.memory_bytes.unwrap_or_else(memory::budget_bytes));
        self.cache_bytes.map_or(shares, |cache| shares.with_cache(cache))
    }

    fn storage(&self, memory: &MemoryShares) -> Storage {
        if self.in_memory {
            return Storage::Memory;
        }
        Storage::Disk {
            path: self.data_dir.clone(),
            cache_bytes: memory.cache,
            disk_bytes_max: (self.max_disk_bytes > 0).then_some(self.max_disk_bytes),
            write_buffer_bytes: self.write_buffer_bytes,
        }
    }

    fn account(&self) -> Account {
        use orrery_cluster::Consistency as Level;
        Account {
            name: self.account_name.clone(),
            region: self.region.clone(),
            consistency: match self.consistency {
                Consistency::Strong => Level::Strong,
                Consistency::BoundedStaleness => Level::BoundedStaleness,
                Consistency::Session => Level::Session,
                Consistency::ConsistentPrefix => Level::ConsistentPrefix,
                Consistency::Eventual => Level::Eventual,
            },
            serverless: self.serverless,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        config: Config,
    }

    #[test]
    fn versions_are_kept_for_as_many_minutes_as_are_given() {
        let retention = |minutes: &str| {
            let line = Line::try_parse_from(["orrery", "--change-feed-retention-minutes", minutes]);
            line.ok().map(|line| line.config.database().limits.retention)
        };
        assert_eq!(retention("10"), Some(Some(Duration::from_secs(600))));
        assert_eq!(retention("43200"), Some(Some(Duration::from_secs(30 * 24 * 3600))));
        assert_eq!(retention("0"), Some(None));
        assert_eq!(retention("43201"), None);
        assert_eq!(retention("-1"), None);
        let default = Line::try_parse_from(["orrery"]).map(|line| line.config.database().limits.retention);
        assert_eq!(default.expect("all have defaults"), None);
    }
}
