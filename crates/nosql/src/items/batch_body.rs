//! The body of a batch, in either form: a JSON array of operations, or HybridRow, which the .NET SDK sends.
//!
//! Both become the same operations, and what happens to them knows nothing of the form. What makes the list unreadable
//! refuses the whole request; what is wrong with one operation belongs to that operation.

use orrery_cluster::limits::{BATCH_OPS_MAX, ITEM_BYTES_MAX, JSON_DEPTH_MAX};
use orrery_doc::{Doc, Value, json};

use crate::errors::{Own, Refusal};
use crate::hybrid_row::schema::OPERATION;
use crate::hybrid_row::{Records, Row, is_hybrid_row};
use crate::items::batch_rows;
use crate::items::operation::{Content, Kind, Operation, OwnKey, directive};

/// Operations are objects in an array.
const ENVELOPE_DEPTH: usize = 2;

/// In which form a batch came; its answer has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    HybridRow,
}

impl Form {
    /// Whether a wish of the whole request to get no items back counts for its writes that say nothing themselves. Clients that
    /// write HybridRow send it also where such operations want their items back.
    pub fn heeds_the_request(self) -> bool {
        self == Form::Json
    }
}

/// A body that was read, from which its operations borrow.
#[derive(Debug)]
pub(crate) enum BatchBody<'a> {
    Json(Doc),
    Rows(Vec<Row<'a>>),
}

impl<'a> BatchBody<'a> {
    /// Reads a body under the limits of batches. The first byte tells its form.
    pub fn parse(body: &'a [u8]) -> Result<BatchBody<'a>, Refusal> {
        if body.len() > ITEM_BYTES_MAX {
            return Err(Own::TooLarge.into());
        }
        if is_hybrid_row(body) {
            return rows(body).map(BatchBody::Rows);
        }
        json::parse(body, JSON_DEPTH_MAX + ENVELOPE_DEPTH)
            .map(BatchBody::Json)
            .map_err(|error| Refusal::bad_request(format!("The batch request is not valid JSON: {error}.")))
    }

    pub fn form(&self) -> Form {
        match self {
            BatchBody::Json(_) => Form::Json,
            BatchBody::Rows(_) => Form::HybridRow,
        }
    }

    pub fn operations(&self) -> Result<Vec<Operation<'_>>, Refusal> {
        match self {
            BatchBody::Json(doc) => {
                let Some(list) = doc.root().as_array() else {
                    return Err(Refusal::bad_request(
                        "The batch request must be a JSON array of operations.",
                    ));
                };
                check_count(list.len())?;
                list.iter().map(operation).collect()
            }
            BatchBody::Rows(rows) => {
                check_count(rows.len())?;
                rows.iter().map(batch_rows::operation).collect()
            }
        }
    }
}

/// Rows up to one too many: that many are enough to refuse.
fn rows(body: &[u8]) -> Result<Vec<Row<'_>>, Refusal> {
    Records::new(body, &OPERATION)
        .take(BATCH_OPS_MAX + 1)
        .collect::<Result<_, _>>()
        .map_err(|error| Refusal::bad_request(format!("The batch request is not valid HybridRow: {error}.")))
}

fn check_count(count: usize) -> Result<(), Refusal> {
    match count {
        0 => Err(Refusal::bad_request("Batch request has no operations.")),
        count if count > BATCH_OPS_MAX => {
            Err(Refusal::bad_request("Batch request has more operations than what is supported."))
        }
        _ => Ok(()),
    }
}

