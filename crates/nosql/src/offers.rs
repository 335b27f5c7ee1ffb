//! Offers: throughput as a resource of its own.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use orrery_cluster::{Offer, Throughput, limits, ru};

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
            let reply =
                envelope::list(call, None, "Offers", call.catalog.offers(), rid, |offer| render(offer))?;
            Ok(reply.charge("catalog read", ru::METADATA_READ))
        }
        Method::POST if call.headers.is_query => {
            let rows = call.catalog.offers().map(|offer| render(offer));
            resource_query::serve(call, None, "Offers", rows, &body)
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
        Method::GET | Method::HEAD => Ok(show(offer).charge("catalog read", ru::METADATA_READ)),
        Method::PUT => {
            let asked = asked(call, offer, &body)?;
            let replaced = call.db.replace_offer(rid, asked, if_match(call)).await?;
            Ok(show(&replaced).charge("catalog write", ru::METADATA_WRITE))
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

/// What a replace asks for. The migration headers change the kind and leave the amount to the server.
fn asked(call: &Call<'_>, offer: &Offer, body: &[u8]) -> Result<Throughput, Refusal> {
    let doc = envelope::parse_body(body)?;
    let root = doc.root();
    if root.get("id").as_str().is_some_and(|id| id != offer.rid.to_string()) {
        return Err(Refusal::bad_request("The 'id' of the offer is not that of the path."));
    }
    let ceiling = offer.throughput.ceiling();
    if call.headers.migrate_to_autopilot {
        let max = ceiling.next_multiple_of(limits::AUTOSCALE_STEP).max(limits::AUTOSCALE_MIN);
        return Ok(Throughput::Autoscale { max, increment_percent: None });
    }
    if call.headers.migrate_to_manual {
        return Ok(Throughput::Manual(ceiling));
    }
    throughput::of_content(root.get("content"))
}

fn show(offer: &Offer) -> Reply {
    let minimum = HeaderValue::from(offer.minimum);
    Reply::ok(render(offer))
        .etag(offer.etag)
        .header(names::MIN_THROUGHPUT, minimum)
        .header(names::OFFER_REPLACE_PENDING, HeaderValue::from_static("false"))
}

fn render(offer: &Offer) -> Vec<u8> {
    let rid = offer.rid.to_string();
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"resource\":");
    orrery_doc::json::write_str(&offer.target_link, &mut out);
    push_text(&mut out, "offerType", "Invalid");
    push_text(&mut out, "offerResourceId", &offer.target.to_string());
    push_text(&mut out, "offerVersion", "V2");
    push_content(&mut out, offer);
    push_text(&mut out, "id", &rid);
    push_text(&mut out, "_rid", &rid);
    push_text(&mut out, "_self", &format!("offers/{rid}/"));
    push_text(&mut out, "_etag", &offer.etag.to_header());
    push_number(&mut out, "_ts", offer.ts);
    out.push(b'}');
    out
}

fn push_content(out: &mut Vec<u8>, offer: &Offer) {
    push_name(out, "content");
    let (current, autopilot) = match offer.throughput {
        Throughput::Manual(units) => (units, None),
        // An idle autoscale resource runs at a tenth of its ceiling.
        Throughput::Autoscale { max, increment_percent } => (max / 10, Some((max, increment_percent))),
    };
    out.extend_from_slice(format!("{{\"offerThroughput\":{current}").as_bytes());
    out.extend_from_slice(b",\"offerIsRUPerMinuteThroughputEnabled\":false");
    let least = format!(
        ",\"offerMinimumThroughputParameters\":{{\"maxThroughputEverProvisioned\":{},\
         \"maxConsumedStorageEverInKB\":0}}",
        offer.highest
    );
    out.extend_from_slice(least.as_bytes());
    if let Some((max, increment)) = autopilot {
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
