//! From a frame to the request that it stands for: the same typed headers and endpoint that the HTTP front end makes of
//! headers and paths. What a header may say is checked by [`RequestHeaders`]; here tokens are only told apart.

use std::borrow::Cow;

use http::Method;
use orrery_cluster::{Consistency, Priority, Rid};

use super::frame::{Head, Malformed, Token, Tokens};
use super::place::Place;
use super::reply::PROTOCOL_VERSION;
use super::token::{Asked, Hello, Numbered};
use crate::errors::{Own, Refusal};
use crate::headers::{
    self, ContentFormat, IndexMetrics, IndexingDirective, MaxItemCount, ReadStrategy, RequestHeaders,
};
use orrery_gateway::ActivityId;

/// What must be known of a frame before anything else: whether something follows it, and how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub has_payload: bool,
    pub transport: u32,
}

impl Outline {
    /// Looks at all tokens, so that those who read them again find them well-formed.
    pub fn of(tokens: &[u8]) -> Result<Outline, Malformed> {
        let (mut has_payload, mut transport) = (None, None);
        let mut seen = Seen::default();
        for token in Tokens::of(tokens) {
            let token = token?;
            seen.note(token.id)?;
            match Asked::of(token.id) {
                // No other token decides how the rest is read.
                Some(Asked::PayloadPresent) => has_payload = Some(token.flag()?),
                Some(Asked::TransportRequestId) => transport = Some(token.number()?),
                _ => {}
            }
        }
        let (Some(has_payload), Some(transport)) = (has_payload, transport) else {
            return Err(Malformed::Missing);
        };
        Ok(Outline { has_payload, transport })
    }
}

/// The tokens of a frame that were seen, as far as they are known: of one that stands twice nobody can tell which is meant.
#[derive(Default)]
struct Seen([u64; 5]);

impl Seen {
    fn note(&mut self, id: u16) -> Result<(), Malformed> {
        let Some(word) = self.0.get_mut(usize::from(id / 64)) else { return Ok(()) };
        let bit = 1 << (id % 64);
        if *word & bit != 0 {
            return Err(Malformed::Twice);
        }
        *word |= bit;
        Ok(())
    }
}

/// What a client said when it opened its connection; it holds for all requests on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting {
    /// Of RNTBD itself.
    protocol: u32,
    /// Of the API.
    pub version: String,
    pub user_agent: String,
}

impl Greeting {
    pub fn read(tokens: &[u8]) -> Result<Greeting, Malformed> {
        let mut greeting = Greeting::default();
        let (mut protocol, mut seen) = (None, Seen::default());
        for token in Tokens::of(tokens) {
            let token = token?;
            seen.note(token.id)?;
            match token.meaning()? {
                Some(Hello::ProtocolVersion) => protocol = Some(token.number()?),
                Some(Hello::ClientVersion) => greeting.version = token.text()?.to_owned(),
                Some(Hello::UserAgent) => greeting.user_agent = token.text()?.to_owned(),
                _ => {}
            }
        }
        greeting.protocol = protocol.ok_or(Malformed::Missing)?;
        if greeting.version.is_empty() {
            return Err(Malformed::Missing);
        }
        Ok(greeting)
    }

    /// Refuses a client that speaks what this server does not.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.protocol != PROTOCOL_VERSION {
            let message = format!("Version {} of the protocol RNTBD is not supported.", self.protocol);
            return Err(Refusal::bad_request(message));
        }
        headers::check_version(&self.version)
    }
}

/// A request as its frame says it.
pub(crate) struct Said<'f> {
    pub headers: RequestHeaders<'f>,
    pub method: Method,
    pub place: Place,
    /// The RID that the client takes for its container's.
    pub collection_rid: Option<&'f str>,
    pub correlated: Option<ActivityId>,
    operation: Operation,
    resource: u16,
    names: Names<'f>,
    key_kind: Option<u8>,
    has_payload: bool,
}

/// The names in a frame, or the one RID that stands for them.
#[derive(Default)]
struct Names<'f> {
    rid: &'f [u8],
    database: Option<&'f str>,
    container: Option<&'f str>,
    user: Option<&'f str>,
    /// Of what is in the container, or below the user.
    last: Option<&'f str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Create,
    Patch,
    Read,
    ReadFeed,
    Delete,
    Replace,
    Execute,
    Query,
    Head,
    HeadFeed,
    Upsert,
    Batch,
}

