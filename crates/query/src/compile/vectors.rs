//! VECTORDISTANCE: what it measures is known before any item is, because ORDER BY needs to know which end is best.

use super::{Compiler, VectorPath};
use crate::ast::Span;
use crate::error::{QueryError, Result};
use crate::functions::VectorDistance;
use crate::program::{Node, PathStep};
use crate::value::Val;

impl Compiler<'_> {
    /// It measures what the call says, or what the container's policy says of a path, or the cosine.
    pub(super) fn vector_distance(&self, nodes: Vec<Node>, span: Span) -> Result<Node> {
        let mut nodes = nodes.into_iter();
        let (Some(a), Some(b)) = (nodes.next(), nodes.next()) else {
            return Ok(Node::Constant(Val::Undefined));
        };
        let mut own = None;
        for option in nodes {
            own = own.or(asked_for(&option, span)?);
        }
        let distance = own.or_else(|| self.policy_of(&a)).or_else(|| self.policy_of(&b)).unwrap_or_default();
        Ok(Node::VectorDistance { distance, vectors: Box::new([a, b]) })
    }

    fn policy_of(&self, node: &Node) -> Option<VectorDistance> {
        let Node::Path { slot, steps } = node else { return None };
        let is_here = |entry: &&VectorPath| {
            let names = steps.iter().map(|step| match step {
                PathStep::Name(name) => Some(&**name),
                PathStep::Index(_) => None,
            });
            names.eq(entry.path.iter().map(|name| Some(name.as_str())))
        };
        let found = self.vectors.iter().find(is_here).filter(|_| self.items.contains(slot));
        found.map(|entry| entry.distance)
    }
}

/// `{distanceFunction: 'euclidean'}`
fn asked_for(option: &Node, span: Span) -> Result<Option<VectorDistance>> {
    let Node::Constant(option) = option else {
        return Err(QueryError::at(
            2213,
            span,
            "The options of the VectorDistance function must be constant.",
        ));
    };
    match option.get("distanceFunction") {
        Val::Undefined => Ok(None),
        Val::Str(name) if VectorDistance::from_name(name.as_str()).is_some() => {
            Ok(VectorDistance::from_name(name.as_str()))
        }
        _ => {
            let message = "The 'distanceFunction' specified in the VectorDistance function must be 'cosine', \
                           'dotproduct' or 'euclidean'.";
            Err(QueryError::at(2213, span, message))
        }
    }
}
