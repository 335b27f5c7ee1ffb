//! Arrays and objects that are the same for every row are made once.

use crate::program::Node;
use crate::value::{Text, Val};

pub(super) fn array(items: Vec<Node>) -> Node {
    match items.iter().map(constant).collect::<Option<Vec<_>>>() {
        Some(values) => {
            Node::Constant(Val::array(values.into_iter().filter(|value| !value.is_undefined()).collect()))
        }
        None => Node::Array(items),
    }
}

pub(super) fn object(properties: Vec<(Box<str>, Node)>) -> Node {
    let values = properties.iter().map(|(name, node)| Some((Text::Made((&**name).into()), constant(node)?)));
    match values.collect::<Option<Vec<_>>>() {
        Some(fields) => Node::Constant(Val::object(
            fields.into_iter().filter(|(_, value)| !value.is_undefined()).collect(),
        )),
        None => Node::Object(properties),
    }
}

fn constant(node: &Node) -> Option<Val<'static>> {
    match node {
        Node::Constant(value) => Some(value.clone()),
        _ => None,
    }
}