impl Operation {
    fn of(code: u16) -> Option<Operation> {
        Some(match code {
            1 => Operation::Create,
            2 => Operation::Patch,
            3 => Operation::Read,
            4 => Operation::ReadFeed,
            5 => Operation::Delete,
            6 => Operation::Replace,
            8 => Operation::Execute,
            // One that old clients knew, and the one that all send.
            9 | 0x0F => Operation::Query,
            0x11 => Operation::Head,
            0x12 => Operation::HeadFeed,
            0x13 => Operation::Upsert,
            0x25 => Operation::Batch,
            _ => return None,
        })
    }

    fn method(self) -> Method {
        match self {
            Operation::Create | Operation::Upsert | Operation::Batch => Method::POST,
            Operation::Query | Operation::Execute => Method::POST,
            Operation::Read | Operation::ReadFeed => Method::GET,
            Operation::Replace => Method::PUT,
            Operation::Delete => Method::DELETE,
            Operation::Patch => Method::PATCH,
            Operation::Head | Operation::HeadFeed => Method::HEAD,
        }
    }

    /// Whether it is about a feed and not about one resource.
    fn is_on_feed(self) -> bool {
        matches!(
            self,
            Operation::Create
                | Operation::Upsert
                | Operation::Batch
                | Operation::Query
                | Operation::ReadFeed
                | Operation::HeadFeed
        )
    }
}

/// The numbers of resources.
mod resource {
    pub const DATABASE: u16 = 1;
    pub const COLLECTION: u16 = 2;
    pub const DOCUMENT: u16 = 3;
    pub const USER: u16 = 5;
    pub const PERMISSION: u16 = 6;
    pub const PROCEDURE: u16 = 7;
    pub const CONFLICT: u16 = 8;
    pub const TRIGGER: u16 = 9;
    pub const FUNCTION: u16 = 10;
    pub const ENCRYPTION_KEY: u16 = 0x23;
}

/// Whether a frame is the read of an item, which waits for nothing.
pub(crate) fn is_item_read(head: &Head) -> bool {
    head.resource == resource::DOCUMENT && Operation::of(head.operation) == Some(Operation::Read)
}

