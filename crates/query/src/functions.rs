//! The built-in functions, one file per group, found by name in any letter case.
//!
//! A function gets its arguments evaluated and answers a value; `None` is undefined, which is what
//! every function gives for arguments of the wrong type. Functions never fail: a result beyond a
//! limit is undefined too.

mod array;
mod binary;
mod conditional;
mod date;
mod date_format;
mod date_text;
mod full_text;
mod item;
mod mathematical;
mod ranking;
mod regex;
mod spatial;
mod string;
mod types;
mod vector;

pub(crate) use regex::{Regex, regex};
pub use vector::VectorDistance;

use std::cell::Cell;

use crate::error::{QueryError, Result};
use crate::limits;
use crate::value::{List, Val};

pub(crate) type Body = for<'v, 'a> fn(&Args<'v, 'a>) -> Option<Val<'a>>;

/// A function that may meet a limit.
type FallibleBody = for<'v, 'a> fn(&Args<'v, 'a>) -> Result<Option<Val<'a>>>;

/// One entry of the table.
pub(crate) struct Function {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub uses_chance: bool,
    /// Whether the answer depends on more than the arguments, so that it must not be folded.
    pub depends_on_time: bool,
    /// Whether the answer depends on the container's geospatial type.
    pub is_spatial: bool,
    /// Whether it searches texts or vectors. What that finds may depend on the container's policies, and texts may be read
    /// otherwise by a later release, so no index holds the answer.
    pub is_search: bool,
    body: Implementation,
}

enum Implementation {
    Ready(Body),
    Fallible(FallibleBody),
    /// Known to the language, but not to this release.
    Later,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Any number of arguments.
const MANY: usize = usize::MAX;

const fn entry(name: &'static str, least: usize, most: usize, body: Implementation) -> Function {
    Function {
        name,
        least,
        most,
        uses_chance: false,
        depends_on_time: false,
        is_spatial: false,
        is_search: false,
        body,
    }
}

const fn function(name: &'static str, least: usize, most: usize, body: Body) -> Function {
    entry(name, least, most, Implementation::Ready(body))
}

const fn timed(name: &'static str, least: usize, most: usize, body: Body) -> Function {
    Function { depends_on_time: true, ..function(name, least, most, body) }
}

const fn fallible(name: &'static str, least: usize, most: usize, body: FallibleBody) -> Function {
    entry(name, least, most, Implementation::Fallible(body))
}

const fn later(name: &'static str, least: usize, most: usize) -> Function {
    entry(name, least, most, Implementation::Later)
}

/// Parsed and planned, but not run: FULLTEXTSCORE and RRF are what ORDER BY RANK ranks by, which runs as other queries do, and the
/// others do not run yet.
static LATER: [Function; 4] = [
    later("FULLTEXTSCORE", 2, MANY),
    later("RRF", 1, MANY),
    later("GENERATEEMBEDDINGS", 1, MANY),
    later("HASH", 1, MANY),
];

/// All functions, group by group.
fn all() -> impl Iterator<Item = &'static Function> {
    let groups: [&'static [Function]; 13] = [
        &types::FUNCTIONS,
        &string::FUNCTIONS,
        &mathematical::FUNCTIONS,
        &array::FUNCTIONS,
        &conditional::FUNCTIONS,
        &date::FUNCTIONS,
        &spatial::FUNCTIONS,
        &binary::FUNCTIONS,
        &item::FUNCTIONS,
        &vector::FUNCTIONS,
        &full_text::FUNCTIONS,
        &ranking::FUNCTIONS,
        &LATER,
    ];
    groups.into_iter().flatten()
}

/// Finds a function by name, in any letter case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    all().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// The names of all functions that a query may call, for those who offer them to people.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    all().filter(|function| !function.is_later()).map(|function| function.name)
}

/// Whether a query may order by the function, though it has no path into the item.
pub(crate) fn is_score(name: &str) -> bool {
    ["VectorDistance", "_VectorScore", "_FullTextScore"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

impl Function {
    pub fn run<'a>(&self, values: &[Val<'a>], call: &Call) -> Result<Val<'a>> {
        match self.body {
            Implementation::Ready(body) => Ok(body(&Args { values, call }).unwrap_or(Val::Undefined)),
            Implementation::Fallible(body) => Ok(body(&Args { values, call })?.unwrap_or(Val::Undefined)),
            Implementation::Later => Err(QueryError::Unsupported(self.refusal())),
        }
    }

    pub fn is_later(&self) -> bool {
        matches!(self.body, Implementation::Later)
    }

    pub fn refusal(&self) -> String {
        format!("The function {} is not yet supported.", self.name)
    }

    /// The service's words for a wrong number of arguments.
    pub fn arity_text(&self) -> String {
        let count = match (self.least, self.most) {
            (least, MANY) => format!("at least {least}"),
            (least, most) if least == most => format!("{least}"),
            (least, most) => format!("{least} to {most}"),
        };
        format!("The {} function requires {count} argument(s).", self.name)
    }
}

/// What a function may know besides its arguments, and what it says about its work.
pub(crate) struct Call {
    pub now_ticks: i64,
    pub random: u64,
    pub geospatial: Geospatial,
    /// Steps that are not seen from the size of the arguments.
    pub work: Cell<u64>,
    /// Bytes that are not seen from the answer.
    pub made: Cell<u64>,
}

/// How a container understands coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Geospatial {
    /// Longitude and latitude on the globe.
    #[default]
    Geography,
    /// x and y on a plane.
    Geometry,
}

/// The arguments of one call.
pub(crate) struct Args<'v, 'a> {
    values: &'v [Val<'a>],
    call: &'v Call,
}

impl<'v, 'a> Args<'v, 'a> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn get(&self, i: usize) -> &'v Val<'a> {
        self.values.get(i).unwrap_or(&Val::Undefined)
    }

    fn str(&self, i: usize) -> Option<&'v str> {
        self.get(i).as_str()
    }

    fn num(&self, i: usize) -> Option<f64> {
        self.get(i).as_f64()
    }

    fn int(&self, i: usize) -> Option<i64> {
        self.get(i).as_i64()
    }

    fn list(&self, i: usize) -> Option<&'v List<'a>> {
        self.get(i).as_list()
    }

    fn now_ticks(&self) -> i64 {
        self.call.now_ticks
    }

    fn planar(&self) -> bool {
        self.call.geospatial == Geospatial::Geometry
    }

    fn charge(&self, steps: u64) {
        self.call.work.set(self.call.work.get().saturating_add(steps));
    }

    fn makes(&self, bytes: usize) {
        self.call.made.set(self.call.made.get().saturating_add(bytes as u64));
    }

    /// An optional boolean: absent is false, another type is undefined.
    fn flag(&self, i: usize) -> Option<bool> {
        if i < self.len() { self.get(i).as_bool() } else { Some(false) }
    }
}

/// A string result, unless it is too long.
fn text<'a>(text: String) -> Option<Val<'a>> {
    (text.len() <= limits::STRING_BYTES).then(|| Val::text(text))
}

/// An array result, unless it is too long.
fn array<'a>(items: Vec<Val<'a>>) -> Option<Val<'a>> {
    (items.len() <= limits::ARRAY_ITEMS).then(|| Val::array(items))
}
