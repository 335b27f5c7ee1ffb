//! What operations need to know of the container that they happen in.

use orrery_cluster::{Api, Container};
use orrery_doc::{Doc, PartitionKeyDef};
use orrery_gateway::shapes;

use crate::errors::Refusal;
use crate::items::render::Renderer;

#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub key: &'a PartitionKeyDef,
    /// Whether items without a directive are indexed.
    pub automatic: bool,
    pub renderer: Renderer,
    /// The API whose items the container has.
    pub api: Api,
}

impl<'a> Shape<'a> {
    pub fn of(container: &'a Container) -> Shape<'a> {
        Shape {
            key: &container.definition.key,
            automatic: is_automatic(container),
            renderer: Renderer::new(container),
            api: container.definition.api,
        }
    }
}

/// Refuses a document that is no item of the API through which the container was made.
pub(crate) fn check(api: Api, doc: &Doc) -> Result<(), Refusal> {
    shapes::check(api, doc.root()).map_err(Refusal::bad_request)
}

pub(crate) fn is_automatic(container: &Container) -> bool {
    let policy = container.definition.body.root().get("indexingPolicy");
    policy.get("automatic").as_bool().unwrap_or(true)
}

#[cfg(test)]
pub(crate) mod tests {
    use orrery_cluster::Rid;
    use orrery_doc::{PartitionKeyKind, PartitionKeyVersion, Path};

    use super::*;

    /// The definition of a key of one path.
    pub(crate) fn def(path: &str) -> PartitionKeyDef {
        let paths = vec![Path::parse_property(path).expect("a path")];
        PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths }
    }

    /// Calls with the shape of a container that has such a key.
    pub(crate) fn with_shape<T>(path: &str, call: impl FnOnce(&Shape<'_>) -> T) -> T {
        let database = Rid::database(1);
        let renderer = Renderer::of(database, Rid::container(database, 1));
        call(&Shape { key: &def(path), automatic: true, renderer, api: Api::NoSql })
    }
}
