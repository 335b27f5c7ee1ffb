//! The gateway: one request in, one answer out, whatever the request holds.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Body;
use orrery_cluster::{Catalog, Db, ErrorKind, Lane, Look, limits};
use orrery_gateway::body::{self, Limits as BodyLimits};
use orrery_gateway::{ActivityId, Carrier, Entra, Held, Page, Peer, Room};

use crate::access::{self, Act, Asked, Grant};
use crate::address::ContainerAddress;
use crate::audit::Entry;
use crate::auth::{self, Identity, Keys};
use crate::call::{Call, Trace};
use crate::children::{self, Branch};
use crate::errors::{Own, Refusal};
use crate::headers::RequestHeaders;
use crate::items::told::Told;
use crate::respond::{Reply, Responder};
use crate::rntbd::addresses;
use crate::router::{self, Endpoint, Route, Signed};
use crate::{account, address, conflicts, containers, databases, items, offers, ranges, scripts};

/// Speaks the NoSQL REST protocol for one [`Db`]. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    db: Db,
    keys: ArcSwap<Keys>,
    entra: ArcSwapOption<Entra>,
    options: Options,
    responder: Responder,
    told: Told,
    room: Room,
}

/// What an operator may set.
#[derive(Clone)]
pub struct Options {
    /// How long the body of a request may take to arrive.
    pub body_time_max: Duration,
    /// Bytes that the body of a request may have.
    pub body_bytes_max: usize,
    /// The host name that the account document tells clients to dial, without a port. By default it is the
    /// one that the client has just dialled, which works behind any name; the emulator always says 127.0.0.1.
    pub advertised_host: Option<Arc<str>>,
    /// Who checks tokens of Entra ID, when these are accepted.
    pub entra: Option<Arc<Entra>>,
    /// Where clients in direct mode are sent.
    pub direct: Direct,
}

/// On which port direct mode is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// On none.
    Off,
    /// On the one that the client has dialled.
    SamePort,
    Port(u16),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            body_time_max: Duration::from_secs(30),
            body_bytes_max: limits::REQUEST_BYTES_MAX,
            advertised_host: None,
            entra: None,
            direct: Direct::SamePort,
        }
    }
}

/// What becomes known of a request while it is served, whether it succeeds or not.
#[derive(Default)]
pub(crate) struct Aside {
    audit: Option<Entry>,
    /// Something of the body was not read: the next request on this connection would begin in its middle.
    body_left: bool,
    /// The answer, as its sender sees it.
    pub held: Held,
}

impl Gateway {
    pub fn new(db: Db, keys: orrery_gateway::Keys, options: Options) -> Gateway {
        let keys = ArcSwap::from_pointee(keys.into());
        let entra = ArcSwapOption::new(options.entra.clone());
        Gateway(Arc::new(Inner {
            room: Room::new(db.memory().clone()),
            db,
            keys,
            entra,
            options,
            responder: Responder::new(),
            told: Told::default(),
        }))
    }

    /// From the next request on, these are the account's keys.
    pub fn set_keys(&self, keys: orrery_gateway::Keys) {
        self.0.keys.store(Arc::new(keys.into()));
    }

    /// From the next request on, this one checks tokens of Entra ID.
    pub fn set_entra(&self, entra: Option<Arc<Entra>>) {
        self.0.entra.store(entra);
    }

    /// Finds out who sent a request to a path that this gateway does not serve itself.
    pub(crate) fn identify(
        &self,
        method: &Method,
        signed: &Signed<'_>,
        headers: &RequestHeaders<'_>,
        now: SystemTime,
    ) -> Result<Identity, Refusal> {
        let (keys, entra) = (self.0.keys.load(), self.0.entra.load());
        auth::authenticate(&keys, entra.as_deref(), method, signed, headers, now)
    }

