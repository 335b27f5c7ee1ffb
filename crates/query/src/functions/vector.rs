//! VECTORDISTANCE: how near two vectors are to each other.

use super::{Function, function};
use crate::ast::Direction;
use crate::value::List;

/// The second is what the first is called in the queries of a plan.
pub(super) static FUNCTIONS: [Function; 2] = [distance("VECTORDISTANCE"), distance("_VECTORSCORE")];

const fn distance(name: &'static str) -> Function {
    // The compiler makes a node of its own of it, which knows what to measure.
    Function { is_search: true, ..function(name, 2, 4, |_| None) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VectorDistance {
    #[default]
    Cosine,
    DotProduct,
    Euclidean,
}

impl VectorDistance {
    /// Reads the name that policies and queries use.
    pub fn from_name(name: &str) -> Option<Self> {
        [("cosine", Self::Cosine), ("dotproduct", Self::DotProduct), ("euclidean", Self::Euclidean)]
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, distance)| distance)
    }

    /// Similarities are best when large, distances when small.
    pub(crate) fn best_first(self) -> Direction {
        match self {
            Self::Cosine | Self::DotProduct => Direction::Descending,
            Self::Euclidean => Direction::Ascending,
        }
    }

    /// None if the two are not vectors of one length: lists of numbers, one at least.
    pub(crate) fn measure(self, a: &List<'_>, b: &List<'_>) -> Option<f64> {
        (a.len() == b.len() && !a.is_empty()).then_some(())?;
        let (mut dot, mut square_of_a, mut square_of_b, mut square_of_gap) = (0.0, 0.0, 0.0, 0.0);
        for (a, b) in a.iter().zip(b.iter()) {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            dot += a * b;
            square_of_a += a * a;
            square_of_b += b * b;
            square_of_gap += (a - b) * (a - b);
        }
        Some(match self {
            Self::Cosine => dot / (square_of_a.sqrt() * square_of_b.sqrt()),
            Self::DotProduct => dot,
            Self::Euclidean => square_of_gap.sqrt(),
        })
    }
}