impl<'f> Said<'f> {
    pub fn read(head: &Head, tokens: &'f [u8], greeting: &'f Greeting) -> Result<Said<'f>, Refusal> {
        let operation = Operation::of(head.operation).ok_or_else(|| {
            Refusal::unsupported(format!("Operation type {} of direct mode", head.operation))
        })?;
        let mut said = Said {
            headers: RequestHeaders {
                version: Some(greeting.version.as_str()),
                user_agent: Some(greeting.user_agent.as_str()),
                is_upsert: operation == Operation::Upsert,
                is_query: operation == Operation::Query,
                is_batch: operation == Operation::Batch,
                ..RequestHeaders::default()
            },
            method: operation.method(),
            place: Place::Elsewhere,
            collection_rid: None,
            correlated: None,
            operation,
            resource: head.resource,
            names: Names::default(),
            key_kind: None,
            has_payload: false,
        };
        for token in Tokens::of(tokens) {
            let token = token.map_err(|error| Refusal::bad_request(error.to_string()))?;
            let Some(asked) = Asked::of(token.id) else { continue };
            check_served(asked)?;
            let taken = token.meaning::<Asked>().map_err(Fault::from).and_then(|_| said.take(asked, &token));
            taken.map_err(|fault| fault.refusal(asked))?;
        }
        said.check_key_kind()?;
        said.check_payload()?;
        Ok(said)
    }

    fn take(&mut self, asked: Asked, token: &Token<'f>) -> Result<(), Fault> {
        match asked {
            Asked::PayloadPresent => self.has_payload = token.flag()?,
            Asked::ReplicaPath => self.place = Place::read(token.text()?),
            Asked::CollectionRid => self.collection_rid = some(token.text()?),
            Asked::CorrelatedActivityId => self.correlated = Some(ActivityId::of_guid(&token.guid()?)),
            Asked::ResourceId => self.names.rid = token.bytes()?,
            Asked::DatabaseName => self.names.database = some(token.text()?),
            Asked::CollectionName => self.names.container = some(token.text()?),
            Asked::UserName => self.names.user = some(token.text()?),
            Asked::DocumentName
            | Asked::PermissionName
            | Asked::StoredProcedureName
            | Asked::UserDefinedFunctionName
            | Asked::TriggerName
            | Asked::ConflictName
            | Asked::ClientEncryptionKeyName => self.names.last = some(token.text()?),
            Asked::ReadFeedKeyType => self.key_kind = Some(token.byte()?),
            Asked::Match if matches!(self.operation, Operation::Read | Operation::ReadFeed) => {
                self.headers.if_none_match = some(token.text()?);
            }
            _ => return self.take_header(asked, token),
        }
        Ok(())
    }

    fn take_header(&mut self, asked: Asked, token: &Token<'f>) -> Result<(), Fault> {
        let headers = &mut self.headers;
        match asked {
            Asked::AuthorizationToken => headers.authorization = some(token.text()?),
            Asked::Date => headers.x_ms_date = some(token.text()?),
            Asked::PageSize => headers.max_item_count = page_size(token.number()?),
            Asked::SessionToken => headers.session_token = some(token.text()?),
            Asked::ContinuationToken => headers.continuation = some(token.text()?),
            Asked::IndexingDirective => headers.indexing_directive = directive(token.byte()?)?,
            Asked::Match => headers.if_match = some(token.text()?),
            Asked::PreTriggerInclude => headers.pre_triggers = some(token.text()?),
            Asked::PostTriggerInclude => headers.post_triggers = some(token.text()?),
            Asked::ConsistencyLevel => headers.consistency = Some(consistency(token.byte()?)?),
            Asked::ResourceTokenExpiry => headers.expiry_seconds = Some(token.number()?.into()),
            Asked::EnableScanInQuery => headers.enable_scan = token.flag()?,
            Asked::PartitionKey => headers.partition_key = some(token.text()?),
            Asked::PartitionKeyRangeId => headers.range_id = some(token.text()?),
            Asked::ExcludeSystemProperties => headers.exclude_system_properties = token.flag()?,
            Asked::EnableLogging => headers.script_logging = token.flag()?,
            Asked::AIm => headers.a_im = some(token.text()?),
            Asked::PopulateQuotaInfo => headers.populate_quota = token.flag()?,
            Asked::PopulateQueryMetrics => headers.populate_query_metrics = token.flag()?,
            Asked::ResponseContinuationTokenLimitInKb => {
                headers.limit_continuation(token.number()?.into())?
            }
            Asked::PopulatePartitionStatistics => headers.populate_statistics = token.flag()?,
            Asked::IfModifiedSince => headers.if_modified_since = some(token.text()?),
            Asked::StartEpk => headers.start_epk = some(ascii(token.bytes()?)?),
            Asked::EndEpk => headers.end_epk = some(ascii(token.bytes()?)?),
            Asked::EnumerationDirection if token.byte()? == 1 => {}
            Asked::EnumerationDirection => return Err(Malformed::Value.into()),
            Asked::ContentSerializationFormat => {
                headers.content_format = Some(content_format(token.byte()?)?)
            }
            Asked::IsBatchAtomic => headers.batch_atomic = token.flag()?,
            Asked::ShouldBatchContinueOnError => headers.batch_continue_on_error = token.flag()?,
            Asked::IsBatchOrdered => headers.batch_ordered = token.flag()?,
            Asked::ReturnPreference => headers.minimal_response = token.flag()?,
            Asked::IsClientEncrypted => headers.is_client_encrypted = Some(token.flag()?),
            Asked::IntendedCollectionRid => headers.intended_collection_rid = some(token.text()?),
            Asked::PopulateIndexMetrics => headers.want_index_metrics(IndexMetrics::V1, token.flag()?),
            Asked::PopulateIndexMetricsV2 => headers.want_index_metrics(IndexMetrics::V2, token.flag()?),
            Asked::ChangeFeedWireFormatVersion => headers.form_changes(token.text()?)?,
            Asked::PriorityLevel => headers.lane.priority = Some(priority(token.byte()?)?),
            Asked::SupportedSerializationFormats => {
                headers.accepts_binary = token.byte()? & COSMOS_BINARY != 0
            }
            Asked::PopulateQueryAdvice => headers.populate_query_advice = token.flag()?,
            Asked::ThroughputBucket => headers.take_bucket(token.byte()?)?,
            Asked::ReadConsistencyStrategy => headers.read_strategy = Some(strategy(token.byte()?)?),
            Asked::SupportedQueryFeatures => headers.supported_query_features = some(token.text()?),
            Asked::QueryVersion => headers.query_version = some(token.text()?),
            _ => {}
        }
        Ok(())
    }

    /// What the two ends of a range are: texts, as over HTTP. The other kinds name what HTTP refuses too.
    fn check_key_kind(&mut self) -> Result<(), Refusal> {
        let has_ends = self.headers.start_epk.is_some() || self.headers.end_epk.is_some();
        match self.key_kind {
            Some(EPK_RANGE) => {
                self.headers.read_key_type = Some("EffectivePartitionKeyRange");
                Ok(())
            }
            None if !has_ends => Ok(()),
            _ => Err(Refusal::unsupported("A read key type other than EffectivePartitionKeyRange")),
        }
    }

    /// A feed of changes that brings a query is a POST, as it is over HTTP. Nothing else is read with a payload, and what
    /// one says must not go unheard.
    fn check_payload(&mut self) -> Result<(), Refusal> {
        if !self.has_payload || self.method != Method::GET {
            return Ok(());
        }
        if self.operation != Operation::ReadFeed || self.headers.a_im.is_none() {
            return Err(Refusal::unsupported("A payload of a read that is not for changes"));
        }
        self.method = Method::POST;
        self.headers.is_query = true;
        Ok(())
    }

    /// Whether it names its resource, or shows it by its RID.
    #[cfg(test)]
    pub fn is_named(&self) -> bool {
        self.names.database.is_some()
    }

    /// Types and names in turns, as a path has them.
    pub fn words(&self) -> Result<Words<'f>, Refusal> {
        let mut words = Words::default();
        match self.names.database {
            Some(database) => self.named(database, &mut words)?,
            None => self.by_rid(&mut words)?,
        }
        // A feed ends with its type, one resource with its name.
        if words.0.len() % 2 != usize::from(self.operation.is_on_feed()) {
            return Err(Own::NoSuchPath.into());
        }
        Ok(words)
    }

    /// The types that lead to the resource.
    fn types(&self) -> Result<&'static [&'static str], Refusal> {
        Ok(match self.resource {
            resource::DATABASE => &["dbs"],
            resource::COLLECTION => &["dbs", "colls"],
            resource::DOCUMENT => &["dbs", "colls", "docs"],
            resource::USER => &["dbs", "users"],
            resource::PERMISSION => &["dbs", "users", "permissions"],
            resource::PROCEDURE => &["dbs", "colls", "sprocs"],
            resource::CONFLICT => &["dbs", "colls", "conflicts"],
            resource::TRIGGER => &["dbs", "colls", "triggers"],
            resource::FUNCTION => &["dbs", "colls", "udfs"],
            resource::ENCRYPTION_KEY => &["dbs", "clientencryptionkeys"],
            other => return Err(Refusal::unsupported(format!("Resource type {other} of direct mode"))),
        })
    }

    fn named(&self, database: &'f str, words: &mut Words<'f>) -> Result<(), Refusal> {
        let mut last = self.names.last;
        let names = self.types()?.iter().map(|kind| {
            let name = match *kind {
                "dbs" => Some(database),
                "colls" => self.names.container,
                "users" => self.names.user,
                _ => last.take(),
            };
            (*kind, name.map(Cow::Borrowed))
        });
        words.fill(names);
        Ok(())
    }

    /// A RID holds those of its owners; one of nothing is that of the account.
    fn by_rid(&self, words: &mut Words<'f>) -> Result<(), Refusal> {
        let rid = self.names.rid;
        if !matches!(rid.len(), 0 | 4 | 8 | 16) {
            return Err(Refusal::bad_request("The resource id of the request has a length that none has."));
        }
        let part = |bytes: usize| rid.get(..bytes).map(|part| Cow::Owned(Rid::from_slice(part).to_string()));
        let names = self.types()?.iter().zip([4, 8, 16]).map(|(kind, bytes)| (*kind, part(bytes)));
        words.fill(names);
        Ok(())
    }
}

