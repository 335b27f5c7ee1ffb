//! What is refused, and how each refusal looks on the wire.
//!
//! Every refusal of the database and of this gateway meets the one exhaustive match in [`Refusal::wire`].
//! The service has two voices: its partitions answer with a JSON list of errors inside the message,
//! its gateway with plain text. Clients look for words in both, so both are kept.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::StatusCode;
use orrery_cluster::limits::TTL_SECONDS_MAX;
use orrery_cluster::store::{Fault, OpError};
use orrery_cluster::{Error, ErrorKind, HistoryError, Receipt, ScriptError, ThrottleCause};
use orrery_gateway::room::OVERLOADED_RETRY_MS;
use orrery_gateway::{BodyError, TokenError};
use orrery_query::QueryError;

use crate::items::PatchError;

/// A request that will not be done.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The database refused.
    Db(Error),
    /// The gateway refused before asking the database.
    Own(Own),
}

/// Refusals of the gateway itself.
#[derive(Clone, Debug)]
pub(crate) enum Own {
    /// The request is malformed; the text is for the client.
    Invalid(Cow<'static, str>),
    /// The text of a query is wrong.
    Query(QueryError),
    /// The partition key of the request does not fit the container.
    KeyMismatch,
    /// A query over several partitions must be allowed by its header.
    CrossPartitionDisabled,
    /// The client must fetch a plan, which may come along to save it the request.
    NeedsQueryPlan {
        plan: Option<String>,
    },
    /// The container was deleted and made anew since the client learnt its id.
    StaleCollectionRid,
    Unauthorized(Cow<'static, str>),
    Forbidden(Cow<'static, str>),
    /// 401 or 403 with a number that says why.
    Denied {
        status: StatusCode,
        substatus: u32,
        message: Cow<'static, str>,
    },
    /// The path has bytes that no URL may mean. The service's web server refuses it before its gateway sees it.
    InvalidUrl,
    /// Nothing can be at this path.
    NoSuchPath,
    /// The resource does not exist; its owner does.
    NotFound,
    /// The owner named in the path does not exist.
    OwnerNotFound,
    MethodNotAllowed,
    TooLarge,
    BodyTimeout,
    /// The connection broke while the body was read.
    BodyBroken(String),
    /// A resource or operation of the protocol that this release does not have.
    Unsupported(Cow<'static, str>),
    /// The client wants to talk to replicas, and cannot over this connection: the text says why not.
    DirectMode(&'static str),
    /// The replica that the client talks to is not where it should look, for one of these reasons.
    Gone(Gone),
}

/// Why a client in direct mode must look anew where to send a request. It does so by itself and repeats the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The replica is another one, or about to go.
    Replica,
    /// The name of the container belongs to another one by now.
    Container,
    /// The partition was succeeded by others.
    Partition,
}

/// A refusal in the terms of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub status: StatusCode,
    /// Zero when there is none.
    pub substatus: u32,
    pub code: &'static str,
    pub voice: Voice,
    pub retry_after_ms: Option<u32>,
    pub additional_info: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// A partition's list of errors.
    Partition(Cow<'static, str>),
    /// JSON that is already in the form a partition puts into its message.
    PartitionJson(String),
    Gateway(Cow<'static, str>),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Db(error)
    }
}

impl From<ErrorKind> for Refusal {
    fn from(kind: ErrorKind) -> Refusal {
        Refusal::Db(kind.into())
    }
}

impl From<Own> for Refusal {
    fn from(own: Own) -> Refusal {
        Refusal::Own(own)
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Refusal {
        match error {
            BodyError::TooLarge => Own::TooLarge.into(),
            BodyError::TimedOut => Own::BodyTimeout.into(),
            BodyError::Broken(why) => Own::BodyBroken(why).into(),
            BodyError::Db(error) => error.into(),
        }
    }
}

impl From<TokenError> for Refusal {
    fn from(TokenError { substatus, message }: TokenError) -> Refusal {
        Own::Denied { status: StatusCode::UNAUTHORIZED, substatus, message: message.into() }.into()
    }
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Refusal {
        Refusal::Own(Own::Query(error))
    }
}

impl Refusal {
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal::Own(Own::Invalid(message.into()))
    }

    pub fn unsupported(feature: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal::Own(Own::Unsupported(feature.into()))
    }

    /// The charge and the partition state, which refusals carry too.
    pub fn receipt(&self) -> Option<&Receipt> {
        match self {
            Refusal::Db(error) => error.receipt.as_ref(),
            Refusal::Own(_) => None,
        }
    }

    pub fn wire(&self) -> Wire {
        match self {
            Refusal::Db(error) => kind_wire(&error.kind),
            Refusal::Own(own) => own_wire(own),
        }
    }
}

fn kind_wire(kind: &ErrorKind) -> Wire {
    match kind {
        ErrorKind::Op { error, .. } => op_wire(error),
        ErrorKind::Fault { fault, .. } => fault_wire(fault),
        ErrorKind::NotFound(_) => own_wire(&Own::NotFound),
        ErrorKind::OwnerNotFound(_) => own_wire(&Own::OwnerNotFound),
        ErrorKind::AlreadyExists(_) => op_wire(&OpError::Conflict),
        ErrorKind::PreconditionFailed => op_wire(&OpError::PreconditionFailed),
        ErrorKind::Invalid(message) => partition(StatusCode::BAD_REQUEST, 0, message.clone()),
        ErrorKind::KeyMismatch => own_wire(&Own::KeyMismatch),
        ErrorKind::QuotaExceeded(quota, message) => {
            partition(StatusCode::FORBIDDEN, quota_substatus(*quota), message.clone())
        }
        ErrorKind::Throttled { retry_after_ms, cause } => {
            let (substatus, message) = throttle_words(*cause);
            let wire = partition(StatusCode::TOO_MANY_REQUESTS, substatus, message);
            Wire { retry_after_ms: Some(*retry_after_ms), ..wire }
        }
        ErrorKind::OfferReplacePending => partition(
            StatusCode::LOCKED,
            3205,
            "Another change of the throughput is in progress. Wait until it is done, or ask for no more than the \
             physical partitions can give now.",
        ),
        ErrorKind::SessionUnavailable => partition(
            StatusCode::NOT_FOUND,
            1002,
            "The read/write session is not available for the input session token. \
             Learn more: https://aka.ms/cosmosdb-tsg-not-found",
        ),
        ErrorKind::NoLead(_) => gateway(
            StatusCode::SERVICE_UNAVAILABLE,
            0,
            "Another server leads the partition at the moment. Nothing was written. Please retry this request.",
        ),
        ErrorKind::RangeGone => {
            partition(StatusCode::GONE, 1002, "The requested resource is no longer available at the server.")
        }
        ErrorKind::CursorMismatch => partition(StatusCode::BAD_REQUEST, 0, INVALID_CONTINUATION),
        ErrorKind::NeedsQueryPlan => own_wire(&Own::NeedsQueryPlan { plan: None }),
        ErrorKind::History(error) => partition(StatusCode::BAD_REQUEST, 0, history_message(*error)),
        ErrorKind::Query(error) => own_wire(&Own::Query(error.clone())),
        ErrorKind::Script(error) => script_wire(error),
        ErrorKind::RetryWith => op_wire(&OpError::Overtaken),
        ErrorKind::ScriptsBusy => {
            let message =
                "Too many scripts are running. Nothing was written. Please retry this request later.";
            let wire = partition(StatusCode::TOO_MANY_REQUESTS, 3084, message);
            Wire { retry_after_ms: Some(OVERLOADED_RETRY_MS), ..wire }
        }
        ErrorKind::TimedOut => gateway(
            StatusCode::REQUEST_TIMEOUT,
            0,
            "The request took longer than a request may. Ask for fewer items, or with a narrower filter.",
        ),
        ErrorKind::Overloaded => overloaded(),
        ErrorKind::Unsupported(feature) => own_wire(&Own::Unsupported(Cow::Borrowed(feature))),
    }
}

fn overloaded() -> Wire {
    let wire = partition(
        StatusCode::TOO_MANY_REQUESTS,
        3092,
        "The server has too many requests waiting. Nothing was written. Please retry this request later.",
    );
    Wire { retry_after_ms: Some(OVERLOADED_RETRY_MS), ..wire }
}

/// What the service says, where it is known.
fn history_message(error: HistoryError) -> &'static str {
    match error {
        HistoryError::NotKept => {
            "Change Feed 'All Versions and Deletes' mode must be enabled. Give the container a changeFeedPolicy \
             with a retentionDuration. Learn more: https://aka.ms/ChangeFeed-AllVersionsAndDeletes"
        }
        HistoryError::NoSuchStart => {
            "You must read the change feed from within the retention period. 'All Versions and Deletes' mode starts \
             from now, or from a continuation."
        }
        HistoryError::Outlived => {
            "You must read the change feed from within the retention period. Changes behind the continuation are no \
             longer kept: it is older than the retentionDuration of the container's changeFeedPolicy."
        }
    }
}

/// How one refused operation looks, in an answer of its own or inside a batch.
pub(crate) fn op_wire(error: &OpError) -> Wire {
    match error {
        OpError::NotFound => own_wire(&Own::NotFound),
        OpError::Conflict => {
            partition(StatusCode::CONFLICT, 0, "Resource with specified id or name already exists.")
        }
        OpError::UniqueConflict => {
            partition(StatusCode::CONFLICT, 3301, "Unique index constraint violation.")
        }
        OpError::InvalidTtl(value) => partition(
            StatusCode::BAD_REQUEST,
            0,
            format!(
                "The input ttl '{value}' is invalid. Ensure to provide a nonzero positive integer less than or \
                 equal to '{TTL_SECONDS_MAX}', or '-1' which means never expire."
            ),
        ),
        OpError::OutOfPlace => partition(StatusCode::BAD_REQUEST, 1001, error.to_string()),
        OpError::KeyCollision => partition(
            StatusCode::CONFLICT,
            3302,
            "An item of another partition key has the same hash and the same id.",
        ),
        OpError::PreconditionFailed => partition(StatusCode::PRECONDITION_FAILED, 0, NOT_MET),
        OpError::Edit(refusal) => match refusal.downcast_ref::<PatchError>() {
            Some(error) => patch_wire(error),
            None => partition(StatusCode::BAD_REQUEST, 0, refusal.to_string()),
        },
        OpError::Wrong => partition(StatusCode::BAD_REQUEST, 0, "The operation is not a legal one."),
        OpError::TooLarge { .. } => own_wire(&Own::TooLarge),
        OpError::AnswerTooLarge => partition(
            StatusCode::PAYLOAD_TOO_LARGE,
            3402,
            "The items that the batch reads are too large for one answer.",
        ),
        OpError::LogicalPartitionFull => partition(
            StatusCode::FORBIDDEN,
            1014,
            "Partition key reached maximum size of 20 GB. \
             Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk",
        ),
        OpError::Overtaken => partition(
            retry_with(),
            0,
            "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
        ),
    }
}

/// What this server could not do, whatever was asked for.
fn fault_wire(fault: &Fault) -> Wire {
    match fault {
        Fault::Damaged(what) => {
            tracing::error!(what, "stored data is damaged");
            partition(StatusCode::INTERNAL_SERVER_ERROR, 0, "Stored data is damaged; the log says which.")
        }
        Fault::Io(what) => {
            tracing::error!(what, "stored data could not be read");
            partition(
                StatusCode::INTERNAL_SERVER_ERROR,
                0,
                "Stored data could not be read; the log says why.",
            )
        }
        Fault::DiskFull => gateway(
            StatusCode::SERVICE_UNAVAILABLE,
            0,
            "The disk of the server is full. Nothing was written; writes work again when it has room.",
        ),
        Fault::NoMemory { .. } => overloaded(),
        Fault::TooMuchMemory { bytes, most } => partition(
            StatusCode::PAYLOAD_TOO_LARGE,
            0,
            format!(
                "The request needs more than {bytes} bytes of the server's memory for the items that it changes and their \
                 index entries, and one request may have {most}. Send fewer operations at once, exclude paths from the \
                 index, or give the server more memory."
            ),
        ),
        Fault::Stopping => {
            gateway(StatusCode::SERVICE_UNAVAILABLE, 0, "The server is stopping. Nothing was written.")
        }
    }
}

fn patch_wire(error: &PatchError) -> Wire {
    match error {
        PatchError::ConditionNotMet => partition(StatusCode::PRECONDITION_FAILED, 1110, NOT_MET),
        error => {
            let text = error.to_string();
            let text = text.trim_end_matches('.');
            partition(StatusCode::BAD_REQUEST, 0, format!("{text}. Learn more: {PATCH_DOCS}"))
        }
    }
}

/// The number of what a script threw is a sub-status; a text that does not compile has one of the service's.
fn script_wire(error: &ScriptError) -> Wire {
    let (status, substatus) = match error {
        ScriptError::Threw { number, .. } => (StatusCode::BAD_REQUEST, number.unwrap_or(0)),
        ScriptError::Syntax(_) | ScriptError::NotAFunction => (StatusCode::BAD_REQUEST, SCRIPT_COMPILE_ERROR),
        ScriptError::Arguments
        | ScriptError::OutOfMemory { .. }
        | ScriptError::TooManyJobs { .. }
        | ScriptError::UnknownFunction(_) => (StatusCode::BAD_REQUEST, 0),
        ScriptError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 0),
        ScriptError::TimedOut { .. } => (StatusCode::REQUEST_TIMEOUT, 0),
        ScriptError::Engine(_) => (StatusCode::INTERNAL_SERVER_ERROR, 0),
    };
    partition(status, substatus, error.text())
}

fn retry_with() -> StatusCode {
    StatusCode::from_u16(449).expect("449 is a number that a status may have")
}

fn query_wire(error: &QueryError) -> Wire {
    match error {
        QueryError::Busy => overloaded(),
        QueryError::FunctionTimedOut(message) => partition(StatusCode::REQUEST_TIMEOUT, 0, message.clone()),
        error => {
            Wire { voice: Voice::PartitionJson(error.to_json()), ..partition(StatusCode::BAD_REQUEST, 0, "") }
        }
    }
}

fn own_wire(own: &Own) -> Wire {
    match own {
        Own::Invalid(message) => partition(StatusCode::BAD_REQUEST, 0, message.clone()),
        Own::Query(error) => query_wire(error),
        Own::KeyMismatch => partition(
            StatusCode::BAD_REQUEST,
            1001,
            "Partition key provided either doesn't correspond to definition in the collection or doesn't \
             match partition key field values specified in the document. \
             Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
        ),
        Own::CrossPartitionDisabled => gateway(
            StatusCode::BAD_REQUEST,
            0,
            "Cross partition query is required but disabled. Please set x-ms-documentdb-query-\
             enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to \
             avoid this exception.",
        ),
        Own::NeedsQueryPlan { plan } => {
            let wire = gateway(
                StatusCode::BAD_REQUEST,
                1004,
                "The provided cross partition query can not be directly served by the gateway. Clients \
                 fetch a query plan instead.",
            );
            Wire { additional_info: Some(plan.clone().unwrap_or_else(|| String::from("{}"))), ..wire }
        }
        Own::InvalidUrl => gateway(StatusCode::BAD_REQUEST, 0, INVALID_URL),
        Own::StaleCollectionRid => gateway(
            StatusCode::BAD_REQUEST,
            1024,
            "The intended collection rid does not match the container, which was deleted and created anew.",
        ),
        Own::Unauthorized(message) => gateway(StatusCode::UNAUTHORIZED, 0, message.clone()),
        Own::Forbidden(message) => gateway(StatusCode::FORBIDDEN, 0, message.clone()),
        Own::Denied { status, substatus, message } => gateway(*status, *substatus, message.clone()),
        Own::NoSuchPath => gateway(StatusCode::NOT_FOUND, 0, "There is no resource at this path."),
        Own::NotFound => partition(
            StatusCode::NOT_FOUND,
            0,
            "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
        ),
        Own::OwnerNotFound => partition(StatusCode::NOT_FOUND, 1003, "Owner resource does not exist"),
        Own::MethodNotAllowed => {
            gateway(StatusCode::METHOD_NOT_ALLOWED, 0, "The requested verb is not supported.")
        }
        Own::TooLarge => partition(StatusCode::PAYLOAD_TOO_LARGE, 0, "Request size is too large"),
        Own::BodyTimeout => {
            gateway(StatusCode::REQUEST_TIMEOUT, 0, "The body of the request did not arrive in time.")
        }
        Own::BodyBroken(why) => {
            gateway(StatusCode::BAD_REQUEST, 0, format!("The body of the request could not be read: {why}"))
        }
        Own::Unsupported(feature) => {
            gateway(StatusCode::BAD_REQUEST, 0, format!("{feature}: this feature is not supported yet."))
        }
        Own::DirectMode(why) => gateway(StatusCode::BAD_REQUEST, 0, no_direct_mode(why)),
        Own::Gone(gone) => gone_wire(*gone),
    }
}

/// Direct mode is the default of two SDKs: the developer who reads this needs the line to write, not only the name of
/// what is missing.
fn no_direct_mode(why: &str) -> String {
    format!(
        "Direct mode {why} \
         .NET: new CosmosClientOptions {{ ConnectionMode = ConnectionMode.Gateway }}. \
         Java: new CosmosClientBuilder().gatewayMode()."
    )
}

fn gone_wire(gone: Gone) -> Wire {
    let (substatus, message) = match gone {
        Gone::Replica => (0, "The requested resource is no longer available at the server."),
        Gone::Container => (1000, "The name of the container belongs to another container by now."),
        Gone::Partition => (1007, "The partition key range was split or merged."),
    };
    partition(StatusCode::GONE, substatus, message)
}

fn throttle_words(cause: ThrottleCause) -> (u32, &'static str) {
    match cause {
        ThrottleCause::Rate => (3200, RATE_TOO_LARGE),
        ThrottleCause::Bucket => (
            3212,
            "Request rate is large: the throughput bucket of the request has used its part. Please retry this \
             request later.",
        ),
        ThrottleCause::HotKey => (
            3214,
            "Request rate is large: one partition key value uses what a physical partition can give, so more \
             Request Units would not help. Please retry this request later, or spread the load over more values.",
        ),
    }
}

const NOT_MET: &str = "One of the specified pre-condition is not met. \
     Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed";

pub(crate) const INVALID_CONTINUATION: &str = "Invalid Continuation Token";

const PATCH_DOCS: &str = "https://aka.ms/cosmosdbpatchdocs";

const RATE_TOO_LARGE: &str = "Request rate is large. More Request Units may be needed, so no changes were \
     made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429";

/// The sub-status of a script whose text is not a program.
const SCRIPT_COMPILE_ERROR: u32 = 0xFFFF;

fn quota_substatus(quota: orrery_cluster::QuotaKind) -> u32 {
    match quota {
        orrery_cluster::QuotaKind::SharedThroughputContainers => 1019,
        orrery_cluster::QuotaKind::Children => 0,
    }
}

fn partition(status: StatusCode, substatus: u32, message: impl Into<Cow<'static, str>>) -> Wire {
    wire(status, substatus, Voice::Partition(message.into()))
}

fn gateway(status: StatusCode, substatus: u32, message: impl Into<Cow<'static, str>>) -> Wire {
    wire(status, substatus, Voice::Gateway(message.into()))
}

fn wire(status: StatusCode, substatus: u32, voice: Voice) -> Wire {
    Wire { status, substatus, code: code(status), voice, retry_after_ms: None, additional_info: None }
}

/// The word that the service's body gives for a status.
pub(crate) fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        // The service's own list of words ends before these, so it shows the number.
        423 => "423",
        424 => "424",
        429 => "429",
        449 => "449",
        503 => "ServiceUnavailable",
        _ => "InternalServerError",
    }
}

