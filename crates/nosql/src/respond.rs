//! Answers: the standard headers in one place, written with few allocations.
//!
//! An answer to a point read carries some twenty-five header values. Constant ones are static; all others
//! are written into one buffer, of which each header then holds a slice.

mod template;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, PRAGMA, SERVER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use orrery_cluster::store::Lsn;
use orrery_cluster::{
    Charge, Container, Database, RangeToken, Receipt, Rid, SINGLE_REGION_VERSION, Served, Usage,
};

use crate::call::Trace;
use crate::errors::{Refusal, page, push_json_string};
use crate::headers::names;
use crate::items::session;
use crate::items::version::Version;
use crate::respond::template::{Field, Templates};

/// What a handler answers, before the standard headers.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
    pub receipt: Receipt,
    /// The range that the client named, where it is shown instead of the one that served.
    pub shown_range: Option<u32>,
    pub etag: Option<Version>,
    pub owner: Owner,
    /// For answers from the catalog: how far it is, and which change wrote the resource in the answer.
    pub catalog: Option<(Lsn, Option<Lsn>)>,
    /// Rows of a feed.
    pub item_count: Option<usize>,
    pub continuation: Option<String>,
    /// What the owner holds, for `x-ms-resource-usage`.
    pub usage: Option<ResourceUsage>,
    pub extra: Vec<(HeaderName, HeaderValue)>,
}

/// The resource that the answer's resource lives in: it names the content paths.
pub(crate) enum Owner {
    None,
    Database(Arc<Database>),
    Container(Arc<Container>),
}

/// Quota and usage, which go together.
pub(crate) enum ResourceUsage {
    Databases(usize),
    Account { databases: usize, containers: usize },
    Containers(usize),
    Container(Usage),
}

impl Owner {
    pub fn rid(&self) -> Option<Rid> {
        match self {
            Owner::None => None,
            Owner::Database(database) => Some(database.resource.rid),
            Owner::Container(container) => Some(container.resource.rid),
        }
    }

    /// The path made of names, each written as its reader wants it.
    pub fn push_path(&self, out: &mut String, push_name: impl Fn(&mut String, &str)) {
        match self {
            Owner::None => {}
            Owner::Database(database) => {
                out.push_str("dbs/");
                push_name(out, &database.resource.id);
            }
            Owner::Container(container) => {
                out.push_str("dbs/");
                push_name(out, &container.database_id);
                out.push_str("/colls/");
                push_name(out, &container.resource.id);
            }
        }
    }
}

impl ResourceUsage {
    pub fn quota(&self) -> &'static str {
        match self {
            ResourceUsage::Databases(_) => "databases=1000;",
            ResourceUsage::Account { .. } => {
                "databases=1000;collections=5000;users=500000;permissions=2000000;"
            }
            ResourceUsage::Containers(_) => "collections=5000;",
            ResourceUsage::Container(_) => {
                "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;"
            }
        }
    }

    /// What of the quota is in use.
    pub fn push(&self, out: &mut String) -> std::fmt::Result {
        match self {
            ResourceUsage::Databases(count) => write!(out, "databases={count};"),
            ResourceUsage::Account { databases, containers } => {
                write!(out, "databases={databases};collections={containers};users=0;permissions=0;")
            }
            ResourceUsage::Containers(count) => write!(out, "collections={count};"),
            ResourceUsage::Container(usage) => {
                let (items, kilobytes) = (usage.items, usage.bytes.div_ceil(1024));
                out.push_str("documentSize=0;documentsSize=");
                push_number(out, kilobytes);
                out.push_str(";documentsCount=");
                push_number(out, items);
                out.push_str(";collectionSize=");
                push_number(out, kilobytes);
                out.push(';');
                Ok(())
            }
        }
    }
}

impl Reply {
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> Reply {
        Reply {
            status,
            body: body.into(),
            receipt: Receipt::default(),
            shown_range: None,
            etag: None,
            owner: Owner::None,
            catalog: None,
            item_count: None,
            continuation: None,
            usage: None,
            extra: Vec::new(),
        }
    }

    pub fn ok(body: impl Into<Bytes>) -> Reply {
        Reply::new(StatusCode::OK, body)
    }

    pub fn empty(status: StatusCode) -> Reply {
        Reply::new(status, Bytes::new())
    }

