//! Continuations of queries over several partitions, as the service's gateway writes them.
//!
//! Its clients look inside: `{"token":"<what the partition said>","range":{"min":"","max":"05C1DFFFFFFFFC"}}` is the partition
//! in which the query goes on and where in it. Some send a list of these back, of which the first counts. Ours say where
//! to go on in the whole key space, so that the range is for the clients alone; only when there is no token yet it
//! says where the query begins.

use orrery_cluster::{Container, RangeInfo};
use orrery_doc::{Epk, Value, json};

use crate::errors::{Refusal, push_json_string};

/// What the wrapping of a token may add to it.
pub(crate) const WRAP_BYTES_MAX: usize = 256;

/// Arrays of objects with a range inside.
const DEPTH_MAX: usize = 4;

/// The token in the form for clients. One that names no place is in the partition that answered.
pub(crate) fn wrap(token: &str, container: &Container, answered: Option<u32>) -> String {
    let ranges = container.ranges();
    let place = place_of(token);
    let is_there = |range: &&RangeInfo| match &place {
        Some(epk) => range.range.contains(epk),
        None => answered == Some(range.id),
    };
    let Some(range) = ranges.iter().find(is_there) else { return token.to_owned() };
    let mut text = String::with_capacity(token.len() + WRAP_BYTES_MAX);
    text.push_str("{\"token\":");
    push_json_string(&mut text, token);
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
    let wrong = || Refusal::bad_request("Invalid Continuation Token");
    let doc = json::parse(text.as_bytes(), DEPTH_MAX).map_err(|_| wrong())?;
    let first = match doc.root() {
        Value::Array(list) => list.get(0),
        one => one,
    };
    match (first.get("token"), first.get("range").get("min")) {
        (Value::Str(token), _) if !token.is_empty() => Ok(Some(token.to_owned())),
        (Value::Undefined, Value::Undefined) => Err(wrong()),
        (Value::Undefined | Value::Null | Value::Str(_), Value::Str("")) => Ok(None),
        (Value::Undefined | Value::Null | Value::Str(_), Value::Str(min)) => {
            let min = Epk::from_hex(min).ok_or_else(wrong)?;
            Ok(Some(format!("+RID:~{}#", min.to_hex())))
        }
        _ => Err(wrong()),
    }
}

fn place_of(token: &str) -> Option<Epk> {
    let (epk, _) = token.strip_prefix("+RID:~")?.split_once('#')?;
    Epk::from_hex(epk)
}

#[cfg(test)]
mod tests {
    use super::*;

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
