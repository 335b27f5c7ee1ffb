//! Sends each request to the one who answers it: the server's own pages, or the gateway.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;

use crate::admin::{Admin, Page};
use crate::listener::{Handler, Peer, TimedBody};

#[derive(Clone)]
pub struct Front {
    admin: Arc<Admin>,
}

impl Front {
    pub fn new(admin: Arc<Admin>) -> Front {
        Front { admin }
    }
}

impl Handler for Front {
    async fn handle(&self, request: Request<TimedBody>, _peer: Peer) -> Response<Full<Bytes>> {
        if let Some(page) = Page::at(request.uri().path()) {
            return self.admin.answer(page, request.method()).await;
        }
        plain(StatusCode::NOT_FOUND)
    }

    fn timed_out(&self) -> Response<Full<Bytes>> {
        plain(StatusCode::REQUEST_TIMEOUT)
    }
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
