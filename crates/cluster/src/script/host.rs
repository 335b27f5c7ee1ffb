//! The collection as a script sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::{Doc, PartitionKey, epk};
use orrery_query::{Parameters, UserFunctions, compile};
use orrery_script::{Answer, Collection, Feed, Host, Refusal, Reply, Write, WriteKind, WriteOptions};
use orrery_store::limits::{
    PAGE_BYTES_MAX, SCRIPT_PAGE_ITEMS_DEFAULT, SCRIPT_PAGE_ITEMS_MAX, SCRIPT_WRITE_BYTES_MAX,
    SCRIPT_WRITES_MAX, SCRIPT_WRITES_PART,
};
use orrery_store::{
    Action, Effect, Etag, Failed, Fault, Item, ItemId, Lender, Op, Outcome, Precondition, Target, Workbench,
};

use super::{Forms, Link, Outside};
use crate::catalog::Container;
use crate::cursor::Cursor;
use crate::db::Db;
use crate::error::{Error, ErrorKind};
use crate::memory::Fund;
use crate::query::script::{ScriptPage, ScriptQuery};
use crate::range::Range;
use crate::receipt::Charge;
use crate::request::{AccessChoice, Consistency, PageOptions, Scope};
use crate::ru;

/// What reads everything; scripts may also ask without a query.
const EVERYTHING: &str = "SELECT * FROM c";

pub(super) struct ScriptHost {
    pub db: Db,
    pub container: Arc<Container>,
    pub range: Arc<Range>,
    pub key: PartitionKey,
    pub bench: Workbench,
    /// What the bench holds, and what of that is held for it elsewhere.
    pub fund: Arc<Fund>,
    pub held_elsewhere: u64,
    /// Whether there was no memory for something; then nothing of the script is committed.
    pub is_short: bool,
    pub forms: Arc<dyn Forms>,
    /// What was done so far, and what may be done.
    pub charge: Charge,
    pub units_max: f64,
    pub written_bytes: u64,
    /// When the script must have ended.
    pub deadline: Instant,
}

impl ScriptHost {
    /// Runs one operation and counts what it cost.
    pub fn run(&mut self, op: Op) -> Result<Outcome, Failed> {
        match self.bench.run(&self.range.replica.partition, op) {
            Ok(outcome) => {
                self.charge.merge(ru::write(&outcome.meter));
                self.written_bytes += outcome.meter.bytes_written;
                Ok(outcome)
            }
            Err(refusal) => {
                self.is_short |= matches!(refusal.error, Failed::Fault(Fault::NoMemory { .. }));
                refusal.meters.iter().for_each(|meter| self.charge.merge(ru::write(meter)));
                Err(refusal.error)
            }
        }
    }

    pub fn text_of(&self, item: &Item) -> Vec<u8> {
        let mut out = Vec::new();
        self.forms.write_item(&self.container, item, &mut out);
        out
    }

    /// Whether a document belongs to the logical partition of the script.
    pub fn is_at_home(&self, doc: &Doc) -> bool {
        let def = &self.container.definition.key;
        let key = PartitionKey::extract(def, doc.as_ref());
        // Neither is enough: keys may share a place, and 0 and -0 are equal without sharing one.
        key == self.key && epk(def, &key) == *self.bench.scope()
    }

    /// Replaces an item, which may get another id.
    pub fn replacement(&mut self, target: &Target, id: ItemId, doc: Doc) -> Result<Action, Failed> {
        let old_id = match target {
            Target::Id(id) => id.clone(),
            Target::Rid(_) => {
                let read = Op {
                    target: target.clone(),
                    action: Action::Read,
                    precondition: Precondition::None,
                    indexed: true,
                    unlinked: false,
                };
                self.bench.run(&self.range.replica.partition, read).map_err(|refusal| refusal.error)?.id
            }
        };
        Ok(if old_id == id { Action::Replace(doc) } else { Action::Rename { id, doc } })
    }

    fn is_spent(&self) -> bool {
        self.charge.total() >= self.units_max || self.db.world().is_past(self.deadline)
    }

    fn refuse(&self, error: impl Into<ErrorKind>) -> Refusal {
        self.forms.refusal(&error.into())
    }

    fn link(&self, link: &str) -> Result<Link, Refusal> {
        self.forms.resolve(&self.container, link).ok_or_else(|| self.forms.outside(Outside::Link))
    }

    fn item_link(&self, link: &str) -> Result<Target, Refusal> {
        match self.link(link)? {
            Link::Item(target) => Ok(target),
            Link::Container => Err(self.forms.outside(Outside::Link)),
        }
    }

    fn container_link(&self, link: &str) -> Result<(), Refusal> {
        match self.link(link)? {
            Link::Container => Ok(()),
            Link::Item(_) => Err(self.forms.outside(Outside::Link)),
        }
    }

    fn try_read(&mut self, link: &str, if_none_match: Option<&str>) -> Result<Reply, Refusal> {
        let precondition = match if_none_match {
            Some(etag) => Precondition::IfNoneMatch(Etag::parse(etag)),
            None => Precondition::None,
        };
        let op = Op {
            target: self.item_link(link)?,
            action: Action::Read,
            precondition,
            indexed: true,
            unlinked: false,
        };
        let outcome = self.run(op).map_err(|error| self.refuse(error))?;
        match outcome.effect {
            Effect::NotModified => Ok(Reply { not_modified: true, ..Reply::default() }),
            _ => self.shown(&outcome.item),
        }
    }

    fn shown(&self, item: &Item) -> Result<Reply, Refusal> {
        let body = String::from_utf8(self.text_of(item)).map_err(|_| {
            let damaged = Fault::Damaged("an item that is not text".into());
            self.refuse(damaged)
        })?;
        Ok(Reply { body, ..Reply::default() })
    }

