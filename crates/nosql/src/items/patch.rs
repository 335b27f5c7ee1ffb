//! Partial updates of an item.
//!
//! The body is `{"operations":[...],"condition":"from c where ..."}`, or from some clients the bare list. Its
//! content type does not matter, since clients disagree about it. To the partition a patch is an [`Edit`]: it is read and
//! its condition compiled here, and it is applied at the moment of the write.

mod apply;
mod error;
mod spec;

use std::fmt;
use std::sync::Arc;

use orrery_cluster::store::{Action, Edit, EditRefusal, Edited, Item, OpError, Target};
use orrery_cluster::{Api, Container, ErrorKind};
use orrery_doc::Value;
use orrery_gateway::shapes;
use orrery_query::{Context, Parameters, Program, Row, compile_condition};

use self::spec::{PatchOp, PatchSpec};
use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::items::document::parse_any;
use crate::items::render::Renderer;
use crate::items::shape::Shape;
use crate::items::{key, point};
use crate::respond::Reply;

pub(crate) use self::error::PatchError;

pub(crate) async fn run(
    call: &Call<'_>,
    container: &Arc<Container>,
    target: Target,
    body: &[u8],
) -> Result<Reply, Refusal> {
    let key = key::of_request(&container.definition.key, key::named(&container.definition, call.headers))?;
    // A patch cannot be larger than the item that it makes.
    if body.len() > orrery_cluster::limits::ITEM_BYTES_MAX {
        return Err(Own::TooLarge.into());
    }
    let doc = parse_any(body)?;
    let patch = Patch::from_value(&Shape::of(container), doc.root())?;
    let op = point::op(call, container, target, Action::Edit(Arc::new(patch)));
    point::write(call, container, &key, vec![op]).await
}

/// A patch that is ready to be applied.
#[derive(Debug)]
pub(crate) struct Patch {
    ops: Vec<PatchOp>,
    condition: Option<Condition>,
    api: Api,
}

impl Patch {
    /// Reads the body of a patch, which batches carry inside of theirs.
    pub fn from_value(shape: &Shape<'_>, value: Value<'_>) -> Result<Patch, Refusal> {
        let PatchSpec { condition, ops } = PatchSpec::from_value(value, &shape.key.paths)?;
        let condition = condition.as_deref().map(|text| Condition::compile(shape, text)).transpose()?;
        Ok(Patch { ops, condition, api: shape.api })
    }
}

impl Edit for Patch {
    fn edit(&self, stored: Option<&Item>, now: u64) -> Result<Edited, EditRefusal> {
        let item = stored.expect("an edit that may not create is given an item");
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(item, now)) {
            return Err(EditRefusal::new(PatchError::ConditionNotMet));
        }
        let doc = apply::apply(item.root(), &self.ops).map_err(EditRefusal::new)?;
        let checked = shapes::check(self.api, doc.root());
        checked.map_err(|text| EditRefusal::new(PatchError::Shape(text)))?;
        Ok(Edited::To(doc))
    }

    fn value_bytes(&self) -> usize {
        self.ops.iter().map(PatchOp::value_bytes).sum()
    }

    fn properties(&self) -> u32 {
        self.ops.len() as u32
    }
}

impl From<PatchError> for Refusal {
    fn from(error: PatchError) -> Refusal {
        ErrorKind::from(OpError::Edit(EditRefusal::new(error))).into()
    }
}

/// What must hold of the item.
struct Condition {
    program: Program,
    renderer: Renderer,
}

impl Condition {
    fn compile(shape: &Shape<'_>, text: &str) -> Result<Condition, Refusal> {
        Ok(Condition { program: compile_condition(text, &Parameters::new())?, renderer: shape.renderer })
    }

    /// A condition that cannot be evaluated for an item does not hold for it. Time is that of the request.
    fn holds(&self, item: &Item, now: u64) -> bool {
        let system = self.renderer.properties(&item.header);
        let row = Row { doc: item.root(), system: Some(&system), place: &[] };
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        self.program.accepts(&row, &Context::at(now, item.header.rid)).unwrap_or(false)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

#[cfg(test)]
mod tests {
    use orrery_cluster::store::{Etag, ItemHeader, Lsn};
    use orrery_doc::json;
    use proptest::prelude::*;

    use super::*;
    use crate::items::shape::tests::with_shape;

    fn status(body: &str) -> u16 {
        let doc = json::parse(body.as_bytes(), 128).expect(body);
        with_shape("/pk", |shape| {
            Patch::from_value(shape, doc.root())
                .map_or_else(|refusal| refusal.wire().status.as_u16(), |_| 200)
        })
    }

    #[test]
    fn bodies_are_lists_of_operations() {
        let set = r#"{"op":"set","path":"/a","value":1}"#;
        let many = |count: usize| format!("[{}]", vec![set; count].join(","));
        for (body, wanted) in [
            (format!("{{\"operations\":[{set}]}}"), 200),
            (format!("[{set}]"), 200),
            (many(10), 200),
            (many(11), 400),
            ("[]".to_owned(), 400),
            ("{}".to_owned(), 400),
            ("1".to_owned(), 400),
            ("null".to_owned(), 400),
            (r#"[{"op":"set","path":"/id","value":1}]"#.to_owned(), 400),
            (r#"[{"op":"set","path":"/_ts","value":1}]"#.to_owned(), 400),
            (r#"[{"op":"set","path":"/pk","value":1}]"#.to_owned(), 400),
            (r#"[{"op":"move","from":"/pk","path":"/a"}]"#.to_owned(), 400),
            (r#"[{"op":"fly","path":"/a"}]"#.to_owned(), 400),
            (format!("{{\"condition\":1,\"operations\":[{set}]}}"), 400),
        ] {
            assert_eq!(status(&body), wanted, "{body}");
        }
    }

    #[test]
    fn conditions_ask_the_item() {
        let header = ItemHeader {
            flags: 0,
            lsn: Lsn(1),
            place: 0,
            time: 20_000_000,
            etag: Etag(1),
            ttl: 0,
            rid: 1,
            json_bytes: 0,
            origin: None,
        };
        let doc = json::parse(br#"{"id":"a","n":3,"tags":["x"]}"#, 128).expect("a document");
        let item = Item { header, doc };
        for (text, wanted) in [
            ("from c where c.n = 3", Some(true)),
            ("FROM root WHERE root.n > 3", Some(false)),
            ("from c where c.absent = 1", Some(false)),
            ("from c where c._ts = 2", Some(true)),
            ("from c where array_contains(c.tags, 'x')", Some(true)),
            ("from c where GetCurrentTimestamp() = 7000", Some(true)),
            ("where", None),
            ("", None),
        ] {
            let condition = with_shape("/pk", |shape| Condition::compile(shape, text).ok());
            let holds = condition.map(|condition| condition.holds(&item, 70_000_000));
            assert_eq!(holds, wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn near_bodies_do_not_panic(
            op in "(add|set|replace|remove|incr|move|x)",
            path in "/?[a-z0-9~/\"-]{0,8}",
            value in r#"(null|1|"x"|\[1\]|\{"a":1\})"#,
            condition in r#"(null|1|""|"from c where c.a = 1"|"where"|"select")"#,
        ) {
            let path = path.replace('"', "\\\"");
            let body = format!(
                r#"{{"condition":{condition},"operations":[{{"op":"{op}","path":"{path}","from":"{path}","value":{value}}}]}}"#
            );
            if let Ok(doc) = json::parse(body.as_bytes(), 128) {
                with_shape("/pk", |shape| drop(Patch::from_value(shape, doc.root())));
            }
        }
    }
}