    /// Answers a request on the spot, if it is one that waits for nothing: the read of an item. All others are for
    /// [`Gateway::handle`], whose future has room for whatever a request may wait for. That makes it large, and a read
    /// would spend more on moving it than on finding its item.
    pub fn answer_now<B: Body>(&self, request: &Request<B>, peer: Peer) -> Option<Response<Full<Bytes>>> {
        // A body is not wanted, but it takes time to arrive before it can be thrown away.
        if request.method() != Method::GET || !request.body().is_end_stream() {
            return None;
        }
        let route = router::route(router::path_of(request.uri())).ok()?;
        let Endpoint::Item { .. } = route.endpoint else { return None };
        let started = Instant::now();
        let mut headers = RequestHeaders::default();
        let malformed = headers.read(request.headers()).err();
        let trace = trace(request.method(), request.uri(), &headers, peer, started);
        let mut aside = Aside::default();
        let mut result = match malformed {
            Some(refusal) => Err(refusal),
            None => match self.read_item(&route, &headers, &trace, &mut aside) {
                Ok(Look::Done(reply)) => Ok(reply),
                Ok(Look::Wait(_)) => return None,
                Err(refusal) => Err(refusal),
            },
        };
        if let Ok(reply) = &mut result {
            // A large one that would have to wait for memory does so before it is read again.
            aside.held = self.0.room.try_hold(&mut reply.body, Carrier::of(request.version()))?;
        }
        Some(self.finish(&trace, peer, &aside, result))
    }

