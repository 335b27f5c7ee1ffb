//! How two shapes lie to each other, on any surface.
//!
//! Shapes are taken apart into points, edges and regions. Two shapes meet when edges of both cross or
//! touch, or when one lies wholly inside a region of the other, for which a single corner decides. One
//! lies within the other when none of its edges crosses out, and all pieces of its edges, cut where
//! the other's corners touch them, have their middles inside.

use super::shape::{Place, Shape};
use super::surface::Surface;

/// A shape, placed on a surface.
pub(super) struct Placed<S: Surface> {
    points: Vec<S::Point>,
    lines: Vec<Vec<S::Point>>,
    regions: Vec<Region<S>>,
}

struct Region<S: Surface> {
    /// The outline, then the holes.
    rings: Vec<Ring<S>>,
}

struct Ring<S: Surface> {
    points: Vec<S::Point>,
    /// Whether its left side is the outside world.
    inverse: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    Inside,
    OnEdge,
    Outside,
}

impl<S: Surface> Ring<S> {
    fn new(ring: &[Place]) -> Self {
        let points: Vec<S::Point> = ring.iter().map(|place| S::point(*place)).collect();
        let inverse = S::is_inverse(&points);
        Self { points, inverse }
    }

    /// Whether a point that is not on the ring lies in the smaller of the two regions it bounds.
    fn surrounds(&self, p: S::Point) -> bool {
        let turns = S::turns(&self.points, p);
        if self.inverse { turns < 0 } else { turns > 0 }
    }
}

impl<S: Surface> Region<S> {
    fn locate(&self, p: S::Point) -> Lies {
        let edges = || self.rings.iter().flat_map(|ring| ring.points.windows(2));
        if edges().any(|edge| S::touches(p, edge[0], edge[1])) {
            return Lies::OnEdge;
        }
        let Some((outline, holes)) = self.rings.split_first() else { return Lies::Outside };
        let inside = outline.surrounds(p) != outline.inverse && !holes.iter().any(|hole| hole.surrounds(p));
        if inside { Lies::Inside } else { Lies::Outside }
    }
}

impl<S: Surface> Placed<S> {
    pub fn new(shape: &Shape) -> Self {
        let line = |line: &Vec<Place>| line.iter().map(|place| S::point(*place)).collect();
        let region =
            |rings: &Vec<Vec<Place>>| Region { rings: rings.iter().map(|ring| Ring::new(ring)).collect() };
        Self {
            points: shape.points.iter().map(|place| S::point(*place)).collect(),
            lines: shape.lines.iter().map(line).collect(),
            regions: shape.polygons.iter().map(region).collect(),
        }
    }

    /// All edges; a point is an edge from itself to itself.
    fn edges(&self) -> impl Iterator<Item = (S::Point, S::Point)> {
        let rings = self.regions.iter().flat_map(|region| &region.rings).map(|ring| &ring.points);
        let paths = self.lines.iter().chain(rings).flat_map(|path| path.windows(2));
        self.points.iter().map(|p| (*p, *p)).chain(paths.map(|edge| (edge[0], edge[1])))
    }

    /// One point of every connected part.
    fn samples(&self) -> impl Iterator<Item = S::Point> {
        let firsts = self.lines.iter().filter_map(|line| line.first());
        let corners = self.regions.iter().filter_map(|region| region.rings.first()?.points.first());
        self.points.iter().chain(firsts).chain(corners).copied()
    }

    fn is_inverse(&self) -> bool {
        self.regions.iter().any(|region| region.rings.first().is_some_and(|ring| ring.inverse))
    }

    fn locate(&self, p: S::Point) -> Lies {
        let mut lies = Lies::Outside;
        for region in &self.regions {
            match region.locate(p) {
                Lies::Inside => return Lies::Inside,
                Lies::OnEdge => lies = Lies::OnEdge,
                Lies::Outside => {}
            }
        }
        lies
    }

    pub fn intersects(&self, other: &Self) -> bool {
        self.samples().any(|p| other.locate(p) != Lies::Outside)
            || other.samples().any(|p| self.locate(p) != Lies::Outside)
            || self.edges().any(|(a, b)| other.edges().any(|(c, d)| meets::<S>(a, b, c, d)))
    }

