//! Master-key signatures as the SDKs make them.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

/// The key that every Cosmos emulator accepts.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

#[derive(Clone)]
pub struct Signer {
    key: Hmac<Sha256>,
    date: String,
}

impl Signer {
    pub fn new(key: &str) -> Signer {
        let bytes = STANDARD.decode(key).expect("an account key is base64");
        let key = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length");
        Signer { key, date: httpdate::fmt_http_date(SystemTime::now()) }
    }

    /// Signatures are valid for minutes; long runs ask for a new date now and then.
    pub fn renew(&mut self) {
        self.date = httpdate::fmt_http_date(SystemTime::now());
    }

    pub fn date(&self) -> &str {
        &self.date
    }

    /// The value of the `authorization` header for a request on `path`.
    pub fn authorization(&self, verb: &str, path: &str) -> String {
        let (kind, link) = resource(path);
        self.authorization_of(verb, kind, &link)
    }

    /// The same for a resource of a kind below a link, as requests sign it whose path does not say both.
    pub fn authorization_of(&self, verb: &str, kind: &str, link: &str) -> String {
        let text = format!("{}\n{kind}\n{link}\n{}\n\n", verb.to_lowercase(), self.date.to_lowercase());
        let signature = self.sign_text(&text);
        let token = format!("type=master&ver=1.0&sig={signature}");
        utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
    }
}

impl Signer {
    /// The same for a request to the Table API, over a resource as it is signed: a path, and behind it perhaps `?comp=` with a value.
    pub fn table_signature(&self, resource: &str) -> String {
        self.shared_key_lite("orrery", resource)
    }

    /// The same for an address, of whose query a part is signed.
    pub fn table_authorization(&self, address: &str) -> String {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        match query.split('&').find(|parameter| parameter.starts_with("comp=")) {
            Some(comp) => self.table_signature(&format!("{path}?{comp}")),
            None => self.table_signature(path),
        }
    }

    /// Signed as SharedKeyLite has it, for an account of this name.
    pub fn shared_key_lite(&self, account: &str, resource: &str) -> String {
        let signature = self.sign_text(&format!("{}\n/{account}{resource}", self.date));
        format!("SharedKeyLite {account}:{signature}")
    }

    /// The signature of any text, as shared access signatures need it.
    pub fn sign_text(&self, text: &str) -> String {
        let mut mac = self.key.clone();
        mac.update(text.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

impl Signer {
    /// A shared access signature of a table that lasts, as the parameters of an address.
    pub fn table_sas(&self, table: &str, rights: &str) -> String {
        self.table_sas_with(table, &[("sp", rights), ("se", "2099-01-01")])
    }

    /// The same of any terms.
    pub fn table_sas_with(&self, table: &str, terms: &[(&str, &str)]) -> String {
        let get = |name: &str| terms.iter().find(|(term, _)| *term == name).map_or("", |(_, value)| *value);
        let resource = format!("/table/orrery/{}", table.to_lowercase());
        let version = "2019-02-02";
        let start = [get("sp"), get("st"), get("se"), &resource, get("si"), get("sip"), get("spr"), version];
        let ends = ["spk", "srk", "epk", "erk"].map(get);
        let signature = self.sign_text(&[&start[..], &ends[..]].concat().join("\n"));
        let all = terms.iter().copied().chain([("tn", table), ("sv", version), ("sig", signature.as_str())]);
        let encoded =
            all.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        encoded.collect::<Vec<_>>().join("&")
    }
}

/// A token of Entra ID that a server believes in development mode.
pub fn development_token(id: &str) -> String {
    let part = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let claims = format!(r#"{{"oid":"{id}","exp":4102444800}}"#);
    format!("{}.{}.x", part(r#"{"alg":"none"}"#), part(&claims))
}

/// What base64 stands for.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// The type and the link that are signed: a feed is signed with its parent's link.
fn resource(path: &str) -> (&str, String) {
    let path = path.split('?').next().unwrap_or_default().trim_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    match segments.len() {
        _ if path.is_empty() => ("", String::new()),
        // The management API is signed by its path.
        _ if segments[0] == "_orrery" => ("orrery", path.to_owned()),
        n if n % 2 == 1 => (segments[n - 1], segments[..n - 1].join("/")),
        n if segments[0] == "offers" => ("offers", segments[n - 1].to_lowercase()),
        n => (segments[n - 2], path.to_owned()),
    }
}
