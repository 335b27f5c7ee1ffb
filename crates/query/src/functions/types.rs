//! Type checks. They answer false, not undefined, for undefined.

use super::{Function, function};
use crate::value::{Kind, Val};

pub(super) static FUNCTIONS: [Function; 11] = [
    function("IS_ARRAY", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::Array))),
    function("IS_BOOL", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::Bool))),
    function("IS_BOOLEAN", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::Bool))),
    function("IS_DEFINED", 1, 1, |args| Some(Val::Bool(args.get(0).kind() != Kind::Undefined))),
    function("IS_FINITE_NUMBER", 1, 1, |args| Some(Val::Bool(args.num(0).is_some_and(f64::is_finite)))),
    function("IS_INTEGER", 1, 1, |args| Some(Val::Bool(args.int(0).is_some()))),
    function("IS_NULL", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::Null))),
    function("IS_NUMBER", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::Number))),
    function("IS_OBJECT", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::Object))),
    function("IS_PRIMITIVE", 1, 1, |args| {
        let kind = args.get(0).kind();
        Some(Val::Bool(matches!(kind, Kind::Null | Kind::Bool | Kind::Number | Kind::String)))
    }),
    function("IS_STRING", 1, 1, |args| Some(Val::Bool(args.get(0).kind() == Kind::String))),
];
