//! Sends alerts to a URL of the operator's choice.
//!
//! One request at a time, each with a time limit and a few attempts. Alerts that are raised meanwhile wait in the
//! bounded queue of the database; if it overflows the oldest are lost, and the log says how many. What is current can
//! always be read from the management API, and everything is in the log.

use std::time::Duration;

use bytes::Bytes;
use orrery_cluster::Db;
use orrery_cluster::insight::AlertEvent;
use tokio::sync::broadcast::error::RecvError;

use crate::client::Poster;
use crate::config::AlertOptions;
use crate::manage::alert_json;

const TIME_MAX: Duration = Duration::from_secs(5);
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Starts the task, if there is somewhere to send to; it ends with the database.
pub fn start(db: &Db, options: &AlertOptions) {
    let Some(to) = options.alert_webhook.clone() else { return };
    let mut webhook = Poster::new(to, options.alert_webhook_ca.clone());
    let mut events = db.alert_events();
    tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => deliver(&mut webhook, &event).await,
                Err(RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "alerts were not sent: the webhook is too slow");
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
}

async fn deliver(webhook: &mut Poster, event: &AlertEvent) {
    let mut body = alert_json(&event.alert);
    body["state"] = if event.raised { "raised".into() } else { "over".into() };
    let body = Bytes::from(body.to_string());
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let sent = tokio::time::timeout(TIME_MAX, webhook.post("", body.clone())).await;
        match sent.unwrap_or_else(|_| Err(anyhow::anyhow!("it took too long"))) {
            Ok(()) => return,
            Err(error) if attempt == ATTEMPTS => {
                tracing::warn!(webhook = %webhook.to(), error = format!("{error:#}"), "an alert could not be sent");
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause *= 2;
    }
}