impl Wire {
    /// The body of the answer: `{"code":...,"message":...}`.
    pub fn body(&self, activity: &str, path: &str) -> Vec<u8> {
        let mut message = String::with_capacity(256);
        match &self.voice {
            Voice::Partition(text) => {
                message.push_str("Message: {\"Errors\":[");
                push_json_string(&mut message, text);
                message.push_str("]}");
            }
            Voice::PartitionJson(json) => {
                message.push_str("Message: ");
                message.push_str(json);
            }
            Voice::Gateway(text) => message.push_str(text),
        }
        write!(message, "\r\nActivityId: {activity}, Request URI: {path}, RequestStats: , SDK: {PRODUCT}")
            .expect("writing to a string cannot fail");
        let mut body = String::with_capacity(message.len() + 64);
        body.push_str("{\"code\":\"");
        body.push_str(self.code);
        body.push_str("\",\"message\":");
        push_json_string(&mut body, &message);
        if let Some(info) = &self.additional_info {
            body.push_str(",\"additionalErrorInfo\":");
            push_json_string(&mut body, info);
        }
        body.push('}');
        body.into_bytes()
    }
}

const INVALID_URL: &str = "The path of the request contains control characters.";

/// What the service's web server says where its gateway says nothing: a page. Clients that read it as JSON fail with an error
/// of their own, as they do at the service.
pub(crate) fn page(refusal: &Refusal) -> Option<String> {
    let Refusal::Own(Own::InvalidUrl) = refusal else { return None };
    Some(format!(
        "<!DOCTYPE html>\n<html><head><title>Bad Request</title></head><body><h2>Bad Request - Invalid URL</h2>\
         <p>{INVALID_URL}</p></body></html>\n"
    ))
}

/// How this server signs its messages.
const PRODUCT: &str = concat!("Orrery/", env!("CARGO_PKG_VERSION"));

/// Appends the text as a JSON string.
pub(crate) fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                write!(out, "\\u{:04x}", control as u32).expect("writing to a string cannot fail");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