    /// Answers a request. Refusals are answers too: this never fails.
    pub async fn handle<B>(&self, request: Request<B>, peer: Peer) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut headers = RequestHeaders::default();
        let head = body::head_of(&parts, &self.0.room);
        let malformed = headers.read(&parts.headers).err();
        let trace = trace(&parts.method, &parts.uri, &headers, peer, started);
        let mut aside = Aside::default();
        let asks_for_replicas = router::is_direct_mode(trace.path);
        let unserved = asks_for_replicas.then(|| addresses::check(self.0.options.direct, peer).err());
        if let Err(refusal) = head {
            // Whatever follows is not waited for, since the head would be held meanwhile.
            return self.finish(&trace, peer, &aside, Err(refusal.into()));
        }
        let result = match unserved.flatten().or(malformed) {
            Some(refusal) => self.refuse(&parts, refusal, body, &mut aside).await,
            None if asks_for_replicas => {
                match self.addresses(parts.uri.query(), &headers, &trace, &mut aside) {
                    Ok(reply) => Ok(reply),
                    Err(refusal) => self.refuse(&parts, refusal, body, &mut aside).await,
                }
            }
            None => self.serve(&parts, &headers, &trace, body, &mut aside).await,
        };
        self.finish(&trace, peer, &aside, result)
    }

    fn finish(
        &self,
        trace: &Trace<'_>,
        peer: Peer,
        aside: &Aside,
        result: Result<Reply, Refusal>,
    ) -> Response<Full<Bytes>> {
        note(trace, peer, "http", aside, &result);
        let mut response = self.0.responder.respond(trace, result);
        if let Some(unsent) = aside.held.0.clone() {
            response.extensions_mut().insert(unsent);
        }
        if aside.body_left {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn read_item(
        &self,
        route: &Route<'_>,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'_>,
        aside: &mut Aside,
    ) -> Result<Look<Reply>, Refusal> {
        let catalog = self.0.db.catalog_now();
        let grant = self.admit(route, headers, trace, &catalog, aside)?;
        self.read_item_of(&route.endpoint, &grant, headers, trace, &catalog)
    }

    /// The read of an item by a client that may.
    pub(crate) fn read_item_of(
        &self,
        endpoint: &Endpoint<'_>,
        grant: &Grant,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'_>,
        catalog: &Catalog,
    ) -> Result<Look<Reply>, Refusal> {
        let in_lane = self.in_lane(headers);
        read_item(&self.call(in_lane.as_ref(), catalog, headers, trace, grant), endpoint)
    }

    /// Where clients in direct mode find the partitions that they ask for.
    fn addresses(
        &self,
        query: Option<&str>,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'_>,
        aside: &mut Aside,
    ) -> Result<Reply, Refusal> {
        let asked = addresses::Asked::read(query.unwrap_or_default(), trace.method)?;
        let catalog = self.0.db.catalog_now();
        let grant = self.admit(&asked.route(), headers, trace, &catalog, aside)?;
        asked.answer(&self.call(None, &catalog, headers, trace, &grant), self.0.options.direct)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn room(&self) -> &Room {
        &self.0.room
    }

    pub(crate) fn db(&self) -> &Db {
        &self.0.db
    }

    async fn serve<B>(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'_>,
        body: B,
        aside: &mut Aside,
    ) -> Result<Reply, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let inner = &*self.0;
        let (endpoint, grant) = match self.route(headers, trace, aside) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(parts, refusal, body, aside).await,
        };
        let carrier = Carrier::of(parts.version);
        let has_body = matches!(parts.method, Method::POST | Method::PUT | Method::PATCH);
        let body = match has_body {
            true => {
                let limits =
                    BodyLimits { bytes: inner.options.body_bytes_max, time: inner.options.body_time_max };
                let read = body::read(body, limits, Some((&inner.room, carrier))).await;
                read.inspect_err(|_| aside.body_left = true)?
            }
            false => Bytes::new(),
        };
        self.carry_out(endpoint, &grant, headers, trace, body, carrier, aside).await
    }

    /// Carries out a request that its client may make, within the memory that there is for it and for its answer.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is known of a request lives in several places for good reasons"
    )]
    pub(crate) async fn carry_out(
        &self,
        endpoint: Endpoint<'_>,
        grant: &Grant,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'_>,
        body: Bytes,
        carrier: Carrier,
        aside: &mut Aside,
    ) -> Result<Reply, Refusal> {
        let inner = &*self.0;
        let _made = inner.room.write(body.len() as u64, carrier).await?;
        let extent = Extent::of(&endpoint, trace.method, headers);
        let mut written = None;
        let Page { bytes: page_bytes, hold } = match extent {
            Extent::Small => Page { bytes: limits::PAGE_BYTES_MAX, hold: None },
            Extent::Item => Page { bytes: limits::PAGE_BYTES_MAX, hold: inner.room.item().await? },
            Extent::Written => {
                written = Some(inner.room.written().await?);
                Page { bytes: limits::PAGE_BYTES_MAX, hold: None }
            }
            Extent::Script => {
                inner.room.few_unplaced().await?;
                Page { bytes: limits::PAGE_BYTES_MAX, hold: None }
            }
            Extent::Page => inner.room.page(carrier).await?,
        };
        let (in_lane, catalog) = (self.in_lane(headers), inner.db.catalog());
        let call = Call { page_bytes, ..self.call(in_lane.as_ref(), &catalog, headers, trace, grant) };
        let can_refuse = extent == Extent::Page || *trace.method == Method::GET;
        // The body is held until its answer has found room.
        let mut reply = dispatch(&call, endpoint.clone(), body.clone()).await?;
        let (bytes, mut hold) = (reply.body.len(), hold);
        if can_refuse && !inner.room.has_room(bytes, carrier, hold.as_ref()) {
            // It turned out larger than what was taken, such as a page with a large item. What waits for memory must not
            // hold any, so it is made again when there is some.
            drop(reply);
            hold = Some(inner.room.wait(bytes, hold).await?);
            reply = dispatch(&call, endpoint, body).await?;
        }
        aside.held = match written {
            Some(written) => inner.room.hold_written(&mut reply.body, carrier, written).await?,
            None => inner.room.hold(&mut reply.body, carrier, hold, can_refuse).await?,
        };
        Ok(reply)
    }

    /// Whether requests wait for the memory of answers that are not sent yet.
    pub fn wants_memory(&self) -> bool {
        self.0.room.wants_answers()
    }

    /// The database for requests of a lane. Most are of none, and share the handle.
    fn in_lane(&self, headers: &RequestHeaders<'_>) -> Option<Db> {
        (headers.lane != Lane::default()).then(|| self.0.db.in_lane(headers.lane))
    }

    fn call<'a>(
        &'a self,
        in_lane: Option<&'a Db>,
        catalog: &'a Catalog,
        headers: &'a RequestHeaders<'a>,
        trace: &'a Trace<'a>,
        grant: &'a Grant,
    ) -> Call<'a> {
        let inner = &*self.0;
        Call {
            db: in_lane.unwrap_or(&inner.db),
            catalog,
            headers,
            trace,
            keys: &inner.keys,
            grant,
            told: &inner.told,
            advertised_host: inner.options.advertised_host.as_deref(),
            page_bytes: limits::PAGE_BYTES_MAX,
        }
    }

    /// Refuses a request by its head. Its body is on the way already, unless the client has asked to be told
    /// whether to send it.
    async fn refuse<B>(
        &self,
        parts: &Parts,
        refusal: Refusal,
        body: B,
        aside: &mut Aside,
    ) -> Result<Reply, Refusal>
    where
        B: Body<Data = Bytes>,
    {
        aside.body_left = match parts.headers.contains_key(EXPECT) {
            true => !body.is_end_stream(),
            false => !body::discard(body, self.0.options.body_time_max).await,
        };
        Err(refusal)
    }

    /// Finds out what is asked for, and whether the client may. Not a part of [`Gateway::serve`], so that nothing of
    /// this lives on while the body is read and the request carried out.
    fn route<'p>(
        &self,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'p>,
        aside: &mut Aside,
    ) -> Result<(Endpoint<'p>, Grant), Refusal> {
        let route = router::route(trace.path)?;
        let grant = self.admit(&route, headers, trace, &self.0.db.catalog_now(), aside)?;
        Ok((route.endpoint, grant))
    }

    /// Finds out who asks, and whether they may.
    pub(crate) fn admit(
        &self,
        route: &Route<'_>,
        headers: &RequestHeaders<'_>,
        trace: &Trace<'_>,
        catalog: &Catalog,
        aside: &mut Aside,
    ) -> Result<Grant, Refusal> {
        let inner = &*self.0;
        let act = Act::of(&route.endpoint, trace.method, headers);
        let audit = &mut aside.audit;
        *audit = Entry::of(route.endpoint.kind(), act);
        let (keys, entra, now) = (inner.keys.load(), inner.entra.load(), SystemTime::now());
        let identity =
            auth::authenticate(&keys, entra.as_deref(), trace.method, &route.signed, headers, now)?;
        if let Some(entry) = audit {
            entry.by(&identity);
        }
        let asked = Asked {
            endpoint: &route.endpoint,
            act,
            method: trace.method,
            path: trace.path,
            headers,
            catalog,
            account: &inner.db.account().name,
        };
        access::check(&identity, &asked)
    }
}

