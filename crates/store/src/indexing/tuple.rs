//! Tuple indexes, `/events/[]/{type,status}/?`: one entry for each element of an array, made of several of its values.
//!
//! Terms of single paths tell that some element has the type and that some element has the status, not that it is
//! the same element. An entry is laid out as in a composite index, with all parts ascending.

use orrery_doc::{TermOrder, Value, encode_term};

use super::rule::RuleStep;
use super::{PathHash, Step};

/// A tuple index of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    steps: Vec<RuleStep>,
    /// The names of each value within an element.
    pub members: Vec<Vec<String>>,
    /// Takes the place of a path's hash in the keys of its entries.
    pub hash: u64,
}

impl Tuple {
    pub(super) fn new(steps: Vec<RuleStep>, members: Vec<Vec<String>>) -> Tuple {
        let start = steps.iter().fold(PathHash::ROOT, |hash, step| hash.step(step.as_step()));
        let member = |names: &Vec<String>| names.iter().fold(PathHash::ROOT, |path, name| path.name(name));
        let hash = start.members(members.iter().map(member)).value();
        Tuple { steps, members, hash }
    }

    /// The path of the elements.
    pub fn path(&self) -> impl Iterator<Item = Step<'_>> {
        self.steps.iter().map(RuleStep::as_step)
    }

    /// Visits the elements that have an entry: those with at least one of the values.
    pub fn for_each_element<'a>(&self, root: Value<'a>, visit: &mut impl FnMut(Value<'a>)) {
        visit_elements(root, &self.steps, &mut |element| {
            if self.members.iter().any(|names| !find(element, names).is_undefined()) {
                visit(element);
            }
        });
    }

    /// Appends the entry of an element.
    pub fn encode(&self, element: Value<'_>, out: &mut Vec<u8>) {
        for names in &self.members {
            if !encode_term(find(element, names), TermOrder::Sql, out) {
                return;
            }
        }
    }
}

fn find<'a>(element: Value<'a>, names: &[String]) -> Value<'a> {
    names.iter().fold(element, |value, name| value.get(name))
}

/// Goes no deeper than a path of a policy is long, which is limited.
fn visit_elements<'a>(value: Value<'a>, steps: &[RuleStep], visit: &mut impl FnMut(Value<'a>)) {
    match (steps, value) {
        ([], value) => visit(value),
        ([RuleStep::Name(name), rest @ ..], value) => visit_elements(value.get(name), rest, visit),
        ([RuleStep::Elements, rest @ ..], Value::Array(array)) => {
            array.iter().for_each(|element| visit_elements(element, rest, visit));
        }
        ([RuleStep::Elements, ..], _) => {}
    }
}
