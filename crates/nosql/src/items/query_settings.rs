//! What the meaning of a query depends on besides its text: parts of the container's definition.

use orrery_cluster::Container;
use orrery_doc::{Path, Segment, Value};
use orrery_query::{ComputedProperties, PlanSettings, VectorDistance, VectorPath};

use crate::errors::Refusal;

/// Names that stand for expressions. They were checked when the container was defined.
pub(crate) fn computed_properties(container: &Container) -> Result<ComputedProperties, Refusal> {
    let Some(list) = container.definition.body.root().get("computedProperties").as_array() else {
        return Ok(ComputedProperties::default());
    };
    let pairs = list.iter().map(|property| {
        (
            property.get("name").as_str().unwrap_or_default(),
            property.get("query").as_str().unwrap_or_default(),
        )
    });
    Ok(ComputedProperties::new(pairs)?)
}

/// What plans depend on.
pub(crate) fn plan_settings(container: &Container) -> PlanSettings {
    let body = container.definition.body.root();
    let geospatial = container.definition.geospatial();
    let policy = body.get("vectorEmbeddingPolicy").get("vectorEmbeddings").as_array();
    let vectors = policy.into_iter().flat_map(|list| list.iter()).filter_map(vector_path).collect();
    PlanSettings { geospatial: Some(geospatial), vectors }
}

fn vector_path(embedding: Value<'_>) -> Option<VectorPath> {
    let path = Path::parse_property(embedding.get("path").as_str()?).ok()?;
    let name = |segment: &Segment| match segment {
        Segment::Name(name) => Some(name.clone()),
        Segment::Index(_) => None,
    };
    let path = path.segments().iter().map(name).collect::<Option<Vec<String>>>()?;
    let distance = VectorDistance::from_name(embedding.get("distanceFunction").as_str()?)?;
    Some(VectorPath { path, distance })
}
