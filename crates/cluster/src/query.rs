//! Running a query over items, one page at a time.
//!
//! A page never spans two partitions. A streaming program goes on from the item where it stopped; a blocking one
//! (ORDER BY, GROUP BY, aggregates, DISTINCT) sees its whole scope on every page, which must then lie on one partition.
//! The continuation carries the place in the key space and the program's own small state.

use std::sync::Arc;

use orrery_query::{
    Carry, Context, Flow, PageEnd, Program, Room, Row, Rows, Run, SystemField, SystemProperties, SystemValue,
};
use orrery_store::limits::BLOCKING_QUERY_TIME_MAX;
use orrery_store::{Item, Meter};

use crate::catalog::Container;
use crate::db::{Db, now};
use crate::error::{Error, ErrorKind, Result};
use crate::feed::{PageLimits, Step, Walk, from_hex, to_hex};
use crate::range::Range;
use crate::receipt::{Receipt, Served};
use crate::request::{PageOptions, QueryPage, Scope};
use crate::resource::ResourceKind;
use crate::rid::Rid;
use crate::ru;

impl Db {
    /// One page of results. It may be empty although more follows, as the service's may.
    pub async fn query(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage> {
        let _permit = self.inner.scans.acquire().await.map_err(|_| ErrorKind::Stopping)?;
        tokio::task::block_in_place(|| self.query_page(container, scope, program, page))
    }

    fn query_page(
        &self,
        container: &Container,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage> {
        let (position, carry) = split_continuation(page.continuation.as_deref())?;
        let mut walk = Walk::start(container, scope, position)?;
        let Some(range) = walk.range(container).cloned() else {
            let (rows, meter, receipt) = Default::default();
            return Ok(QueryPage { rows, meter, continuation: None, receipt });
        };
        if program.is_blocking() && !walk.ends_within(&range) {
            return Err(ErrorKind::NeedsQueryPlan.into());
        }
        let lsn = self.admit(container, &range, page.session.as_ref())?;
        let mut page_run = PageRun::start(program, page, carry.as_ref())?;
        let meter = self.feed_query(container, &range, program, page, &mut walk, &mut page_run)?;
        let (rows, carry) = page_run.finish()?;
        let meter = Meter { bytes_returned: rows.byte_len() as u64, ..meter };
        let charge = ru::query(&meter, page.consistency);
        self.pay(container, &range, &charge);
        let continuation = next_continuation(program, &walk, carry);
        let served = Some(Served { range_id: range.id, lsn, item_lsn: None });
        Ok(QueryPage { rows, meter, continuation, receipt: Receipt { charge, served } })
    }

    fn feed_query(
        &self,
        container: &Container,
        range: &Range,
        program: &Program,
        page: &PageOptions,
        walk: &mut Walk,
        run: &mut PageRun<'_>,
    ) -> Result<Meter> {
        if !program.needs_items() {
            run.feed_nothing()?;
            walk.finish();
            return Ok(Meter::default());
        }
        let blocking = program.is_blocking();
        // A blocking program has to see everything before it can answer, so it gets more time, but not any.
        let time_max = if blocking { BLOCKING_QUERY_TIME_MAX } else { page.time_max };
        let mut limits = PageLimits::new(&PageOptions { time_max, ..page.clone() });
        let mut failure = None;
        let meter = self.walk_range(range, walk, |item| {
            let system = ItemProperties { container, item: &item };
            let flow = match run.feed(&item, &system) {
                Ok(flow) => flow,
                Err(error) => {
                    failure = Some(ErrorKind::Query(error));
                    return Step::Finish;
                }
            };
            match flow {
                Flow::Done => Step::Finish,
                Flow::Full => Step::StopBefore,
                Flow::More if !limits.is_late() => Step::Continue,
                Flow::More if blocking => {
                    failure = Some(ErrorKind::TimedOut);
                    Step::Finish
                }
                Flow::More => Step::StopAfter,
            }
        })?;
        failure.map_or(Ok(meter), |kind| Err(kind.into()))
    }
}

/// A run with the rows it has produced.
struct PageRun<'p> {
    run: Run<'p>,
    rows: Rows,
}

impl<'p> PageRun<'p> {
    fn start(program: &'p Program, page: &PageOptions, carry: Option<&Carry>) -> Result<PageRun<'p>> {
        let ticks = now() as i64;
        let context = Context::at(ticks, ticks as u64);
        let room = Room { rows: page.items_max, bytes: page.bytes_max };
        let run = Run::start(program, &context, room, carry).map_err(ErrorKind::Query)?;
        Ok(PageRun { run, rows: Rows::default() })
    }

    fn feed(&mut self, item: &Item, system: &ItemProperties<'_>) -> orrery_query::Result<Flow> {
        let place = item.header.rid.to_be_bytes();
        let row = Row { doc: item.root(), system: Some(system), place: &place };
        self.run.feed(&row, &mut self.rows)
    }

    fn feed_nothing(&mut self) -> Result<()> {
        self.run.feed_nothing(&mut self.rows).map_err(ErrorKind::Query)?;
        Ok(())
    }

    fn finish(mut self) -> Result<(Rows, Option<Carry>)> {
        let end = self.run.finish(&mut self.rows).map_err(ErrorKind::Query)?;
        let carry = match end {
            PageEnd::Done => None,
            PageEnd::Continue(carry) => Some(carry),
        };
        Ok((self.rows, carry))
    }
}

/// System properties of an item, rendered only when a query asks for them.
struct ItemProperties<'a> {
    container: &'a Container,
    item: &'a Item,
}

impl SystemProperties for ItemProperties<'_> {
    fn read(&self, field: SystemField) -> SystemValue {
        let rid = || Rid::child(self.container.resource.rid, ResourceKind::Item, self.item.header.rid);
        match field {
            SystemField::Rid => SystemValue::Text(rid().to_string()),
            SystemField::SelfLink => {
                let (database, container) = (self.container.database, self.container.resource.rid);
                SystemValue::Text(format!("dbs/{database}/colls/{container}/docs/{}/", rid()))
            }
            SystemField::Etag => SystemValue::Text(self.item.header.etag.to_header()),
            SystemField::Attachments => SystemValue::Text("attachments/".into()),
            SystemField::Ts => SystemValue::Int(self.item.header.ts() as i64),
        }
    }
}

/// A blocking program starts over on every page, so its place is always the beginning.
fn next_continuation(program: &Program, walk: &Walk, carry: Option<Carry>) -> Option<String> {
    let position = if program.is_blocking() { None } else { walk.continuation() };
    match (position, carry) {
        (Some(position), Some(carry)) => Some(format!("{position}#QS:{}", to_hex(&carry.to_bytes()))),
        (Some(position), None) => Some(position),
        (None, Some(carry)) if program.is_blocking() => Some(format!("#QS:{}", to_hex(&carry.to_bytes()))),
        (None, _) => None,
    }
}

fn split_continuation(text: Option<&str>) -> Result<(Option<&str>, Option<Carry>)> {
    let Some(text) = text else { return Ok((None, None)) };
    let Some((position, state)) = text.split_once("#QS:") else { return Ok((Some(text), None)) };
    let bytes = from_hex(state).ok_or_else(|| Error::invalid("Invalid Continuation Token"))?;
    let carry = Carry::from_bytes(&bytes).map_err(ErrorKind::Query)?;
    Ok((Some(position).filter(|position| !position.is_empty()), Some(carry)))
}