    pub fn receipt(self, receipt: Receipt) -> Reply {
        Reply { receipt, ..self }
    }

    pub fn shown_range(self, shown_range: Option<u32>) -> Reply {
        Reply { shown_range, ..self }
    }

    /// A charge without a partition behind it.
    pub fn charge(mut self, what: &'static str, units: f64) -> Reply {
        self.receipt.charge = Charge::flat(what, units);
        self
    }

    pub fn etag(self, etag: impl Into<Version>) -> Reply {
        Reply { etag: Some(etag.into()), ..self }
    }

    /// The content paths and usage of a container whose contents the answer is about.
    pub fn in_container(self, container: &Arc<Container>) -> Reply {
        Reply {
            usage: Some(ResourceUsage::Container(container.usage())),
            owner: Owner::Container(container.clone()),
            ..self
        }
    }

    /// The state of the catalog that the answer was read from, or that it made.
    pub fn in_catalog(self, lsn: Lsn, resource: Option<Lsn>) -> Reply {
        Reply { catalog: Some((lsn, resource)), ..self }
    }

    pub fn in_database(self, database: &Arc<Database>) -> Reply {
        Reply { owner: Owner::Database(database.clone()), ..self }
    }

    /// A page of a feed: how many rows, and where the next page starts.
    pub fn page(self, count: usize, continuation: Option<String>) -> Reply {
        Reply { item_count: Some(count), continuation, ..self }
    }

    pub fn usage(self, usage: ResourceUsage) -> Reply {
        Reply { usage: Some(usage), ..self }
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Reply {
        self.extra.push((name, value));
        self
    }
}

/// Writes responses; holds what is the same for the whole life of the gateway.
pub(crate) struct Responder {
    templates: Templates,
    transport_request: AtomicU64,
}

impl Responder {
    pub fn new() -> Responder {
        let mut constant = HeaderMap::new();
        constant.extend(CONSTANT_HEADERS.iter().cloned());
        constant.insert(names::LAST_STATE_CHANGE, HeaderValue::from_static(&LAST_STATE_CHANGE));
        Responder { templates: Templates::new(constant), transport_request: AtomicU64::new(1) }
    }

    pub fn respond(&self, trace: &Trace<'_>, result: Result<Reply, Refusal>) -> Response<Full<Bytes>> {
        match result {
            Ok(reply) => self.reply(trace, reply),
            Err(refusal) => self.refuse(trace, &refusal),
        }
    }

    fn reply(&self, trace: &Trace<'_>, reply: Reply) -> Response<Full<Bytes>> {
        let mut values = Values::with_capacity(&reply);
        self.standard(trace, &reply.receipt, reply.shown_range, &mut values);
        if let Some(etag) = reply.etag {
            values.ascii(Field::Etag, &etag.to_text());
        }
        if let Some(count) = reply.item_count {
            values.put(Field::ItemCount, |out| write!(out, "{count}"));
        }
        if let Some(continuation) = &reply.continuation {
            values.put(Field::Continuation, |out| out.write_str(continuation));
        }
        if let Some((lsn, resource)) = reply.catalog {
            values.position(0, lsn, resource, *trace.method != Method::GET);
        }
        values.owner(&reply.owner);
        values.usage(reply.usage.as_ref());
        if trace.method != Method::POST {
            values.put(Field::ContentLocation, |out| {
                [trace.scheme.as_str(), "://", trace.host, trace.path]
                    .iter()
                    .for_each(|part| out.push_str(part));
                Ok(())
            });
        }
        self.finish(reply.status, reply.body, values, reply.extra)
    }

    fn refuse(&self, trace: &Trace<'_>, refusal: &Refusal) -> Response<Full<Bytes>> {
        let wire = refusal.wire();
        let mut values = Values::new();
        let none = Receipt::default();
        self.standard(trace, refusal.receipt().unwrap_or(&none), None, &mut values);
        if wire.substatus != 0 {
            values.put(Field::Substatus, |out| write!(out, "{}", wire.substatus));
        }
        if let Some(wait) = wire.retry_after_ms {
            values.put(Field::RetryAfterMs, |out| write!(out, "{wait}"));
        }
        let (body, extra) = match page(refusal) {
            Some(page) => (Bytes::from(page), vec![(CONTENT_TYPE, HeaderValue::from_static("text/html"))]),
            None => (Bytes::from(wire.body(trace.activity.as_str(), trace.path)), Vec::new()),
        };
        let body = if trace.method == Method::HEAD { Bytes::new() } else { body };
        self.finish(wire.status, body, values, extra)
    }

