//! Sends alerts to a URL of the operator's choice.
//!
//! One request at a time, each with a time limit and a few attempts. Alerts that are raised meanwhile wait in the
//! bounded queue of the database; if it overflows the oldest are lost, and the log says how many. What is current can
//! always be read from the management API, and everything is in the log.

use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Uri};
use http_body_util::Full;
use orrery_cluster::Db;
use orrery_cluster::insight::AlertEvent;
use tokio::sync::broadcast::error::RecvError;

use crate::client;
use crate::config::AlertOptions;
use crate::manage::alert_json;

const TIME_MAX: Duration = Duration::from_secs(5);
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Starts the task, if there is somewhere to send to; it ends with the database.
pub fn start(db: &Db, options: &AlertOptions) {
    let Some(to) = options.alert_webhook.clone() else { return };
    let ca_file = options.alert_webhook_ca.clone();
    let mut events = db.alert_events();
    tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => deliver(&to, ca_file.as_deref(), &event).await,
                Err(RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "alerts were not sent: the webhook is too slow");
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
}

async fn deliver(to: &Uri, ca_file: Option<&std::path::Path>, event: &AlertEvent) {
    let mut body = alert_json(&event.alert);
    body["state"] = if event.raised { "raised".into() } else { "over".into() };
    let body = Bytes::from(body.to_string());
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let sent = tokio::time::timeout(TIME_MAX, send(to, ca_file, body.clone())).await;
        match sent.unwrap_or_else(|_| Err(anyhow::anyhow!("it took too long"))) {
            Ok(()) => return,
            Err(error) if attempt == ATTEMPTS => {
                tracing::warn!(webhook = %to, error = format!("{error:#}"), "an alert could not be sent");
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause *= 2;
    }
}

async fn send(to: &Uri, ca_file: Option<&std::path::Path>, body: Bytes) -> anyhow::Result<()> {
    let mut connection = client::connect(to, ca_file).await?;
    let path = to.path_and_query().map_or("/", |path| path.as_str());
    let host = to.authority().map_or("", |authority| authority.as_str());
    let request = Request::post(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    let response = connection.send_request(request).await?;
    if !response.status().is_success() {
        bail!("it answered {}", response.status());
    }
    Ok(())
}
