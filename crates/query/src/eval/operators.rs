//! Operators and their three-valued logic.

use std::cmp::Ordering;

use super::Env;
use crate::ast::{BinaryOp, UnaryOp};
use crate::error::{QueryError, Result};
use crate::limits;
use crate::program::Node;
use crate::value::{Kind, MAX_SAFE, Val};

pub(super) fn index<'a>(base: &Val<'a>, index: &Val<'a>) -> Val<'a> {
    match index {
        Val::Str(name) => base.get(name.as_str()),
        index => match index.as_i64().and_then(|i| usize::try_from(i).ok()) {
            Some(i) => base.index(i),
            None => Val::Undefined,
        },
    }
}

pub(super) fn unary<'a>(op: UnaryOp, operand: &Val<'a>) -> Val<'a> {
    match (op, operand) {
        (UnaryOp::Not, Val::Bool(value)) => Val::Bool(!value),
        (UnaryOp::Plus, Val::Int(_) | Val::Double(_)) => operand.clone(),
        (UnaryOp::Minus, Val::Int(value)) => match value.checked_neg() {
            Some(value) => Val::Int(value),
            None => Val::number(-(*value as f64)),
        },
        (UnaryOp::Minus, Val::Double(value)) if value.is_finite() => Val::number(-value),
        // Only a literal is no finite number, and stays one.
        (UnaryOp::Minus, Val::Double(value)) => Val::Double(-value),
        (UnaryOp::BitNot, operand) => int32(operand).map_or(Val::Undefined, |bits| Val::Int((!bits).into())),
        _ => Val::Undefined,
    }
}

pub(super) fn binary<'a>(
    op: BinaryOp,
    left: &'a Node,
    right: &'a Node,
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let left = left.eval(env)?;
    if op == BinaryOp::Coalesce {
        return if left.is_undefined() { right.eval(env) } else { Ok(left) };
    }
    let right = right.eval(env)?;
    compares(&left, &right, env)?;
    Ok(match op {
        BinaryOp::Coalesce => left,
        BinaryOp::Equal => truth(equal(&left, &right)),
        BinaryOp::NotEqual => truth(equal(&left, &right).map(|same| !same)),
        BinaryOp::Less => truth(ordered(&left, &right).map(Ordering::is_lt)),
        BinaryOp::LessOrEqual => truth(ordered(&left, &right).map(Ordering::is_le)),
        BinaryOp::Greater => truth(ordered(&left, &right).map(Ordering::is_gt)),
        BinaryOp::GreaterOrEqual => truth(ordered(&left, &right).map(Ordering::is_ge)),
        BinaryOp::Concat => {
            let text = concat(&left, &right)?;
            env.made(&text)?;
            text
        }
        BinaryOp::BitOr => bits(&left, &right, |a, b| a | b),
        BinaryOp::BitXor => bits(&left, &right, |a, b| a ^ b),
        BinaryOp::BitAnd => bits(&left, &right, |a, b| a & b),
        BinaryOp::ShiftLeft => bits(&left, &right, |a, b| a.wrapping_shl(b as u32)),
        BinaryOp::ShiftRight => bits(&left, &right, |a, b| a.wrapping_shr(b as u32)),
        BinaryOp::ShiftRightZero => match (int32(&left), int32(&right)) {
            (Some(a), Some(b)) => Val::Int((a as u32).wrapping_shr(b as u32).into()),
            _ => Val::Undefined,
        },
        BinaryOp::Add => arithmetic(&left, &right, i64::checked_add, |a, b| a + b),
        BinaryOp::Subtract => arithmetic(&left, &right, i64::checked_sub, |a, b| a - b),
        BinaryOp::Multiply => arithmetic(&left, &right, i64::checked_mul, |a, b| a * b),
        BinaryOp::Divide => arithmetic(&left, &right, |_, _| None, |a, b| a / b),
        BinaryOp::Modulo => arithmetic(&left, &right, i64::checked_rem, |a, b| a % b),
    })
}

/// False if any operand is false, else undefined if any is not a boolean, else true.
pub(super) fn all<'a>(operands: &'a [Node], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut known = true;
    for operand in operands {
        env.worked(1)?;
        match operand.eval(env)? {
            Val::Bool(false) => return Ok(Val::Bool(false)),
            Val::Bool(true) => {}
            _ => known = false,
        }
    }
    Ok(if known { Val::Bool(true) } else { Val::Undefined })
}

/// True if any operand is true, else undefined if any is not a boolean, else false.
pub(super) fn any<'a>(operands: &'a [Node], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut known = true;
    for operand in operands {
        env.worked(1)?;
        match operand.eval(env)? {
            Val::Bool(true) => return Ok(Val::Bool(true)),
            Val::Bool(false) => {}
            _ => known = false,
        }
    }
    Ok(if known { Val::Bool(false) } else { Val::Undefined })
}

