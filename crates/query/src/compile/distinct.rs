//! DISTINCT over one path, as an order.
//!
//! Equal rows are found either by remembering all rows, or by meeting them side by side. `SELECT DISTINCT VALUE
//! c.x` asks for no order, so its rows may come in the order of their values: an index delivers them that way,
//! a page remembers nothing but its last row, and without an index a page holds no more rows than it answers.

use crate::ast::Direction;
use crate::program::{Level, Node};

/// Gives an order to a level that has DISTINCT over one path and no order of its own, and notes where the
/// order keys tell rows apart exactly as DISTINCT does.
pub(super) fn order_by_value(level: &mut Level) {
    if !level.distinct || level.grouping.is_some() {
        return;
    }
    let Some(path) = selected_path(&level.select) else { return };
    match level.order_by.as_slice() {
        [] => {
            level.order_by = vec![(path, Direction::Ascending)];
            level.order_is_implied = true;
            level.keys_are_rows = true;
        }
        [(key, _)] => level.keys_are_rows = is_same(key, &path),
        _ => {}
    }
}

/// The path whose value is the row, or the only member of the row.
fn selected_path(select: &Node) -> Option<Node> {
    match select {
        Node::Path { slot, steps } => Some(Node::Path { slot: *slot, steps: steps.clone() }),
        Node::Object(members) => match members.as_slice() {
            [(_, member @ Node::Path { .. })] => selected_path(member),
            _ => None,
        },
        _ => None,
    }
}

fn is_same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Path { slot: a, steps: a_steps }, Node::Path { slot: b, steps: b_steps }) => {
            a == b && a_steps == b_steps
        }
        _ => false,
    }
}
