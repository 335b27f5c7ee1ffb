//! The gateway: one request in, one answer out, whatever the request holds.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Body;
use orrery_cluster::{Catalog, Db, limits};
use orrery_gateway::body::{self, Limits};
use orrery_gateway::{ActivityId, Carrier, Entra, Held, Keys, Page, Peer, Room};

use crate::audit::Entry;
use crate::auth::{self, Act, Asked, Authority, Grant, Shown};
use crate::errors::{Own, Refusal};
use crate::headers::{Headers, Verb};
use crate::metadata::Metadata;
use crate::parameters::Parameters;
use crate::respond::{Repeated, Reply, respond};
use crate::router::{self, Endpoint, ServicePart};
use crate::service::{self, cors};
use crate::{acl, batch, entity, tables};

/// Speaks the Table protocol for one [`Db`]. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    db: Db,
    keys: ArcSwap<Keys>,
    entra: ArcSwapOption<Entra>,
    options: Options,
    room: Room,
}

/// What an operator may set.
#[derive(Clone)]
pub struct Options {
    /// How long the body of a request may take to arrive.
    pub body_time_max: Duration,
    /// Bytes that the body of a request may have.
    pub body_bytes_max: usize,
    /// RU/s that tables share which ask for none of their own, instead of some for each.
    pub shared_throughput: Option<u32>,
    /// Who checks tokens of Entra ID, when these are accepted.
    pub entra: Option<Arc<Entra>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            body_time_max: Duration::from_secs(30),
            body_bytes_max: limits::REQUEST_BYTES_MAX,
            shared_throughput: None,
            entra: None,
        }
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
    /// RU/s that new tables share.
    pub shared_throughput: Option<u32>,
    /// How large a page may be.
    pub page_bytes: usize,
}

/// What is known of a request before its body.
struct Admitted {
    endpoint: Endpoint,
    verb: Verb,
    grant: Grant,
    audit: Option<Entry>,
}

/// The account that emulators have.
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";

impl Call<'_> {
    /// Whether the sender may do something with a table.
    pub fn check(&self, act: Act, table: &str) -> Result<(), Refusal> {
        let account = &self.db.account().name;
        self.grant.check(&Asked { act, table: Some(table), catalog: self.catalog, account })
    }
}

impl Gateway {
    pub fn new(db: Db, keys: Keys, options: Options) -> Gateway {
        let room = Room::new(db.memory().clone());
        let entra = ArcSwapOption::new(options.entra.clone());
        Gateway(Arc::new(Inner { db, keys: ArcSwap::from_pointee(keys), entra, options, room }))
    }

    /// From the next request on, these are the account's keys.
    pub fn set_keys(&self, keys: Keys) {
        self.0.keys.store(Arc::new(keys));
    }

    /// From the next request on, this one checks tokens of Entra ID.
    pub fn set_entra(&self, entra: Option<Arc<Entra>>) {
        self.0.entra.store(entra);
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
        let (_head, crowded) = match body::head_of(&parts, &self.0.room) {
            Ok(head) => (head, None),
            Err(error) => (None, Some(Refusal::from(error))),
        };
        let read = Headers::read(&parts.headers);
        let headers = *read.as_ref().unwrap_or(&Headers::default());
        let result = match (crowded, read) {
            // Whatever follows is not waited for, since the head would be held meanwhile.
            (Some(refusal), _) => Err(refusal),
            (None, Ok(_)) if parts.method == Method::OPTIONS => {
                match cors::preflight(&self.0.db.catalog(), &headers) {
                    Ok(reply) => Ok(reply),
                    Err(refusal) => self.refuse(&parts, refusal, body, &mut body_left).await,
                }
            }
            (None, Ok(_)) => self.serve(&parts, &headers, body, peer, id, &mut held, &mut body_left).await,
            (None, Err(refusal)) => self.refuse(&parts, refusal, body, &mut body_left).await,
        };
        if let Err(refusal) = &result {
            let path = parts.uri.path();
            tracing::debug!(request = id.as_str(), remote = %peer.remote, method = %parts.method, path, ?refusal, "refused");
        }
        let repeated =
            Repeated { request: id, version: headers.version, client_request: headers.client_request };
        let mut response = respond(&repeated, result);
        if let Some(origin) = headers.origin.filter(|_| parts.method != Method::OPTIONS) {
            let told = cors::of_answer(&self.0.db.catalog(), origin, parts.method.as_str());
            response.headers_mut().extend(told);
        }
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
        let admitted = Parameters::read(parts.uri.query()).and_then(|parameters| {
            let admitted = self.admit(parts, headers, &parameters, peer, &accounts, request)?;
            Ok((parameters, admitted))
        });
        let (parameters, Admitted { endpoint, verb, grant, audit }) = match admitted {
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
            shared_throughput: inner.options.shared_throughput,
            page_bytes,
        };
        let answer = dispatch(&call, &endpoint, verb, &body).await;
        if let Some(entry) = audit {
            let status = answer.as_ref().map_or_else(|refusal| refusal.wire().status, |reply| reply.status);
            entry.write(parts.uri.path(), request, &peer, status);
        }
        let mut reply = answer?;
        *held = inner.room.hold(&mut reply.body, carrier, hold, verb == Verb::Get).await?;
        Ok(reply)
    }

