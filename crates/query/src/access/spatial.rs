//! Conditions on where shapes lie.
//!
//! The index knows the cells of the map that a shape covers, so it can propose items whose shape may meet another, or
//! come near to it. Whether it does, only the shapes themselves tell: nothing here is exact.

use orrery_doc::DocBuilder;
use orrery_doc::geo::terms_near;

use super::filter::{Analysis, Found};
use super::path::IndexStep;
use super::proposal::{Leaf, Proposal};
use super::span::{Span, united};
use crate::ast::BinaryOp;
use crate::program::Node;

impl Analysis<'_> {
    /// Two shapes that meet, or of which one lies within the other: neither can be where the other is not.
    pub(super) fn meeting(&self, a: &Node, b: &Node) -> Found {
        self.near(a, b, 0.0).unwrap_or_else(Found::unknown)
    }

    /// A comparison of a distance with a constant. None if it is none.
    pub(super) fn distance(&self, op: BinaryOp, left: &Node, right: &Node) -> Option<Found> {
        let Node::Call(function, arguments) = left else { return None };
        let ("ST_DISTANCE", [a, b]) = (function.name, arguments.as_slice()) else { return None };
        let upper = matches!(op, BinaryOp::Less | BinaryOp::LessOrEqual | BinaryOp::Equal);
        let metres = self.constant(right).filter(|_| upper)?.as_f64()?;
        self.near(a, b, metres)
    }

    fn near(&self, a: &Node, b: &Node, metres: f64) -> Option<Found> {
        let (place, shape) = match (self.place(a), self.constant(b)) {
            (Some(place), Some(shape)) => (place, shape),
            _ => (self.place(b)?, self.constant(a)?),
        };
        if place.path.steps().is_empty() || !self.indexes.spatial(&place.path) {
            return None;
        }
        let mut builder = DocBuilder::new();
        shape.write_doc(&mut builder);
        let terms = terms_near(builder.finish().root(), metres)?;
        let spans = terms.into_iter().map(|range| Span { lower: range.start, upper: range.end }).collect();
        let path = place.path.then(IndexStep::Cells);
        Some(Found {
            proposal: Proposal::Leaf(Leaf { path, spans: united(spans), exact: false }),
            exact: false,
        })
    }
}
