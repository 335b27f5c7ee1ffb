//! From text to program, with the names that a container gives to expressions.

use orrery_query::{Parameters, Program};

use crate::catalog::Container;
use crate::db::Db;

impl Db {
    /// Compiles a query over the items of a container. Texts that come again are not compiled again.
    pub fn compile(
        &self,
        container: &Container,
        text: &str,
        parameters: &Parameters,
    ) -> orrery_query::Result<Program> {
        let properties = container.definition.computed_properties()?;
        self.inner.programs.compile(text, parameters, properties)
    }
}