/// A path word by word.
#[derive(Default)]
pub(crate) struct Words<'f>(Vec<Cow<'f, str>>);

impl<'f> Words<'f> {
    /// Ends behind the first type that has no name.
    fn fill(&mut self, names: impl Iterator<Item = (&'static str, Option<Cow<'f, str>>)>) {
        self.0.reserve_exact(6);
        for (kind, name) in names {
            self.0.push(Cow::Borrowed(kind));
            let Some(name) = name else { return };
            self.0.push(name);
        }
    }

    pub fn as_strs(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|word| &**word)
    }

    /// As logs and messages show it.
    pub fn path(&self) -> String {
        let mut path = String::with_capacity(self.0.iter().map(|word| word.len() + 1).sum());
        for word in &self.0 {
            path.push('/');
            path.push_str(word);
        }
        path
    }
}

/// What is wrong with a token.
enum Fault {
    Malformed(Malformed),
    Refused(Refusal),
}

impl Fault {
    fn refusal(self, asked: Asked) -> Refusal {
        match self {
            Fault::Malformed(error) => {
                Refusal::bad_request(format!("The token '{asked:?}' is invalid: {error}."))
            }
            Fault::Refused(refusal) => refusal,
        }
    }
}

impl From<Malformed> for Fault {
    fn from(error: Malformed) -> Fault {
        Fault::Malformed(error)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        Fault::Refused(refusal)
    }
}

