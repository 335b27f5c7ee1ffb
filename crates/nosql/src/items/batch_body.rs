//! The body of batches: a JSON array of operations.
//!
//! What makes the array unreadable refuses the whole request. What is wrong with one operation belongs to that
//! operation, and the answer says so at its place.

use orrery_cluster::limits::{BATCH_OPS_MAX, ITEM_BYTES_MAX, JSON_DEPTH_MAX};
use orrery_cluster::store::{Action, Op, Target};
use orrery_doc::{Doc, PartitionKey, PartitionKeyDef, Value, json};

use crate::access::ItemAct;
use crate::errors::{Own, Refusal};
use crate::headers::IndexingDirective;
use crate::items::document::ItemBody;
use crate::items::shape::Shape;
use crate::items::{key, options, patch};

/// The first byte of a body in HybridRow, a binary form that only the .NET client sends.
const HYBRID_ROW: u8 = 0x81;
/// Operations are objects in an array.
const ENVELOPE_DEPTH: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Upsert,
    Read,
    Replace,
    Delete,
    Patch,
}

impl Kind {
    /// What the operation needs the right to do; a patch replaces.
    pub fn act(self) -> ItemAct {
        match self {
            Kind::Create => ItemAct::Create,
            Kind::Upsert => ItemAct::Upsert,
            Kind::Read => ItemAct::Read,
            Kind::Replace | Kind::Patch => ItemAct::Replace,
            Kind::Delete => ItemAct::Delete,
        }
    }
}

/// One operation, borrowed from the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    pub kind: Kind,
    id: Option<&'a str>,
    key: Value<'a>,
    body: Value<'a>,
    if_match: Option<&'a str>,
    if_none_match: Option<&'a str>,
    directive: IndexingDirective,
    /// The client wants no item back for this operation.
    pub is_minimal: bool,
}

/// Reads the array under the limits of batches.
pub(crate) fn parse(body: &[u8]) -> Result<Doc, Refusal> {
    if body.first() == Some(&HYBRID_ROW) {
        return Err(Refusal::unsupported("A batch in HybridRow form, which the .NET SDK sends"));
    }
    if body.len() > ITEM_BYTES_MAX {
        return Err(Own::TooLarge.into());
    }
    json::parse(body, JSON_DEPTH_MAX + ENVELOPE_DEPTH)
        .map_err(|error| Refusal::bad_request(format!("The batch request is not valid JSON: {error}.")))
}

/// The operations of a body that was read.
pub(crate) fn operations(body: &Doc) -> Result<Vec<Operation<'_>>, Refusal> {
    let Some(list) = body.root().as_array() else {
        return Err(Refusal::bad_request("The batch request must be a JSON array of operations."));
    };
    if list.is_empty() {
        return Err(Refusal::bad_request("Batch request has no operations."));
    }
    if list.len() > BATCH_OPS_MAX {
        return Err(Refusal::bad_request("Batch request has more operations than what is supported."));
    }
    list.iter().map(Operation::read).collect()
}

impl<'a> Operation<'a> {
    fn read(value: Value<'a>) -> Result<Operation<'a>, Refusal> {
        let text = |name: &str| match value.get(name) {
            Value::Undefined | Value::Null => Ok(None),
            Value::Str(text) => Ok(Some(text)),
            _ => Err(Refusal::bad_request(format!(
                "The property '{name}' of a batch operation must be a string."
            ))),
        };
        Ok(Operation {
            kind: kind(text("operationType")?)?,
            id: text("id")?,
            key: value.get("partitionKey"),
            body: value.get("resourceBody"),
            if_match: text("ifMatch")?,
            if_none_match: text("ifNoneMatch")?,
            directive: directive(text("indexingDirective")?),
            is_minimal: value.get("minimalReturnPreference").as_bool().unwrap_or(false),
        })
    }

    /// The id that the operation is about, as far as it can be known.
    pub fn id(&self) -> Option<&'a str> {
        self.id.or_else(|| self.body.get("id").as_str())
    }

    /// The operation's own partition key: an array, or the text of one.
    pub fn key(&self, def: &PartitionKeyDef) -> Result<PartitionKey, Refusal> {
        match self.key {
            Value::Str(text) => key::full(def, key::parse(text)?),
            Value::Undefined => key::of_request(def, None),
            value => {
                let mut text = Vec::new();
                json::write(value, &mut text);
                key::full(def, key::parse(&String::from_utf8_lossy(&text))?)
            }
        }
    }

