//! Records what a container is asked to do, for the advisor on partition keys.
//!
//! While nobody has asked for a recording a request pays one look at a number. While one runs, requests are put
//! together by what they are: their kind, and the paths whose values they knew. Which keys are busy is seen from a few
//! requests of each kind, chosen at random: of those is kept which item they touched, or which values a query named.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use orrery_doc::{Epk, KeyComponent, read_scalar};
use orrery_query::{IndexPath, IndexStep, Indexes, Leaf, Program, Proposal, plan_access};
use orrery_store::{Action, Effect, Item, Op, Outcome};
use parking_lot::Mutex;

use crate::catalog::Container;
use crate::db::Db;
use crate::range::Range;
use crate::request::{PageOptions, Scope};
use crate::rid::Rid;
use crate::world::World;

/// Containers that are recorded at once, kinds of operations in one recording, and paths of one operation.
const RECORDINGS_MAX: usize = 16;
const OPERATIONS_MAX: usize = 100;
const FILTERS_MAX: usize = 16;
/// Requests of one kind whose item is kept.
const TOUCHED_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recorded {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    Read,
    Query,
    Transaction,
}

impl Recorded {
    pub fn name(self) -> &'static str {
        match self {
            Recorded::Create => "create",
            Recorded::Upsert => "upsert",
            Recorded::Replace => "replace",
            Recorded::Patch => "patch",
            Recorded::Delete => "delete",
            Recorded::Read => "read",
            Recorded::Query => "query",
            Recorded::Transaction => "transaction",
        }
    }
}

/// A path whose value a request knew, and how many values it named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPath {
    pub path: String,
    pub values: usize,
}

/// Requests that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations {
    pub kind: Recorded,
    pub filters: Vec<KnownPath>,
    pub count: u64,
    /// Bytes of the items that were read or written, in sum.
    pub bytes: u64,
    /// Items that queries returned and transactions wrote, in sum.
    pub items: u64,
    pub touched: Touched,
}

/// What some of the requests touched; each request of which that is known is as likely to be among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    pub by: Vec<Touch>,
    requests: u64,
}

/// What one request was about.
#[derive(Clone, Debug, PartialEq)]
pub enum Touch {
    /// The item with this rid.
    Item(u64),
    /// Items that have these values at these paths.
    Values(Vec<(String, KeyComponent)>),
}

impl Touched {
    fn add(&mut self, touch: impl FnOnce() -> Option<Touch>, world: &World) {
        self.requests += 1;
        if self.by.len() < TOUCHED_MAX {
            self.by.extend(touch());
        } else if let Some(place) = self.by.get_mut((world.random() % self.requests) as usize)
            && let Some(touch) = touch()
        {
            *place = touch;
        }
    }
}

/// One request, as far as it is recorded.
struct Request {
    kind: Recorded,
    filters: Vec<KnownPath>,
    bytes: u64,
    items: u64,
}

#[derive(Clone, Debug)]
pub struct Recording {
    world: World,
    started: Instant,
    ended: Option<Instant>,
    pub operations: Vec<Operations>,
    /// Requests that were not like any of those there was room for.
    pub missed: u64,
}

impl Recording {
    fn new(world: &World) -> Recording {
        let started = world.monotonic();
        Recording { world: world.clone(), started, ended: None, operations: Vec::new(), missed: 0 }
    }

    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    pub fn seconds(&self) -> f64 {
        let end = self.ended.unwrap_or_else(|| self.world.monotonic());
        end.duration_since(self.started).as_secs_f64().max(0.001)
    }

    /// What was touched is only asked for if it is kept.
    fn add(&mut self, request: Request, touch: impl FnOnce() -> Option<Touch>) {
        let Request { kind, filters, bytes, items } = request;
        let is_alike = |known: &Operations| known.kind == kind && known.filters == filters;
        let place = match self.operations.iter().position(is_alike) {
            Some(place) => place,
            None if self.operations.len() < OPERATIONS_MAX => {
                let touched = Touched::default();
                self.operations.push(Operations { kind, filters, count: 0, bytes: 0, items: 0, touched });
                self.operations.len() - 1
            }
            None => {
                self.missed += 1;
                return;
            }
        };
        let known = &mut self.operations[place];
        known.count += 1;
        known.bytes += bytes;
        known.items += items;
        known.touched.add(touch, &self.world);
    }
}

#[derive(Default)]
pub struct Recorder {
    running: AtomicUsize,
    recordings: Mutex<HashMap<Rid, Recording>>,
}

