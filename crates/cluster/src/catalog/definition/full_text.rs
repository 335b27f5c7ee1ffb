//! Full-text paths with their languages, and the indexes over them.

use serde_json::Value;

use super::vectors::text;
use super::{Object, Result, list, plain_path, wrong_type};
use crate::error::Error;

const LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-PT", "pt-BR"];

pub(super) fn check(object: &Object) -> Result<()> {
    let paths = match object.get("fullTextPolicy") {
        None => &[],
        Some(policy) => check_policy(policy)?,
    };
    let Some(policy) = object.get("indexingPolicy").and_then(Value::as_object) else { return Ok(()) };
    for index in list(policy, "fullTextIndexes")? {
        let path = text(index, "path");
        check_path("The Full Text Index", path)?;
        if !paths.iter().any(|known| text(known, "path") == path) {
            return Err(Error::invalid(format!(
                "The path {path} of the Full Text Index is not one of the Full Text Policy."
            )));
        }
    }
    Ok(())
}

fn check_policy(policy: &Value) -> Result<&[Value]> {
    let policy = policy.as_object().ok_or_else(|| wrong_type("fullTextPolicy", "an object"))?;
    check_language(policy.get("defaultLanguage"))?;
    let paths = list(policy, "fullTextPaths")?;
    for (place, entry) in paths.iter().enumerate() {
        let path = text(entry, "path");
        check_path("The Full Text Policy", path)?;
        check_language(entry.get("language"))?;
        if paths[..place].iter().any(|earlier| text(earlier, "path") == path) {
            return Err(Error::invalid(format!("The Full Text Policy contains the Path: {path} twice.")));
        }
    }
    Ok(paths)
}

fn check_path(whose: &str, path: &str) -> Result<()> {
    if plain_path(path).is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!("{whose} contains an invalid Path: {path}")))
}

fn check_language(language: Option<&Value>) -> Result<()> {
    let Some(language) = language.filter(|language| !language.is_null()) else { return Ok(()) };
    if language.as_str().is_some_and(|text| LANGUAGES.iter().any(|known| known.eq_ignore_ascii_case(text))) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "The Full Text Policy contains an unsupported language {language}. Supported languages are: {}.",
        LANGUAGES.join(", ")
    )))
}
