//! What is refused, and how each refusal looks on the wire: one exhaustive match for the database's and one for our own.

use std::borrow::Cow;

use http::StatusCode;
use orrery_cluster::store::{Fault, OpError};
use orrery_cluster::{Error, ErrorKind, Receipt, ResourceKind, ScriptError};
use orrery_doc::json;
use orrery_gateway::room::OVERLOADED_RETRY_MS;
use orrery_gateway::shapes::entity::TooManyProperties;
use orrery_gateway::{BodyError, TokenError};
use orrery_query::QueryError;

use crate::edm::WrongValue;

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
    /// The address or a parameter of it makes no sense.
    BadAddress,
    /// The body makes no sense; the text is for the client.
    InvalidInput(Cow<'static, str>),
    /// An entity lacks a part of its key.
    NoKey,
    /// An entity has more properties than it may.
    TooManyProperties,
    /// A property has a name that none may have.
    BadPropertyName,
    /// A new table has no name, or one that is too long.
    BadTableName,
    TableExists,
    /// There is no such table or entity.
    NotFound,
    NotModified,
    /// The signature is not one of this account's.
    Unauthorized(Cow<'static, str>),
    /// What is shown as a right is none, or not any more.
    AuthenticationFailed(Cow<'static, str>),
    /// A body is no XML, or not the document that is wanted; or one of its texts is wrong.
    InvalidXml,
    InvalidXmlValue,
    /// A question of a browser that does not say what it is about; and one for which there is no rule.
    NoPreflight,
    CorsRefused,
    /// A token that is not accepted.
    BearerRefused(&'static str),
    /// No role of the principal allows this; or none could.
    Forbidden(String),
    NotForPrincipals,
    /// The right does not cover this.
    PermissionMismatch,
    /// The method, and what it was tried on.
    MethodNotAllowed,
    NotImplemented(Cow<'static, str>),
    /// The operations of a batch do not go together.
    Changeset {
        code: &'static str,
        message: &'static str,
    },
    TooLarge,
    BodyTimeout,
    BodyBroken(String),
    Query(QueryError),
}

/// A refusal in the terms of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: Cow<'static, str>,
    pub retry_after_ms: Option<u32>,
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

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Refusal {
        Own::Query(error).into()
    }
}

impl From<WrongValue> for Refusal {
    fn from(_: WrongValue) -> Refusal {
        Refusal::invalid(ONE_INPUT)
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
    fn from(error: TokenError) -> Refusal {
        Own::BearerRefused(error.message).into()
    }
}

pub(crate) const ONE_INPUT: &str = "One of the input values is invalid.";

impl Refusal {
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Refusal {
        Own::InvalidInput(message.into()).into()
    }

    pub fn bad_address() -> Refusal {
        Own::BadAddress.into()
    }

    /// The charge, which refusals carry too.
    pub fn receipt(&self) -> Option<&Receipt> {
        match self {
            Refusal::Db(error) => error.receipt.as_ref(),
            Refusal::Own(_) => None,
        }
    }

    /// Whether it says that there is no such entity.
    pub fn is_absence(&self) -> bool {
        matches!(self, Refusal::Db(error) if matches!(&error.kind, ErrorKind::Op { error: OpError::NotFound, .. }))
    }

    /// Whether it is about an operation itself. What the client is to try again as it is, is none of an operation of a batch.
    pub fn is_of_operation(&self) -> bool {
        match self {
            Refusal::Own(_) => true,
            Refusal::Db(error) => error.kind.place().is_some(),
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
        ErrorKind::NotFound(_) | ErrorKind::OwnerNotFound(_) => own_wire(&Own::NotFound),
        ErrorKind::AlreadyExists(ResourceKind::Container) => own_wire(&Own::TableExists),
        ErrorKind::AlreadyExists(_) => op_wire(&OpError::Conflict),
        ErrorKind::PreconditionFailed => op_wire(&OpError::PreconditionFailed),
        ErrorKind::Invalid(message) => own_wire(&Own::InvalidInput(message.clone().into())),
        ErrorKind::KeyMismatch => own_wire(&Own::InvalidInput(ONE_INPUT.into())),
        ErrorKind::QuotaExceeded(_, message) => wire(StatusCode::FORBIDDEN, "Forbidden", message.clone()),
        ErrorKind::Throttled { retry_after_ms, .. } => too_many(RATE_TOO_LARGE, *retry_after_ms),
        ErrorKind::OfferReplacePending => {
            wire(StatusCode::CONFLICT, "Conflict", "Another change of the throughput is in progress.")
        }
        ErrorKind::SessionUnavailable
        | ErrorKind::NoLead(_)
        | ErrorKind::RangeGone
        | ErrorKind::NeedsQueryPlan => {
            wire(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", "The partition has moved. Please try again.")
        }
        ErrorKind::CursorMismatch => own_wire(&Own::BadAddress),
        ErrorKind::History(error) => own_wire(&Own::InvalidInput(error.to_string().into())),
        ErrorKind::Query(error) => query_wire(error),
        ErrorKind::Script(error) => script_wire(error),
        ErrorKind::RetryWith | ErrorKind::ScriptsBusy | ErrorKind::Overloaded => overloaded(),
        ErrorKind::TimedOut => wire(
            StatusCode::REQUEST_TIMEOUT,
            "OperationTimedOut",
            "The operation could not be completed in time.",
        ),
        ErrorKind::Unsupported(what) => own_wire(&Own::NotImplemented((*what).into())),
    }
}

fn op_wire(error: &OpError) -> Wire {
    match error {
        OpError::NotFound => own_wire(&Own::NotFound),
        OpError::Conflict | OpError::UniqueConflict => {
            wire(StatusCode::CONFLICT, "EntityAlreadyExists", "The specified entity already exists.")
        }
        OpError::KeyCollision => wire(
            StatusCode::CONFLICT,
            "EntityAlreadyExists",
            "An entity of another partition key has the same place and row key.",
        ),
        OpError::Edit(refusal) if refusal.downcast_ref::<TooManyProperties>().is_some() => {
            own_wire(&Own::TooManyProperties)
        }
        OpError::InvalidTtl(_) | OpError::Wrong | OpError::OutOfPlace | OpError::Edit(_) => {
            own_wire(&Own::InvalidInput(ONE_INPUT.into()))
        }
        OpError::PreconditionFailed => wire(
            StatusCode::PRECONDITION_FAILED,
            "UpdateConditionNotSatisfied",
            "The update condition specified in the request was not satisfied.",
        ),
        OpError::TooLarge { .. } | OpError::AnswerTooLarge => wire(
            StatusCode::PAYLOAD_TOO_LARGE,
            "EntityTooLarge",
            "The entity is larger than the maximum allowed size (2MB).",
        ),
        OpError::LogicalPartitionFull => wire(
            StatusCode::FORBIDDEN,
            "Forbidden",
            "Partition key reached maximum size of 20 GB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk",
        ),
        OpError::Overtaken => too_many("Please try again.", OVERLOADED_RETRY_MS),
    }
}

/// What this server could not do, whatever was asked for.
fn fault_wire(fault: &Fault) -> Wire {
    match fault {
        Fault::Damaged(what) => {
            tracing::error!(what, "stored data is damaged");
            internal("Stored data is damaged; the log says which.")
        }
        Fault::Io(what) => {
            tracing::error!(what, "stored data could not be read");
            internal("Stored data could not be read; the log says why.")
        }
        Fault::DiskFull => {
            wire(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", "The disk of the server is full.")
        }
        Fault::NoMemory { .. } => overloaded(),
        Fault::TooMuchMemory { bytes, most } => wire(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestBodyTooLarge",
            format!(
                "The request needs more than {bytes} bytes of the server's memory, and one request may have {most}. Send \
                 fewer operations at once."
            ),
        ),
        Fault::Stopping => wire(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", "The server is stopping."),
    }
}

fn script_wire(error: &ScriptError) -> Wire {
    wire(StatusCode::BAD_REQUEST, "BadRequest", error.text())
}

fn query_wire(error: &QueryError) -> Wire {
    match error {
        QueryError::Busy => overloaded(),
        QueryError::FunctionTimedOut(message) => {
            wire(StatusCode::REQUEST_TIMEOUT, "OperationTimedOut", message.clone())
        }
        _ => own_wire(&Own::BadAddress),
    }
}

fn own_wire(own: &Own) -> Wire {
    use StatusCode as S;
    match own {
        Own::BadAddress => wire(S::BAD_REQUEST, "InvalidInput", "Request url is invalid."),
        Own::InvalidInput(message) => wire(S::BAD_REQUEST, "InvalidInput", message.clone()),
        Own::NoKey => wire(S::BAD_REQUEST, "PropertiesNeedValue", "PartitionKey/RowKey cannot be empty"),
        Own::TooManyProperties => wire(
            S::BAD_REQUEST,
            "TooManyProperties",
            "The entity contains more properties than allowed. Each entity can include up to 252 properties to store \
             data.",
        ),
        Own::BadPropertyName => wire(S::BAD_REQUEST, "PropertyNameInvalid", "The property name is invalid."),
        // By the code clients know that it is the name of the table.
        Own::BadTableName => wire(
            S::BAD_REQUEST,
            "BadRequest",
            "The input name is invalid. Ensure to provide a unique non-empty string less than '255' characters.",
        ),
        Own::TableExists => wire(S::CONFLICT, "TableAlreadyExists", "The specified table already exists."),
        Own::NotFound => wire(S::NOT_FOUND, "ResourceNotFound", "The specified resource does not exist."),
        Own::NotModified => wire(S::NOT_MODIFIED, "ConditionNotMet", ""),
        Own::Unauthorized(message) => wire(S::UNAUTHORIZED, "Unauthorized", message.clone()),
        Own::AuthenticationFailed(message) => wire(S::FORBIDDEN, "AuthenticationFailed", message.clone()),
        Own::InvalidXml => {
            wire(S::BAD_REQUEST, "InvalidXmlDocument", "XML specified is not syntactically valid.")
        }
        Own::InvalidXmlValue => wire(S::BAD_REQUEST, "InvalidXmlNodeValue", WRONG_XML_VALUE),
        Own::NoPreflight => wire(S::BAD_REQUEST, "InvalidHeaderValue", NO_PREFLIGHT),
        Own::CorsRefused => wire(S::FORBIDDEN, "CorsPreflightFailure", NO_RULE),
        Own::BearerRefused(message) => wire(S::UNAUTHORIZED, "InvalidAuthenticationInfo", *message),
        Own::Forbidden(message) => wire(S::FORBIDDEN, "Forbidden", message.clone()),
        Own::NotForPrincipals => wire(S::FORBIDDEN, "Forbidden", NOT_FOR_PRINCIPALS),
        Own::PermissionMismatch => wire(
            S::FORBIDDEN,
            "AuthorizationPermissionMismatch",
            "This request is not authorized to perform this operation using this permission.",
        ),
        Own::MethodNotAllowed => wire(
            S::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "The specified resource does not allow the specified HTTP method.",
        ),
        Own::NotImplemented(feature) => wire(
            S::NOT_IMPLEMENTED,
            "NotImplemented",
            format!("The requested operation is not supported: {feature}."),
        ),
        Own::Changeset { code, message } => wire(S::BAD_REQUEST, code, *message),
        Own::TooLarge => wire(
            S::PAYLOAD_TOO_LARGE,
            "RequestBodyTooLarge",
            "The request body is too large and exceeds the maximum permissible limit.",
        ),
        Own::BodyTimeout => {
            wire(S::REQUEST_TIMEOUT, "OperationTimedOut", "The body of the request did not arrive in time.")
        }
        Own::BodyBroken(why) => {
            wire(S::BAD_REQUEST, "BadRequest", format!("The body of the request could not be read: {why}"))
        }
        Own::Query(error) => query_wire(error),
    }
}

const WRONG_XML_VALUE: &str = "The value for one of the XML nodes is not in the correct format.";
const NO_PREFLIGHT: &str = "A required CORS header is not present: Origin and Access-Control-Request-Method.";
const NO_RULE: &str = "CORS not enabled or no matching rule found for this request.";
const NOT_FOR_PRINCIPALS: &str = "The given request cannot be authorized by AAD token in data plane. Learn more: \
     https://aka.ms/cosmos-native-rbac.";

/// The service's words, by which clients know that waiting helps.
const RATE_TOO_LARGE: &str = "Message: {\"Errors\":[\"Request rate is large. More Request Units may be needed, so no changes \
     were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429\"]}";

/// A client that is to come again is always told when.
fn too_many(message: &'static str, retry_after_ms: u32) -> Wire {
    let wire = wire(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    Wire { retry_after_ms: Some(retry_after_ms), ..wire }
}

fn overloaded() -> Wire {
    too_many("Too many requests are waiting.", OVERLOADED_RETRY_MS)
}

fn internal(message: &'static str) -> Wire {
    wire(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
}

fn wire(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Wire {
    Wire { status, code, message: message.into(), retry_after_ms: None }
}

impl Wire {
    /// `{"odata.error":{"code":…,"message":{"lang":"en-us","value":…}}}`; an operation of a batch says its place.
    pub fn body(&self, request: &str, place: Option<usize>) -> Vec<u8> {
        let place = place.map_or_else(String::new, |place| format!("{place}:"));
        let text = format!("{place}{}\nRequestID:{request}\n", self.message);
        let mut out = b"{\"odata.error\":{\"code\":".to_vec();
        json::write_str(self.code, &mut out);
        out.extend_from_slice(b",\"message\":{\"lang\":\"en-us\",\"value\":");
        json::write_str(&text, &mut out);
        out.extend_from_slice(b"}}}");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_form_that_clients_parse() {
        let wire = Refusal::from(Own::NotFound).wire();
        assert_eq!(
            String::from_utf8(wire.body("r", None)).expect("UTF-8"),
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-us","value":"The specified resource does not exist.\nRequestID:r\n"}}}"#
        );
        assert!(String::from_utf8(wire.body("r", Some(3))).expect("UTF-8").contains(r#""value":"3:The"#));
    }

    #[test]
    fn who_is_throttled_is_told_when_to_come_back() {
        let cause = orrery_cluster::ThrottleCause::Rate;
        let wire = Refusal::from(ErrorKind::Throttled { retry_after_ms: 7, cause }).wire();
        assert_eq!((wire.status.as_u16(), wire.retry_after_ms), (429, Some(7)));
        assert!(wire.message.contains("Request rate is large"));
        let again: [Refusal; 6] = [
            ErrorKind::RetryWith.into(),
            ErrorKind::ScriptsBusy.into(),
            ErrorKind::Overloaded.into(),
            Error::from(OpError::Overtaken).into(),
            QueryError::Busy.into(),
            ErrorKind::Query(QueryError::Busy).into(),
        ];
        for refusal in again {
            let wire = refusal.wire();
            assert_eq!(
                (wire.status.as_u16(), wire.retry_after_ms),
                (429, Some(OVERLOADED_RETRY_MS)),
                "{refusal:?}"
            );
        }
    }

    #[test]
    fn faults_of_this_server_are_told_as_its_own() {
        for (fault, status, code, part) in [
            (Fault::Damaged("x".into()), 500, "InternalError", "is damaged"),
            (Fault::Io("x".into()), 500, "InternalError", "could not be read"),
            (Fault::DiskFull, 507, "InsufficientStorage", "disk of the server is full"),
            (Fault::NoMemory { bytes: 9 }, 429, "TooManyRequests", ""),
            (Fault::TooMuchMemory { bytes: 9, most: 8 }, 413, "RequestBodyTooLarge", "may have 8"),
            (Fault::Stopping, 503, "ServerBusy", "is stopping"),
        ] {
            let wire = Refusal::from(Error::from(fault)).wire();
            assert_eq!((wire.status.as_u16(), wire.code), (status, code));
            assert!(wire.message.contains(part), "{}", wire.message);
        }
    }

    #[test]
    fn what_an_operation_of_a_batch_is_refused_for_stands_in_the_answer_to_the_batch() {
        let cause = orrery_cluster::ThrottleCause::Rate;
        for (refusal, is_of_operation) in [
            (Refusal::from(Own::NotFound), true),
            (Refusal::from(Error::from(OpError::NotFound)), true),
            (Refusal::from(ErrorKind::Throttled { retry_after_ms: 7, cause }), false),
            (Refusal::from(ErrorKind::Overloaded), false),
            (Refusal::from(Error::from(Fault::Damaged("x".into()))), true),
            (Refusal::from(Error::from(Fault::Io("x".into()))), true),
            (Refusal::from(Error::from(Fault::NoMemory { bytes: 9 })), true),
            (Refusal::from(Error::from(Fault::TooMuchMemory { bytes: 9, most: 8 })), true),
            (Refusal::from(Error::from(Fault::DiskFull)), false),
            (Refusal::from(Error::from(Fault::Stopping)), false),
        ] {
            assert_eq!(refusal.is_of_operation(), is_of_operation, "{refusal:?}");
        }
    }
}
