//! A patch as a request carries it, read and checked before anything is asked of the database.

use orrery_cluster::limits::PATCH_OPS_MAX;
use orrery_doc::{Doc, Path, Segment, Value};

use super::error::PatchError;

/// Top-level properties that the service keeps itself.
const SYSTEM_PROPERTIES: [&str; 7] = ["id", "_id", "_rid", "_self", "_etag", "_attachments", "_ts"];

/// A patch as a request carries it.
#[derive(Clone, Debug)]
pub(crate) struct PatchSpec {
    /// The query text that must hold, such as `from c where c.n = 3`.
    pub condition: Option<String>,
    pub ops: Vec<PatchOp>,
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum PatchOp {
    Add { path: Path, value: Doc },
    Set { path: Path, value: Doc },
    Replace { path: Path, value: Doc },
    Remove { path: Path },
    Increment { path: Path, by: Doc },
    Move { from: Path, path: Path },
}

impl PatchOp {
    /// Bytes of the value that it brings along.
    pub fn value_bytes(&self) -> usize {
        match self {
            PatchOp::Add { value, .. } | PatchOp::Set { value, .. } | PatchOp::Replace { value, .. } => {
                value.bytes().len()
            }
            PatchOp::Increment { by, .. } => by.bytes().len(),
            PatchOp::Remove { .. } | PatchOp::Move { .. } => 0,
        }
    }
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
