//! Why patches are refused. The texts are the service's, because people search for them.

use orrery_cluster::limits::{JSON_DEPTH_MAX, PATCH_OPS_MAX};
use orrery_doc::PathError;

/// Why a patch is refused. Each is the client's mistake; `op` counts from one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    #[error("the condition of the patch does not hold")]
    ConditionNotMet,
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
    /// The item would be none of its container's API any more.
    #[error("{0}")]
    Shape(String),
    #[error("For Operation({op}): the document would be nested deeper than {JSON_DEPTH_MAX} levels.")]
    TooDeep { op: usize },
}
