//! Writes with triggers: the triggers and the write are one transaction.

use std::sync::Arc;

use orrery_doc::{Doc, PartitionKey, json};
use orrery_script::{Finished, Limits, Program, Refusal, Trigger, call_post_trigger, call_pre_trigger};
use orrery_store::limits::TRIGGERS_PER_WRITE_MAX;
use orrery_store::{Action, Effect, Op, Outcome};

use super::ScriptOptions;
use super::host::ScriptHost;
use super::run::{Ended, Job, Place, Produced};
use crate::catalog::{ChildKind, Container};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::receipt::Receipt;

/// The triggers that a request names.
#[derive(Clone, Debug, Default)]
pub struct TriggerNames {
    pub pre: Vec<String>,
    pub post: Vec<String>,
}

impl TriggerNames {
    pub fn is_empty(&self) -> bool {
        self.pre.is_empty() && self.post.is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct TriggeredReply {
    pub outcome: Outcome,
    /// The body that a post-trigger wants answered instead of the item.
    pub body: Option<Vec<u8>>,
    pub log: String,
    pub receipt: Receipt,
}

impl Db {
    /// Runs one operation with what its triggers do before and after it.
    pub async fn write_with_triggers(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        op: Op,
        names: &TriggerNames,
        options: &ScriptOptions,
    ) -> Result<TriggeredReply> {
        let operation = operation_of(&op.action)?;
        let pre = self.triggers(container, &names.pre, "Pre", operation)?;
        let post = self.triggers(container, &names.post, "Post", operation)?;
        let job = Arc::new(TriggeredWrite { pre, post, op, operation });
        let done = self.transact(Place::of(container, key), job, options).await?;
        let outcome = done.produced.outcome.ok_or(ErrorKind::Unsupported("A write without an outcome"))?;
        Ok(TriggeredReply { outcome, body: done.produced.body, log: done.log, receipt: done.receipt })
    }

    fn triggers(
        &self,
        container: &Container,
        names: &[String],
        wanted: &'static str,
        operation: &'static str,
    ) -> Result<Vec<Arc<Program>>> {
        if names.len() > TRIGGERS_PER_WRITE_MAX {
            return Err(Error::invalid(format!(
                "The request names more than {TRIGGERS_PER_WRITE_MAX} {} trigger.",
                wanted.to_lowercase()
            )));
        }
        let catalog = self.catalog();
        let find = |name: &String| {
            let child = catalog.child(ChildKind::Trigger, container.resource.rid, name);
            let child = child.ok_or_else(|| match catalog.container_by_rid(container.resource.rid) {
                Some(_) => Error::invalid(format!("Trigger '{name}' does not exist.")),
                // Another container has taken its place, and has the triggers now.
                None => ErrorKind::RangeGone.into(),
            })?;
            let property = |name: &str| child.resource.body.root().get(name).as_str().unwrap_or_default();
            let (kind, defined) = (property("triggerType"), property("triggerOperation"));
            if !kind.eq_ignore_ascii_case(wanted) {
                return Err(Error::invalid(format!(
                    "Trigger '{name}' was defined with trigger type '{kind}', and therefore is invalid for '{wanted}'."
                )));
            }
            if !covers(defined, operation) {
                return Err(Error::invalid(format!(
                    "Trigger '{name}' was defined with operation type '{defined}', and therefore is invalid for \
                     '{operation}'."
                )));
            }
            Ok(self.inner.scripts.program(child).map_err(ErrorKind::Script)?)
        };
        names.iter().map(find).collect()
    }
}

/// The word that triggers know an operation by.
fn operation_of(action: &Action) -> Result<&'static str> {
    match action {
        Action::Create(_) => Ok("Create"),
        Action::Upsert(_) => Ok("Upsert"),
        Action::Replace(_) | Action::Rename { .. } => Ok("Replace"),
        Action::Delete => Ok("Delete"),
        Action::Edit(_) | Action::Read | Action::Wrong { .. } => {
            Err(ErrorKind::Unsupported("Triggers on a patch").into())
        }
    }
}

/// A trigger for updates is one for replaces. An upsert may be either, so only triggers for everything fit.
fn covers(defined: &str, operation: &str) -> bool {
    let is = |word: &str| defined.eq_ignore_ascii_case(word);
    is("All") || is(operation) || operation == "Replace" && is("Update")
}

struct TriggeredWrite {
    pre: Vec<Arc<Program>>,
    post: Vec<Arc<Program>>,
    op: Op,
    operation: &'static str,
}

/// The host, and what the scripts said so far, on the way through a triggered write.
struct Stage<'a> {
    host: ScriptHost,
    log: String,
    limits: &'a Limits,
    logging: bool,
}