pub(super) fn between<'a>(negated: bool, operands: &'a [Node; 3], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let value = operands[0].eval(env)?;
    let (low, high) = (operands[1].eval(env)?, operands[2].eval(env)?);
    compares(&value, &low, env)?;
    compares(&value, &high, env)?;
    let low = ordered(&value, &low).map(Ordering::is_ge);
    let high = ordered(&value, &high).map(Ordering::is_le);
    Ok(match (low, high) {
        (Some(false), _) | (_, Some(false)) => Val::Bool(negated),
        (Some(true), Some(true)) => Val::Bool(!negated),
        _ => Val::Undefined,
    })
}

/// A defined needle is in the list or it is not: elements of other types do not make the answer
/// undefined, as they would in a chain of `=` and OR.
pub(super) fn contained<'a>(
    negated: bool,
    needle: &'a Node,
    list: &'a [Node],
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let needle = needle.eval(env)?;
    if needle.is_undefined() {
        return Ok(Val::Undefined);
    }
    for item in list {
        let item = item.eval(env)?;
        compares(&needle, &item, env)?;
        if equal(&needle, &item) == Some(true) {
            return Ok(Val::Bool(!negated));
        }
    }
    Ok(Val::Bool(negated))
}

/// Looks for a needle in a sorted list of constants.
pub(super) fn contained_in_constants<'a>(
    negated: bool,
    needle: &'a Node,
    sorted: &[Val<'static>],
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let needle = needle.eval(env)?;
    if needle.is_undefined() {
        return Ok(Val::Undefined);
    }
    // Each comparison may read all of a text.
    let comparisons = (usize::BITS - sorted.len().leading_zeros()) as usize;
    let bytes = needle.as_str().map_or(0, str::len).saturating_mul(comparisons);
    env.worked(1 + (bytes / limits::WORK_BYTES) as u64)?;
    Ok(Val::Bool(sorted.binary_search_by(|item| item.order(&needle)).is_ok() != negated))
}

/// Counts the work of an operator, and of comparing its operands if both are of one type that can be long.
fn compares<'a>(left: &Val<'a>, right: &Val<'a>, env: &mut Env<'a, '_>) -> Result<()> {
    let work = match (left, right) {
        (Val::Str(left), Val::Str(right)) => {
            (left.as_str().len().min(right.as_str().len()) / limits::WORK_BYTES) as u64
        }
        (Val::Array(_), Val::Array(_)) | (Val::Object(_), Val::Object(_)) => {
            left.deep_work(env.item_work).saturating_add(right.deep_work(env.item_work))
        }
        _ => 0,
    };
    env.worked(work.saturating_add(1))
}

/// Equality: undefined for operands of different types. Null is the exception: clients write
/// `c.x != null` to mean "has a value", and the service answers so.
pub(crate) fn equal(left: &Val<'_>, right: &Val<'_>) -> Option<bool> {
    match (left.kind(), right.kind()) {
        (Kind::Undefined, _) | (_, Kind::Undefined) => None,
        (a, b) if a == b => Some(left.order(right) == Ordering::Equal),
        (Kind::Null, _) | (_, Kind::Null) => Some(false),
        _ => None,
    }
}

/// Order: only for two scalars of one type.
pub(crate) fn ordered(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    match (left.kind(), right.kind()) {
        (a, b) if a != b => None,
        (Kind::Undefined | Kind::Array | Kind::Object, _) => None,
        _ => Some(left.order(right)),
    }
}

fn truth<'a>(value: Option<bool>) -> Val<'a> {
    value.map_or(Val::Undefined, Val::Bool)
}

fn concat<'a>(left: &Val<'a>, right: &Val<'a>) -> Result<Val<'a>> {
    let (Some(a), Some(b)) = (left.as_str(), right.as_str()) else { return Ok(Val::Undefined) };
    if a.len() + b.len() > limits::STRING_BYTES {
        return Err(QueryError::LimitExceeded("The query makes a string that is too long."));
    }
    Ok(Val::text([a, b].concat()))
}

fn arithmetic<'a>(
    left: &Val<'a>,
    right: &Val<'a>,
    exact: fn(i64, i64) -> Option<i64>,
    rounded: fn(f64, f64) -> f64,
) -> Val<'a> {
    if let (Val::Int(a), Val::Int(b)) = (left, right)
        && let Some(result) = exact(*a, *b).filter(|r| r.unsigned_abs() <= MAX_SAFE as u64)
    {
        return Val::Int(result);
    }
    match (left.as_f64(), right.as_f64()) {
        (Some(a), Some(b)) => Val::number(rounded(a, b)),
        _ => Val::Undefined,
    }
}

fn bits<'a>(left: &Val<'a>, right: &Val<'a>, apply: fn(i32, i32) -> i32) -> Val<'a> {
    match (int32(left), int32(right)) {
        (Some(a), Some(b)) => Val::Int(apply(a, b).into()),
        _ => Val::Undefined,
    }
}

/// The low 32 bits of a number without its fraction, as JavaScript takes them.
fn int32(value: &Val<'_>) -> Option<i32> {
    match value {
        Val::Int(value) => Some(*value as i32),
        Val::Double(value) if value.is_finite() => Some((value.trunc() % 2f64.powi(32)) as i64 as i32),
        Val::Double(_) => Some(0),
        _ => None,
    }
}
