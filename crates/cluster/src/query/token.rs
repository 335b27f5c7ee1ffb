//! What the client sends back for the next page: a place in the key space and the program's own small state.

use orrery_query::{Carry, Program};

use crate::error::{Error, ErrorKind, Result};
use crate::feed::{Walk, from_hex, to_hex};

/// Between the place and the state.
const STATE: &str = "#QS:";

/// A blocking program starts over on every page, so its place is always the beginning.
pub(super) fn write(program: &Program, walk: &Walk, carry: Option<Carry>) -> Option<String> {
    let position = if program.is_blocking() { None } else { walk.continuation() };
    match (position, carry) {
        (Some(position), Some(carry)) => Some(format!("{position}{STATE}{}", to_hex(&carry.to_bytes()))),
        (Some(position), None) => Some(position),
        (None, Some(carry)) if program.is_blocking() => Some(format!("{STATE}{}", to_hex(&carry.to_bytes()))),
        (None, _) => None,
    }
}

pub(super) fn read(text: Option<&str>) -> Result<(Option<&str>, Option<Carry>)> {
    let Some(text) = text else { return Ok((None, None)) };
    let Some((position, state)) = text.split_once(STATE) else { return Ok((Some(text), None)) };
    let bytes = from_hex(state).ok_or_else(|| Error::invalid("Invalid Continuation Token"))?;
    let carry = Carry::from_bytes(&bytes).map_err(ErrorKind::Query)?;
    Ok((Some(position).filter(|position| !position.is_empty()), Some(carry)))
}

/// The same token in at most so many bytes, if it is long because the query orders by long strings. It names the last
/// row instead of repeating all of its values.
pub fn shorten_continuation(token: &str, bytes_max: usize) -> Option<String> {
    let (position, state) = token.split_once(STATE)?;
    let carry = Carry::from_bytes(&from_hex(state)?).ok()?;
    // Two digits a byte.
    let room = bytes_max.checked_sub(position.len() + STATE.len())? / 2;
    let shorter = carry.shortened(room)?;
    Some(format!("{position}{STATE}{}", to_hex(&shorter.to_bytes())))
}
