//! What the meaning of a query depends on besides its text: parts of the container's definition.

use orrery_cluster::Container;
use orrery_query::PlanSettings;

/// What plans depend on.
pub(crate) fn plan_settings(container: &Container) -> PlanSettings {
    let definition = &container.definition;
    PlanSettings { geospatial: Some(definition.geospatial()), vectors: definition.vectors() }
}