    fn standard(&self, trace: &Trace<'_>, receipt: &Receipt, shown_range: Option<u32>, values: &mut Values) {
        values.put(Field::ActivityId, |out| out.write_str(trace.activity.as_str()));
        let units = receipt.charge.total();
        values.put(Field::RequestCharge, |out| push_units(out, units));
        let transport = self.transport_request.fetch_add(1, Ordering::Relaxed);
        values.number(Field::TransportRequestId, transport);
        if let Some(served) = &receipt.served {
            values.served(served, shown_range, *trace.method != Method::GET);
        }
        if trace.explain_charge {
            values.put(Field::Explain, |out| explain(&receipt.charge, out));
        }
        let micros = trace.started.elapsed().as_micros() as u64;
        values.put(Field::RequestDuration, |out| {
            push_number(out, micros / 1000);
            out.push('.');
            push_digits(out, micros % 1000, 3);
            Ok(())
        });
    }

    fn finish(
        &self,
        status: StatusCode,
        body: Bytes,
        values: Values,
        extra: Vec<(HeaderName, HeaderValue)>,
    ) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        *headers = self.templates.fill(values);
        for (name, value) in extra {
            headers.insert(name, value);
        }
        response
    }
}

/// When the server started. A static text is copied without counting who holds it.
static LAST_STATE_CHANGE: LazyLock<String> = LazyLock::new(|| {
    let now = httpdate::fmt_http_date(std::time::SystemTime::now());
    // The service shows milliseconds here; nobody compares them.
    now.replace(" GMT", ".000 GMT")
});

