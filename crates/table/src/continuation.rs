//! Where the next page begins, as headers carry it.
//!
//! Clients send back what they were given as two parameters that they do not look into. The first holds the cursor as
//! base64, and the other one says that there is nothing more to say.
//!
//! ```text
//! flags u8 | with PLACE: key place bytes u16, key place | with ID: id bytes u16, id | with STATE: the program's state
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orrery_cluster::store::ItemId;
use orrery_cluster::{Cursor, CursorPlace};
use orrery_doc::Epk;
use orrery_query::Carry;

use crate::errors::Refusal;

/// What stands for the second part.
pub(crate) const NO_ROW_KEY: &str = "NA";

const PLACE: u8 = 1;
const AGAIN: u8 = 2;
const STATE: u8 = 4;
const ID: u8 = 8;

/// A text of any letters as one that a header may carry.
pub(crate) fn wrap(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

pub(crate) fn unwrap(text: &str) -> Result<String, Refusal> {
    String::from_utf8(bytes(text)?).map_err(|_| Refusal::bad_address())
}

fn bytes(text: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| Refusal::bad_address())
}

pub(crate) fn write(cursor: &Cursor) -> String {
    let mut out = vec![flags(cursor)];
    if let Some(CursorPlace { epk, id, legs, .. }) = &cursor.place {
        assert!(legs.is_empty(), "entities come in the order of their keys");
        let hex = epk.to_hex();
        for part in [Some(hex.as_bytes()), id.as_ref().map(ItemId::as_bytes)].into_iter().flatten() {
            let length = u16::try_from(part.len()).expect("places and ids are short");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(part);
        }
    }
    if let Some(state) = &cursor.state {
        out.extend_from_slice(&state.to_bytes());
    }
    URL_SAFE_NO_PAD.encode(out)
}

/// What is there of a cursor.
fn flags(cursor: &Cursor) -> u8 {
    let place = cursor.place.as_ref().map_or(0, |place| {
        PLACE | if place.again { AGAIN } else { 0 } | if place.id.is_some() { ID } else { 0 }
    });
    place | if cursor.state.is_some() { STATE } else { 0 }
}

/// Reads what [`write`] has written.
pub(crate) fn read(text: &str) -> Result<Cursor, Refusal> {
    let bytes = bytes(text)?;
    let (flags, mut rest) = bytes.split_first().ok_or_else(Refusal::bad_address)?;
    let mut part = || {
        let (length, after) = rest.split_first_chunk()?;
        let (part, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some(part)
    };
    let place = match flags & PLACE {
        0 => None,
        _ => {
            let epk = part().and_then(|hex| std::str::from_utf8(hex).ok()).and_then(Epk::from_hex);
            let epk = epk.ok_or_else(Refusal::bad_address)?;
            let id = match flags & ID {
                0 => None,
                _ => Some(part().and_then(|id| ItemId::new(id).ok()).ok_or_else(Refusal::bad_address)?),
            };
            Some(CursorPlace { epk, id, legs: vec![], again: flags & AGAIN != 0 })
        }
    };
    let state = match flags & STATE {
        0 => None,
        _ => Some(Carry::from_bytes(rest).map_err(|_| Refusal::bad_address())?),
    };
    Ok(Cursor { place, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let epk = || Epk::from_hex("05C1").expect("hexadecimal");
        let place =
            |again| Some(CursorPlace { epk: epk(), id: Some(ItemId::from("grün")), legs: vec![], again });
        let state = || Some(Carry::Streaming { skipped: 1, taken: 2, done_of_item: 3 });
        for cursor in [
            Cursor { place: place(false), state: state() },
            Cursor { place: place(true), state: None },
            Cursor { place: None, state: state() },
            Cursor {
                place: Some(CursorPlace { epk: epk(), id: None, legs: vec![], again: false }),
                state: state(),
            },
            Cursor {
                place: Some(CursorPlace {
                    epk: epk(),
                    id: Some(ItemId::from("")),
                    legs: vec![],
                    again: false,
                }),
                state: None,
            },
        ] {
            let text = write(&cursor);
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
            assert_eq!(read(&text).ok(), Some(cursor));
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for wrong in ["", "!", "a", "AQ", "CQAEMDVDMQ", "BP__", "{\"token\":1}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(unwrap(&wrap("grün/ä")).ok().as_deref(), Some("grün/ä"));
        assert!(unwrap("!").is_err());
    }
}
