//! The query that a reader of changes may send along: then only changes of items that it selects are shown.
//!
//! The body is that of a query with one member more, which says whether a delete is shown when the query selects what was
//! deleted. Without it nothing is known of a deleted item, so that no query selects it.

use std::time::SystemTime;

use orrery_cluster::store::{ChangeKind, HistoryEntry, Item, TICKS_PER_SECOND};
use orrery_cluster::{Container, Db};
use orrery_query::ast::{Query, SelectSpec};
use orrery_query::{Context, Program, Row};

use crate::errors::Refusal;
use crate::items::render::Renderer;
use crate::query_spec::QuerySpec;

pub(crate) struct ChangeFilter {
    program: Program,
    on_previous_image: bool,
    now: i64,
}

impl ChangeFilter {
    /// Reads the body of a request for changes; one without a body wants all.
    pub fn parse(db: &Db, container: &Container, body: &[u8]) -> Result<Option<ChangeFilter>, Refusal> {
        if body.is_empty() {
            return Ok(None);
        }
        let (spec, on_previous_image) = QuerySpec::parse_of_changes(body)?;
        let program = db.compile(container, &spec.text, &spec.parameters)?;
        if spec.resume.is_some() || !is_filter(program.query()) {
            return Err(Refusal::unsupported("A change feed with a query that does more than select items"));
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_secs() * TICKS_PER_SECOND).unwrap_or(i64::MAX);
        Ok(Some(ChangeFilter { program, on_previous_image, now }))
    }

    pub fn items(&self, renderer: &Renderer, items: Vec<Item>) -> Result<Vec<Item>, Refusal> {
        selected(items, |item| self.admits(renderer, item))
    }

    pub fn entries(
        &self,
        renderer: &Renderer,
        entries: Vec<HistoryEntry>,
    ) -> Result<Vec<HistoryEntry>, Refusal> {
        selected(entries, |entry| {
            let is_there = matches!(entry.kind, ChangeKind::Created | ChangeKind::Replaced);
            Ok((is_there || self.on_previous_image) && self.admits(renderer, &entry.item)?)
        })
    }

    fn admits(&self, renderer: &Renderer, item: &Item) -> Result<bool, Refusal> {
        let system = renderer.properties(&item.header);
        let row = Row { doc: item.root(), system: Some(&system), place: &[] };
        Ok(self.program.accepts(&row, &Context::at(self.now, item.header.rid))?)
    }
}

fn selected<C>(changes: Vec<C>, admits: impl Fn(&C) -> Result<bool, Refusal>) -> Result<Vec<C>, Refusal> {
    let mut kept = Vec::new();
    for change in changes {
        if admits(&change)? {
            kept.push(change);
        }
    }
    Ok(kept)
}

/// Whether a query does nothing but choose items, which are shown as changes are.
fn is_filter(query: &Query) -> bool {
    let select = &query.select;
    let shows_items = matches!(select.spec, SelectSpec::Star(_)) && !select.distinct && select.top.is_none();
    shows_items && query.group_by.is_empty() && query.order_by.is_none() && query.offset_limit.is_none()
}