type Failed = (ScriptHost, String, ErrorKind);

impl Job for TriggeredWrite {
    fn brought_bytes(&self) -> u64 {
        self.op.action.text_bytes()
    }

    fn run(&self, host: ScriptHost, limits: &Limits, logging: bool) -> Ended {
        let stage = Stage { host, log: String::new(), limits, logging };
        match self.steps(stage) {
            Ok((stage, produced)) => Ended { host: stage.host, log: stage.log, result: Ok(produced) },
            Err(failed) => {
                let (host, log, error) = *failed;
                Ended { host, log, result: Err(error) }
            }
        }
    }
}

impl TriggeredWrite {
    fn steps<'a>(&self, mut stage: Stage<'a>) -> std::result::Result<(Stage<'a>, Produced), Box<Failed>> {
        let mut request = text_of(&self.op.action);
        let mut is_changed = false;
        for program in &self.pre {
            let trigger = Trigger { operation: self.operation, request_body: &request, response_body: b"" };
            let (next, body) = stage
                .call(|host, limits, logging| call_pre_trigger(program, trigger, logging, host, limits))?;
            stage = next;
            if let Some(body) = body {
                (request, is_changed) = (body, true);
            }
        }
        let op = match is_changed {
            true => match self.changed(&mut stage.host, &request) {
                Ok(op) => op,
                Err(error) => return Err(stage.fail(error)),
            },
            false => self.op.clone(),
        };
        let outcome = match stage.host.run(op) {
            Ok(outcome) => outcome,
            Err(error) => return Err(stage.fail(ErrorKind::from(error))),
        };
        let mut response = match outcome.effect {
            Effect::Deleted => Vec::new(),
            _ => stage.host.text_of(&outcome.item),
        };
        let mut answered = None;
        for program in &self.post {
            let trigger =
                Trigger { operation: self.operation, request_body: &request, response_body: &response };
            let (next, body) = stage
                .call(|host, limits, logging| call_post_trigger(program, trigger, logging, host, limits))?;
            stage = next;
            if let Some(body) = body {
                response = body.clone();
                answered = Some(body);
            }
        }
        Ok((stage, Produced { body: answered, outcome: Some(outcome) }))
    }

    /// The operation with the body that a pre-trigger has set.
    fn changed(&self, host: &mut ScriptHost, request: &[u8]) -> std::result::Result<Op, ErrorKind> {
        let wrong = |refusal: Refusal| ErrorKind::Invalid(refusal.message);
        if matches!(self.op.action, Action::Delete) {
            return Ok(self.op.clone());
        }
        let (id, doc) = host.forms.read_item(&host.container, request, false).map_err(wrong)?;
        if !host.is_at_home(&doc) {
            return Err(ErrorKind::KeyMismatch);
        }
        let op = self.op.clone();
        let target = orrery_store::Target::Id(id.clone());
        Ok(match &self.op.action {
            Action::Create(_) => Op { target, action: Action::Create(doc), ..op },
            Action::Upsert(_) => Op { target, action: Action::Upsert(doc), ..op },
            _ => {
                let action = host.replacement(&self.op.target, id, doc).map_err(ErrorKind::from)?;
                Op { action, ..op }
            }
        })
    }
}

impl<'a> Stage<'a> {
    /// Runs one trigger in the time that is left.
    fn call(
        self,
        run: impl FnOnce(ScriptHost, &Limits, bool) -> Finished<ScriptHost>,
    ) -> std::result::Result<(Stage<'a>, Option<Vec<u8>>), Box<Failed>> {
        let Stage { host, mut log, limits, logging } = self;
        let left = host.db.world().until(host.deadline);
        let shorter =
            Limits { time: limits.time.min(left), accepting: limits.accepting.min(left), ..limits.clone() };
        let finished = run(host, &shorter, logging);
        log.push_str(&finished.log);
        let stage = Stage { host: finished.host, log, limits, logging };
        match finished.result {
            Ok(output) => Ok((stage, output.body)),
            Err(error) => Err(stage.fail(ErrorKind::Script(error))),
        }
    }

    fn fail(self, error: ErrorKind) -> Box<Failed> {
        Box::new((self.host, self.log, error))
    }
}

fn text_of(action: &Action) -> Vec<u8> {
    let doc: &Doc = match action {
        Action::Create(doc) | Action::Upsert(doc) | Action::Replace(doc) | Action::Rename { doc, .. } => doc,
        Action::Edit(_) | Action::Delete | Action::Read | Action::Wrong { .. } => return Vec::new(),
    };
    let mut text = Vec::new();
    json::write(doc.root(), &mut text);
    text
}
