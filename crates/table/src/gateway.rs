//! The gateway: one request in, one answer out, whatever the request holds.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Body;
use orrery_cluster::{Catalog, Db, limits};
use orrery_gateway::body::{self, Limits};
use orrery_gateway::{ActivityId, Carrier, Held, Keys, Page, Peer, Room};

use crate::auth::{self, Act, Grant, Shown};
use crate::errors::{Own, Refusal};
use crate::headers::{Headers, Verb};
use crate::metadata::Metadata;
use crate::parameters::Parameters;
use crate::respond::{Asked, Reply, respond};
use crate::router::{self, Endpoint};
use crate::{batch, entity, tables};

/// Speaks the Table protocol for one [`Db`]. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    db: Db,
    keys: ArcSwap<Keys>,
    options: Options,
    room: Room,
}

/// What an operator may set.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long the body of a request may take to arrive.
    pub body_time_max: Duration,
    /// Bytes that the body of a request may have.
    pub body_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { body_time_max: Duration::from_secs(30), body_bytes_max: limits::REQUEST_BYTES_MAX }
    }
}

/// A request that has been parsed and authenticated; its body is handed over beside it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub db: &'a Db,
    /// One snapshot of the catalog for the whole request.
    pub catalog: &'a Catalog,
    pub headers: &'a Headers<'a>,
    pub parameters: &'a Parameters<'a>,
    pub grant: &'a Grant,
    pub metadata: Metadata,
    /// What addresses in answers begin with: `http://host/`, with the account where the client names it.
    pub base: &'a str,
    pub account: &'a str,
    /// The names under which clients may know the account.
    pub accounts: &'a [&'a str],
    pub request: ActivityId,
    /// How large a page may be.
    pub page_bytes: usize,
}

/// The account that emulators have.
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";

impl Gateway {
    pub fn new(db: Db, keys: Keys, options: Options) -> Gateway {
        let room = Room::new(db.memory().clone());
        Gateway(Arc::new(Inner { db, keys: ArcSwap::from_pointee(keys), options, room }))
    }

    /// From the next request on, these are the account's keys.
    pub fn set_keys(&self, keys: Keys) {
        self.0.keys.store(Arc::new(keys));
    }

    /// Whether requests wait for the memory of answers that are not sent yet.
    pub fn wants_memory(&self) -> bool {
        self.0.room.wants_answers()
    }

