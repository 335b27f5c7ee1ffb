//! What a patch makes of a document.
//!
//! The operations resemble RFC 6902 with the service's own rules: `set` replaces an array element where
//! `add` inserts one, `incr` adds to a number and makes the field if there is none, and no operation
//! makes more than the last part of a path. Applying one copies the document around the change, slice by
//! slice; no tree of the item is built.

use orrery_cluster::limits::JSON_DEPTH_MAX;
use orrery_doc::{Doc, DocBuilder, DocRef, Path, Segment, Value};

use super::error::PatchError;
use super::spec::PatchOp;

/// Applies the operations in order and gives the new document.
pub(crate) fn apply(doc: DocRef<'_>, ops: &[PatchOp]) -> Result<Doc, PatchError> {
    let mut current: Option<Doc> = None;
    for (i, op) in ops.iter().enumerate() {
        let before = current.as_ref().map_or(doc, Doc::as_ref);
        current = Some(apply_one(before, op, i + 1)?);
    }
    Ok(current.unwrap_or_else(|| Doc::from_value(doc.root())))
}

/// What happens at the end of a path.
#[derive(Clone, Copy)]
enum Change<'a> {
    /// Makes a field, or inserts an element.
    Add(Value<'a>),
    /// Makes or replaces a field, replaces an element.
    Set(Value<'a>),
    Replace(Value<'a>),
    Remove,
    Increment(Value<'a>),
}

fn apply_one(doc: DocRef<'_>, op: &PatchOp, number: usize) -> Result<Doc, PatchError> {
    let (path, change) = match op {
        PatchOp::Add { path, value } => (path, Change::Add(value.root())),
        PatchOp::Set { path, value } => (path, Change::Set(value.root())),
        PatchOp::Replace { path, value } => (path, Change::Replace(value.root())),
        PatchOp::Remove { path } => (path, Change::Remove),
        PatchOp::Increment { path, by } => (path, Change::Increment(by.root())),
        PatchOp::Move { from, path } => return apply_move(doc, from, path, number),
    };
    edit(doc, path, change, number)
}

fn apply_move(doc: DocRef<'_>, from: &Path, path: &Path, op: usize) -> Result<Doc, PatchError> {
    let moved = follow(doc.root(), from);
    if moved.is_undefined() {
        return Err(PatchError::MovedAbsent { op, node: from.to_pointer() });
    }
    if from == path {
        return Ok(Doc::from_value(doc.root()));
    }
    if path.starts_with(from) {
        return Err(PatchError::MovedIntoItself { op, node: from.to_pointer() });
    }
    let without = edit(doc, from, Change::Remove, op)?;
    edit(without.as_ref(), path, Change::Add(moved), op)
}

/// The value at a pointer, or undefined.
fn follow<'a>(mut value: Value<'a>, path: &Path) -> Value<'a> {
    for token in path.segments().iter().map(token) {
        value = match value {
            Value::Array(array) => read_index(token).map_or(Value::Undefined, |i| array.get(i)),
            value => value.get(token),
        };
    }
    value
}

fn edit(doc: DocRef<'_>, path: &Path, change: Change<'_>, op: usize) -> Result<Doc, PatchError> {
    if let Change::Add(value) | Change::Set(value) | Change::Replace(value) = change
        && path.segments().len() + nesting(value) > JSON_DEPTH_MAX
    {
        return Err(PatchError::TooDeep { op });
    }
    let mut edit = Edit { path, change, op, out: DocBuilder::with_capacity(doc.as_bytes().len() + 64) };
    edit.rebuild(doc.root(), 0)?;
    Ok(edit.out.finish())
}

/// One change on its way down the document.
struct Edit<'a> {
    path: &'a Path,
    change: Change<'a>,
    op: usize,
    out: DocBuilder,
}