/// How large the answer to a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Not much larger than its body, or small.
    Small,
    /// As large as an item; nothing was written.
    Item,
    /// As large as an item or a few, whatever the body has; something may have been written.
    Written,
    /// The same, of which as many are made at once as scripts run.
    Script,
    /// As large as a page is allowed to be.
    Page,
}

impl Extent {
    fn of(endpoint: &Endpoint<'_>, method: &Method, headers: &RequestHeaders<'_>) -> Extent {
        match endpoint {
            Endpoint::Items { .. } if *method == Method::GET || headers.is_query => Extent::Page,
            Endpoint::Items { .. } if headers.is_batch => Extent::Written,
            Endpoint::Item { .. } if *method == Method::GET => Extent::Item,
            Endpoint::Item { .. } if *method == Method::PATCH => Extent::Written,
            Endpoint::Items { .. } | Endpoint::Item { .. } => Extent::Small,
            Endpoint::Script { .. } if *method == Method::POST => Extent::Script,
            _ => Extent::Small,
        }
    }
}

/// Tells the logs how a request ended.
pub(crate) fn note(
    trace: &Trace<'_>,
    peer: Peer,
    protocol: &str,
    aside: &Aside,
    result: &Result<Reply, Refusal>,
) {
    if let Some(entry) = &aside.audit {
        entry.write(trace, &peer, result);
    }
    if let Err(refusal) = result {
        tracing::debug!(
            activity = trace.activity.as_str(),
            remote = %peer.remote,
            protocol,
            method = %trace.method,
            path = trace.path,
            ?refusal,
            "refused"
        );
    }
}