/// An operation that is a JSON object.
fn operation(value: Value<'_>) -> Result<Operation<'_>, Refusal> {
    let text = |name: &str| match value.get(name) {
        Value::Undefined | Value::Null => Ok(None),
        Value::Str(text) => Ok(Some(text)),
        _ => {
            Err(Refusal::bad_request(format!("The property '{name}' of a batch operation must be a string.")))
        }
    };
    let etag = |name: &str| text(name).map(|etag| etag.filter(|etag| !etag.is_empty()));
    Ok(Operation {
        kind: kind(text("operationType")?)?,
        id: text("id")?,
        key: match value.get("partitionKey") {
            Value::Undefined => OwnKey::Absent,
            Value::Str(text) => OwnKey::Text(text),
            value => OwnKey::Value(value),
        },
        content: Content::Value(value.get("resourceBody")),
        if_match: etag("ifMatch")?,
        if_none_match: etag("ifNoneMatch")?,
        directive: directive(text("indexingDirective")?),
        is_minimal: value.get("minimalReturnPreference").as_bool(),
        unsupported: None,
    })
}

fn kind(name: Option<&str>) -> Result<Kind, Refusal> {
    let known = [
        ("Create", Kind::Create),
        ("Upsert", Kind::Upsert),
        ("Read", Kind::Read),
        ("Replace", Kind::Replace),
        ("Delete", Kind::Delete),
        ("Patch", Kind::Patch),
    ];
    let name = name.unwrap_or_default();
    known.iter().find(|(word, _)| word.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind).ok_or_else(|| {
        let shown: String = name.chars().take(32).collect();
        Refusal::bad_request(format!("The operation type '{shown}' of a batch operation is not known."))
    })
}

#[cfg(test)]
mod tests {
    use orrery_cluster::store::Precondition;
    use orrery_doc::PartitionKey;
    use proptest::prelude::*;

    use super::*;
    use crate::items::key;
    use crate::items::shape::tests::{def, with_shape};

    /// The whole body's status and message, or the status of each operation for the key `["x"]`.
    fn check(body: &str) -> Result<Vec<u16>, (u16, String)> {
        let refused = |refusal: Refusal| {
            let wire = refusal.wire();
            (wire.status.as_u16(), String::from_utf8_lossy(&wire.body("", "")).into_owned())
        };
        let batch = BatchBody::parse(body.as_bytes()).map_err(refused)?;
        let operations = batch.operations().map_err(refused)?;
        let key = key::of_request(&def("/pk"), Some(r#"["x"]"#)).expect("a key");
        let status = |op: Operation<'_>| {
            with_shape("/pk", |shape| op.to_op(shape, &key))
                .map_or_else(|refusal| refusal.wire().status.as_u16(), |_| 200)
        };
        Ok(operations.into_iter().map(status).collect())
    }

    #[test]
    fn unreadable_bodies_refuse_everything() {
        let op = r#"{"operationType":"Read","id":"a"}"#;
        let many = format!("[{}]", [op; 101].join(","));
        for (body, status, words) in [
            ("", 400, "not valid JSON"),
            ("{}", 400, "must be a JSON array"),
            ("[]", 400, "Batch request has no operations."),
            (many.as_str(), 400, "Batch request has more operations than what is supported."),
            ("[1]", 400, "operation type"),
            ("[{}]", 400, "operation type"),
            (r#"[{"operationType":"Fly"}]"#, 400, "'Fly'"),
            (r#"[{"operationType":"Read","id":7}]"#, 400, "'id'"),
            (r#"[{"operationType":1}]"#, 400, "'operationType'"),
        ] {
            let (found, message) = check(body).expect_err(body);
            assert_eq!(found, status, "{body}");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn large_bodies_are_refused() {
        let body = format!("[\"{}\"]", "x".repeat(ITEM_BYTES_MAX));
        assert_eq!(check(&body).expect_err("it is too large").0, 413);
    }

    #[test]
    fn what_is_wrong_with_one_operation_stays_there() {
        let bodies = [
            (r#"{"operationType":"Create","resourceBody":{"id":"a","pk":"x"}}"#, 200),
            (r#"{"operationType":"create","resourceBody":{"id":"a","pk":"x"}}"#, 200),
            (r#"{"operationType":"Create","resourceBody":{"id":"a","pk":"y"}}"#, 400),
            (r#"{"operationType":"Create","resourceBody":{"id":"a"}}"#, 400),
            (r#"{"operationType":"Create","resourceBody":{"pk":"x"}}"#, 400),
            (r#"{"operationType":"Create"}"#, 400),
            (r#"{"operationType":"Upsert","id":"a","resourceBody":{"id":"a","pk":"x"}}"#, 200),
            (r#"{"operationType":"Replace","id":"a","resourceBody":{"id":"b","pk":"x"}}"#, 200),
            (r#"{"operationType":"Upsert","id":"a","resourceBody":{"id":"b","pk":"x"}}"#, 400),
            (r#"{"operationType":"Read","id":"a"}"#, 200),
            (r#"{"operationType":"Read"}"#, 400),
            (r#"{"operationType":"Delete","id":"a","ifMatch":"x"}"#, 200),
        ];
        let body = format!("[{}]", bodies.map(|(body, _)| body).join(","));
        assert_eq!(check(&body), Ok(bodies.map(|(_, status)| status).to_vec()));
    }

    #[test]
    fn operations_carry_their_own_conditions_and_keys() {
        let batch = BatchBody::parse(
            br#"[{"operationType":"Delete","id":"a","ifMatch":"*","partitionKey":"[\"x\"]"},
                 {"operationType":"Delete","id":"a","ifNoneMatch":"*","partitionKey":["x"]},
                 {"operationType":"Delete","id":"a","partitionKey":{}},
                 {"operationType":"Delete","id":"a"}]"#,
        )
        .expect("a body");
        let operations = batch.operations().expect("operations");
        let key = operations[0].key(&def("/pk")).expect("a key");
        assert_eq!(key.to_json(), r#"["x"]"#);
        assert_eq!(operations[1].key(&def("/pk")).expect("a key"), key);
        assert!(operations[2].key(&def("/pk")).is_err());
        assert!(operations[3].key(&def("/pk")).is_err());
        let precondition = |op: Operation<'_>| {
            with_shape("/pk", |shape| op.to_op(shape, &key)).expect("an operation").precondition
        };
        assert_eq!(precondition(operations[0]), Precondition::IfMatchAny);
        assert_eq!(precondition(operations[1]), Precondition::IfNoneMatchAny);
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = BatchBody::parse(&body).map(|batch| batch.operations().map(|list| list.len()));
        }

        #[test]
        fn near_bodies_do_not_panic(
            kind in "(Create|Upsert|Read|Replace|Delete|Patch)",
            id in r#"(|"id":"a",|"id":null,|"id":1,)"#,
            body in r#"(null|1|"x"|\[\]|\{\}|\{"id":"a","pk":"x"\}|\{"operations":\[\]\})"#,
            key in r#"(null|1|"x"|"\[1\]"|\[1\]|\{\})"#,
        ) {
            let text = format!(r#"[{{{id}"operationType":"{kind}","resourceBody":{body},"partitionKey":{key}}}]"#);
            if let Ok(batch) = BatchBody::parse(text.as_bytes()) {
                for operation in batch.operations().into_iter().flatten() {
                    let _ = operation.key(&def("/pk"));
                    let _ = with_shape("/pk", |shape| operation.to_op(shape, &PartitionKey::default()));
                }
            }
        }
    }
}
