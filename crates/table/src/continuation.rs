//! Where the next page begins, as headers carry it.
//!
//! Clients send back what they were given as two parameters that they do not look into. The first holds the cursor as
//! base64, and the other one says that there is nothing more to say.
//!
//! ```text
//! flags u8 | with PLACE: key place bytes u16, key place, id bytes u16, id | with STATE: the program's state
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orrery_cluster::store::ItemKey;
use orrery_cluster::{Cursor, CursorPlace};
use orrery_doc::Epk;
use orrery_query::Carry;

use crate::errors::Refusal;

/// What stands for the second part.
pub(crate) const NO_ROW_KEY: &str = "NA";

const PLACE: u8 = 1;
const AGAIN: u8 = 2;
const STATE: u8 = 4;

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
    let flags = cursor.place.as_ref().map_or(0, |place| PLACE | if place.again { AGAIN } else { 0 })
        | cursor.state.as_ref().map_or(0, |_| STATE);
    let mut out = vec![flags];
    if let Some(CursorPlace { position, .. }) = &cursor.place {
        for part in [position.epk.to_hex().as_bytes(), position.id.as_bytes()] {
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

/// Reads what [`write`] has written.
pub(crate) fn read(text: &str) -> Result<Cursor, Refusal> {
    let bytes = bytes(text)?;
    let (flags, mut rest) = bytes.split_first().ok_or_else(Refusal::bad_address)?;
    let mut part = || {
        let (length, after) = rest.split_first_chunk()?;
        let (part, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        std::str::from_utf8(part).ok()
    };
    let place = match flags & PLACE {
        0 => None,
        _ => {
            let found = part().and_then(Epk::from_hex).zip(part());
            let (epk, id) = found.ok_or_else(Refusal::bad_address)?;
            let position = ItemKey { epk, id: id.to_owned() };
            Some(CursorPlace { position, again: flags & AGAIN != 0 })
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
        let position = ItemKey { epk: Epk::from_hex("05C1").expect("hexadecimal"), id: "grün".to_owned() };
        let place = |again| Some(CursorPlace { position: position.clone(), again });
        let state = || Some(Carry::Streaming { skipped: 1, taken: 2, done_of_item: 3 });
        for cursor in [
            Cursor { place: place(false), state: state() },
            Cursor { place: place(true), state: None },
            Cursor { place: None, state: state() },
        ] {
            let text = write(&cursor);
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
            assert_eq!(read(&text).ok(), Some(cursor));
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for wrong in ["", "!", "a", "AQ", "AQAEMDVDMQ", "BP__", "{\"token\":1}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(unwrap(&wrap("grün/ä")).ok().as_deref(), Some("grün/ä"));
        assert!(unwrap("!").is_err());
    }
}