    fn try_write(&mut self, write: &Write<'_>) -> Result<Reply, Refusal> {
        let op = self.op_of(write)?;
        let outcome = self.run(op).map_err(|error| self.refuse(error))?;
        match outcome.effect {
            Effect::Deleted => Ok(Reply::default()),
            _ => self.shown(&outcome.item),
        }
    }

    fn op_of(&mut self, write: &Write<'_>) -> Result<Op, Refusal> {
        let precondition = match &write.options.etag {
            Some(etag) => Precondition::IfMatch(Etag::parse(etag)),
            None => Precondition::None,
        };
        let (target, action, precondition) = match write.kind {
            WriteKind::Create | WriteKind::Upsert => {
                self.container_link(write.link)?;
                let (id, doc) = self.item_of(write)?;
                match write.kind {
                    WriteKind::Create => (Target::Id(id), Action::Create(doc), Precondition::None),
                    _ => (Target::Id(id), Action::Upsert(doc), precondition),
                }
            }
            WriteKind::Replace => {
                let target = self.item_link(write.link)?;
                let (id, doc) = self.item_of(write)?;
                let action = self.replacement(&target, id, doc).map_err(|error| self.refuse(error))?;
                (target, action, precondition)
            }
            WriteKind::Delete => (self.item_link(write.link)?, Action::Delete, precondition),
        };
        Ok(Op { target, action, precondition, indexed: self.is_indexed(&write.options), unlinked: false })
    }

    fn item_of(&self, write: &Write<'_>) -> Result<(ItemId, Doc), Refusal> {
        let may_name = write.kind != WriteKind::Replace && !write.options.disable_automatic_id;
        let (id, doc) = self.forms.read_item(&self.container, write.body.as_bytes(), may_name)?;
        match self.is_at_home(&doc) {
            true => Ok((id, doc)),
            false => Err(self.forms.outside(Outside::Key)),
        }
    }

    fn is_indexed(&self, options: &WriteOptions) -> bool {
        match options.index_action.as_deref() {
            Some(action) if action.eq_ignore_ascii_case("include") => true,
            Some(action) if action.eq_ignore_ascii_case("exclude") => false,
            _ => {
                let policy = self.container.definition.body.root().get("indexingPolicy");
                policy.get("automatic").as_bool().unwrap_or(true)
            }
        }
    }

    fn try_page(&mut self, feed: &Feed<'_>) -> Result<Reply, Refusal> {
        self.container_link(feed.link)?;
        let from = feed.continuation.map(|text| self.forms.read_cursor(text)).transpose()?;
        let query = feed.query.map(|text| self.forms.read_query(text)).transpose()?;
        let page = self.page_of(feed, query, from).map_err(|error| self.forms.refusal(&error.kind))?;
        self.charge.merge(ru::query(&page.meter, Consistency::Session));
        let mut body = vec![b'['];
        page.rows.write_joined(&mut body);
        body.push(b']');
        let body = String::from_utf8(body)
            .map_err(|_| self.refuse(Fault::Damaged("a result that is not text".into())))?;
        let continuation = page.continuation.as_ref().map(|cursor| self.forms.write_cursor(cursor));
        Ok(Reply { body, continuation, not_modified: false })
    }

    fn page_of(
        &self,
        feed: &Feed<'_>,
        query: Option<(String, Parameters)>,
        continuation: Option<Cursor>,
    ) -> Result<ScriptPage, Error> {
        let program = match query {
            Some((text, parameters)) => self.db.compile(&self.container, &text, &parameters),
            None => compile(EVERYTHING, &Parameters::default()),
        };
        let program = program.map_err(ErrorKind::Query)?;
        let functions = self.db.functions_of(&self.container, &program)?;
        let _engine = functions.as_ref().map(|_| self.db.try_hold_engine()).transpose()?;
        let items = feed.page_size.map_or(SCRIPT_PAGE_ITEMS_DEFAULT, |size| size as usize);
        let page = PageOptions {
            items_max: items.clamp(1, SCRIPT_PAGE_ITEMS_MAX),
            bytes_max: PAGE_BYTES_MAX,
            time_max: self.db.world().until(self.deadline).max(Duration::from_millis(1)),
            continuation,
            consistency: Consistency::Session,
            session: None,
            access: AccessChoice::Auto,
            properties: Some(self.forms.properties()),
            order: Default::default(),
        };
        let query = ScriptQuery {
            container: &self.container,
            range: &self.range,
            scope: &Scope::Key(self.key.clone()),
            program: &program,
            functions: functions.as_ref().map(|functions| functions as &dyn UserFunctions),
            bench: &self.bench,
            page: &page,
            steward: &self.db.steward(),
        };
        query.run()
    }
}

impl Host for ScriptHost {
    fn collection(&self) -> Collection {
        self.forms.collection(&self.container)
    }

    fn read(&mut self, link: &str, if_none_match: Option<&str>) -> Answer {
        if self.is_spent() {
            return Answer::NotAccepted;
        }
        Answer::Done(self.try_read(link, if_none_match))
    }

    fn page(&mut self, feed: Feed<'_>) -> Answer {
        if self.is_spent() {
            return Answer::NotAccepted;
        }
        Answer::Done(self.try_page(&feed))
    }

    fn write(&mut self, write: Write<'_>) -> Answer {
        // Where there is little memory a script has written all that it may sooner.
        let is_full = self.bench.writes() >= SCRIPT_WRITES_MAX
            || self.written_bytes >= SCRIPT_WRITE_BYTES_MAX as u64
            || self.bench.held_bytes() >= self.fund.most() / SCRIPT_WRITES_PART;
        if is_full || self.is_spent() {
            return Answer::NotAccepted;
        }
        Answer::Done(self.try_write(&write))
    }
}