    /// Finds out what is asked for, and who asks.
    fn admit(
        &self,
        parts: &Parts,
        headers: &Headers<'_>,
        parameters: &Parameters<'_>,
        peer: Peer,
        accounts: &[&str],
        request: ActivityId,
    ) -> Result<Admitted, Refusal> {
        let path = parts.uri.path();
        let shown = Shown { method: &parts.method, path, parameters, headers, peer, accounts };
        let catalog = self.0.db.catalog_now();
        let policy = |table: &str, name: &str| acl::policy(&catalog, table, name);
        let (keys, entra) = (self.0.keys.load(), self.0.entra.load());
        let authority = Authority { keys: &keys, entra: entra.as_deref(), policy: &policy };
        let grant = auth::authenticate(&authority, &shown, SystemTime::now())?;
        let endpoint = router::route(path, parameters, |name| accounts.contains(&name))?;
        let verb = headers.verb(&parts.method)?;
        let act = match (&endpoint, verb) {
            (Endpoint::Tables, Verb::Get) | (Endpoint::Table { .. }, Verb::Get) => Some(Act::ListTables),
            (Endpoint::Tables, Verb::Post) => Some(Act::CreateTable),
            (Endpoint::Table { .. }, Verb::Delete) => Some(Act::DeleteTable),
            (Endpoint::Entities { .. }, Verb::Get) => Some(Act::Query),
            (Endpoint::Entity { .. }, Verb::Get) => Some(Act::Read),
            (Endpoint::Service { .. }, Verb::Get) => Some(Act::ReadService),
            (Endpoint::Service { what: ServicePart::Properties }, Verb::Put) => Some(Act::WriteService),
            (Endpoint::Acl { .. }, Verb::Get) => Some(Act::ReadPolicies),
            (Endpoint::Acl { .. }, Verb::Put) => Some(Act::WritePolicies),
            // What writes entities is known when their operations are.
            (Endpoint::Entities { .. } | Endpoint::Entity { .. } | Endpoint::Batch, _) => None,
            (
                Endpoint::Tables | Endpoint::Table { .. } | Endpoint::Service { .. } | Endpoint::Acl { .. },
                _,
            ) => return Err(Own::MethodNotAllowed.into()),
        };
        if let Some(act) = act {
            let account = &self.0.db.account().name;
            let asked = Asked { act, table: endpoint.table(), catalog: &catalog, account };
            grant.check(&asked).inspect_err(|refusal| {
                if let Some(entry) = Entry::of(Some(act), &grant) {
                    entry.write(path, request, &peer, refusal.wire().status);
                }
            })?;
        }
        let audit = Entry::of(act, &grant);
        Ok(Admitted { endpoint, verb, grant, audit })
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
            entity::get(call, table, partition_key, row_key).await
        }
        (Endpoint::Entities { .. } | Endpoint::Entity { .. }, verb) => {
            let change = entity::change_of(call, verb, endpoint, call.headers.if_match, body, false)?;
            Box::pin(entity::write(call, change)).await
        }
        (Endpoint::Batch, Verb::Post) => Box::pin(batch::run(call, body)).await,
        (Endpoint::Service { what: ServicePart::Properties }, Verb::Get) => Ok(service::show(call)),
        (Endpoint::Service { what: ServicePart::Properties }, Verb::Put) => {
            Box::pin(service::replace(call, body)).await
        }
        (Endpoint::Service { what: ServicePart::Stats }, Verb::Get) => Ok(service::statistics()),
        (Endpoint::Acl { table }, Verb::Get) => acl::show(call, table),
        (Endpoint::Acl { table }, Verb::Put) => Box::pin(acl::replace(call, table, body)).await,
        (
            Endpoint::Tables
            | Endpoint::Table { .. }
            | Endpoint::Batch
            | Endpoint::Service { .. }
            | Endpoint::Acl { .. },
            _,
        ) => Err(Own::MethodNotAllowed.into()),
    }
}
