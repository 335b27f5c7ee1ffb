//! ORDER BY VectorDistance: which end of the scale comes first.

use crate::ast::{Direction, Expr, ExprKind, Literal};

/// One entry of a container's vector policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorPath {
    /// The names of the path, from the item down.
    pub path: Vec<String>,
    pub distance: VectorDistance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorDistance {
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
    pub(super) fn best_first(self) -> Direction {
        match self {
            Self::Cosine | Self::DotProduct => Direction::Descending,
            Self::Euclidean => Direction::Ascending,
        }
    }
}

pub(super) fn is_distance(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call { udf: false, name, .. } if name.eq_ignore_ascii_case("VectorDistance"))
}

/// The distance that an ORDER BY item measures: what the call says, or what the policy says of its
/// path, or cosine.
pub(super) fn ordered_by(expr: &Expr, policy: &[VectorPath]) -> Option<VectorDistance> {
    let ExprKind::Call { arguments, .. } = &expr.kind else { return None };
    if !is_distance(expr) {
        return None;
    }
    let own = arguments.iter().skip(2).find_map(option_of);
    let of_path = || {
        let paths: Vec<Vec<&str>> = arguments.iter().take(2).filter_map(path_of).collect();
        policy
            .iter()
            .find(|entry| paths.contains(&entry.path.iter().map(String::as_str).collect()))
            .map(|e| e.distance)
    };
    Some(own.or_else(of_path).unwrap_or(VectorDistance::Cosine))
}

/// `{distanceFunction: 'euclidean'}`
fn option_of(argument: &Expr) -> Option<VectorDistance> {
    let ExprKind::Object(properties) = &argument.kind else { return None };
    let (_, value) = properties.iter().find(|(name, _)| name == "distanceFunction")?;
    match &value.kind {
        ExprKind::Literal(Literal::String(name)) => VectorDistance::from_name(name),
        _ => None,
    }
}

/// The names behind the alias of a path.
fn path_of(expr: &Expr) -> Option<Vec<&str>> {
    match &expr.kind {
        ExprKind::Name(_) => Some(Vec::new()),
        ExprKind::Member(base, name) => {
            let mut path = path_of(base)?;
            path.push(name);
            Some(path)
        }
        ExprKind::Index(base, index) => match &index.kind {
            ExprKind::Literal(Literal::String(name)) => {
                let mut path = path_of(base)?;
                path.push(name);
                Some(path)
            }
            _ => None,
        },
        _ => None,
    }
}
