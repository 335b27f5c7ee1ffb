//! Partial updates of an item.
//!
//! The body is `{"operations":[...],"condition":"from c where ..."}`, or from some clients the bare list. Its
//! content type does not matter, since clients disagree about it. The condition is compiled here, and the
//! partition asks it about the item at the moment of the write.

use std::sync::Arc;

use orrery_cluster::store::patch::PatchSpec;
use orrery_cluster::store::{Action, Condition, Item, OpError, Patch, Target};
use orrery_cluster::{Container, ErrorKind};
use orrery_doc::Value;
use orrery_query::{Context, Parameters, Program, Row, compile_condition};

use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::items::document::parse_any;
use crate::items::render::Renderer;
use crate::items::shape::Shape;
use crate::items::{key, point};
use crate::respond::Reply;

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
    let patch = from_value(&Shape::of(container), doc.root())?;
    let op = point::op(call, container, target, Action::Patch(patch));
    point::write(call, container, &key, vec![op]).await
}

/// Reads the body of a patch, which batches carry inside of theirs.
pub(crate) fn from_value(shape: &Shape<'_>, value: Value<'_>) -> Result<Patch, Refusal> {
    let spec = PatchSpec::from_value(value, &shape.key.paths)
        .map_err(|error| ErrorKind::Op { place: 0, error: OpError::Patch(error) })?;
    let condition = spec.condition.as_deref().map(|text| condition(shape, text)).transpose()?;
    Ok(Patch { ops: spec.ops, condition })
}

fn condition(shape: &Shape<'_>, text: &str) -> Result<Condition, Refusal> {
    let program = compile_condition(text, &Parameters::new())?;
    let renderer = shape.renderer;
    Ok(Condition(Arc::new(move |item: &Item| holds(&program, &renderer, item))))
}

/// A condition that cannot be evaluated for an item does not hold for it. Time is the item's own: partitions know no
/// other, and a replica that asks later must come to the same answer.
fn holds(program: &Program, renderer: &Renderer, item: &Item) -> bool {
    let system = renderer.properties(&item.header);
    let row = Row { doc: item.root(), system: Some(&system), place: &[] };
    let now = i64::try_from(item.header.time).unwrap_or(i64::MAX);
    program.accepts(&row, &Context::at(now, item.header.rid)).unwrap_or(false)
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
            from_value(shape, doc.root()).map_or_else(|refusal| refusal.wire().status.as_u16(), |_| 200)
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
            ("where", None),
            ("", None),
        ] {
            let holds = with_shape("/pk", |shape| condition(shape, text).ok().map(|ask| (ask.0)(&item)));
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
                with_shape("/pk", |shape| drop(from_value(shape, doc.root())));
            }
        }
    }
}
