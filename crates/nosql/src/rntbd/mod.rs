//! RNTBD: the binary protocol in which clients in direct mode talk to partitions.
//!
//! It is the same API over another wire. A client asks for the [`addresses`] of partitions over HTTPS, opens connections there,
//! and sends each request as a frame ([`frame`]) whose headers are numbered ([`token`]). [`request`] makes of it what the HTTP
//! front end makes of headers and path, the gateway does with it what it does with any request, and [`reply`] writes the
//! answer. So no rule about who may do what, what a request means or what an answer says is here; what is:
//!
//! - a connection carries many requests at once, whose answers go back in any order ([`connection`]);
//! - the client chooses the partition, and is sent to look anew when that was not the right one ([`place`]);
//! - the client checks consistency, for which each answer tells how far its partition is ([`reply`]).

pub(crate) mod addresses;
mod connection;
mod frame;
mod place;
mod reply;
mod request;
mod token;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::{Method, StatusCode};
use orrery_cluster::{Catalog, Look};

use crate::address;
use crate::call::Trace;
use crate::errors::{Gone, Own, Refusal};
use crate::gateway::{Aside, Gateway, note};
use crate::headers::RequestHeaders;
use crate::respond::Reply;
use crate::router::{self, Endpoint, Route};
use frame::Head;
use orrery_gateway::ActivityId;
use orrery_gateway::{Carrier, Held};
use orrery_gateway::{Peer, Scheme};
use place::{Place, Position};
use reply::{Addressee, Framed};
use request::{Greeting, Said, Words};

pub use connection::{Ended, Observer, RequestTime, begins_as_direct};

/// As logs name it.
const PROTOCOL: &str = "direct";

/// What all requests of a connection share.
struct Link {
    greeting: Greeting,
    peer: Peer,
    /// One of them came from a client that may ask.
    is_known: AtomicBool,
}

/// A request without its payload.
struct Envelope<'f> {
    head: &'f Head,
    tokens: &'f [u8],
    transport: u32,
    started: Instant,
}

/// An answer, and what its sender may look at.
struct Answer {
    framed: Framed,
    held: Held,
}

/// A request that is understood.
#[derive(Clone, Copy)]
struct Frame<'a> {
    said: &'a Said<'a>,
    route: &'a Route<'a>,
    trace: &'a Trace<'a>,
}

impl Gateway {
    /// Answers a frame. Refusals are answers too: this never fails. The read of an item waits for nothing, unless there is
    /// no memory for its answer.
    async fn answer_frame(
        &self,
        link: &Link,
        envelope: &Envelope<'_>,
        body: Result<Bytes, Refusal>,
    ) -> Answer {
        let to = Addressee { activity: envelope.head.activity, transport: envelope.transport };
        let understood = Said::read(envelope.head, envelope.tokens, &link.greeting)
            .and_then(|said| said.words().map(|words| (said, words)));
        match understood {
            Ok((said, words)) => self.answer_request(link, envelope, to, said, &words, body).await,
            Err(refusal) => {
                let trace = trace(envelope, &Method::GET, "/");
                note(&trace, link.peer, PROTOCOL, &Aside::default(), &Err(refusal.clone()));
                Answer {
                    framed: reply::frame(to, &trace, Err(refusal), || Some(Position::as_claimed(None))),
                    held: Held::default(),
                }
            }
        }
    }

