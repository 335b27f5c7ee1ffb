//! The answer to a batch: one result for each operation, at the same place.

use std::fmt::Write as _;
use std::io::Write as _;

use http::StatusCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use orrery_cluster::limits::PAGE_BYTES_MAX;
use orrery_cluster::store::{Effect, Item, ItemHeader, OpError, Outcome};
use orrery_cluster::{Charge, ErrorKind};

use crate::errors::{Refusal, Voice, push_json_string};
use crate::items::point;
use crate::items::render::Renderer;

/// What is left of the bytes that the items of one answer may have together; operations that run at once share it.
pub(crate) struct AnswerRoom(AtomicUsize);

impl AnswerRoom {
    pub fn new() -> AnswerRoom {
        AnswerRoom(AtomicUsize::new(PAGE_BYTES_MAX))
    }

    /// Takes room for an item, if there is enough.
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// What became of one operation.
#[derive(Clone, Debug)]
pub(crate) struct OpResult {
    pub status: StatusCode,
    pub substatus: u32,
    pub retry_after_ms: Option<u32>,
    pub charge: f64,
    /// Of the item, which says its version.
    pub header: Option<ItemHeader>,
    /// The item to show; none when the client wants none or there is none.
    pub item: Option<Item>,
    pub message: Option<String>,
    is_read: bool,
}

impl OpResult {
    /// An operation that was done.
    pub fn done(outcome: Outcome, charge: &Charge, is_minimal: bool) -> OpResult {
        let status = point::status(outcome.effect);
        let is_read = outcome.effect == Effect::Read;
        let is_shown = match outcome.effect {
            Effect::Created | Effect::Replaced | Effect::Unchanged => !is_minimal,
            Effect::Read => true,
            Effect::Deleted | Effect::NotModified | Effect::Absent => false,
        };
        let header = (outcome.effect != Effect::Deleted).then_some(outcome.item.header);
        let item = is_shown.then_some(outcome.item);
        OpResult { charge: charge.total(), header, item, is_read, ..OpResult::of(status) }
    }

    /// An operation that was refused, with what the refusal cost.
    pub fn refused(refusal: &Refusal) -> OpResult {
        let wire = refusal.wire();
        let message = match &wire.voice {
            Voice::Partition(text) | Voice::Gateway(text) => text.to_string(),
            Voice::PartitionJson(text) => text.clone(),
        };
        OpResult {
            substatus: wire.substatus,
            retry_after_ms: wire.retry_after_ms,
            charge: refusal.receipt().map_or(0.0, |receipt| receipt.charge.total()),
            message: Some(message),
            ..OpResult::of(wire.status)
        }
    }

    /// An operation that was not tried, or undone, because another one failed.
    pub fn dependent() -> OpResult {
        OpResult::of(StatusCode::FAILED_DEPENDENCY)
    }

    /// The same with another charge.
    pub fn charged(self, units: f64) -> OpResult {
        OpResult { charge: units, ..self }
    }

    /// Lets go of an item for which the answer has no room: a read has failed then, and a write only shows less.
    pub fn fit(&mut self, room: &AnswerRoom) {
        let Some(item) = &self.item else { return };
        if room.take(item.header.json_bytes as usize) {
            return;
        }
        if self.is_read {
            let refusal = Refusal::from(ErrorKind::from(OpError::AnswerTooLarge));
            *self = OpResult { charge: self.charge, ..OpResult::refused(&refusal) };
        }
        self.item = None;
    }

    pub fn is_failure(&self) -> bool {
        self.status.as_u16() >= 300
    }

    fn of(status: StatusCode) -> OpResult {
        OpResult {
            status,
            substatus: 0,
            retry_after_ms: None,
            charge: 0.0,
            header: None,
            item: None,
            message: None,
            is_read: false,
        }
    }
}

/// The status of the whole answer: 207 as soon as one operation has something to say.
pub(crate) fn status(results: &[OpResult]) -> StatusCode {
    if results.iter().any(OpResult::is_failure) { StatusCode::MULTI_STATUS } else { StatusCode::OK }
}

/// Keeps the answer within a page. Reads come first: those of a transaction are known to fit when it is written, and
/// what it wrote must not take their room.
pub(crate) fn limit(results: &mut [OpResult]) {
    let room = AnswerRoom::new();
    for reads in [true, false] {
        results.iter_mut().filter(|result| result.is_read == reads).for_each(|result| result.fit(&room));
    }
}

/// The JSON array that clients read.
pub(crate) fn render(renderer: Renderer, results: &[OpResult]) -> Vec<u8> {
    let items: usize = results.iter().flat_map(|r| &r.item).map(|item| item.header.json_bytes as usize).sum();
    let mut out = Vec::with_capacity(items + results.len() * 420 + 2);
    out.push(b'[');
    for (i, result) in results.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let mut fields =
            format!("{{\"statusCode\":{},\"requestCharge\":{}", result.status.as_u16(), result.charge);
        if result.substatus != 0 {
            write!(fields, ",\"subStatusCode\":{}", result.substatus)
                .expect("writing to a string cannot fail");
        }
        if let Some(wait) = result.retry_after_ms {
            write!(fields, ",\"retryAfterMilliseconds\":{wait}").expect("writing to a string cannot fail");
        }
        if let Some(header) = &result.header {
            fields.push_str(",\"eTag\":");
            push_json_string(&mut fields, &renderer.version(header).to_header());
        }
        if let Some(message) = &result.message {
            fields.push_str(",\"message\":");
            push_json_string(&mut fields, message);
        }
        out.write_all(fields.as_bytes()).expect("writing to memory does not fail");
        if let Some(item) = &result.item {
            out.extend_from_slice(b",\"resourceBody\":");
            renderer.write_item(item, &mut out);
        }
        out.push(b'}');
    }
    out.push(b']');
    out
}

