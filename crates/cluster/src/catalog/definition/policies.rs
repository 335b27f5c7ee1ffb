//! The smaller policies: time to live, unique keys, conflicts, geospatial type, change feed.

use std::collections::HashSet;

use orrery_store::limits::{RETENTION_MINUTES_MAX, TTL_SECONDS_MAX, UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX};
use serde_json::Value;

use super::{Object, Result, child_object, list, plain_path, wrong_type};
use crate::error::Error;

/// The longest time to live, in seconds.
const TTL_MAX: i64 = TTL_SECONDS_MAX as i64;

pub(super) fn check(object: &mut Object) -> Result<()> {
    time_to_live(object)?;
    unique_keys(object)?;
    conflict_resolution(object)?;
    geospatial(object)?;
    change_feed(object)?;
    if list(object, "computedProperties")?.is_empty() {
        object.shift_remove("computedProperties");
    }
    for name in ["clientEncryptionPolicy", "dataMaskingPolicy"] {
        if object.get(name).is_some_and(|value| !value.is_object()) {
            return Err(wrong_type(name, "an object"));
        }
    }
    Ok(())
}

/// A path to the time that items live from says nothing where none of them ends.
pub(super) fn admit(object: &Object) -> Result<()> {
    let is_given = |name: &str| object.get(name).is_some_and(|value| !value.is_null());
    if is_given("ttlPropertyPath") && !is_given("defaultTtl") {
        return Err(Error::invalid("The 'ttlPropertyPath' of a container needs its 'defaultTtl'."));
    }
    Ok(())
}

fn time_to_live(object: &Object) -> Result<()> {
    for name in ["defaultTtl", "analyticalStorageTtl"] {
        let Some(value) = object.get(name) else { continue };
        // Zero is how analytical storage is switched off.
        let can_be_zero = name == "analyticalStorageTtl";
        let is_legal = |ttl: i64| ttl == -1 || (1..=TTL_MAX).contains(&ttl) || ttl == 0 && can_be_zero;
        if !value.as_i64().is_some_and(is_legal) {
            return Err(Error::invalid(format!(
                "The input ttl '{value}' is invalid. Ensure to provide a nonzero positive integer less than \
                 or equal to '{TTL_MAX}', or '-1' which means never expire."
            )));
        }
    }
    Ok(())
}

fn unique_keys(object: &Object) -> Result<()> {
    let Some(policy) = object.get("uniqueKeyPolicy") else { return Ok(()) };
    let policy = policy.as_object().ok_or_else(|| wrong_type("uniqueKeyPolicy", "an object"))?;
    let keys = list(policy, "uniqueKeys")?;
    if keys.len() > UNIQUE_KEYS_MAX {
        return Err(Error::invalid(format!(
            "The number of unique keys ({}) exceeds the maximum of {UNIQUE_KEYS_MAX}.",
            keys.len()
        )));
    }
    let mut seen = HashSet::new();
    for key in keys {
        let key = key.as_object().ok_or_else(|| wrong_type("uniqueKeys", "a list of objects"))?;
        let paths = list(key, "paths")?;
        if paths.is_empty() || paths.len() > UNIQUE_KEY_PATHS_MAX {
            return Err(Error::invalid(format!(
                "A unique key must have 1 to {UNIQUE_KEY_PATHS_MAX} paths, and one has {}.",
                paths.len()
            )));
        }
        for path in paths {
            let text = path.as_str().unwrap_or("");
            if plain_path(text).is_none() {
                return Err(Error::invalid(format!(
                    "The unique key path '{path}' is not a path such as '/a/b'."
                )));
            }
        }
        if !seen.insert(Value::from(paths.to_vec()).to_string()) {
            return Err(Error::invalid("A unique key is given twice."));
        }
    }
    Ok(())
}

fn conflict_resolution(object: &mut Object) -> Result<()> {
    let policy = child_object(object, "conflictResolutionPolicy")?;
    let mode = policy.get("mode").and_then(Value::as_str).unwrap_or("LastWriterWins");
    let (mode, default_path) = if mode.eq_ignore_ascii_case("LastWriterWins") {
        ("LastWriterWins", "/_ts")
    } else if mode.eq_ignore_ascii_case("Custom") {
        ("Custom", "")
    } else {
        return Err(Error::invalid(format!("The conflict resolution mode '{mode}' is invalid.")));
    };
    policy.insert(String::from("mode"), Value::from(mode));
    for (name, default) in [("conflictResolutionPath", default_path), ("conflictResolutionProcedure", "")] {
        match policy.get(name) {
            Some(Value::String(text)) if !text.is_empty() || default.is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => {
                policy.insert(name.to_owned(), Value::from(default));
            }
            Some(_) => return Err(wrong_type(name, "a text")),
        }
    }
    let path = policy.get("conflictResolutionPath").and_then(Value::as_str).unwrap_or("");
    if mode == "LastWriterWins" && plain_path(path).is_none() {
        return Err(Error::invalid(format!(
            "The conflict resolution path '{path}' is not a path such as '/_ts'."
        )));
    }
    Ok(())
}

fn geospatial(object: &mut Object) -> Result<()> {
    let config = child_object(object, "geospatialConfig")?;
    let kind = config.get("type").and_then(Value::as_str).unwrap_or("Geography");
    let known = ["Geography", "Geometry"].into_iter().find(|known| known.eq_ignore_ascii_case(kind));
    let known = known.ok_or_else(|| Error::invalid(format!("The geospatial type '{kind}' is invalid.")))?;
    config.insert(String::from("type"), Value::from(known));
    Ok(())
}

fn change_feed(object: &Object) -> Result<()> {
    let Some(policy) = object.get("changeFeedPolicy") else { return Ok(()) };
    let policy = policy.as_object().ok_or_else(|| wrong_type("changeFeedPolicy", "an object"))?;
    match policy.get("retentionDuration") {
        None | Some(Value::Null) => Ok(()),
        Some(minutes)
            if minutes.as_i64().is_some_and(|minutes| (0..=RETENTION_MINUTES_MAX).contains(&minutes)) =>
        {
            Ok(())
        }
        Some(other) => Err(Error::invalid(format!(
            "The retention duration '{other}' of the change feed policy must be a number of minutes, at most \
             {RETENTION_MINUTES_MAX}."
        ))),
    }
}
