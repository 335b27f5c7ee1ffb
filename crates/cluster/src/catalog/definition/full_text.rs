//! Full-text paths with their languages and analyzers, and the indexes over them.

use serde_json::{Value, json};

use super::vectors::{is_one_of, text};
use super::{Object, Result, child_object, list, plain_path, wrong_type};
use crate::error::Error;

/// Each with the number by which Windows knows it, which the service takes too.
const LANGUAGES: [(&str, &str); 7] = [
    ("en-US", "1033"),
    ("de-DE", "1031"),
    ("es-ES", "3082"),
    ("fr-FR", "1036"),
    ("it-IT", "1040"),
    ("pt-PT", "2070"),
    ("pt-BR", "1046"),
];
const DEFAULT_LANGUAGE: &str = "en-US";

/// What an analyzer is made of, and what each part may be.
const ANALYZER: [(&str, &[&str]); 3] = [
    ("tokenizer", &["word"]),
    ("filters", &["stop", "lowercase", "stem", "ascii"]),
    ("stopWordListKind", &["none", "basic", "extended"]),
];
const STOP_WORDS: [&str; 2] = ["addStopWords", "removeStopWords"];

/// Checks paths and languages, and names the default language where nobody did.
pub(super) fn complete(object: &mut Object) -> Result<()> {
    check(object)?;
    if !object.contains_key("fullTextPolicy") {
        return Ok(());
    }
    let policy = child_object(object, "fullTextPolicy")?;
    policy.retain(|_, value| !value.is_null());
    if policy.contains_key("defaultLanguage") {
        return Ok(());
    }
    let spec = policy.get("defaultSpec").and_then(|spec| spec.get("language")).cloned();
    if spec.is_none() {
        let spec = child_object(policy, "defaultSpec")?;
        spec.insert(String::from("language"), json!(DEFAULT_LANGUAGE));
    }
    policy.insert(String::from("defaultLanguage"), spec.unwrap_or_else(|| json!(DEFAULT_LANGUAGE)));
    Ok(())
}

fn check(object: &Object) -> Result<()> {
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
    let shown = language.as_str().map_or_else(|| language.to_string(), str::to_owned);
    if LANGUAGES.iter().any(|(name, number)| name.eq_ignore_ascii_case(&shown) || *number == shown) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "The Full Text Policy contains an unsupported language {shown}. Supported languages are: {}.",
        LANGUAGES.map(|(name, _)| format!("\"{name}\"")).join(", ")
    )))
}

/// Which analyzers a new policy may ask for.
pub(super) fn admit(object: &Object) -> Result<()> {
    let Some(policy) = object.get("fullTextPolicy").and_then(Value::as_object) else { return Ok(()) };
    let package = match policy.get("package").filter(|package| !package.is_null()) {
        None => "legacy",
        Some(package) => package.as_str().unwrap_or(""),
    };
    if !is_one_of(package, &["legacy", "standard"]) {
        return Err(Error::invalid(format!(
            "The Full Text Policy has an invalid package '{package}'; it is 'legacy' or 'standard'."
        )));
    }
    let is_standard = package.eq_ignore_ascii_case("standard");
    if let Some(spec) = policy.get("defaultSpec").filter(|spec| !spec.is_null()) {
        let spec = spec.as_object().ok_or_else(|| wrong_type("defaultSpec", "an object"))?;
        check_language(spec.get("language"))?;
        check_analyzer(spec, is_standard)?;
    }
    let paths = list(policy, "fullTextPaths")?.iter().filter_map(Value::as_object);
    paths.into_iter().try_for_each(|path| check_analyzer(path, is_standard))
}

fn check_analyzer(spec: &Object, is_standard: bool) -> Result<()> {
    let given = |name: &str| spec.get(name).filter(|value| !value.is_null());
    for name in ANALYZER.iter().map(|(name, _)| *name).chain(STOP_WORDS) {
        if given(name).is_some() && !is_standard {
            return Err(Error::invalid(format!(
                "The property '{name}' of the Full Text Policy needs the package 'standard'."
            )));
        }
    }
    for (name, known) in ANALYZER {
        let values = match given(name) {
            Some(Value::Array(values)) if name == "filters" => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => &[],
        };
        if let Some(wrong) = values.iter().find(|value| !is_one_of(value.as_str().unwrap_or(""), known)) {
            return Err(Error::invalid(format!("The Full Text Policy has an invalid {name}: {wrong}.")));
        }
    }
    STOP_WORDS.iter().try_for_each(|name| list(spec, name).map(|_| ()))
}
