//! Offers: throughput as a resource of its own.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use orrery_cluster::throughput::OfferStatus;
use orrery_cluster::{Offer, Throughput, limits, ru};
use orrery_doc::Value;

use crate::address::rid_of_length;
use crate::call::Call;
use crate::databases::{if_match, is_current};
use crate::envelope::{self, push_name, push_number, push_text};
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::respond::Reply;
use crate::{resource_query, throughput};

/// `/offers`
pub(crate) async fn feed(call: &Call<'_>, body: Bytes) -> Result<Reply, Refusal> {
    refuse_serverless(call)?;
    match *call.trace.method {
        Method::GET | Method::HEAD => {
            let rid = |offer: &Arc<Offer>| offer.rid;
            let reply = envelope::list(call, None, "Offers", call.catalog.offers(), rid, |offer| {
                render(offer, &status(call, offer))
            })?;
            Ok(reply.charge("catalog read", ru::METADATA_READ))
        }
        Method::POST if call.headers.is_query => {
            let rows = call.catalog.offers().map(|offer| render(offer, &status(call, offer)));
            resource_query::serve(call, None, "Offers", rows, &body).await
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// `/offers/{rid}`
pub(crate) async fn one(call: &Call<'_>, text: &str, body: Bytes) -> Result<Reply, Refusal> {
    refuse_serverless(call)?;
    let rid = rid_of_length(text, 3).ok_or(Own::NotFound)?;
    let offer = call.catalog.offer(rid).ok_or(Own::NotFound)?;
    match *call.trace.method {
        Method::GET | Method::HEAD if is_current(call, offer.etag) => {
            Ok(Reply::empty(StatusCode::NOT_MODIFIED).etag(offer.etag))
        }
        Method::GET | Method::HEAD => {
            let status = status(call, offer);
            Ok(show(StatusCode::OK, offer, &status).charge("catalog read", ru::METADATA_READ))
        }
        Method::PUT => {
            let asked = asked(call, offer, &body)?;
            let replaced = call.db.replace_offer(rid, asked, if_match(call)).await?;
            // The catalog of the call is older than the change.
            let status = call.db.offer_status(&call.db.catalog(), &replaced);
            let code = if status.is_pending { StatusCode::ACCEPTED } else { StatusCode::OK };
            Ok(show(code, &replaced, &status).charge("catalog write", ru::METADATA_WRITE))
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

fn refuse_serverless(call: &Call<'_>) -> Result<(), Refusal> {
    if !call.db.account().serverless {
        return Ok(());
    }
    Err(Refusal::bad_request("Reading or replacing offers is not supported for serverless accounts."))
}

fn status(call: &Call<'_>, offer: &Offer) -> OfferStatus {
    call.db.offer_status(call.catalog, offer)
}

/// What a replace asks for. The migration headers change the kind and leave the amount to the server: the new ceiling
/// is what was provisioned before, or more where autoscale has to have more.
fn asked(call: &Call<'_>, offer: &Offer, body: &[u8]) -> Result<Throughput, Refusal> {
    let doc = envelope::parse_body(body)?;
    let root = doc.root();
    check_same(offer, root)?;
    let ceiling = offer.throughput.ceiling();
    if call.headers.migrate_to_autopilot {
        let autoscale = |max| Throughput::Autoscale { max, increment_percent: None };
        let least = call.catalog.minimum(offer, autoscale(limits::AUTOSCALE_MIN));
        return Ok(autoscale(ceiling.next_multiple_of(limits::AUTOSCALE_STEP).max(least)));
    }
    if call.headers.migrate_to_manual {
        let least = call.catalog.minimum(offer, Throughput::Manual(limits::THROUGHPUT_MIN));
        return Ok(Throughput::Manual(ceiling.max(least)));
    }
    throughput::of_content(root.get("content"))
}

/// An offer that is sent back says by its `id` or its `_rid` which one it is, and may not say two things.
fn check_same(offer: &Offer, sent: Value<'_>) -> Result<(), Refusal> {
    let rid = offer.rid.to_string();
    let names = ["id", "_rid"].map(|name| (name, sent.get(name)));
    let is_absent = |value: Value<'_>| matches!(value, Value::Undefined | Value::Null);
    if names.iter().all(|(_, value)| is_absent(*value)) {
        return Err(Refusal::bad_request("An offer needs its 'id' or its '_rid'."));
    }
    match names.iter().find(|(_, value)| !is_absent(*value) && value.as_str() != Some(&rid)) {
        Some((name, _)) => {
            Err(Refusal::bad_request(format!("The '{name}' of the offer is not that of the path.")))
        }
        None => Ok(()),
    }
}

fn show(code: StatusCode, offer: &Offer, status: &OfferStatus) -> Reply {
    let pending = if status.is_pending { "true" } else { "false" };
    Reply::new(code, render(offer, status))
        .etag(offer.etag)
        .header(names::MIN_THROUGHPUT, HeaderValue::from(status.minimum))
        .header(names::OFFER_REPLACE_PENDING, HeaderValue::from_static(pending))
}

fn render(offer: &Offer, status: &OfferStatus) -> Vec<u8> {
    let rid = offer.rid.to_string();
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"resource\":");
    orrery_doc::json::write_str(&offer.target_link, &mut out);
    push_text(&mut out, "offerType", "Invalid");
    push_text(&mut out, "offerResourceId", &offer.target.to_string());
    push_text(&mut out, "offerVersion", "V2");
    push_content(&mut out, offer, status);
    push_text(&mut out, "id", &rid);
    push_text(&mut out, "_rid", &rid);
    push_text(&mut out, "_self", &format!("offers/{rid}/"));
    push_text(&mut out, "_etag", &offer.etag.to_header());
    push_number(&mut out, "_ts", offer.ts);
    out.push(b'}');
    out
}

fn push_content(out: &mut Vec<u8>, offer: &Offer, status: &OfferStatus) {
    push_name(out, "content");
    out.extend_from_slice(format!("{{\"offerThroughput\":{}", status.current).as_bytes());
    out.extend_from_slice(b",\"offerIsRUPerMinuteThroughputEnabled\":false");
    if status.is_pending {
        out.extend_from_slice(b",\"isOfferReplacePending\":true");
    }
    let least = format!(
        ",\"offerMinimumThroughputParameters\":{{\"maxThroughputEverProvisioned\":{},\
         \"maxConsumedStorageEverInKB\":{}}}",
        offer.highest,
        status.bytes / 1024
    );
    out.extend_from_slice(least.as_bytes());
    if let Throughput::Autoscale { max, increment_percent: increment } = offer.throughput {
        out.extend_from_slice(format!(",\"offerAutopilotSettings\":{{\"maxThroughput\":{max}").as_bytes());
        if let Some(percent) = increment {
            let policy =
                format!(",\"autoUpgradePolicy\":{{\"throughputPolicy\":{{\"incrementPercent\":{percent}}}}}");
            out.extend_from_slice(policy.as_bytes());
        }
        out.push(b'}');
    }
    out.push(b'}');
}
