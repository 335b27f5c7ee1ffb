//! Partial updates: a short list of changes applied to an item in order, all or none.
//!
//! The operations resemble RFC 6902 with the service's own rules: `set` replaces an array element where
//! `add` inserts one, `incr` adds to a number and makes the field if there is none, and no operation
//! makes more than the last part of a path. Applying one copies the document around the change, slice by
//! slice; no tree of the item is built.
//!
//! The texts of the errors are the service's, because people search for them.

use orrery_doc::{Doc, DocBuilder, DocRef, Path, PathError, Segment, Value};

use crate::limits::{JSON_DEPTH_MAX, PATCH_OPS_MAX};

/// Top-level properties that the service keeps itself.
const SYSTEM_PROPERTIES: [&str; 7] = ["id", "_id", "_rid", "_self", "_etag", "_attachments", "_ts"];

/// A patch as a request carries it.
#[derive(Clone, Debug)]
pub struct PatchSpec {
    /// The query text that must hold, such as `from c where c.n = 3`.
    pub condition: Option<String>,
    pub ops: Vec<PatchOp>,
}

/// One change.
#[derive(Clone, Debug)]
pub enum PatchOp {
    Add { path: Path, value: Doc },
    Set { path: Path, value: Doc },
    Replace { path: Path, value: Doc },
    Remove { path: Path },
    Increment { path: Path, by: Doc },
    Move { from: Path, path: Path },
}

impl PatchOp {
    /// Bytes of the value that it brings along.
    pub(crate) fn doc_bytes(&self) -> usize {
        match self {
            PatchOp::Add { value, .. } | PatchOp::Set { value, .. } | PatchOp::Replace { value, .. } => {
                value.bytes().len()
            }
            PatchOp::Increment { by, .. } => by.bytes().len(),
            PatchOp::Remove { .. } | PatchOp::Move { .. } => 0,
        }
    }
}

/// Why a patch is refused. Each is the client's mistake; `op` counts from one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("Invalid patch request: check syntax of patch specification")]
    Syntax,
    #[error("Invalid patch request: check syntax of patch specification. Operation({op}): {reason}")]
    OperationSyntax { op: usize, reason: &'static str },
    #[error("Invalid patch request: check syntax of patch specification. Operation({op}): {error}")]
    Path { op: usize, error: PathError },
    #[error("The patch operation list cannot be empty.")]
    NoOperations,
    #[error("The number of patch operations cannot exceed {PATCH_OPS_MAX}")]
    TooManyOperations,
    #[error("Invalid patch request: Cannot patch system property {property}.")]
    SystemProperty { property: String },
    #[error("Invalid patch request: Cannot patch partition key property {property}.")]
    PartitionKey { property: String },
    #[error("For Operation({op}): Index({index}) to operate on is out of array bounds")]
    IndexOutOfBounds { op: usize, index: String },
    #[error(
        "For Operation({op}): Node({node}) to be removed is absent. \
         Note: it may also have been removed earlier in the transaction."
    )]
    RemovedAbsent { op: usize, node: String },
    #[error("For Operation({op}): Node({node}) to be replaced is absent.")]
    ReplacedAbsent { op: usize, node: String },
    #[error("For Operation({op}): Node({node}) to be moved is absent.")]
    MovedAbsent { op: usize, node: String },
    #[error("For Operation({op}): Node({node}) cannot be moved into itself.")]
    MovedIntoItself { op: usize, node: String },
    #[error("For Operation({op}): Node({node}) is not a number.")]
    NotANumber { op: usize, node: String },
    #[error("For Operation({op}): Node({node}) would no longer be a finite number.")]
    NumberOutOfRange { op: usize, node: String },
    #[error(
        "For Operation({op}): {name} Operation can only create a child object of an existing node(array or \
         object) and cannot create path recursively, no path found beyond: '{node}'."
    )]
    NoParent { op: usize, name: &'static str, node: String },
    #[error("For Operation({op}): the document would be nested deeper than {JSON_DEPTH_MAX} levels.")]
    TooDeep { op: usize },
}

