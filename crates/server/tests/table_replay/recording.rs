//! The recordings and how they are read.

use std::path::{Path, PathBuf};

use orrery_testkit::decode_base64;
use serde_json::Value;

pub struct Recording {
    pub name: String,
    pub exchanges: Vec<Exchange>,
}

pub struct Exchange {
    /// Of the recording, and the place in it.
    pub name: String,
    pub verb: String,
    pub host: String,
    /// With the query, as it may be sent.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub status: u16,
    pub answer_headers: Vec<(String, String)>,
    pub answer: Answer,
}

pub enum Answer {
    Nothing,
    Json(Value),
    Text(String),
}

/// Headers that belong to the connection of the recorded client, or that are made anew.
const NOT_SENT: [&str; 8] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "date",
    "user-agent",
    "x-ms-date",
    "x-ms-client-request-id",
];

/// The folder beside the project, if this machine has it. Where CI has what is beside the project, it has the recordings too.
pub fn folder() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = shared.join("vectors/table-recorded-cosmos/python");
    let must_run = std::env::var_os("CI").is_some_and(|value| value == "true") && shared.is_dir();
    assert!(!must_run || folder.is_dir(), "the recorded exchanges are missing: {}", folder.display());
    folder.is_dir().then_some(folder)
}

pub fn all(folder: &Path) -> Vec<Recording> {
    let files =
        std::fs::read_dir(folder).expect("the folder can be read").map(|file| file.expect("a file").path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(path: &Path) -> Recording {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let recorded: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let entries = recorded["Entries"].as_array().expect("a list of exchanges");
    let exchanges = entries.iter().enumerate().map(|(place, entry)| exchange(&name, place, entry)).collect();
    Recording { name, exchanges }
}

fn exchange(name: &str, place: usize, entry: &Value) -> Exchange {
    let uri = entry["RequestUri"].as_str().expect("an address");
    let (host, path) =
        uri.split_once("://").and_then(|(_, rest)| rest.split_once('/')).expect("a whole address");
    let headers = headers(&entry["RequestHeaders"]);
    let is_batch =
        headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("multipart/"));
    let body = text_of(&entry["RequestBody"], is_batch);
    let mut sent: Vec<(String, String)> =
        headers.into_iter().filter(|(name, _)| !NOT_SENT.contains(&name.as_str())).collect();
    if is_batch {
        // Where the recorder has made boundaries anonymous, it has not always done so in both places.
        let boundary = body.lines().next().unwrap_or_default().trim_start_matches('-').to_owned();
        sent.retain(|(name, _)| name != "content-type");
        sent.push(("content-type".to_owned(), format!("multipart/mixed; boundary={boundary}")));
    }
    Exchange {
        name: format!("{name}/{place}"),
        verb: entry["RequestMethod"].as_str().expect("a method").to_owned(),
        host: host.to_owned(),
        // The recorder has decoded what its own files may hold as it is.
        path: format!("/{path}").replace(' ', "%20"),
        headers: sent,
        body,
        status: entry["StatusCode"].as_u64().expect("a status is a number") as u16,
        answer_headers: self::headers(&entry["ResponseHeaders"]),
        answer: match &entry["ResponseBody"] {
            Value::Null => Answer::Nothing,
            Value::Object(object) => Answer::Json(Value::Object(object.clone())),
            other => Answer::Text(text_of(other, is_batch)),
        },
    }
}

/// A body as it was sent: as an object, a text, lines of a text, or base64.
fn text_of(body: &Value, is_batch: bool) -> String {
    match body {
        Value::Null => String::new(),
        Value::String(text) if is_batch && !text.starts_with("--") => decoded(text),
        Value::String(text) => text.clone(),
        Value::Array(lines)
            if is_batch
                && lines.iter().all(|line| line.as_str().is_some_and(|line| !line.contains("--"))) =>
        {
            decoded(&lines.iter().filter_map(Value::as_str).collect::<String>())
        }
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}

fn decoded(text: &str) -> String {
    String::from_utf8(decode_base64(text).expect("base64")).expect("UTF-8")
}

fn headers(value: &Value) -> Vec<(String, String)> {
    let object = value.as_object().expect("headers are an object");
    let texts =
        object.iter().filter_map(|(name, value)| Some((name.to_lowercase(), value.as_str()?.to_owned())));
    texts.collect()
}

impl Exchange {
    /// What a signature in the address allows, and in which table.
    pub fn sas_rights(&self) -> Option<(&str, &str)> {
        let (_, query) = self.path.split_once('?').filter(|(_, query)| query.contains("sig="))?;
        let get = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)
        };
        Some((get("sp")?.1, get("tn")?.1))
    }
}
