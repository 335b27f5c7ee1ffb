//! Queries over the resources of the catalog: databases, containers, offers.
//!
//! There are few of these and they change rarely, so they are rendered and each query runs over all of them.
//! A continuation is the number of rows that earlier pages have shown. These are made once more and dropped page by page,
//! so that no request holds more than one page of rows, and none goes on for longer than other queries may.

use std::time::{Instant, SystemTime};

use bytes::Bytes;
use orrery_cluster::{ErrorKind, Rid, limits, ru};
use orrery_doc::{Doc, json};
use orrery_query::{Carry, Context, Flow, PageEnd, Program, Room, Row, Rows, Run, Steward, compile};

use crate::call::Call;
use crate::envelope::{self, invalid_continuation, page_size};
use crate::errors::Refusal;
use crate::query_spec::QuerySpec;
use crate::respond::Reply;

/// Runs the query in the body over rendered resources and answers with one page.
pub(crate) async fn serve(
    call: &Call<'_>,
    owner: Option<Rid>,
    array: &str,
    resources: impl Iterator<Item = Vec<u8>>,
    body: &Bytes,
) -> Result<Reply, Refusal> {
    let deadline = Instant::now() + limits::BLOCKING_QUERY_TIME_MAX;
    let skipped = match call.headers.continuation {
        Some(text) => text.parse::<usize>().map_err(|_| invalid_continuation())?,
        None => 0,
    };
    let spec = QuerySpec::parse(body)?;
    if spec.resume.is_some() {
        return Err(Refusal::unsupported("A resume filter in a query over resources other than items"));
    }
    let program = compile(&spec.text, &spec.parameters)?;
    let steward = call.db.steward();
    let steward: &dyn Steward = &steward;
    let docs = parsed(resources, steward)?;
    let mut pages =
        Pages { program: &program, docs: &docs, deadline, carry: None, next: 0, steward: Some(steward) };
    let mut answer = || pages.behind(skipped, page_size(call.headers.max_item_count));
    let (rows, has_more) = match program.is_light() {
        true => answer()?,
        // What may take long must not keep other requests from this thread.
        false => call.db.by_turns(None, body.len(), answer).await??,
    };
    let continuation = has_more.then(|| skipped.saturating_add(rows.len()).to_string());
    let page: Vec<Vec<u8>> = rows.iter().map(<[u8]>::to_vec).collect();
    Ok(Reply::ok(envelope::wrap(owner, array, &page))
        .charge("catalog query", ru::METADATA_READ)
        .page(page.len(), continuation))
}

/// The resources as documents. Many take memory from what there is for queries; a few are not counted.
fn parsed(resources: impl Iterator<Item = Vec<u8>>, steward: &dyn Steward) -> Result<Vec<Doc>, Refusal> {
    let (mut docs, mut bytes) = (Vec::new(), 0);
    for text in resources {
        let doc = json::parse(&text, limits::JSON_DEPTH_MAX + 1).expect("a rendered resource is JSON");
        bytes += doc.bytes().len() + size_of::<Doc>();
        docs.push(doc);
        if bytes > limits::RESOURCES_UNCOUNTED_BYTES {
            steward.hold(std::mem::take(&mut bytes))?;
        }
    }
    Ok(docs)
}

/// The answer to a query, made page by page.
struct Pages<'a> {
    program: &'a Program,
    docs: &'a [Doc],
    deadline: Instant,
    /// What the page before ended with.
    carry: Option<Carry>,
    /// The resource that a program which answers each at once goes on with.
    next: usize,
    steward: Option<&'a dyn Steward>,
}