fn trace<'a>(
    method: &'a Method,
    uri: &'a Uri,
    headers: &RequestHeaders<'a>,
    peer: Peer,
    started: Instant,
) -> Trace<'a> {
    let authority = uri.authority().map(|authority| authority.as_str());
    Trace {
        method,
        path: router::path_of(uri),
        host: headers.host.or(authority).unwrap_or("localhost"),
        scheme: peer.scheme,
        activity: ActivityId::choose(headers.activity_id),
        started,
        explain_charge: headers.explain_charge,
    }
}

/// The same request with a newer catalog, if there is one.
fn with_catalog<'a>(call: &Call<'a>, newest: &'a Option<Arc<Catalog>>) -> Call<'a> {
    Call { catalog: newest.as_deref().unwrap_or(call.catalog), ..*call }
}

/// The catalog as it is by now, when a request found its container gone because another has just taken its place.
/// Clients do not repeat requests that their partition has left, so the gateway asks the new one. Requests that waited
/// long, as scripts do for each other, may find that one gone as well.
fn exchanged<T>(call: &Call<'_>, at: &ContainerAddress, answer: &Result<T, Refusal>) -> Option<Arc<Catalog>> {
    let Err(Refusal::Db(error)) = answer else { return None };
    if !matches!(error.kind, ErrorKind::RangeGone) {
        return None;
    }
    let catalog = call.db.catalog();
    catalog.container_by_rid(at.container.resource.rid).is_none().then_some(catalog)
}

/// The read of an item, which waits for nothing.
fn read_item(call: &Call<'_>, endpoint: &Endpoint<'_>) -> Result<Look<Reply>, Refusal> {
    let Endpoint::Item { database, container, item } = endpoint else {
        return Err(Own::MethodNotAllowed.into());
    };
    let at = address::container(call.catalog, database, container)?;
    let answer = items::read(call, &at, item);
    let Some(catalog) = exchanged(call, &at, &answer) else { return answer };
    let at = address::container(&catalog, database, container)?;
    items::read(call, &at, item)
}

/// The same for a client that waits until the item is here.
async fn read_patiently(call: &Call<'_>, endpoint: &Endpoint<'_>) -> Result<Reply, Refusal> {
    loop {
        match read_item(call, endpoint)? {
            Look::Done(reply) => return Ok(reply),
            Look::Wait(wait) => wait.over().await,
        }
    }
}

