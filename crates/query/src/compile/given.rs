//! What is known of parameters while a query is compiled.
//!
//! A program whose parameters are only compared with can be compiled before their values are known: clients ask the
//! same text again and again, with other values. A value decides about more where it counts rows, names a member, is a
//! pattern or becomes part of a constant; then it has to be known.

use crate::parameters::Parameters;
use crate::program::Node;
use crate::value::Val;

pub(super) enum Given<'q> {
    Now(&'q Parameters),
    Later(Later),
}

#[derive(Default)]
pub(super) struct Later {
    /// The parameters that are compared with, by their numbers.
    names: Vec<String>,
    /// Some value has to be known.
    is_needed: bool,
}

impl<'q> Given<'q> {
    pub fn now(parameters: &'q Parameters) -> Self {
        Given::Now(parameters)
    }

    pub fn later() -> Self {
        Given::Later(Later::default())
    }

    /// The value of a parameter that decides about the program.
    pub fn value(&mut self, name: &str) -> Val<'static> {
        match self {
            Given::Now(parameters) => parameters.get(name),
            Given::Later(later) => {
                later.is_needed = true;
                Val::Undefined
            }
        }
    }

    /// A parameter that something is compared with.
    pub fn operand(&mut self, name: &str) -> Node {
        match self {
            Given::Now(parameters) => Node::Constant(parameters.get(name)),
            Given::Later(later) => {
                let known = later.names.iter().position(|known| known == name);
                Node::Parameter(known.unwrap_or_else(|| {
                    later.names.push(name.to_owned());
                    later.names.len() - 1
                }))
            }
        }
    }

    /// Says that the program is not worth keeping for other values.
    pub fn is_large(&mut self) {
        if let Given::Later(later) = self {
            later.is_needed = true;
        }
    }

    /// Whether what was compiled holds for all values.
    pub fn is_for_all(&self) -> bool {
        match self {
            Given::Now(_) => false,
            Given::Later(later) => !later.is_needed,
        }
    }

    pub fn into_names(self) -> Vec<String> {
        match self {
            Given::Now(_) => Vec::new(),
            Given::Later(later) => later.names,
        }
    }
}
