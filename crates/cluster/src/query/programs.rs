//! From text to program, with the meaning that the container gives to its words.

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
        let vocabulary = container.definition.vocabulary()?;
        self.inner.programs.compile(text, parameters, vocabulary)
    }
}
