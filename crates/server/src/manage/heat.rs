//! The heat map: how warm each part of the key space was, over time.

use std::sync::Arc;

use http::Method;
use orrery_cluster::Container;
use orrery_cluster::insight::{Cell, HeatRows, Window};
use orrery_nosql::Denial;
use serde_json::{Value, json};

use super::call::{Answer, Call, bad_request};
use super::partitions::{hundredths, window};

pub fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::GET])?;
    let window = window(call)?;
    if window == Window::Day {
        return Err(bad_request("window must be minute or hour: the heat of longer times is not kept."));
    }
    let (until, rows) = call.db.heat(container, window);
    Ok(Answer::json(json!({
        "database": container.database_id,
        "container": container.resource.id,
        "window": window.name(),
        "slotSeconds": window.slot_seconds(),
        "until": until,
        "partitions": rows.iter().map(partition).collect::<Vec<_>>(),
    })))
}

fn partition(rows: &HeatRows) -> Value {
    let table = |cell: fn(&Cell) -> Value| -> Vec<Vec<Value>> {
        rows.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
    };
    json!({
        "id": rows.id.to_string(),
        "from": rows.share.0,
        "to": rows.share.1,
        "requestUnits": table(|cell| hundredths(cell.units).into()),
        "requests": table(|cell| cell.requests.into()),
    })
}
