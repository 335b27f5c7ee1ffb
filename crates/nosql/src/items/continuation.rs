//! Continuations of feeds and queries, as the service's partitions and its gateway write them.
//!
//! A partition says `+RID:~<place>#<id>`, with `*` behind it if the item there comes again, and `#QS:<state>` for a
//! program that has one. Among items that come in the order of creation, `<end>@<rid>` stands for the id: where this part ends
//! and which item came last. The service's gateway puts this into another form when a query goes over several partitions, and its
//! clients look inside: `{"token":"<what the partition said>","range":{"min":"","max":"05C1DFFFFFFFFC"}}` is the partition
//! in which the query goes on and where in it. Some send a list of these back, of which the first counts. Ours say where
//! to go on in the whole key space, so that the range is for the clients alone; only when there is no token yet it
//! says where the query begins.

use orrery_cluster::store::ItemId;
use orrery_cluster::{Container, Cursor, CursorPlace, Leg, RangeInfo};
use orrery_doc::{Epk, Value, json};
use orrery_query::Carry;

use crate::errors::{INVALID_CONTINUATION, Refusal, push_json_string};

/// What the wrapping of a token may add to it.
pub(crate) const WRAP_BYTES_MAX: usize = 256;

/// Arrays of objects with a range inside.
const DEPTH_MAX: usize = 4;

/// Before the place.
const PLACE: &str = "+RID:~";
/// Behind the place of an item that comes again.
const AGAIN: &str = "*";
/// Between the end of a leg and the rid of its last item that is done.
const LEG: char = '@';
/// Before the state.
const STATE: &str = "#QS:";

/// The token of a partition.
pub(crate) fn write(cursor: &Cursor) -> String {
    let mut text = String::with_capacity(128);
    if let Some(place) = &cursor.place {
        text.push_str(PLACE);
        text.push_str(&place.epk.to_hex());
        text.push('#');
        // No item of this API has an empty id, so no digits say that there is none.
        push_hex(place.id.as_ref().map_or(&[], ItemId::as_bytes), &mut text);
        for (number, leg) in place.legs.iter().enumerate() {
            text.push_str(if number > 0 { "," } else { "" });
            text.push_str(&leg.end.to_hex());
            text.push(LEG);
            leg.seen.into_iter().for_each(|rid| text.push_str(&format!("{rid:x}")));
        }
        text.push_str(if place.again { AGAIN } else { "" });
    }
    if let Some(state) = &cursor.state {
        text.push_str(STATE);
        push_hex(&state.to_bytes(), &mut text);
    }
    text
}

/// Reads what [`write`] has written.
pub(crate) fn read(text: &str) -> Result<Cursor, Refusal> {
    let (place, state) = match text.split_once(STATE) {
        Some((place, state)) => (Some(place).filter(|place| !place.is_empty()), Some(state)),
        None => (Some(text), None),
    };
    let state = match state {
        Some(state) => Some(Carry::from_bytes(&from_hex(state).ok_or_else(invalid)?)?),
        None => None,
    };
    let place = place.map(|place| read_place(place).ok_or_else(invalid)).transpose()?;
    Ok(Cursor { place, state })
}

fn read_place(text: &str) -> Option<CursorPlace> {
    let (epk, id) = text.strip_prefix(PLACE)?.split_once('#')?;
    let (id, again) = id.strip_suffix(AGAIN).map_or((id, false), |id| (id, true));
    let (id, legs) = match id.contains(LEG) {
        true => ("", id.split(',').map(read_leg).collect::<Option<Vec<Leg>>>()?),
        false => (id, Vec::new()),
    };
    let id = match id {
        "" => None,
        id => Some(ItemId::new(String::from_utf8(from_hex(id)?).ok()?).ok()?),
    };
    Some(CursorPlace { epk: Epk::from_hex(epk)?, id, legs, again })
}

fn read_leg(text: &str) -> Option<Leg> {
    let (end, rid) = text.split_once(LEG)?;
    let seen = match rid {
        "" => None,
        // All rids have room for their kind above them.
        rid => Some(u64::from_str_radix(rid, 16).ok().filter(|rid| *rid <= u64::MAX >> 4)?),
    };
    Some(Leg { end: Epk::from_hex(end)?, seen })
}

/// The same in a token of so many bytes, if it is long because the query orders by long strings.
pub(crate) fn shorten(cursor: &Cursor, bytes_max: usize) -> Option<Cursor> {
    let place = write(&Cursor { state: None, ..cursor.clone() });
    // Two digits a byte.
    let room = bytes_max.checked_sub(place.len() + STATE.len())? / 2;
    cursor.shortened(room)
}

/// A token in the form for clients that go on from range to range. One that names no place is in the partition that
/// answered.
pub(crate) fn wrap(
    token: String,
    place: Option<&CursorPlace>,
    container: &Container,
    answered: Option<u32>,
) -> String {
    let ranges = container.ranges();
    let is_there = |range: &&RangeInfo| match place {
        Some(place) => range.range.contains(&place.epk),
        None => answered == Some(range.id),
    };
    let Some(range) = ranges.iter().find(is_there) else { return token };
    let mut text = String::with_capacity(token.len() + WRAP_BYTES_MAX);
    text.push_str("{\"token\":");
    push_json_string(&mut text, &token);
    text.push_str(",\"range\":{\"min\":\"");
    text.push_str(&range.range.min.to_hex());
    text.push_str("\",\"max\":\"");
    text.push_str(&range.range.max.to_hex());
    text.push_str("\"}}");
    text
}

