//! Spatial indexes: which shapes they hold, and the part of the plane that they cover.

use serde_json::Value;

use super::index_paths::path_of;
use super::vectors::text;
use super::{Object, Result, list, wrong_type};
use crate::error::Error;

const TYPES: [&str; 4] = ["Point", "LineString", "Polygon", "MultiPolygon"];

/// Checks the shape. An index holds all kinds of shapes, whatever it was asked for, and says so.
pub(super) fn complete(policy: &mut Object) -> Result<()> {
    for index in list(policy, "spatialIndexes")? {
        let index = index.as_object().ok_or_else(|| wrong_type("spatialIndexes", "a list of objects"))?;
        path_of(index, "spatialIndexes")?;
        let is_known = |kind: &str| TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind));
        for kind in list(index, "types")? {
            if !kind.as_str().is_some_and(is_known) {
                return Err(Error::invalid(format!("The spatial type {kind} is invalid.")));
            }
        }
    }
    let indexes = policy.get_mut("spatialIndexes").and_then(Value::as_array_mut);
    for index in indexes.into_iter().flatten().filter_map(Value::as_object_mut) {
        index.insert(String::from("types"), Value::from(TYPES.to_vec()));
    }
    Ok(())
}

/// The service's rules for new indexes, in its words.
pub(super) fn admit(object: &Object) -> Result<()> {
    let policy = object.get("indexingPolicy").and_then(Value::as_object);
    let indexes = policy.map_or(Ok(&[][..]), |policy| list(policy, "spatialIndexes"))?;
    let geospatial = object.get("geospatialConfig").map_or("", |config| text(config, "type"));
    let is_plane = geospatial.eq_ignore_ascii_case("Geometry");
    for index in indexes {
        let path = text(index, "path");
        if index.get("types").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Err(Error::invalid(format!(
                "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array \
                 for the path '{path}'."
            )));
        }
        let bounds = index.get("boundingBox").filter(|bounds| !bounds.is_null());
        match (is_plane, bounds) {
            (true, Some(bounds)) => check_bounds(bounds, path)?,
            (true, None) => {
                return Err(Error::invalid(format!(
                    "Required parameter 'boundingBox' for 'Geometry' collection is missing in spatial path '{path}'"
                )));
            }
            (false, Some(_)) => {
                return Err(Error::invalid(
                    "Incorrect parameter 'boundingBox' specified for 'Geography' collection",
                ));
            }
            (false, None) => {}
        }
    }
    Ok(())
}

fn check_bounds(bounds: &Value, path: &str) -> Result<()> {
    let number = |name: &str| {
        bounds.get(name).and_then(Value::as_f64).ok_or_else(|| {
            Error::invalid(format!(
                "Required parameter '{name}' in 'boundingBox' is missing or not a number for spatial path '{path}'"
            ))
        })
    };
    for (least, most) in [("xmin", "xmax"), ("ymin", "ymax")] {
        if number(most)? <= number(least)? {
            return Err(Error::invalid(format!(
                "The value of parameter '{most}' must be greater than the value of parameter '{least}' in \
                 'boundingBox' for spatial path '{path}'"
            )));
        }
    }
    Ok(())
}
