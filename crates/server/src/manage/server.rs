//! What the server says of itself to those who set something up with it: where its gateways listen, and its budgets.

use std::sync::Arc;

use http::Method;
use orrery_cluster::limits::PartitionLimits;
use orrery_nosql::Denial;
use serde_json::{Value, json};

use super::call::{Answer, Call};
use crate::metrics::Metrics;

/// What is known once the server listens.
pub struct Server {
    /// The name that connection strings of tables have.
    pub account: String,
    pub nosql_port: u16,
    /// Absent when the server does without the Table API.
    pub table_port: Option<u16>,
    pub metrics: Arc<Metrics>,
}

pub fn about(call: &Call<'_>) -> Result<Answer, Denial> {
    call.only(&[Method::GET])?;
    let server = call.server;
    let mut ports = json!({ "nosql": server.nosql_port });
    if let Some(port) = server.table_port {
        ports["table"] = port.into();
    }
    Ok(Answer::json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "account": server.account,
        "ports": ports,
        "limits": limits(&call.db.options().limits),
    })))
}

fn limits(limits: &PartitionLimits) -> Value {
    json!({
        "partitionThroughput": limits.partition_throughput,
        "newPartitionThroughput": limits.new_partition_throughput(),
        "partitionBytes": limits.partition_bytes,
        "logicalPartitionBytes": limits.logical_partition_bytes,
    })
}
