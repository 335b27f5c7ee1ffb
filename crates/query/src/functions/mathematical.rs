//! Mathematics. Results that JSON cannot hold are undefined.

use super::{Args, Function, function};
use crate::value::Val;

pub(super) static FUNCTIONS: [Function; 36] = [
    function("ABS", 1, 1, |args| match args.get(0) {
        Val::Int(value) if *value != i64::MIN => Some(Val::Int(value.abs())),
        other => Some(Val::number(other.as_f64()?.abs())),
    }),
    function("ACOS", 1, 1, |args| map(args, f64::acos)),
    function("ASIN", 1, 1, |args| map(args, f64::asin)),
    function("ATAN", 1, 1, |args| map(args, f64::atan)),
    function("ATN2", 2, 2, |args| Some(Val::number(args.num(0)?.atan2(args.num(1)?)))),
    function("CEILING", 1, 1, |args| map(args, f64::ceil)),
    function("COS", 1, 1, |args| map(args, f64::cos)),
    function("COT", 1, 1, |args| map(args, |x| 1.0 / x.tan())),
    function("DEGREES", 1, 1, |args| map(args, f64::to_degrees)),
    function("EXP", 1, 1, |args| map(args, f64::exp)),
    function("FLOOR", 1, 1, |args| map(args, f64::floor)),
    function("LOG", 1, 2, |args| match args.len() {
        1 => map(args, f64::ln),
        _ => Some(Val::number(args.num(0)?.ln() / args.num(1)?.ln())),
    }),
    function("LOG10", 1, 1, |args| map(args, f64::log10)),
    function("NUMBERBIN", 1, 2, |args| {
        let size = if args.len() > 1 { args.num(1)? } else { 1.0 };
        (size != 0.0).then_some(())?;
        Some(Val::number((args.num(0)? / size).floor() * size))
    }),
    function("PI", 0, 0, |_| Some(Val::Double(std::f64::consts::PI))),
    function("POWER", 2, 2, |args| Some(Val::number(args.num(0)?.powf(args.num(1)?)))),
    function("RADIANS", 1, 1, |args| map(args, f64::to_radians)),
    Function {
        uses_chance: true,
        depends_on_time: true,
        ..function("RAND", 0, 0, |args| {
            Some(Val::Double((args.call.random >> 11) as f64 / (1u64 << 53) as f64))
        })
    },
    function("ROUND", 1, 2, round),
    function("SIGN", 1, 1, |args| map(args, |x| if x == 0.0 { 0.0 } else { x.signum() })),
    function("SIN", 1, 1, |args| map(args, f64::sin)),
    function("SQRT", 1, 1, |args| map(args, f64::sqrt)),
    function("SQUARE", 1, 1, |args| map(args, |x| x * x)),
    function("TAN", 1, 1, |args| map(args, f64::tan)),
    function("TRUNC", 1, 1, |args| map(args, f64::trunc)),
    function("INTADD", 2, 2, |args| int2(args, |a, b| Some(a.wrapping_add(b)))),
    function("INTBITAND", 2, 2, |args| int2(args, |a, b| Some(a & b))),
    function("INTBITLEFTSHIFT", 2, 2, |args| int2(args, |a, b| shift(b).map(|by| a << by))),
    function("INTBITNOT", 1, 1, |args| Some(Val::Int(!args.int(0)?))),
    function("INTBITOR", 2, 2, |args| int2(args, |a, b| Some(a | b))),
    function("INTBITRIGHTSHIFT", 2, 2, |args| int2(args, |a, b| shift(b).map(|by| a >> by))),
    function("INTBITXOR", 2, 2, |args| int2(args, |a, b| Some(a ^ b))),
    function("INTDIV", 2, 2, |args| int2(args, i64::checked_div)),
    function("INTMOD", 2, 2, |args| int2(args, i64::checked_rem)),
    function("INTMUL", 2, 2, |args| int2(args, |a, b| Some(a.wrapping_mul(b)))),
    function("INTSUB", 2, 2, |args| int2(args, |a, b| Some(a.wrapping_sub(b)))),
];

fn map<'a>(args: &Args<'_, 'a>, apply: fn(f64) -> f64) -> Option<Val<'a>> {
    Some(Val::number(apply(args.num(0)?)))
}

/// Half away from zero, optionally to a number of decimals.
fn round<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let value = args.num(0)?;
    if args.len() == 1 {
        return Some(Val::number(value.round()));
    }
    let digits = i32::try_from(args.int(1)?).ok()?.clamp(-300, 300);
    let scale = 10f64.powi(digits);
    let rounded = (value * scale).round() / scale;
    Some(Val::number(if rounded.is_finite() { rounded } else { value }))
}

fn int2<'a>(args: &Args<'_, 'a>, apply: fn(i64, i64) -> Option<i64>) -> Option<Val<'a>> {
    Some(Val::Int(apply(args.int(0)?, args.int(1)?)?))
}

fn shift(by: i64) -> Option<u32> {
    u32::try_from(by).ok().filter(|by| *by < 64)
}