    async fn answer_request(
        &self,
        link: &Link,
        envelope: &Envelope<'_>,
        to: Addressee,
        mut said: Said<'_>,
        words: &Words<'_>,
        body: Result<Bytes, Refusal>,
    ) -> Answer {
        let path = words.path();
        let trace = trace(envelope, &said.method, &path);
        let words: Vec<&str> = words.as_strs().collect();
        let correlated = said.correlated;
        let mut headers: RequestHeaders<'_> = std::mem::take(&mut said.headers);
        headers.correlated_activity_id = correlated.as_ref().map(ActivityId::as_str);
        let claimed = Position::as_claimed(headers.session_token);
        let (mut aside, mut is_admitted) = (Aside::default(), false);
        let result = match router::route_of(&words) {
            Ok(route) => {
                let frame = Frame { said: &said, route: &route, trace: &trace };
                self.serve_frame(frame, headers, body, &mut aside, &mut is_admitted).await
            }
            Err(refusal) => Err(refusal),
        };
        if is_admitted {
            link.is_known.store(true, Ordering::Relaxed);
        }
        note(&trace, link.peer, PROTOCOL, &aside, &result);
        let position = || match is_admitted {
            true => said.place.position(self.db(), &self.db().catalog()).or(Some(claimed)),
            false => Some(claimed),
        };
        Answer { framed: reply::frame(to, &trace, result, position), held: aside.held }
    }

    async fn serve_frame(
        &self,
        Frame { said, route, trace }: Frame<'_>,
        mut headers: RequestHeaders<'_>,
        body: Result<Bytes, Refusal>,
        aside: &mut Aside,
        is_admitted: &mut bool,
    ) -> Result<Reply, Refusal> {
        let endpoint = &route.endpoint;
        let grant = {
            let catalog = self.db().catalog_now();
            let grant = self.admit(route, &headers, trace, &catalog, aside)?;
            *is_admitted = true;
            check_place(said, endpoint, &headers, &catalog)?;
            if matches!(endpoint, Endpoint::Item { .. }) && *trace.method == Method::GET {
                let look = self.read_item_of(endpoint, &grant, &headers, trace, &catalog)?;
                if let Look::Done(mut reply) = look
                    && let Some(held) = self.room().try_hold(&mut reply.body, Carrier::Stream)
                {
                    aside.held = held;
                    return Ok(reply);
                }
            }
            grant
        };
        let body = body?;
        if *trace.method == Method::HEAD {
            // It asks how far the partition is, which every answer says.
            return Ok(Reply::empty(StatusCode::OK));
        }
        let range = range_of_feed(said.place, endpoint, &headers);
        if let Some(range) = &range {
            headers.range_id = Some(range);
        }
        Box::pin(self.carry_out(endpoint.clone(), &grant, &headers, trace, body, Carrier::Stream, aside))
            .await
    }
}

fn trace<'a>(envelope: &Envelope<'_>, method: &'a Method, path: &'a str) -> Trace<'a> {
    Trace {
        method,
        path,
        // Frames name no host; answers that show one are given over HTTP.
        host: "localhost",
        scheme: Scheme::Https,
        activity: ActivityId::of_guid(&envelope.head.activity),
        started: envelope.started,
        explain_charge: false,
    }
}

/// Sends clients away that must look anew where their container or its partition is.
fn check_place(
    said: &Said<'_>,
    endpoint: &Endpoint<'_>,
    headers: &RequestHeaders<'_>,
    catalog: &Catalog,
) -> Result<(), Refusal> {
    let (database, container) = match endpoint {
        Endpoint::Items { database, container }
        | Endpoint::Item { database, container, .. }
        | Endpoint::Conflicts { database, container, .. }
        | Endpoint::Script { database, container, .. }
        | Endpoint::Container { database, container } => (database, container),
        _ => return Ok(()),
    };
    match address::container(catalog, database, container) {
        Ok(at) => said.place.check(&at.container, said.collection_rid, headers.range_id.is_some()),
        // One that the client knew is gone, and its replicas with it: the client asks for addresses, and then for the container.
        // Told that the name is another's, it would repeat the request again and again.
        Err(_) if said.collection_rid.is_some() => Err(Own::Gone(Gone::Replica).into()),
        Err(refusal) => Err(refusal),
    }
}

/// A replica knows nothing but its own range, so that a feed which names none means that one.
fn range_of_feed(place: Place, endpoint: &Endpoint<'_>, headers: &RequestHeaders<'_>) -> Option<String> {
    match (place, endpoint) {
        (Place::Range { range, .. }, Endpoint::Items { .. } | Endpoint::Conflicts { conflict: None, .. })
            if headers.range_id.is_none() && headers.partition_key.is_none() =>
        {
            Some(range.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
