//! Sends each request to the one who answers it: the server's own pages, or the gateway.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use orrery_nosql::Gateway;

use crate::admin::{Admin, Page};
use crate::explorer;
use crate::listener::Peer;
use crate::listener::http::Handler;
use crate::manage::Manage;
use crate::metrics::Speech;

#[derive(Clone)]
pub struct Front {
    admin: Arc<Admin>,
    manage: Arc<Manage>,
    gateway: Gateway,
}

impl Front {
    pub fn new(admin: Arc<Admin>, manage: Arc<Manage>, gateway: Gateway) -> Front {
        Front { admin, manage, gateway }
    }
}

impl Handler for Front {
    /// The gateway answers only reads of items here, and no page of the server has such a path.
    fn answer_now(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Full<Bytes>>> {
        self.gateway.answer_now(request, peer)
    }

    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
        if let Some(page) = Page::at(request.uri().path()) {
            return self.admin.answer(page, request.method()).await;
        }
        if explorer::is_wanted(&request) {
            return explorer::lead_there();
        }
        if let Some(file) = explorer::file_at(request.uri().path()) {
            return explorer::answer(file, request.method(), request.headers());
        }
        if Manage::serves(request.uri().path()) {
            return Box::pin(self.manage.handle(request)).await;
        }
        self.gateway.handle(request, peer).await
    }

    fn speech<B>(&self, _: &Request<B>) -> Speech {
        Speech::Http
    }

    fn wants_memory(&self) -> bool {
        self.gateway.wants_memory()
    }

    fn timed_out(&self) -> Response<Full<Bytes>> {
        plain(StatusCode::REQUEST_TIMEOUT)
    }
}

/// An answer without a body.
pub fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
