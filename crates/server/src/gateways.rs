//! The gateways of the server, and the port of the Table API, which speaks two protocols.
//!
//! Older clients of tables sign their requests to it as the NoSQL API has it: they speak that protocol with items in the
//! shape of entities. The form of the signature tells the two apart.

use std::sync::Arc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use orrery_gateway::{Entra, Keys};

use crate::front::plain;
use crate::listener::Peer;
use crate::listener::http::Handler;
use crate::metrics::Speech;

/// All gateways; what changes while the server runs is told to each.
#[derive(Clone)]
pub struct Gateways {
    pub nosql: orrery_nosql::Gateway,
    /// Absent when the server does without.
    pub table: Option<orrery_table::Gateway>,
}

impl Gateways {
    /// From the next request on, these are the account's keys.
    pub fn set_keys(&self, keys: Keys) {
        if let Some(table) = &self.table {
            table.set_keys(keys.clone());
        }
        self.nosql.set_keys(keys);
    }

    /// From the next request on, this one checks tokens of Entra ID.
    pub fn set_entra(&self, entra: Option<Arc<Entra>>) {
        if let Some(table) = &self.table {
            table.set_entra(entra.clone());
        }
        self.nosql.set_entra(entra);
    }
}

/// Answers on the port of the Table API.
#[derive(Clone)]
pub struct TableFront {
    pub table: orrery_table::Gateway,
    pub nosql: orrery_nosql::Gateway,
}

/// Whether a request is one of the NoSQL API: `type=…&ver=…&sig=…`, mostly percent-encoded.
fn speaks_nosql<B>(request: &Request<B>) -> bool {
    let starts = |text: &[u8]| {
        let text = text.trim_ascii_start();
        text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"type"))
            && matches!(text.get(4), Some(b'=' | b'%'))
    };
    request.headers().get(AUTHORIZATION).is_some_and(|value| starts(value.as_bytes()))
}

impl Handler for TableFront {
    fn answer_now(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Full<Bytes>>> {
        match speaks_nosql(request) {
            true => self.nosql.answer_now(request, peer),
            false => None,
        }
    }

    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
        match speaks_nosql(&request) {
            true => self.nosql.handle(request, peer).await,
            false => self.table.handle(request, peer).await,
        }
    }

    fn speech<B>(&self, request: &Request<B>) -> Speech {
        if speaks_nosql(request) { Speech::Http } else { Speech::Table }
    }

    fn wants_memory(&self) -> bool {
        self.table.wants_memory() || self.nosql.wants_memory()
    }

    fn timed_out(&self) -> Response<Full<Bytes>> {
        plain(StatusCode::REQUEST_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_signature_tells_the_protocol() {
        for (authorization, wanted) in [
            ("type%3dmaster%26ver%3d1.0%26sig%3dx", true),
            ("type=master&ver=1.0&sig=x", true),
            ("TYPE%3Daad%26", true),
            ("SharedKey acct:x", false),
            ("typed", false),
            ("", false),
        ] {
            let request =
                Request::builder().header(AUTHORIZATION, authorization).body(()).expect("a request");
            assert_eq!(speaks_nosql(&request), wanted, "{authorization}");
        }
        assert!(!speaks_nosql(&Request::new(())));
    }
}
