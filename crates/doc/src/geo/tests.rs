use proptest::prelude::*;

use super::*;
use crate::{Doc, json};

fn shape(kind: &str, coordinates: &str) -> Doc {
    let text = format!(r#"{{"type":"{kind}","coordinates":{coordinates}}}"#);
    json::parse(text.as_bytes(), 32).expect("the test's own shape is JSON")
}

fn finds(wanted: &Doc, metres: f64, stored: &Doc) -> bool {
    let ranges = terms_near(wanted.root(), metres).expect("a shape");
    let cells = cells_of(stored.root());
    assert!(!cells.is_empty());
    cells.iter().any(|cell| ranges.iter().any(|range| range.contains(&cell.term().to_vec())))
}

fn is_everywhere(shape: &Doc) -> bool {
    cells_of(shape.root()) == [Cell::WORLD]
}

#[test]
fn what_is_no_shape_has_no_cells() {
    for (kind, coordinates) in [
        ("Point", "[1]"),
        ("Point", "[181,0]"),
        ("Point", "[0,90.5]"),
        ("Point", "[\"1\",2]"),
        ("point", "[1,2]"),
        ("LineString", "[]"),
        ("Polygon", "[[1,2]]"),
        ("MultiPolygon", "3"),
        ("Circle", "[1,2]"),
    ] {
        let value = shape(kind, coordinates);
        assert_eq!(
            (cells_of(value.root()), terms_near(value.root(), 0.0)),
            (vec![], None),
            "{kind} {coordinates}"
        );
    }
    assert!(cells_of(Value::Int(3)).is_empty());
}

#[test]
fn places_are_found_across_the_end_of_the_map() {
    let point = |longitude: f64| shape("Point", &format!("[{longitude},10]"));
    for (a, b, metres, near) in [
        (180.0, -180.0, 0.0, true),
        (-180.0, 180.0, 0.0, true),
        (179.9, -179.9, 30_000.0, true),
        (-179.9, 179.9, 30_000.0, true),
        (179.0, -179.0, 30_000.0, false),
        (0.0, 0.1, 20_000.0, true),
        (0.0, 90.0, 1_000.0, false),
    ] {
        assert_eq!(finds(&point(a), metres, &point(b)), near, "{a} {b}");
    }
    let band = shape("Polygon", "[[[170,-5],[-170,-5],[-170,5],[170,5],[170,-5]]]");
    assert!(finds(&band, 0.0, &shape("Point", "[179,0]")) && finds(&band, 0.0, &shape("Point", "[-179,0]")));
    assert!(!finds(&band, 0.0, &shape("Point", "[0,0]")));
}

#[test]
fn edges_run_nearer_to_the_pole_than_their_ends() {
    let line = shape("LineString", "[[-50,50],[50,50]]");
    // The middle of that arc.
    assert!(finds(&line, 0.0, &shape("Point", "[0,61.66]")));
    assert!(finds(&shape("Point", "[0,61.66]"), 0.0, &line));
}

#[test]
fn odd_shapes_are_everywhere() {
    for (what, coordinates) in [
        ("with the clock", "[[[0,0],[0,10],[10,10],[10,0],[0,0]]]"),
        ("around the pole", "[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]"),
        (
            "more than half of the world",
            "[[[-100,-60],[0,-60],[100,-60],[100,60],[0,60],[-100,60],[-100,-60]]]",
        ),
        ("no area", "[[[0,0],[10,0],[0,0],[0,0]]]"),
        ("an edge around half of the world", "[[[0,0],[175,1],[80,50],[0,0]]]"),
        ("at the pole", "[[[0,89],[10,89],[10,89.95],[0,89.95],[0,89]]]"),
    ] {
        assert!(is_everywhere(&shape("Polygon", coordinates)), "{what}");
    }
    assert!(!is_everywhere(&shape("Polygon", "[[[0,0],[10,0],[10,10],[0,10],[0,0]]]")));
    // A ring that crosses itself may hold what lies opposite to it.
    let tie = shape("Polygon", "[[[0,0],[10,0],[0,10],[12,12],[0,0]]]");
    assert!(finds(&tie, 0.0, &shape("Point", "[-175,-5]")));
}

#[test]
fn a_small_shape_has_few_and_small_cells() {
    let town = shape("Polygon", "[[[4.8,52.3],[5.0,52.3],[5.0,52.4],[4.8,52.4],[4.8,52.3]]]");
    assert!((4..=STORED_CELLS).contains(&cells_of(town.root()).len()));
    assert!(!finds(&town, 0.0, &shape("Point", "[5.2,52.35]")));
    assert!(terms_near(town.root(), 0.0).expect("a shape").len() < 60);
}

proptest! {
    #[test]
    fn cells_hold_one_another(longitude in -180.0..=180.0f64, latitude in -90.0..=90.0f64) {
        let smallest = Cell::at([longitude, latitude]);
        prop_assert_eq!(smallest.children().count(), 0);
        let mut inner = smallest;
        for outer in smallest.ancestors() {
            prop_assert!(outer.tile().holds(&inner.tile()));
            prop_assert!(outer.children().any(|child| child == inner));
            let (first, last) = outer.descendants();
            prop_assert!(first <= smallest.id() && smallest.id() <= last);
            inner = outer;
        }
        prop_assert_eq!(inner, Cell::WORLD);
        prop_assert_eq!(smallest.ancestors().count(), 30);
    }

    #[test]
    fn a_cover_holds_all_of_a_rectangle(
        west in -180.0..180.0f64, south in -89.0..88.0f64, width in 0.0..170.0f64, height in 0.0..40.0f64,
        x in 0.0..=1.0f64, y in 0.0..=1.0f64,
    ) {
        let north = (south + height).min(89.0);
        let line = shape("LineString", &format!("[[{west},{south}],[{west},{north}]]"));
        let wide = terms_near(line.root(), 0.0).expect("a shape");
        let at = Cell::at([west, south + (north - south) * y]).term().to_vec();
        prop_assert!(wide.iter().any(|range| range.contains(&at)));
        let wrapped = |longitude: f64| if longitude > 180.0 { longitude - 360.0 } else { longitude };
        let equator = format!("[[{west},0],[{},0]]", wrapped(west + width));
        let line = terms_near(shape("LineString", &equator).root(), 0.0).expect("a shape");
        let at = Cell::at([wrapped(west + width * x), 0.0]).term().to_vec();
        prop_assert!(line.iter().any(|range| range.contains(&at)));
    }
}