    pub fn within(&self, other: &Self) -> bool {
        if other.regions.is_empty() {
            return self.regions.is_empty() && self.runs_along(other);
        }
        let crossing = |(a, b)| other.edges().any(|(c, d)| crosses_out::<S>(a, b, c, d));
        if self.edges().any(crossing) || (self.is_inverse() && !other.is_inverse()) {
            return false;
        }
        // Something must be in the interior: a shape on the edge is not within.
        let mut interior = !self.regions.is_empty();
        for (a, b) in self.edges() {
            for p in cut_points(a, b, other) {
                match other.locate(p) {
                    Lies::Outside => return false,
                    Lies::Inside => interior = true,
                    Lies::OnEdge => {}
                }
            }
        }
        interior && !self.covers_a_hole_of(other)
    }

    /// A hole of the other region that lies inside of this one makes it stick out.
    fn covers_a_hole_of(&self, other: &Self) -> bool {
        let holes = other.regions.iter().flat_map(|region| region.rings.iter().skip(1));
        holes.flat_map(|hole| &hole.points).any(|p| self.locate(*p) == Lies::Inside)
    }

    /// Points and lines within points and lines: all of this lies on the other.
    fn runs_along(&self, other: &Self) -> bool {
        self.edges().all(|(a, b)| {
            cut_points(a, b, other).into_iter().all(|p| other.edges().any(|(c, d)| S::touches(p, c, d)))
        })
    }

    pub fn distance(&self, other: &Self) -> f64 {
        if self.intersects(other) {
            return 0.0;
        }
        let mut best: Option<(f64, S::Point, S::Point)> = None;
        let mut offer = |p: S::Point, a: S::Point, b: S::Point| {
            let q = S::nearest(p, a, b);
            let gap = S::gap(p, q);
            if best.is_none_or(|(least, ..)| gap < least) {
                best = Some((gap, p, q));
            }
        };
        for (a, b) in self.edges() {
            for (c, d) in other.edges() {
                offer(a, c, d);
                offer(b, c, d);
                offer(c, a, b);
                offer(d, a, b);
            }
        }
        best.map_or(0.0, |(_, p, q)| S::distance(p, q))
    }

    /// Whether a ring meets itself, or another ring of its polygon, anywhere but at its corners.
    pub fn is_tangled(&self) -> bool {
        self.regions.iter().any(|region| {
            let edges: Vec<(S::Point, S::Point)> =
                region.rings.iter().flat_map(|ring| ring.points.windows(2)).map(|e| (e[0], e[1])).collect();
            edges
                .iter()
                .enumerate()
                .any(|(i, (a, b))| edges[i + 1..].iter().any(|(c, d)| crosses_out::<S>(*a, *b, *c, *d)))
        })
    }
}

/// Edges cross, and not merely touch within the precision of numbers.
fn crosses_out<S: Surface>(a: S::Point, b: S::Point, c: S::Point, d: S::Point) -> bool {
    S::crosses(a, b, c, d)
        && !S::touches(a, c, d)
        && !S::touches(b, c, d)
        && !S::touches(c, a, b)
        && !S::touches(d, a, b)
}

fn meets<S: Surface>(a: S::Point, b: S::Point, c: S::Point, d: S::Point) -> bool {
    S::crosses(a, b, c, d)
        || S::touches(a, c, d)
        || S::touches(b, c, d)
        || S::touches(c, a, b)
        || S::touches(d, a, b)
}

/// The ends of an edge and the middles of its pieces, cut where the other shape touches it.
fn cut_points<S: Surface>(a: S::Point, b: S::Point, other: &Placed<S>) -> Vec<S::Point> {
    if S::gap(a, b) == 0.0 {
        return vec![a];
    }
    let touching = other.edges().map(|(c, _)| c).filter(|c| S::touches(*c, a, b));
    let mut cuts: Vec<S::Point> = touching.chain([a, b]).collect();
    cuts.sort_by(|p, q| S::gap(a, *p).total_cmp(&S::gap(a, *q)));
    let middles: Vec<S::Point> = cuts.windows(2).map(|piece| S::middle(piece[0], piece[1])).collect();
    middles.into_iter().chain([a, b]).collect()
}