/// The token inside, or the text itself if it is one; none stands for the beginning.
pub(crate) fn unwrap(text: &str) -> Result<Option<String>, Refusal> {
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(Some(text.to_owned()));
    }
    let doc = json::parse(text.as_bytes(), DEPTH_MAX).map_err(|_| invalid())?;
    let first = match doc.root() {
        Value::Array(list) => list.get(0),
        one => one,
    };
    match (first.get("token"), first.get("range").get("min")) {
        (Value::Str(token), _) if !token.is_empty() => Ok(Some(token.to_owned())),
        (Value::Undefined, Value::Undefined) => Err(invalid()),
        (Value::Undefined | Value::Null | Value::Str(_), Value::Str("")) => Ok(None),
        (Value::Undefined | Value::Null | Value::Str(_), Value::Str(min)) => {
            let min = Epk::from_hex(min).ok_or_else(invalid)?;
            Ok(Some(format!("{PLACE}{}#", min.to_hex())))
        }
        _ => Err(invalid()),
    }
}

fn invalid() -> Refusal {
    Refusal::bad_request(INVALID_CONTINUATION)
}

fn push_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let byte = |place| u8::from_str_radix(&text[place..place + 2], 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(place: Option<(&str, &'static str, bool)>, state: Option<Carry>) -> Cursor {
        let place = place.map(|(epk, id, again)| {
            let epk = Epk::from_hex(epk).expect("an EPK");
            let id = Some(id).filter(|id| !id.is_empty()).map(ItemId::from);
            CursorPlace { epk, id, legs: vec![], again }
        });
        Cursor { place, state }
    }

    /// Tokens that the releases before this one gave out: clients may come back with them.
    #[test]
    fn tokens_are_written_as_ever_and_old_ones_work() {
        let streaming = || Carry::Streaming { skipped: 2, taken: 300, done_of_item: 1 };
        for (token, wanted) in [
            ("+RID:~05C1DF#6964", cursor(Some(("05C1DF", "id", false)), None)),
            ("+RID:~05C1DF#", cursor(Some(("05C1DF", "", false)), None)),
            ("+RID:~05C1DF#c3a9*", cursor(Some(("05C1DF", "é", true)), None)),
            ("+RID:~05C1DF#6964*#QS:0102ac0201", cursor(Some(("05C1DF", "id", true)), Some(streaming()))),
            ("#QS:0207", cursor(None, Some(Carry::Emitted(7)))),
            ("#QS:0607", cursor(None, Some(Carry::EmittedAsCreated(7)))),
        ] {
            assert_eq!(write(&wanted), token);
            assert_eq!(read(token).expect(token), wanted);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "x",
            "+RID:~",
            "+RID:~05C1DF",
            "+RID:~05C1DF#6",
            "+RID:~05C1DF#zz",
            "+RID:~05C1DF#ff",
            "+RID:~x#6964",
            "-RID:~05C1DF#6964",
            "+RID:~05C1DF#6964#QS:1",
            "+RID:~05C1DF#6964#QS:é",
            "#QS:",
            "#QS:ff",
        ] {
            let wire = read(text).expect_err(text).wire();
            assert_eq!(wire.status, 400, "{text}");
        }
    }

    #[test]
    fn tokens_are_found_in_every_form() {
        let token = "+RID:~05C1DF#6964";
        let wrapped = format!(r#"{{"token":"{token}","range":{{"min":"","max":"FF"}}}}"#);
        for (text, wanted) in [
            (token.to_owned(), Some(Some(token))),
            (wrapped.clone(), Some(Some(token))),
            (format!("[{wrapped}]"), Some(Some(token))),
            (format!(" [ {wrapped} , {{\"token\":null,\"range\":{{\"min\":\"FF\"}}}} ]"), Some(Some(token))),
            (r#"{"token":null,"range":{"min":"","max":"05"}}"#.to_owned(), Some(None)),
            (r#"{"token":null,"range":{"min":"05C1","max":"FF"}}"#.to_owned(), Some(Some("+RID:~05C1#"))),
            (r#"{"range":{"min":"05C1","max":"FF"}}"#.to_owned(), Some(Some("+RID:~05C1#"))),
            ("[]".to_owned(), None),
            ("{}".to_owned(), None),
            ("{".to_owned(), None),
            (r#"{"token":7,"range":{"min":"","max":"FF"}}"#.to_owned(), None),
            (r#"{"token":null,"range":{"min":"xx","max":"FF"}}"#.to_owned(), None),
        ] {
            let found = unwrap(&text).ok();
            assert_eq!(found, wanted.map(|token| token.map(str::to_owned)), "{text}");
        }
    }
}
