//! `orrery ready`: whether a server takes requests, for health checks where there is no other program to ask with.

use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use clap::Args;
use http::Method;

use crate::client::{Ask, Client, Endpoint, on_runtime};

/// Health checks have little patience of their own.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct Ready {
    #[command(flatten)]
    endpoint: Endpoint,
}

pub fn run(ready: Ready) -> anyhow::Result<()> {
    let body = Bytes::new();
    let ask = Ask { method: &Method::GET, path: "/ready", kind: "", link: "", headers: &[], body: &body };
    let reply = on_runtime(async { Client::new(ready.endpoint).send(&ask, ANSWER_TIME_MAX).await })?;
    let text = String::from_utf8_lossy(&reply.body);
    if !reply.status.is_success() {
        bail!("not ready: {}", text.trim());
    }
    println!("{}", text.trim());
    Ok(())
}
