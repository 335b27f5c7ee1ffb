use orrery_cluster::{NoLead, QuotaKind, ResourceKind};

use super::*;

fn throttled(cause: ThrottleCause) -> Refusal {
    Refusal::from(ErrorKind::Throttled { retry_after_ms: 7, cause })
}

fn table() -> Vec<(Refusal, u16, u32, &'static str, &'static str)> {
    use ErrorKind as K;
    let kind = |kind: ErrorKind| Refusal::from(kind);
    let op = |error: OpError| Refusal::from(ErrorKind::from(error));
    let fault = |fault: Fault| Refusal::from(ErrorKind::from(fault));
    vec![
        (kind(K::NotFound(ResourceKind::Item)), 404, 0, "NotFound", "Resource Not Found"),
        (
            kind(K::OwnerNotFound(ResourceKind::Container)),
            404,
            1003,
            "NotFound",
            "Owner resource does not exist",
        ),
        (kind(K::AlreadyExists(ResourceKind::Database)), 409, 0, "Conflict", "already exists"),
        (kind(K::PreconditionFailed), 412, 0, "PreconditionFailed", "pre-condition is not met"),
        (kind(K::Invalid("what".into())), 400, 0, "BadRequest", "what"),
        (kind(K::KeyMismatch), 400, 1001, "BadRequest", "Partition key provided either doesn't correspond"),
        (
            kind(K::QuotaExceeded(QuotaKind::SharedThroughputContainers, "25".into())),
            403,
            1019,
            "Forbidden",
            "25",
        ),
        (throttled(ThrottleCause::Rate), 429, 3200, "429", "Request rate is large"),
        (throttled(ThrottleCause::Bucket), 429, 3212, "429", "throughput bucket"),
        (throttled(ThrottleCause::HotKey), 429, 3214, "429", "one partition key value"),
        (kind(K::OfferReplacePending), 423, 3205, "423", "in progress"),
        (kind(K::SessionUnavailable), 404, 1002, "NotFound", "read/write session is not available"),
        (kind(K::NoLead(NoLead::Elsewhere)), 503, 0, "ServiceUnavailable", "Another server leads"),
        (kind(K::RangeGone), 410, 1002, "Gone", "no longer available"),
        (kind(K::CursorMismatch), 400, 0, "BadRequest", "Invalid Continuation Token"),
        (kind(K::NeedsQueryPlan), 400, 1004, "BadRequest", "additionalErrorInfo"),
        (kind(K::Overloaded), 429, 3092, "429", "too many requests"),
        (kind(K::Unsupported("Magic")), 400, 0, "BadRequest", "Magic"),
        (op(OpError::NotFound), 404, 0, "NotFound", "Resource Not Found"),
        (op(OpError::Conflict), 409, 0, "Conflict", "already exists"),
        (op(OpError::OutOfPlace), 400, 1001, "BadRequest", "partition key"),
        (op(OpError::KeyCollision), 409, 3302, "Conflict", "same hash"),
        (op(OpError::PreconditionFailed), 412, 0, "PreconditionFailed", "pre-condition"),
        (PatchError::ConditionNotMet.into(), 412, 1110, "PreconditionFailed", "pre-condition"),
        (op(OpError::Wrong), 400, 0, "BadRequest", "not a legal one"),
        (op(OpError::TooLarge { bytes: 9 }), 413, 0, "RequestEntityTooLarge", "Request size is too large"),
        (op(OpError::LogicalPartitionFull), 403, 1014, "Forbidden", "20 GB"),
        (fault(Fault::Damaged("x".into())), 500, 0, "InternalServerError", "damaged"),
        (fault(Fault::Io("x".into())), 500, 0, "InternalServerError", "could not be read"),
        (fault(Fault::DiskFull), 503, 0, "ServiceUnavailable", "disk of the server is full"),
        (fault(Fault::NoMemory { bytes: 9 }), 429, 3092, "429", "too many requests"),
        (fault(Fault::TooMuchMemory { bytes: 9, most: 8 }), 413, 0, "RequestEntityTooLarge", "may have 8"),
        (fault(Fault::Stopping), 503, 0, "ServiceUnavailable", "stopping"),
        (
            Own::CrossPartitionDisabled.into(),
            400,
            0,
            "BadRequest",
            "Cross partition query is required but disabled",
        ),
        (Own::StaleCollectionRid.into(), 400, 1024, "BadRequest", "intended collection rid"),
        (Own::Unauthorized("who".into()).into(), 401, 0, "Unauthorized", "who"),
        (Own::Forbidden("no".into()).into(), 403, 0, "Forbidden", "no"),
        (Own::NoSuchPath.into(), 404, 0, "NotFound", "path"),
        (Own::MethodNotAllowed.into(), 405, 0, "MethodNotAllowed", "verb"),
        (Own::BodyTimeout.into(), 408, 0, "RequestTimeout", "in time"),
        (Own::BodyBroken("cut".into()).into(), 400, 0, "BadRequest", "cut"),
        (Refusal::unsupported("Stored procedures"), 400, 0, "BadRequest", "Stored procedures"),
    ]
}

#[test]
fn every_refusal_has_its_status_substatus_code_and_words() {
    for (refusal, status, substatus, code, words) in table() {
        let wire = refusal.wire();
        assert_eq!(
            (wire.status.as_u16(), wire.substatus, wire.code),
            (status, substatus, code),
            "{refusal:?}"
        );
        let body = String::from_utf8(wire.body("an-id", "/dbs/d")).expect("UTF-8");
        assert!(body.contains(words), "{body}");
        let json: serde_json::Value = serde_json::from_str(&body).expect("the body is JSON");
        assert_eq!(json["code"], code);
        assert!(
            json["message"].as_str().is_some_and(|message| message.contains("ActivityId: an-id")),
            "{body}"
        );
    }
}

#[test]
fn waiting_times_come_along() {
    assert_eq!(throttled(ThrottleCause::Rate).wire().retry_after_ms, Some(7));
    assert!(Refusal::from(ErrorKind::Overloaded).wire().retry_after_ms.is_some());
}

#[test]
fn the_body_has_the_service_s_shape() {
    let body = Refusal::from(Own::NotFound).wire().body("05f918e3", "/dbs/d");
    let text = String::from_utf8(body).expect("UTF-8");
    let expected = r#"{"code":"NotFound","message":"Message: {\"Errors\":[\"Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found\"]}\r\nActivityId: 05f918e3, Request URI: /dbs/d, RequestStats: , SDK: Orrery/"#;
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn hostile_text_stays_inside_its_string() {
    let hostile = "\"}\\\u{0}\u{1f}\r\n\té\u{2028}";
    let body = Refusal::bad_request(hostile).wire().body("a", hostile);
    let json: serde_json::Value = serde_json::from_slice(&body).expect("the body is JSON");
    assert!(json["message"].as_str().is_some_and(|message| message.contains(&hostile[6..])));
}