impl Pages<'_> {
    /// The page behind so many rows, and whether more follow.
    fn behind(&mut self, skipped: usize, rows_max: usize) -> Result<(Rows, bool), Refusal> {
        let mut left = skipped;
        while left > 0 {
            let (rows, has_more) = self.page(left.min(limits::PAGE_ITEMS_MAX))?;
            if !has_more {
                return Ok((Rows::default(), false));
            }
            left -= rows.len();
        }
        self.page(rows_max)
    }

    fn page(&mut self, rows_max: usize) -> Result<(Rows, bool), Refusal> {
        let room = Room { rows: rows_max, bytes: limits::PAGE_BYTES_MAX };
        let context = Context { steward: self.steward, ..Context::at(now_ticks(), 0) };
        let mut run = Run::start(self.program, &context, room, self.carry.as_ref())?;
        let mut rows = Rows::default();
        let is_full = match self.program.needs_items() {
            true => self.feed(&mut run, &mut rows)? == Flow::Full,
            false => run.feed_nothing(&mut rows)? == Flow::Full,
        };
        let PageEnd::Continue(carry) = run.finish(&mut rows)? else { return Ok((rows, false)) };
        self.carry = Some(carry);
        // A program that answers each resource at once cannot know whether any are left.
        Ok((rows, is_full || self.program.is_blocking()))
    }

    /// Gives resources to the program until one of its answers says that these are enough.
    fn feed(&mut self, run: &mut Run<'_>, rows: &mut Rows) -> Result<Flow, Refusal> {
        let first = if self.program.is_blocking() { 0 } else { self.next };
        for (place, doc) in self.docs.iter().enumerate().skip(first) {
            if Instant::now() >= self.deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            self.next = place;
            match run.feed(&Row::plain(doc.as_ref()), rows)? {
                Flow::More => {}
                end @ (Flow::Full | Flow::Done) => return Ok(end),
            }
        }
        Ok(Flow::More)
    }
}

/// The current time in ticks of 100 ns since 1970.
fn now_ticks() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orrery_query::Parameters;

    use super::*;

    fn docs() -> Vec<Doc> {
        let text = |n: i32| format!("{{\"id\":\"{n}\",\"n\":{n},\"third\":{},\"list\":[1,2,3]}}", n % 3);
        (0..20).map(|n| json::parse(text(n).as_bytes(), 8).expect("JSON")).collect()
    }

    fn page(
        text: &str,
        docs: &[Doc],
        skipped: usize,
        rows_max: usize,
        deadline: Instant,
    ) -> Result<(Vec<String>, bool), Refusal> {
        let program = compile(text, &Parameters::new())?;
        let mut pages = Pages { program: &program, docs, deadline, carry: None, next: 0, steward: None };
        let (rows, has_more) = pages.behind(skipped, rows_max)?;
        let rows = rows.iter().map(|row| String::from_utf8_lossy(row).into_owned());
        Ok((rows.collect(), has_more))
    }

    #[test]
    fn pages_of_any_size_make_up_the_whole_answer() {
        let (docs, deadline) = (docs(), Instant::now() + Duration::from_secs(60));
        for text in [
            "SELECT VALUE c.id FROM c",
            "SELECT VALUE {a: c.n, b: x} FROM c JOIN x IN c.list WHERE c.n > 2",
            "SELECT VALUE c.n FROM c ORDER BY c.third DESC",
            "SELECT DISTINCT VALUE c.third FROM c",
            "SELECT c.third, COUNT(1) AS k FROM c GROUP BY c.third",
            "SELECT TOP 7 VALUE c.n FROM c",
            "SELECT VALUE c.n FROM c OFFSET 3 LIMIT 9",
            "SELECT VALUE s.n FROM (SELECT c.n FROM c WHERE c.n > 4) AS s",
            "SELECT VALUE 1",
            "SELECT VALUE c.id FROM c WHERE c.n < 0",
        ] {
            let (whole, has_more) = page(text, &docs, 0, 1_000, deadline).expect(text);
            assert!(!has_more, "{text}");
            for size in [1, 2, 7] {
                let mut found = Vec::new();
                loop {
                    let (rows, has_more) = page(text, &docs, found.len(), size, deadline).expect(text);
                    assert!(rows.len() == size || !has_more, "{text}");
                    found.extend(rows);
                    if !has_more {
                        break;
                    }
                }
                assert_eq!(found, whole, "{text} in pages of {size}");
            }
            let (beyond, has_more) = page(text, &docs, whole.len() + 1, 5, deadline).expect(text);
            assert!(beyond.is_empty() && !has_more, "{text}");
        }
    }

    #[test]
    fn queries_that_take_too_long_end() {
        let refused = page("SELECT * FROM c", &docs(), 0, 10, Instant::now());
        assert_eq!(refused.map_err(|refusal| refusal.wire().status.as_u16()), Err(408));
    }
}
