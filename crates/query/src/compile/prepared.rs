//! A text that was compiled once, for all pages and all values of its parameters.

use std::sync::Arc;

use super::{Code, Program, Purpose, Vocabulary, compile_parsed, compile_tree};
use crate::ast::Query;
use crate::compile::given::Given;
use crate::error::Result;
use crate::parameters::Parameters;
use crate::parse;

/// A query as far as it can be known without the values of its parameters.
#[derive(Debug)]
pub struct Prepared {
    text: Box<str>,
    tree: Arc<Query>,
    vocabulary: Arc<Vocabulary>,
    /// None if the values of parameters decide about it.
    code: Option<Arc<Code>>,
}

impl Prepared {
    /// Reads a text. What is wrong with it is told by [`Prepared::bind`], unless it cannot be parsed at all.
    pub fn new(text: &str, vocabulary: Arc<Vocabulary>) -> Result<Prepared> {
        let tree = Arc::new(parse::parse(text)?);
        let code = compile_tree(tree.clone(), Given::later(), &vocabulary, Purpose::Run).ok();
        let code = code.filter(|code| code.is_for_all).map(Arc::new);
        Ok(Prepared { text: text.into(), tree, vocabulary, code })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// With what meaning of its words the text was compiled.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Whether programs are made without compiling anything again.
    pub fn is_compiled(&self) -> bool {
        self.code.is_some()
    }

    /// The program with these values of its parameters: the same that compiling the text with them gives.
    pub fn bind(&self, parameters: &Parameters) -> Result<Program> {
        match &self.code {
            Some(code) => Ok(Program::new(code.clone(), parameters.clone(), self.text.len())),
            None => compile_parsed(&self.text, self.tree.clone(), parameters, &self.vocabulary),
        }
    }
}