impl Recorder {
    fn record(&self, container: &Container, add: impl FnOnce(&mut Recording)) {
        let mut recordings = self.recordings.lock();
        let running = recordings.get_mut(&container.resource.rid).filter(|recording| recording.is_running());
        if let Some(recording) = running {
            add(recording);
        }
    }

    fn is_idle(&self) -> bool {
        self.running.load(Relaxed) == 0
    }

    fn recount(&self, recordings: &HashMap<Rid, Recording>) {
        self.running.store(recordings.values().filter(|one| one.is_running()).count(), Relaxed);
    }
}

impl Db {
    /// Starts a recording anew; false if too many containers are being recorded.
    pub fn start_recording(&self, container: &Arc<Container>) -> bool {
        let (recorder, catalog) = (&self.inner.insight.recorder, self.catalog());
        let mut recordings = recorder.recordings.lock();
        recordings.retain(|rid, _| catalog.container_by_rid(*rid).is_some());
        let rid = container.resource.rid;
        let room = recordings.len() < RECORDINGS_MAX || recordings.contains_key(&rid);
        if room {
            recordings.insert(rid, Recording::new(self.world()));
            recorder.recount(&recordings);
        }
        room
    }

    /// Stops a recording; it can be read until another one starts.
    pub fn stop_recording(&self, container: &Arc<Container>) {
        let recorder = &self.inner.insight.recorder;
        let mut recordings = recorder.recordings.lock();
        if let Some(recording) = recordings.get_mut(&container.resource.rid) {
            recording.ended.get_or_insert_with(|| self.world().monotonic());
        }
        recorder.recount(&recordings);
    }

    /// What was recorded last, finished or not.
    pub fn recording(&self, container: &Arc<Container>) -> Option<Recording> {
        self.inner.insight.recorder.recordings.lock().get(&container.resource.rid).cloned()
    }

    pub(crate) fn record_read(&self, container: &Container, item: &Item) {
        let recorder = &self.inner.insight.recorder;
        if !recorder.is_idle() {
            let add = |recording: &mut Recording| {
                let (filters, bytes) = (key_and_id(container), u64::from(item.header.json_bytes));
                let request = Request { kind: Recorded::Read, filters, bytes, items: 1 };
                recording.add(request, || Some(Touch::Item(item.header.rid)));
            };
            recorder.record(container, add);
        }
    }

    /// What a write is, if anybody wants to know; asked before it is carried out.
    pub(crate) fn kind_to_record(&self, ops: &[Op]) -> Option<Recorded> {
        if self.inner.insight.recorder.is_idle() {
            return None;
        }
        let kind = match ops {
            [op] => match op.action {
                Action::Create(_) => Recorded::Create,
                Action::Upsert(_) => Recorded::Upsert,
                Action::Replace(_) | Action::Rename { .. } => Recorded::Replace,
                Action::Edit(_) => Recorded::Patch,
                Action::Delete => Recorded::Delete,
                Action::Read => Recorded::Read,
                // Only what was carried out is recorded.
                Action::Wrong { .. } => return None,
            },
            _ => Recorded::Transaction,
        };
        Some(kind)
    }

    pub(crate) fn record_write(&self, container: &Container, kind: Option<Recorded>, outcomes: &[Outcome]) {
        let Some(kind) = kind else { return };
        let bytes = outcomes.iter().map(|outcome| u64::from(outcome.item.header.json_bytes)).sum();
        let filters = match kind {
            // A create and a transaction know whole items, so they know whatever the key will be.
            Recorded::Create | Recorded::Transaction => Vec::new(),
            _ => key_and_id(container),
        };
        let written = outcomes.iter().find(|outcome| outcome.effect != Effect::Absent);
        let touch = || written.map(|outcome| Touch::Item(outcome.item.header.rid));
        let request = Request { kind, filters, bytes, items: outcomes.len() as u64 };
        self.inner.insight.recorder.record(container, |recording| recording.add(request, touch));
    }

