//! Shapes on the globe, or on a plane for containers whose geospatial type is Geometry.
//!
//! On the globe, distances and areas are those of the ellipsoid; whether shapes meet is decided on a
//! sphere with arcs of great circles for edges, so that a "straight" edge between two places of one
//! latitude runs nearer to the pole than that latitude. A ring that runs with the clock stands for
//! everything outside of it.

mod geodesic;
mod relations;
mod shape;
mod surface;

use super::{Args, Function, function};
use crate::value::{Text, Val};
use relations::Placed;
use shape::{Shape, read, read_point};
use surface::{Globe, Plane, Surface};

pub(super) static FUNCTIONS: [Function; 6] = [
    spatial("ST_AREA", 1, area),
    spatial("ST_DISTANCE", 2, distance),
    spatial("ST_INTERSECTS", 2, |args| {
        let (a, b) = shapes(args)?;
        Some(Val::Bool(if args.planar() { meet::<Plane>(&a, &b) } else { meet::<Globe>(&a, &b) }))
    }),
    spatial("ST_ISVALID", 1, |args| match args.get(0) {
        Val::Undefined => None,
        _ => Some(Val::Bool(flaw(args).is_none())),
    }),
    spatial("ST_ISVALIDDETAILED", 1, |args| match args.get(0) {
        Val::Undefined => None,
        _ => Some(match flaw(args) {
            None => Val::object(vec![(Text::Stored("valid"), Val::Bool(true))]),
            Some(reason) => Val::object(vec![
                (Text::Stored("valid"), Val::Bool(false)),
                (Text::Stored("reason"), Val::Str(Text::Stored(reason))),
            ]),
        }),
    }),
    spatial("ST_WITHIN", 2, |args| {
        let (a, b) = shapes(args)?;
        Some(Val::Bool(if args.planar() {
            lies_within::<Plane>(&a, &b)
        } else {
            lies_within::<Globe>(&a, &b)
        }))
    }),
];

const fn spatial(name: &'static str, arguments: usize, body: super::Body) -> Function {
    Function { is_spatial: true, ..function(name, arguments, arguments, body) }
}

/// Both shapes; undefined unless both are valid.
fn shapes(args: &Args<'_, '_>) -> Option<(Shape, Shape)> {
    let a = read(args.get(0), args.planar()).ok()?;
    let b = read(args.get(1), args.planar()).ok()?;
    args.charge((a.size() * b.size()) as u64);
    Some((a, b))
}

fn meet<S: Surface>(a: &Shape, b: &Shape) -> bool {
    Placed::<S>::new(a).intersects(&Placed::<S>::new(b))
}

fn lies_within<S: Surface>(a: &Shape, b: &Shape) -> bool {
    Placed::<S>::new(a).within(&Placed::<S>::new(b))
}

fn distance<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let planar = args.planar();
    if let (Some(a), Some(b)) = (read_point(args.get(0), planar), read_point(args.get(1), planar)) {
        let metres = if planar { Plane::distance(a, b) } else { geodesic::distance(a, b) };
        return Some(Val::number(metres));
    }
    let (a, b) = shapes(args)?;
    Some(Val::number(if planar {
        Placed::<Plane>::new(&a).distance(&Placed::new(&b))
    } else {
        Placed::<Globe>::new(&a).distance(&Placed::new(&b))
    }))
}

/// Points and lines have no area; holes are taken away.
fn area<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let shape = read(args.get(0), args.planar()).ok()?;
    let planar = args.planar();
    let area = |ring: &Vec<shape::Place>| if planar { Plane::area(ring) } else { Globe::area(ring) };
    let mut total = 0.0;
    for polygon in &shape.polygons {
        let Some((outline, holes)) = polygon.split_first() else { continue };
        let hole = |ring: &Vec<shape::Place>| {
            // The direction of a hole does not matter: the smaller side is the hole.
            let reversed: Vec<shape::Place> = ring.iter().rev().copied().collect();
            area(ring).min(area(&reversed))
        };
        total += area(outline) - holes.iter().map(hole).sum::<f64>();
    }
    Some(Val::number(total))
}

/// What is wrong with a shape, if anything.
fn flaw(args: &Args<'_, '_>) -> Option<&'static str> {
    let shape = match read(args.get(0), args.planar()) {
        Ok(shape) => shape,
        Err(reason) => return Some(reason),
    };
    args.charge((shape.size() * shape.size()) as u64);
    let tangled = if args.planar() {
        Placed::<Plane>::new(&shape).is_tangled()
    } else {
        Placed::<Globe>::new(&shape).is_tangled()
    };
    tangled.then_some("The edges of a Polygon must not cross each other.")
}