    /// The operation in the terms of the database, within one logical partition.
    pub fn to_op(self, shape: &Shape<'_>, key: &PartitionKey) -> Result<Op, Refusal> {
        let (target, action) = match self.kind {
            Kind::Create | Kind::Upsert | Kind::Replace => self.document(shape.key, key)?,
            Kind::Read => (self.target()?, Action::Read),
            Kind::Delete => (self.target()?, Action::Delete),
            Kind::Patch => (self.target()?, Action::Patch(patch::from_value(shape, self.body)?)),
        };
        let precondition = match self.kind {
            Kind::Create => Default::default(),
            Kind::Read => options::precondition(None, self.if_none_match),
            _ => options::precondition(self.if_match, self.if_none_match),
        };
        let indexed = options::is_indexed(self.directive, shape.automatic);
        Ok(Op { target, action, precondition, indexed })
    }

    fn document(self, def: &PartitionKeyDef, key: &PartitionKey) -> Result<(Target, Action), Refusal> {
        let item = ItemBody::from_value(self.body)?;
        key::check_document(def, key, &item.doc)?;
        let other_id = self.id.filter(|id| *id != item.id);
        let action = match (self.kind, other_id) {
            (Kind::Replace, Some(id)) => {
                let action = Action::Rename { id: item.id, doc: item.doc };
                return Ok((Target::Id(id.to_owned()), action));
            }
            (_, Some(_)) => {
                return Err(Refusal::bad_request(
                    "The id of a batch operation must be the id of its document.",
                ));
            }
            (Kind::Create, None) => Action::Create(item.doc),
            (Kind::Upsert, None) => Action::Upsert(item.doc),
            (_, None) => Action::Replace(item.doc),
        };
        Ok((Target::Id(item.id), action))
    }

    fn target(self) -> Result<Target, Refusal> {
        let id =
            self.id.ok_or_else(|| Refusal::bad_request("This batch operation needs the property 'id'."))?;
        Ok(Target::Id(id.to_owned()))
    }
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

fn directive(name: Option<&str>) -> IndexingDirective {
    match name {
        Some(name) if name.eq_ignore_ascii_case("Exclude") => IndexingDirective::Exclude,
        Some(name) if name.eq_ignore_ascii_case("Include") => IndexingDirective::Include,
        _ => IndexingDirective::Default,
    }
}

#[cfg(test)]
mod tests {
    use orrery_cluster::store::Precondition;
    use proptest::prelude::*;

    use super::*;
    use crate::items::shape::tests::{def, with_shape};

    /// The whole body's status and message, or the status of each operation for the key `["x"]`.
    fn check(body: &str) -> Result<Vec<u16>, (u16, String)> {
        let refused = |refusal: Refusal| {
            let wire = refusal.wire();
            (wire.status.as_u16(), String::from_utf8_lossy(&wire.body("", "")).into_owned())
        };
        let doc = parse(body.as_bytes()).map_err(refused)?;
        let operations = operations(&doc).map_err(refused)?;
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
    fn hybrid_row_is_named() {
        let refusal = parse(&[0x81, 0, 0]).expect_err("it is refused");
        let body = String::from_utf8(refusal.wire().body("", "")).expect("text");
        assert!(body.contains("HybridRow"), "{body}");
        assert_eq!(refusal.wire().status, 400);
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
        let doc = parse(
            br#"[{"operationType":"Delete","id":"a","ifMatch":"*","partitionKey":"[\"x\"]"},
                 {"operationType":"Delete","id":"a","ifNoneMatch":"*","partitionKey":["x"]},
                 {"operationType":"Delete","id":"a","partitionKey":{}},
                 {"operationType":"Delete","id":"a"}]"#,
        )
        .expect("a body");
        let operations = operations(&doc).expect("operations");
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
            let _ = parse(&body).map(|doc| operations(&doc).map(|list| list.len()));
        }

        #[test]
        fn near_bodies_do_not_panic(
            kind in "(Create|Upsert|Read|Replace|Delete|Patch)",
            id in r#"(|"id":"a",|"id":null,|"id":1,)"#,
            body in r#"(null|1|"x"|\[\]|\{\}|\{"id":"a","pk":"x"\}|\{"operations":\[\]\})"#,
            key in r#"(null|1|"x"|"\[1\]"|\[1\]|\{\})"#,
        ) {
            let text = format!(r#"[{{{id}"operationType":"{kind}","resourceBody":{body},"partitionKey":{key}}}]"#);
            if let Ok(doc) = parse(text.as_bytes()) {
                for operation in operations(&doc).into_iter().flatten() {
                    let _ = operation.key(&def("/pk"));
                    let _ = with_shape("/pk", |shape| operation.to_op(shape, &PartitionKey::default()));
                }
            }
        }
    }
}