    /// Answers a request. Refusals are answers too: this never fails.
    pub async fn handle<B>(&self, request: Request<B>, peer: Peer) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let id = ActivityId::choose(None);
        let (mut held, mut body_left) = (Held::default(), false);
        let read = Headers::read(&parts.headers);
        let headers = *read.as_ref().unwrap_or(&Headers::default());
        let result = match read {
            Ok(_) => self.serve(&parts, &headers, body, peer, id, &mut held, &mut body_left).await,
            Err(refusal) => self.refuse(&parts, refusal, body, &mut body_left).await,
        };
        if let Err(refusal) = &result {
            let path = parts.uri.path();
            tracing::debug!(request = id.as_str(), remote = %peer.remote, method = %parts.method, path, ?refusal, "refused");
        }
        let asked = Asked { request: id, version: headers.version, client_request: headers.client_request };
        let mut response = respond(&asked, result);
        if let Some(unsent) = held.0 {
            response.extensions_mut().insert(unsent);
        }
        if body_left {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    #[expect(clippy::too_many_arguments, reason = "a request in its pieces, and what becomes known of it")]
    async fn serve<B>(
        &self,
        parts: &Parts,
        headers: &Headers<'_>,
        body: B,
        peer: Peer,
        request: ActivityId,
        held: &mut Held,
        body_left: &mut bool,
    ) -> Result<Reply, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let inner = &*self.0;
        let authority = parts.uri.authority().map(|authority| authority.as_str());
        let host = headers.host.or(authority).unwrap_or("localhost");
        let accounts = self.accounts(headers, host);
        let admitted = Parameters::read(parts.uri.query())
            .and_then(|parameters| self.admit(parts, headers, parameters, peer, &accounts));
        let (parameters, endpoint, verb, grant) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(parts, refusal, body, body_left).await,
        };
        let carrier = Carrier::of(parts.version);
        let limits = Limits { bytes: inner.options.body_bytes_max, time: inner.options.body_time_max };
        let read = body::read(body, limits, Some((&inner.room, carrier))).await;
        let body = read.inspect_err(|_| *body_left = true)?;
        let _made = inner.room.write(body.len() as u64, carrier).await?;
        let is_query = matches!((&endpoint, verb), (Endpoint::Entities { .. }, Verb::Get));
        let Page { bytes: page_bytes, hold } = match (&endpoint, verb) {
            _ if is_query => inner.room.page(carrier).await?,
            (Endpoint::Entity { .. }, Verb::Get) => {
                Page { bytes: orrery_cluster::limits::PAGE_BYTES_MAX, hold: inner.room.item().await? }
            }
            _ => Page { bytes: orrery_cluster::limits::PAGE_BYTES_MAX, hold: None },
        };
        let catalog = inner.db.catalog();
        let account = accounts.first().copied().unwrap_or(EMULATOR_ACCOUNT);
        let base = base_of(peer, host, parts.uri.path(), &accounts);
        let call = Call {
            db: &inner.db,
            catalog: &catalog,
            headers,
            parameters: &parameters,
            grant: &grant,
            metadata: Metadata::of(headers.accept, parameters.get("$format")),
            base: &base,
            account,
            accounts: &accounts,
            request,
            page_bytes,
        };
        let mut reply = dispatch(&call, &endpoint, verb, &body).await?;
        *held = inner.room.hold(&mut reply.body, carrier, hold, verb == Verb::Get).await?;
        Ok(reply)
    }

    /// Finds out what is asked for, and who asks.
    fn admit<'p>(
        &self,
        parts: &Parts,
        headers: &Headers<'_>,
        parameters: Parameters<'p>,
        peer: Peer,
        accounts: &[&str],
    ) -> Result<(Parameters<'p>, Endpoint, Verb, Grant), Refusal> {
        let path = parts.uri.path();
        let shown = Shown { method: &parts.method, path, parameters: &parameters, headers, peer, accounts };
        let grant = auth::authenticate(&self.0.keys.load(), &shown, SystemTime::now())?;
        let endpoint = router::route(path, &parameters, |name| accounts.contains(&name))?;
        let verb = headers.verb(&parts.method)?;
        let act = match (&endpoint, verb) {
            (Endpoint::Tables, Verb::Get) | (Endpoint::Table { .. }, Verb::Get) => Some(Act::ListTables),
            (Endpoint::Tables, Verb::Post) => Some(Act::CreateTable),
            (Endpoint::Table { .. }, Verb::Delete) => Some(Act::DeleteTable),
            (Endpoint::Entities { .. } | Endpoint::Entity { .. }, Verb::Get) => Some(Act::Read),
            (Endpoint::Service { .. } | Endpoint::Acl { .. }, _) => Some(Act::ReadService),
            // What writes entities is known when their operations are.
            (Endpoint::Entities { .. } | Endpoint::Entity { .. } | Endpoint::Batch, _) => None,
            (Endpoint::Tables | Endpoint::Table { .. }, _) => return Err(Own::MethodNotAllowed.into()),
        };
        if let Some(act) = act {
            grant.check(act, endpoint.table())?;
        }
        Ok((parameters, endpoint, verb, grant))
    }

    /// The names under which the client may know the account: what it signs with, what its host says, and our own.
    fn accounts<'a>(&'a self, headers: &Headers<'a>, host: &'a str) -> Vec<&'a str> {
        let signed = headers.authorization.and_then(auth::account_of);
        let of_host = host.split_once(".table.").map(|(account, _)| account);
        let own = self.0.db.account().name.as_str();
        signed.into_iter().chain(of_host).chain([own, EMULATOR_ACCOUNT]).collect()
    }

    /// Refuses a request by its head. Its body is on the way already, unless the client has asked to be told whether to
    /// send it.
    async fn refuse<B>(
        &self,
        parts: &Parts,
        refusal: Refusal,
        body: B,
        body_left: &mut bool,
    ) -> Result<Reply, Refusal>
    where
        B: Body<Data = Bytes>,
    {
        *body_left = match parts.headers.contains_key(EXPECT) {
            true => !body.is_end_stream(),
            false => !body::discard(body, self.0.options.body_time_max).await,
        };
        Err(refusal)
    }
}

/// What addresses in answers begin with.
fn base_of(peer: Peer, host: &str, path: &str, accounts: &[&str]) -> String {
    let first = path.trim_start_matches('/').split_once('/').map(|(account, _)| account);
    let account = first.filter(|first| accounts.contains(first));
    match account {
        Some(account) => format!("{}://{host}/{account}/", peer.scheme.as_str()),
        None => format!("{}://{host}/", peer.scheme.as_str()),
    }
}

async fn dispatch(call: &Call<'_>, endpoint: &Endpoint, verb: Verb, body: &[u8]) -> Result<Reply, Refusal> {
    match (endpoint, verb) {
        (Endpoint::Tables, Verb::Get) => tables::list(call),
        (Endpoint::Tables, Verb::Post) => Box::pin(tables::create(call, body)).await,
        (Endpoint::Table { table }, Verb::Get) => tables::show(call, table),
        (Endpoint::Table { table }, Verb::Delete) => Box::pin(tables::delete(call, table)).await,
        (Endpoint::Entities { table }, Verb::Get) => Box::pin(entity::query(call, table)).await,
        (Endpoint::Entity { table, partition_key, row_key }, Verb::Get) => {
            entity::get(call, table, partition_key, row_key)
        }
        (Endpoint::Entities { .. } | Endpoint::Entity { .. }, verb) => {
            let change = entity::change_of(call, verb, endpoint, call.headers.if_match, body)?;
            Box::pin(entity::write(call, change)).await
        }
        (Endpoint::Batch, Verb::Post) => Box::pin(batch::run(call, body)).await,
        (Endpoint::Service { .. }, _) => Err(Refusal::not_implemented("service properties and statistics")),
        (Endpoint::Acl { .. }, _) => Err(Refusal::not_implemented("stored access policies")),
        (Endpoint::Tables | Endpoint::Table { .. } | Endpoint::Batch, _) => Err(Own::MethodNotAllowed.into()),
    }
}