#[cfg(test)]
mod tests {
    use orrery_cluster::store::{ItemHeader, Lsn, Meter, OpError};
    use orrery_cluster::{ErrorKind, Rid};
    use orrery_doc::json;

    use super::*;

    fn outcome(effect: Effect, json_bytes: u32) -> Outcome {
        let header = ItemHeader {
            flags: 0,
            lsn: Lsn(1),
            place: 0,
            time: 0,
            etag: orrery_cluster::store::Etag(1),
            ttl: 0,
            rid: 1,
            json_bytes,
            origin: None,
        };
        let doc = json::parse(br#"{"id":"a"}"#, 2).expect("a document");
        Outcome { effect, item: Item { header, doc }, id: "a".into(), meter: Meter::default() }
    }

    fn done(effect: Effect, is_minimal: bool) -> OpResult {
        OpResult::done(outcome(effect, 10), &Charge::flat("work", 1.5), is_minimal)
    }

    fn text(results: &[OpResult]) -> String {
        let renderer = Renderer::of(Rid::database(1), Rid::container(Rid::database(1), 1));
        String::from_utf8(render(renderer, results)).expect("UTF-8")
    }

    const ETAG: &str = r#""eTag":"\"00000000-0000-0700-0000-000000010000\"""#;

    #[test]
    fn results_show_what_was_done() {
        let created = text(&[done(Effect::Created, false)]);
        let start =
            format!(r#"[{{"statusCode":201,"requestCharge":1.5,{ETAG},"resourceBody":{{"id":"a","_rid""#);
        assert!(created.starts_with(&start), "{created}");
        assert_eq!(
            text(&[done(Effect::Created, true), done(Effect::Deleted, false)]),
            format!(
                r#"[{{"statusCode":201,"requestCharge":1.5,{ETAG}}},{{"statusCode":204,"requestCharge":1.5}}]"#
            )
        );
        assert!(text(&[done(Effect::Read, true)]).contains("resourceBody"));
    }

    #[test]
    fn results_show_what_was_refused() {
        let cause = orrery_cluster::ThrottleCause::Rate;
        let throttled = OpResult::refused(&ErrorKind::Throttled { retry_after_ms: 7, cause }.into());
        let shown = text(&[throttled, OpResult::dependent()]);
        assert!(
            shown.starts_with(
                r#"[{"statusCode":429,"requestCharge":0,"subStatusCode":3200,"retryAfterMilliseconds":7,"message":"#
            ),
            "{shown}"
        );
        assert!(shown.ends_with(r#",{"statusCode":424,"requestCharge":0}]"#), "{shown}");
        let conflict = ErrorKind::from(OpError::Conflict);
        assert!(text(&[OpResult::refused(&conflict.into())]).starts_with(r#"[{"statusCode":409,"#));
        assert!(
            text(&[OpResult::refused(&ErrorKind::RangeGone.into())])
                .starts_with(r#"[{"statusCode":410,"requestCharge":0,"subStatusCode":1002"#)
        );
    }

    #[test]
    fn one_failure_makes_the_answer_mixed() {
        assert_eq!(status(&[done(Effect::Created, false), done(Effect::Deleted, false)]), 200);
        assert_eq!(status(&[done(Effect::Created, false), OpResult::dependent()]), 207);
        assert_eq!(status(&[done(Effect::NotModified, false)]), 207);
    }

    #[test]
    fn answers_are_limited() {
        let large = |effect| OpResult::done(outcome(effect, 3 << 20), &Charge::default(), false);
        let mut results =
            [large(Effect::Read), large(Effect::Replaced), large(Effect::Read), done(Effect::Read, false)];
        limit(&mut results);
        let statuses: Vec<u16> = results.iter().map(|result| result.status.as_u16()).collect();
        assert_eq!(statuses, [200, 200, 413, 200]);
        let shown: Vec<bool> = results.iter().map(|result| result.item.is_some()).collect();
        assert_eq!(shown, [true, false, false, true]);
    }

    #[test]
    fn charges_of_one_kind_join() {
        let mut total = Charge::flat("read", 1.0);
        total.merge(Charge::flat("read", 1.0));
        total.merge(Charge::flat("write", 5.0));
        assert_eq!(total.lines.len(), 2);
        assert_eq!(total.total(), 7.0);
    }
}