impl<'a> Edit<'a> {
    /// Copies the value with the change made inside of it. `depth` segments of the path lead to it, so
    /// the recursion is as deep as the path is long.
    fn rebuild(&mut self, value: Value<'_>, depth: usize) -> Result<(), PatchError> {
        let path = self.path;
        let token = token(&path.segments()[depth]);
        let is_last = depth + 1 == path.segments().len();
        match value {
            Value::Object(object) => {
                if !is_last && !object.contains(token) {
                    return Err(self.no_parent(token));
                }
                self.out.begin_object();
                let mut found = false;
                for (name, field) in object.iter() {
                    if name != token {
                        self.out.name(name).value(field);
                        continue;
                    }
                    found = true;
                    if !is_last {
                        self.out.name(name);
                        self.rebuild(field, depth + 1)?;
                    } else if let Some(changed) = self.changed(field)? {
                        self.out.name(name).value(changed);
                    }
                }
                if !found {
                    let made = self.made()?;
                    self.out.name(token).value(made);
                }
                self.out.end_object();
            }
            Value::Array(array) => {
                let index = self.index(token, array.len(), is_last)?;
                self.out.begin_array();
                for (i, element) in array.iter().enumerate() {
                    if i != index {
                        self.out.value(element);
                    } else if !is_last {
                        self.rebuild(element, depth + 1)?;
                    } else if let Change::Add(value) = self.change {
                        self.out.value(value).value(element);
                    } else if let Some(changed) = self.changed(element)? {
                        self.out.value(changed);
                    }
                }
                if index == array.len() {
                    let made = self.made()?;
                    self.out.value(made);
                }
                self.out.end_array();
            }
            // A value that can have no parts is named itself.
            _ => return Err(self.no_parent(depth.checked_sub(1).map_or("", |above| self.token(above)))),
        }
        Ok(())
    }

    /// The position that a token means in an array. One past the end means that an element is made.
    fn index(&self, token: &str, len: usize, is_last: bool) -> Result<usize, PatchError> {
        let may_append = is_last && matches!(self.change, Change::Add(_) | Change::Set(_));
        match (token, read_index(token)) {
            ("-", _) if may_append => Ok(len),
            (_, Some(i)) if i < len => Ok(i),
            (_, Some(i)) if i == len && may_append => Ok(len),
            _ => Err(PatchError::IndexOutOfBounds { op: self.op, index: token.to_owned() }),
        }
    }

    /// What becomes of a value that is there; none when it goes.
    fn changed(&self, old: Value<'_>) -> Result<Option<Value<'a>>, PatchError> {
        match self.change {
            Change::Add(value) | Change::Set(value) | Change::Replace(value) => Ok(Some(value)),
            Change::Remove => Ok(None),
            Change::Increment(by) => self.sum(old, by).map(Some),
        }
    }

    /// What stands where nothing was.
    fn made(&self) -> Result<Value<'a>, PatchError> {
        let (op, node) = (self.op, || self.path.to_pointer());
        match self.change {
            Change::Add(value) | Change::Set(value) | Change::Increment(value) => Ok(value),
            Change::Replace(_) => Err(PatchError::ReplacedAbsent { op, node: node() }),
            Change::Remove => Err(PatchError::RemovedAbsent { op, node: node() }),
        }
    }

    fn sum(&self, old: Value<'_>, by: Value<'_>) -> Result<Value<'static>, PatchError> {
        let (op, node) = (self.op, || self.path.to_pointer());
        if let (Value::Int(old), Value::Int(by)) = (old, by)
            && let Some(sum) = old.checked_add(by)
        {
            return Ok(Value::Int(sum));
        }
        let (Some(old), Some(by)) = (old.as_f64(), by.as_f64()) else {
            return Err(PatchError::NotANumber { op, node: node() });
        };
        match old + by {
            sum if sum.is_finite() => Ok(Value::Double(sum)),
            _ => Err(PatchError::NumberOutOfRange { op, node: node() }),
        }
    }

    /// The service names the first part of the path that is not there, alone.
    fn no_parent(&self, node: &str) -> PatchError {
        let name = match self.change {
            Change::Add(_) => "Add",
            _ => "Given",
        };
        PatchError::NoParent { op: self.op, name, node: node.to_owned() }
    }

    fn token(&self, depth: usize) -> &'a str {
        token(&self.path.segments()[depth])
    }
}

/// Pointers are read as names alone; see [`Path::parse_pointer`].
fn token(segment: &Segment) -> &str {
    match segment {
        Segment::Name(name) => name,
        Segment::Index(_) => "-",
    }
}

/// An array position as RFC 6901 writes it: digits without a zero in front.
fn read_index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (token.len() == 1 || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}

/// How many containers lie one inside the other. The value came from text of limited depth.
fn nesting(value: Value<'_>) -> usize {
    let deepest = match value {
        Value::Array(array) => array.iter().map(nesting).max(),
        Value::Object(object) => object.iter().map(|(_, value)| nesting(value)).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

#[cfg(test)]
mod tests;
