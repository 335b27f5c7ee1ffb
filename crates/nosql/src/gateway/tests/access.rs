//! Who may do what: every kind of token against every route and operation.
//!
//! The requests of the matrix do no harm when they pass: they insist on a version that nothing has, or have a body
//! that no handler takes. So all that is looked at is whether a request was stopped at the door, and how.

mod matrix;
mod roles;
mod tokens;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};

use super::*;
use orrery_gateway::EntraOptions;

const ISSUER: &str = "https://issuer.example/tenant";
const AUDIENCE: &str = "https://orrery.example";
const READ_ONLY: &str = "HxwdHhobGBkWFxQVEhMQEQ4PDA0KCwgJBgcEBQIDAAE=";
const SECOND: &str = "CAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAECAwQFBgc=";
/// Keys that sign nothing but these tests.
const SIGNING: &[u8] = include_bytes!("access/issuer.der");
const STRANGER: &[u8] = include_bytes!("access/stranger.der");
const KEY_SET: &str = include_str!("access/issuer.jwks.json");

/// A token as it stands in the header; keys sign each request anew.
#[derive(Clone)]
pub(super) enum Token {
    Key(&'static str),
    Text(String),
}

impl Server {
    pub(super) fn guarded(development: bool) -> Server {
        let options = EntraOptions {
            issuers: vec![ISSUER.to_owned()],
            audiences: vec![AUDIENCE.to_owned()],
            keys: KEY_SET.to_owned(),
            development,
        };
        let entra = Entra::new(&options).expect("a key set");
        let keys = orrery_gateway::Keys::new([KEY, SECOND], [READ_ONLY]).expect("keys");
        let options = Options { entra: Some(Arc::new(entra)), ..Options::default() };
        let Server(open) = Server::start(false);
        Server(Gateway::new(open.0.db.clone(), keys, options))
    }

    pub(super) async fn send_as(
        &self,
        token: &Token,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let token = match token {
            Token::Key(key) => authorization_with(key, method, path, &date),
            Token::Text(text) => {
                percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
            }
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-ms-date", &date)
            .header("authorization", token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Full::new(Bytes::from(text))).expect("a request");
        self.answer(request).await
    }

    /// Makes a permission and takes its token.
    pub(super) async fn token(&self, id: &str, permission: Value) -> Token {
        let mut body = permission;
        body["id"] = json!(id);
        let made = self.post("/dbs/d/users/u/permissions", body).await.expect(201);
        Token::Text(made.body["_token"].as_str().expect("a token").to_owned())
    }
}

/// A token of the issuer for a principal; `change` spoils it.
fn entra(principal: &str, change: impl FnOnce(&mut Value)) -> Token {
    signed(SIGNING, principal, change)
}

fn signed(key: &[u8], principal: &str, change: impl FnOnce(&mut Value)) -> Token {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let mut claims =
        json!({"iss": ISSUER, "aud": AUDIENCE, "nbf": now - 5, "exp": now + 600, "oid": principal});
    change(&mut claims);
    sealed(key, &json!({"alg": "RS256", "typ": "JWT", "kid": "issuer"}), &claims.to_string())
}

/// A token of just this header and these claims.
fn sealed(key: &[u8], header: &Value, claims: &str) -> Token {
    let parts = [header.to_string().as_str(), claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let message = parts.join(".");
    let key = RsaKeyPair::from_der(key).expect("an RSA key");
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
        .expect("a key that signs");
    Token::Text(format!("type=aad&ver=1.0&sig={message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
