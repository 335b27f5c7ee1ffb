//! What the meaning of a query depends on besides its text: parts of the container's definition.

use orrery_cluster::Container;
use orrery_doc::{Path, Segment, Value};
use orrery_query::{PlanSettings, VectorDistance, VectorPath};

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