    /// A page of a query. Clients send a query to each partition, and again for each page: it counts once.
    pub(crate) fn record_query(
        &self,
        container: &Container,
        range: &Range,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
        rows: usize,
    ) {
        let recorder = &self.inner.insight.recorder;
        let is_first = match scope {
            Scope::Key(_) => true,
            _ => range.epk().min.compare_place(&Epk::MIN).is_eq(),
        };
        if recorder.is_idle() || page.continuation.is_some() || !is_first {
            return;
        }
        let leaves = known_leaves(program);
        let mut filters: Vec<KnownPath> = leaves.iter().map(|(path, _)| path.clone()).collect();
        if matches!(scope, Scope::Key(_)) {
            // The key was given beside the query, and may not be repeated in it.
            for path in key_paths(container) {
                if !filters.iter().any(|known| known.path == path.path) {
                    filters.push(path);
                }
            }
        }
        let touch = || {
            let values = named_values(container, scope, &leaves, self.world());
            (!values.is_empty()).then_some(Touch::Values(values))
        };
        let request = Request { kind: Recorded::Query, filters, bytes: 0, items: rows as u64 };
        recorder.record(container, |recording| recording.add(request, touch));
    }
}

/// The values that a query named, of several at one path one.
fn named_values(
    container: &Container,
    scope: &Scope,
    leaves: &[(KnownPath, Leaf)],
    world: &World,
) -> Vec<(String, KeyComponent)> {
    let mut values = Vec::new();
    for (known, leaf) in leaves {
        let span = leaf.spans.get(world.random() as usize % leaf.spans.len().max(1));
        let value = span.and_then(|span| read_scalar(&span.lower));
        values.extend(value.map(|value| (known.path.clone(), value)));
    }
    if let Scope::Key(key) = scope {
        let of_key = key_paths(container).into_iter().zip(key.components());
        let is_new = |path: &str| leaves.iter().all(|(known, _)| known.path != path);
        let further = of_key.filter(|(known, _)| is_new(&known.path));
        values.extend(further.map(|(known, value)| (known.path, value.clone())));
    }
    values
}

fn key_paths(container: &Container) -> Vec<KnownPath> {
    let paths = container.definition.key.paths.iter();
    paths.map(|path| KnownPath { path: path.to_string(), values: 1 }).collect()
}

fn key_and_id(container: &Container) -> Vec<KnownPath> {
    let mut paths = key_paths(container);
    if !paths.iter().any(|path| path.path == "/id") {
        paths.push(KnownPath { path: "/id".to_owned(), values: 1 });
    }
    paths
}

/// An index of everything: what it proposes is what a query knows.
struct AllPaths;

impl Indexes for AllPaths {
    fn covers(&self, _: &IndexPath) -> bool {
        true
    }
}

/// The paths that a query compares with one value, or with a list of values, and with which.
fn known_leaves(program: &Program) -> Vec<(KnownPath, Leaf)> {
    let parts = match plan_access(program, &AllPaths).filter {
        Proposal::All(parts) => parts,
        one => vec![one],
    };
    let leaves = parts.into_iter().filter_map(|part| match part {
        Proposal::Leaf(leaf) => known_path(&leaf).map(|path| (path, leaf)),
        _ => None,
    });
    leaves.take(FILTERS_MAX).collect()
}

fn known_path(leaf: &Leaf) -> Option<KnownPath> {
    let mut path = String::new();
    for step in leaf.path.steps() {
        let IndexStep::Name(name) = step else { return None };
        path.push('/');
        path.push_str(name);
    }
    let is_value = |span| Leaf { spans: vec![span], ..leaf.clone() }.is_single_term();
    let all_values = !leaf.spans.is_empty() && leaf.spans.iter().cloned().all(is_value);
    all_values.then_some(KnownPath { path, values: leaf.spans.len() })
}

#[cfg(test)]
mod tests {
    use orrery_query::{Parameters, compile};

    use super::*;

    #[test]
    fn queries_are_known_by_the_values_they_name() {
        for (text, expected) in [
            ("SELECT * FROM c", ""),
            ("SELECT * FROM c WHERE c.a.b = 1 AND c.n > 5", "/a/b*1"),
            ("SELECT * FROM c WHERE c.k IN ('a','b','c')", "/k*3"),
            ("SELECT * FROM c WHERE c.k = null AND c.t = 'x' ORDER BY c.z", "/k*1 /t*1"),
            ("SELECT * FROM c WHERE c.a = 1 OR c.b = 2", ""),
            ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 'x'", ""),
        ] {
            let program = compile(text, &Parameters::default()).expect(text);
            let known: Vec<String> = known_leaves(&program)
                .iter()
                .map(|(known, _)| format!("{}*{}", known.path, known.values))
                .collect();
            assert_eq!(known.join(" "), expected, "{text}");
        }
    }
}