/// The kind of ends that a range of the key space has.
const EPK_RANGE: u8 = 3;
/// Among the forms that a client can read.
const COSMOS_BINARY: u8 = 2;

/// Refuses tokens that would change the answer, or the item, and are not served, whatever their value and type: a time to live
/// is a `ULong` in .NET and a `Long` in Java.
fn check_served(asked: Asked) -> Result<(), Refusal> {
    match asked {
        Asked::FilterBySchemaRid => Err(headers::changes_rows("x-ms-documentdb-filterby-schema-rid")),
        Asked::StartId => Err(headers::changes_rows("x-ms-start-id")),
        Asked::EndId => Err(headers::changes_rows("x-ms-end-id")),
        Asked::EffectivePartitionKey => {
            Err(Refusal::unsupported("A request with an effective partition key"))
        }
        Asked::BinaryId => Err(Refusal::unsupported("A request with a binary id")),
        Asked::TimeToLiveInSeconds => Err(Refusal::unsupported("A request with a time to live of its own")),
        _ => Ok(()),
    }
}

/// An empty text says nothing, as an empty header does.
fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn ascii(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed::Value)
}

fn page_size(size: u32) -> MaxItemCount {
    // All bits are how clients write -1.
    let count = if size == u32::MAX { -1 } else { i64::from(size) };
    MaxItemCount::of(count).unwrap_or_default()
}

fn content_format(byte: u8) -> Result<ContentFormat, Malformed> {
    match byte {
        0 => Ok(ContentFormat::Text),
        1 => Ok(ContentFormat::Binary),
        2 => Ok(ContentFormat::HybridRow),
        _ => Err(Malformed::Value),
    }
}

fn directive(byte: u8) -> Result<IndexingDirective, Malformed> {
    match byte {
        0 => Ok(IndexingDirective::Default),
        1 => Ok(IndexingDirective::Include),
        2 => Ok(IndexingDirective::Exclude),
        _ => Err(Malformed::Value),
    }
}

fn consistency(byte: u8) -> Result<Consistency, Malformed> {
    match byte {
        0 => Ok(Consistency::Strong),
        1 => Ok(Consistency::BoundedStaleness),
        2 => Ok(Consistency::Session),
        3 => Ok(Consistency::Eventual),
        4 => Ok(Consistency::ConsistentPrefix),
        _ => Err(Malformed::Value),
    }
}

fn priority(byte: u8) -> Result<Priority, Malformed> {
    match byte {
        1 => Ok(Priority::High),
        2 => Ok(Priority::Low),
        _ => Err(Malformed::Value),
    }
}

fn strategy(byte: u8) -> Result<ReadStrategy, Malformed> {
    match byte {
        1 => Ok(ReadStrategy::Eventual),
        2 => Ok(ReadStrategy::Session),
        3 => Ok(ReadStrategy::LatestCommitted),
        4 => Ok(ReadStrategy::GlobalStrong),
        _ => Err(Malformed::Value),
    }
}