impl PatchSpec {
    /// Reads `{"condition":…,"operations":[…]}` or the bare array of operations. `protected` are the paths
    /// of the partition key, which no operation may touch.
    pub fn from_value(value: Value<'_>, protected: &[Path]) -> Result<PatchSpec, PatchError> {
        let condition = match value.get("condition") {
            Value::Undefined | Value::Null => None,
            Value::Str(text) => Some(text.to_owned()),
            _ => return Err(PatchError::Syntax),
        };
        let operations = match value {
            Value::Array(operations) => operations,
            value => value.get("operations").as_array().ok_or(PatchError::Syntax)?,
        };
        match operations.len() {
            0 => return Err(PatchError::NoOperations),
            1..=PATCH_OPS_MAX => {}
            _ => return Err(PatchError::TooManyOperations),
        }
        let mut ops = Vec::with_capacity(operations.len());
        for (i, operation) in operations.iter().enumerate() {
            let op = PatchOp::from_value(operation, i + 1)?;
            op.check_allowed(protected)?;
            ops.push(op);
        }
        Ok(PatchSpec { condition, ops })
    }
}

/// Applies the operations in order and gives the new document.
pub fn apply(doc: DocRef<'_>, ops: &[PatchOp]) -> Result<Doc, PatchError> {
    let mut current: Option<Doc> = None;
    for (i, op) in ops.iter().enumerate() {
        let before = current.as_ref().map_or(doc, Doc::as_ref);
        current = Some(apply_one(before, op, i + 1)?);
    }
    Ok(current.unwrap_or_else(|| Doc::from_value(doc.root())))
}

impl PatchOp {
    fn from_value(operation: Value<'_>, op: usize) -> Result<PatchOp, PatchError> {
        let syntax = |reason| PatchError::OperationSyntax { op, reason };
        let path = |name: &str, reason| {
            let text = operation.get(name).as_str().ok_or(syntax(reason))?;
            Path::parse_pointer(text).map_err(|error| PatchError::Path { op, error })
        };
        let target = path("path", "'path' must be a string")?;
        let value = || match operation.get("value") {
            Value::Undefined => Err(syntax("'value' is missing")),
            value => Ok(Doc::from_value(value)),
        };
        let name = operation.get("op").as_str().ok_or(syntax("'op' must be a string"))?;
        Ok(match name.to_ascii_lowercase().as_str() {
            "add" => PatchOp::Add { path: target, value: value()? },
            "set" => PatchOp::Set { path: target, value: value()? },
            "replace" => PatchOp::Replace { path: target, value: value()? },
            "remove" => PatchOp::Remove { path: target },
            "incr" | "increment" => {
                let by = value()?;
                if by.root().as_f64().is_none() {
                    return Err(syntax("'value' must be a number"));
                }
                PatchOp::Increment { path: target, by }
            }
            "move" => PatchOp::Move { from: path("from", "'from' must be a string")?, path: target },
            _ => return Err(syntax("'op' is not known")),
        })
    }

    /// Refuses changes to what the service or the item's place depend on, and to what contains it.
    fn check_allowed(&self, protected: &[Path]) -> Result<(), PatchError> {
        let (path, from) = match self {
            PatchOp::Add { path, .. }
            | PatchOp::Set { path, .. }
            | PatchOp::Replace { path, .. }
            | PatchOp::Remove { path }
            | PatchOp::Increment { path, .. } => (path, None),
            PatchOp::Move { from, path } => (path, Some(from)),
        };
        for path in [Some(path), from].into_iter().flatten() {
            if let Some(Segment::Name(first)) = path.segments().first()
                && SYSTEM_PROPERTIES.contains(&first.as_str())
            {
                return Err(PatchError::SystemProperty { property: first.clone() });
            }
            let touched = |protected: &&Path| path.starts_with(protected) || protected.starts_with(path);
            if let Some(protected) = protected.iter().find(touched) {
                return Err(PatchError::PartitionKey { property: protected.to_string() });
            }
        }
        Ok(())
    }
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
