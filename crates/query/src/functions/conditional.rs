//! IIF and CHOOSE.

use super::{Function, MANY, function};

pub(super) static FUNCTIONS: [Function; 2] = [
    function("IIF", 3, 3, |args| Some(args.get(if args.get(0).is_true() { 1 } else { 2 }).clone())),
    function("CHOOSE", 2, MANY, |args| {
        let place = usize::try_from(args.int(0)?).ok()?;
        (1..args.len()).contains(&place).then(|| args.get(place).clone())
    }),
];