static CONSTANT_HEADERS: [(HeaderName, HeaderValue); 9] = [
    (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache")),
    (PRAGMA, HeaderValue::from_static("no-cache")),
    (SERVER, HeaderValue::from_static("Orrery")),
    (names::GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0")),
    (names::SERVICE_VERSION, HeaderValue::from_static("version=2.14.0.0")),
    (names::SCHEMA_VERSION, HeaderValue::from_static("1.19")),
    // One region serves reads besides the one that serves writes: none.
    (names::NUMBER_OF_READ_REGIONS, HeaderValue::from_static("0")),
    (names::XP_ROLE, HeaderValue::from_static("1")),
];

/// Header values on their way into one shared buffer.
struct Values {
    text: String,
    /// Each with the end of its value in the text.
    places: Vec<(Field, usize)>,
    /// Values that need no writing; they follow the others.
    constants: Vec<(Field, HeaderValue)>,
}

impl Values {
    fn new() -> Values {
        Values { text: String::with_capacity(768), places: Vec::with_capacity(24), constants: Vec::new() }
    }

    fn with_capacity(reply: &Reply) -> Values {
        let continuation = reply.continuation.as_ref().map_or(0, String::len);
        let text = String::with_capacity(1024 + continuation);
        Values { text, places: Vec::with_capacity(24), constants: Vec::with_capacity(3) }
    }

    fn put(&mut self, field: Field, write: impl FnOnce(&mut String) -> std::fmt::Result) {
        write(&mut self.text).expect("writing to a string cannot fail");
        self.places.push((field, self.text.len()));
    }

    fn number(&mut self, field: Field, number: u64) {
        push_number(&mut self.text, number);
        self.places.push((field, self.text.len()));
    }

    fn ascii(&mut self, field: Field, text: &[u8]) {
        self.text.push_str(std::str::from_utf8(text).expect("the caller's text is ASCII"));
        self.places.push((field, self.text.len()));
    }

    fn lsn(&mut self, field: Field, lsn: Lsn) {
        self.number(field, lsn.0);
    }

    fn served(&mut self, served: &Served, shown_range: Option<u32>, is_write: bool) {
        self.number(Field::RangeId, u64::from(shown_range.unwrap_or(served.range_id)));
        self.position(served.range_id, served.lsn, served.item_lsn, is_write);
    }

    /// How far a partition is, in all the forms in which the service says it.
    fn position(&mut self, range_id: u32, lsn: Lsn, item_lsn: Option<Lsn>, is_write: bool) {
        self.lsn(Field::Lsn, lsn);
        self.lsn(Field::Llsn, lsn);
        self.lsn(Field::GlobalCommittedLsn, lsn);
        self.put(Field::SessionToken, |out| {
            let version = Some(SINGLE_REGION_VERSION);
            session::write(&RangeToken { range: range_id, version, lsn, regions: Vec::new() }, out);
            Ok(())
        });
        if let Some(item_lsn) = item_lsn {
            self.lsn(Field::ItemLsn, item_lsn);
            self.lsn(Field::ItemLlsn, item_lsn);
        }
        if is_write {
            self.lsn(Field::QuorumAckedLsn, lsn);
            self.lsn(Field::QuorumAckedLlsn, lsn);
            self.constants.push((Field::CurrentReplicaSetSize, HeaderValue::from_static("1")));
            self.constants.push((Field::CurrentWriteQuorum, HeaderValue::from_static("1")));
        }
    }

    fn owner(&mut self, owner: &Owner) {
        let Some(rid) = owner.rid() else { return };
        self.put(Field::AltContentPath, |out| {
            owner.push_path(out, push_path_text);
            Ok(())
        });
        self.ascii(Field::ContentPath, rid.text().as_bytes());
    }

    fn usage(&mut self, usage: Option<&ResourceUsage>) {
        let Some(usage) = usage else { return };
        self.put(Field::ResourceUsage, |out| usage.push(out));
        self.constants.push((Field::ResourceQuota, HeaderValue::from_static(usage.quota())));
    }

    fn fields(&self) -> impl Iterator<Item = Field> {
        let written = self.places.iter().map(|(field, _)| *field);
        written.chain(self.constants.iter().map(|(field, _)| *field))
    }

    /// All values. There is none where no header may carry it, such as a name with a line break.
    fn take(self) -> impl Iterator<Item = (Field, Option<HeaderValue>)> {
        let text = Bytes::from(self.text.into_bytes());
        let mut start = 0;
        let written = self.places.into_iter().map(move |(field, end)| {
            let piece = text.slice(start..end);
            start = end;
            (field, HeaderValue::from_maybe_shared(piece).ok())
        });
        written.chain(self.constants.into_iter().map(|(field, value)| (field, Some(value))))
    }
}

/// Numbers are most of what headers say, and the general formatter takes its time over each.
pub(crate) fn push_number(out: &mut String, number: u64) {
    push_digits(out, number, 1);
}

/// At least so many digits.
fn push_digits(out: &mut String, mut number: u64, least: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let at = at.min(digits.len() - least);
    out.push_str(std::str::from_utf8(&digits[at..]).expect("digits are ASCII"));
}

/// Request units, which have two decimals at most, without trailing zeros.
fn push_units(out: &mut String, units: f64) -> std::fmt::Result {
    let hundredths = (units * 100.0).round();
    if !(0.0..1e15).contains(&hundredths) || hundredths / 100.0 != units {
        return write!(out, "{units}");
    }
    let hundredths = hundredths as u64;
    push_number(out, hundredths / 100);
    match hundredths % 100 {
        0 => {}
        tenths if tenths % 10 == 0 => {
            out.push('.');
            push_number(out, tenths / 10);
        }
        both => {
            out.push('.');
            push_digits(out, both, 2);
        }
    }
    Ok(())
}

/// Names may hold any character; in a header all but plain ones are percent-encoded.
fn push_path_text(out: &mut String, text: &str) {
    out.extend(percent_encoding::utf8_percent_encode(text, percent_encoding::CONTROLS));
}

/// The charge as JSON: `{"total":5.35,"lines":[{"what":"...","count":1,"each":4.95,"units":4.95}]}`.
fn explain(charge: &Charge, out: &mut String) -> std::fmt::Result {
    write!(out, "{{\"total\":{},\"lines\":[", charge.total())?;
    for (place, line) in charge.lines.iter().enumerate() {
        out.push_str(if place == 0 { "{\"what\":" } else { ",{\"what\":" });
        push_json_string(out, line.what);
        let units = (line.count * line.each * 1e6).round() / 1e6;
        write!(out, ",\"count\":{},\"each\":{},\"units\":{units}}}", line.count, line.each)?;
    }
    out.push_str("]}");
    Ok(())
}

#[cfg(test)]
mod tests;
