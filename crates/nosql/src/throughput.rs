//! Throughput as clients ask for it in headers and offers.

use orrery_cluster::{Throughput, limits};
use orrery_doc::{Value, json};

use crate::call::Call;
use crate::errors::Refusal;

/// The throughput that a new database or container is asked to have, if any.
pub(crate) fn requested(call: &Call<'_>) -> Result<Option<Throughput>, Refusal> {
    let headers = call.headers;
    let throughput = match (headers.offer_throughput, headers.offer_autopilot) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(Refusal::bad_request(
                "x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings exclude each other.",
            ));
        }
        (Some(text), None) => {
            let units = text.trim().parse::<i64>().map_err(|_| {
                Refusal::bad_request(format!(
                    "The value '{}' specified for the header 'x-ms-offer-throughput' is invalid.",
                    text.chars().take(64).collect::<String>()
                ))
            })?;
            manual(units)?
        }
        (None, Some(text)) => autopilot_text(text)?,
    };
    if call.db.account().serverless {
        return Err(Refusal::bad_request(
            "Setting offer throughput or autopilot on container is not supported for serverless accounts.",
        ));
    }
    Ok(Some(throughput))
}

/// The throughput inside an offer's `content`.
pub(crate) fn of_content(content: Value<'_>) -> Result<Throughput, Refusal> {
    let settings = content.get("offerAutopilotSettings");
    if !settings.is_undefined() && !settings.is_null() {
        return autopilot(settings);
    }
    let units = content.get("offerThroughput").as_i64().ok_or_else(|| {
        Refusal::bad_request(
            "The input content is invalid because the required properties - 'content.offerThroughput; ' - are missing",
        )
    })?;
    manual(units)
}

fn autopilot_text(text: &str) -> Result<Throughput, Refusal> {
    let settings = json::parse(text.as_bytes(), limits::JSON_DEPTH_MAX).map_err(|_| {
        Refusal::bad_request("The header 'x-ms-cosmos-offer-autopilot-settings' does not hold a JSON object.")
    })?;
    autopilot(settings.root())
}

fn autopilot(settings: Value<'_>) -> Result<Throughput, Refusal> {
    let max = settings.get("maxThroughput").as_i64().ok_or_else(|| {
        Refusal::bad_request("The autopilot settings must give 'maxThroughput' as a whole number.")
    })?;
    let max = at_least(max, limits::AUTOSCALE_MIN)?;
    Ok(Throughput::Autoscale { max, increment_percent: increment_percent(settings)? })
}

fn increment_percent(settings: Value<'_>) -> Result<Option<u32>, Refusal> {
    let percent = settings.get("autoUpgradePolicy").get("throughputPolicy").get("incrementPercent");
    if percent.is_undefined() || percent.is_null() {
        return Ok(None);
    }
    let percent = percent.as_i64().and_then(|percent| u32::try_from(percent).ok());
    percent.map(Some).ok_or_else(|| {
        Refusal::bad_request("The 'incrementPercent' of the autopilot settings must not be negative.")
    })
}

fn manual(units: i64) -> Result<Throughput, Refusal> {
    Ok(Throughput::Manual(at_least(units, limits::THROUGHPUT_MIN)?))
}

/// The database checks steps and the upper bound; numbers that it cannot even express end here.
fn at_least(units: i64, least: u32) -> Result<u32, Refusal> {
    if units < i64::from(least) {
        return Err(Refusal::bad_request(format!(
            "The offer should have valid throughput values between {least} and {} inclusive in increments \
             of {}. Requested throughput {units} is less than required minimum throughput {least}.",
            limits::THROUGHPUT_MAX,
            if least == limits::AUTOSCALE_MIN { limits::AUTOSCALE_STEP } else { limits::THROUGHPUT_STEP },
        )));
    }
    Ok(u32::try_from(units).unwrap_or(u32::MAX))
}