/// What may wait is boxed one by one: a future is as large as the largest it may await, so all would pay for the state
/// of queries and batches.
async fn dispatch(call: &Call<'_>, endpoint: Endpoint<'_>, body: Bytes) -> Result<Reply, Refusal> {
    let catalog = call.catalog;
    match endpoint {
        Endpoint::Account => account::serve(call),
        Endpoint::Databases => Box::pin(databases::feed(call, body)).await,
        Endpoint::Database { database } => Box::pin(databases::one(call, &database)).await,
        Endpoint::Containers { database } => {
            let database = address::owner_database(catalog, &database)?;
            Box::pin(containers::feed(call, &database, body)).await
        }
        Endpoint::Container { database, container } => {
            let at = address::container(catalog, &database, &container)?;
            Box::pin(containers::one(call, &at.container, body)).await
        }
        Endpoint::Items { database, container } => {
            let mut newest = None;
            loop {
                let call = &with_catalog(call, &newest);
                let at = address::container(call.catalog, &database, &container)?;
                let answer = Box::pin(items::feed(call, &at, body.clone())).await;
                let Some(newer) = exchanged(call, &at, &answer) else { return answer };
                newest = Some(newer);
            }
        }
        Endpoint::Item { .. } if *call.trace.method == Method::GET => read_patiently(call, &endpoint).await,
        Endpoint::Item { database, container, item } => {
            let mut newest = None;
            loop {
                let call = &with_catalog(call, &newest);
                let at = address::container(call.catalog, &database, &container)?;
                let answer = Box::pin(items::write_one(call, &at, &item, body.clone())).await;
                let Some(newer) = exchanged(call, &at, &answer) else { return answer };
                newest = Some(newer);
            }
        }
        Endpoint::KeyDelete { .. } if *call.trace.method != Method::POST => Err(Own::MethodNotAllowed.into()),
        Endpoint::KeyDelete { database, container } => {
            let at = address::container(catalog, &database, &container)?;
            // Never repeated in a container with another key: there the same value names other items.
            Box::pin(items::delete_key(call, &at)).await
        }
        Endpoint::Ranges { database, container } => {
            let at = address::container(catalog, &database, &container)?;
            ranges::feed(call, &at.container)
        }
        Endpoint::Conflicts { database, container, conflict } => {
            let at = address::container(catalog, &database, &container)?;
            conflicts::serve(call, &at.container, conflict.as_deref())
        }
        Endpoint::Scripts { kind, database, container } => {
            let at = address::container(catalog, &database, &container)?;
            Box::pin(children::feed(call, &Branch::in_container(kind, &at), body)).await
        }
        Endpoint::Script { kind, database, container, script } => {
            let mut newest = None;
            loop {
                let call = &with_catalog(call, &newest);
                let at = address::container(call.catalog, &database, &container)?;
                let branch = Branch::in_container(kind, &at);
                let answer = Box::pin(scripts::one(call, &branch, &at, &script, body.clone())).await;
                let Some(newer) = exchanged(call, &at, &answer) else { return answer };
                newest = Some(newer);
            }
        }
        Endpoint::Offers => Box::pin(offers::feed(call, body)).await,
        Endpoint::Offer { offer } => Box::pin(offers::one(call, &offer, body)).await,
        Endpoint::Unsupported { feature } => Err(Own::Unsupported(feature.into()).into()),
        other => Box::pin(dispatch_child(call, other, body)).await,
    }
}

/// What hangs below the account, a database or a user.
async fn dispatch_child(call: &Call<'_>, endpoint: Endpoint<'_>, body: Bytes) -> Result<Reply, Refusal> {
    let catalog = call.catalog;
    match endpoint {
        Endpoint::DatabaseChildren { kind, database } => {
            children::feed(call, &Branch::in_database(catalog, kind, &database)?, body).await
        }
        Endpoint::DatabaseChild { kind, database, child } => {
            children::one(call, &Branch::in_database(catalog, kind, &database)?, &child, body).await
        }
        Endpoint::Permissions { database, user } => {
            children::feed(call, &Branch::of_user(catalog, &database, &user)?, body).await
        }
        Endpoint::Permission { database, user, permission } => {
            children::one(call, &Branch::of_user(catalog, &database, &user)?, &permission, body).await
        }
        Endpoint::Roles { kind } => children::feed(call, &Branch::in_account(kind), body).await,
        Endpoint::Role { kind, role } => children::one(call, &Branch::in_account(kind), &role, body).await,
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

#[cfg(test)]
mod tests;
