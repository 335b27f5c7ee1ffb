//! When the server tells an operator that a partition needs attention, and where.

use std::path::PathBuf;

use clap::Args;
use http::Uri;
use orrery_cluster::insight::AlertSettings;

#[derive(Args, Clone, Debug)]
pub struct AlertOptions {
    /// Raise an alert when a logical partition has this share of the bytes that it may have, in percent; 0 never does.
    #[arg(long, env = "ORRERY_ALERT_LOGICAL_PARTITION_PERCENT", value_name = "PERCENT", default_value_t = 80,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub alert_logical_partition_percent: u8,

    /// Raise an alert when a partition uses this share of its throughput and far more than the others of its
    /// container, in percent; 0 never does.
    #[arg(long, env = "ORRERY_ALERT_HOT_PARTITION_PERCENT", value_name = "PERCENT", default_value_t = 80,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub alert_hot_partition_percent: u8,

    /// Raise an alert when a partition refuses this share of its requests with 429, in percent; 0 never does.
    #[arg(long, env = "ORRERY_ALERT_THROTTLED_PERCENT", value_name = "PERCENT", default_value_t = 5,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub alert_throttled_percent: u8,

    /// A URL that is sent every alert as JSON when it is raised and when it is over.
    #[arg(long, env = "ORRERY_ALERT_WEBHOOK", value_name = "URL")]
    pub alert_webhook: Option<Uri>,

    /// The authority that signs the certificate of that URL, in PEM; needed when it is an HTTPS one.
    #[arg(long, env = "ORRERY_ALERT_WEBHOOK_CA", value_name = "FILE")]
    pub alert_webhook_ca: Option<PathBuf>,

    /// Whether partitions are accounted for; benchmarks measure what that costs.
    #[arg(long, env = "ORRERY_INSIGHT", hide = true, default_value = "on", value_parser = ["on", "off"])]
    pub insight: String,
}

impl AlertOptions {
    pub fn settings(&self) -> AlertSettings {
        AlertSettings {
            logical_partition_percent: f64::from(self.alert_logical_partition_percent),
            hot_partition_percent: f64::from(self.alert_hot_partition_percent),
            throttled_percent: f64::from(self.alert_throttled_percent),
        }
    }
}
