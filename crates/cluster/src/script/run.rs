//! Running a script until it is committed, refused, or out of time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use orrery_doc::{Epk, PartitionKey, epk};
use orrery_script::{Limits, ScriptError};
use orrery_store::limits::{SCRIPT_ANSWER_TIME_MAX, SCRIPT_ATTEMPTS_MAX, WRITE_COPIES};
use orrery_store::{Failed, Fault, Lsn, OpError, Outcome, Workbench};
use tokio::sync::oneshot;

use super::ScriptOptions;
use super::host::ScriptHost;
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Fund;
use crate::range::{Held, Lead, Range, WriteError};
use crate::receipt::{Charge, Receipt, Served};
use crate::throttle::Who;
use crate::throughput::KeyMark;

/// What a script costs besides what it does.
const START_UNITS: f64 = 1.0;
/// Seconds of its partition's rate that a script may spend beyond what is there when it begins.
const SECONDS_AHEAD: f64 = 5.0;

/// Something to be done in one transaction, as often as it takes. It runs on a thread where it may block.
pub(super) trait Job: Send + Sync {
    /// Bytes of what its request has brought to be written, for which its gateway holds memory.
    fn brought_bytes(&self) -> u64 {
        0
    }

    fn run(&self, host: ScriptHost, limits: &Limits, logging: bool) -> Ended;
}

/// How one run ended. The host comes back in every case.
pub(super) struct Ended {
    pub host: ScriptHost,
    pub log: String,
    pub result: std::result::Result<Produced, ErrorKind>,
}

/// What a successful run made, besides the writes that its host holds.
#[derive(Default)]
pub(super) struct Produced {
    pub body: Option<Vec<u8>>,
    /// The write that the triggers were for.
    pub outcome: Option<Outcome>,
}

pub(super) struct Transacted {
    pub produced: Produced,
    pub log: String,
    pub receipt: Receipt,
}

/// The logical partition that a script works in.
pub(super) struct Place {
    pub container: Arc<Container>,
    pub range: Arc<Range>,
    pub key: PartitionKey,
    pub epk: Epk,
}

impl Place {
    pub fn of(container: &Arc<Container>, key: &PartitionKey) -> Place {
        let epk = epk(&container.definition.key, key);
        let range = container.range_of(&epk).clone();
        Place { container: container.clone(), range, key: key.clone(), epk }
    }
}

impl Db {
    pub(super) async fn transact(
        &self,
        mut place: Place,
        job: Arc<dyn Job>,
        options: &ScriptOptions,
    ) -> Result<Transacted> {
        let world = self.world();
        let deadline = world.monotonic() + SCRIPT_ANSWER_TIME_MAX;
        let who = || Who::of(("script", &place.epk));
        self.admit_key(&place.container, &place.range, KeyMark::of(&place.epk), who, None).inspect_err(
            |error| place.range.note(|insight| insight.refused(&place.epk, &place.key, error)),
        )?;
        let scripts = &self.inner.scripts;
        let busy = || Error::from(ErrorKind::ScriptsBusy);
        let _turn = match scripts.races.load(Ordering::Relaxed) {
            true => None,
            false => {
                let entering = scripts.lanes.enter(place.range.replica.partition.spec.number, &place.epk);
                Some(world.by(deadline, entering).await.ok_or_else(busy)?)
            }
        };
        for _ in 0..SCRIPT_ATTEMPTS_MAX {
            let waiting = scripts.at_once.clone().acquire_owned();
            let permit = world.by(deadline, waiting).await.ok_or_else(busy)?.map_err(|_| Fault::Stopping)?;
            let memory = world.by(deadline, self.hold_engine()).await.ok_or_else(busy)??;
            let limits = self.limits_until(deadline)?;
            // The partition may have been split while the script waited.
            place.range = place.range.current(&place.epk);
            let host = match self.host(&place, options, &limits, job.brought_bytes()) {
                Err(error) if is_succeeded(&error, &place) => continue,
                host => host?,
            };
            let (job, logging) = (job.clone(), options.logging);
            let time = limits.time;
            let (sender, answer) = oneshot::channel();
            let run = move || {
                // The permit belongs to the thread: one that overstays is counted until it ends.
                let _permit = (permit, memory);
                // A client that went away takes nothing with it: what is not committed never happened.
                let _ = sender.send(job.run(host, &limits, logging));
            };
            scripts.threads.run(world, run).map_err(|error| failed(&error.to_string()))?;
            let ended = match world.by(deadline, answer).await {
                Some(Ok(ended)) => ended,
                Some(Err(_)) => return Err(failed("the thread of the script ended early")),
                None => return Err(self.late(&place, time)),
            };
            if let Some(done) = self.conclude(&place, ended).await? {
                return Ok(done);
            }
        }
        Err(ErrorKind::RetryWith.into())
    }

    /// Commits what a run has made; nothing if it was overtaken and must run again.
    async fn conclude(&self, place: &Place, ended: Ended) -> Result<Option<Transacted>> {
        let Ended { host, log, result } = ended;
        let ScriptHost { bench, fund, held_elsewhere, charge, is_short, .. } = host;
        let mut lsn = bench.lsn();
        if is_short {
            // Whatever the script has made of the refusal.
            return Err(self.settle_script(place, ErrorKind::Overloaded, charge, lsn));
        }
        let produced = match result {
            Ok(produced) => produced,
            Err(kind) => return Err(self.settle_script(place, kind, charge, lsn)),
        };
        if bench.writes() > 0 {
            #[cfg_attr(not(debug_assertions), expect(unused_mut))]
            let mut ahead = bench.finish();
            #[cfg(debug_assertions)]
            if self.inner.scripts.conflicts_ignored.load(Ordering::Relaxed) {
                ahead.base = None;
            }
            let held = Held::new(fund.take(), held_elsewhere);
            match place.range.write_ahead(&self.inner.committer, ahead, held).await {
                Ok(done) => lsn = done.lsn,
                Err(WriteError::Refused(refusal)) if was_overtaken(&refusal.error) => return Ok(None),
                Err(WriteError::Refused(refusal)) => {
                    return Err(self.settle_script(place, (*refusal).into(), charge, lsn));
                }
                Err(WriteError::Unwritten(kind)) => return Err(kind.into()),
            }
        }
        // A split may have handed the writes to a successor, whose LSN it is.
        let range = place.range.current(&place.epk);
        self.pay_key(&place.container, &range, KeyMark::of(&place.epk), &charge);
        range.note(|insight| insight.keyed(&place.epk, &place.key, charge.total()));
        let item_lsn = produced.outcome.as_ref().map(|_| lsn);
        let served = Some(Served { range_id: range.descriptor.id, lsn, item_lsn });
        Ok(Some(Transacted { produced, log, receipt: Receipt { charge, served } }))
    }

    fn host(
        &self,
        place: &Place,
        options: &ScriptOptions,
        limits: &Limits,
        brought_bytes: u64,
    ) -> Result<ScriptHost> {
        let lead = place.range.lead()?;
        let (_, snapshot, schema) = place.range.replica.schema_point(&self.inner.committer)?;
        let bench = Workbench::new(
            &place.range.replica.partition,
            snapshot,
            schema,
            lead.limits,
            place.epk.clone(),
            self.world().now(),
        );
        let (fund, held_elsewhere) = (Arc::new(Fund::new(&self.inner.memory)), brought_bytes * WRITE_COPIES);
        let bench =
            bench.map_err(ErrorKind::from)?.only(place.key.clone()).lent_by(fund.clone(), held_elsewhere);
        Ok(ScriptHost {
            db: self.clone(),
            container: place.container.clone(),
            range: place.range.clone(),
            key: place.key.clone(),
            bench,
            fund,
            held_elsewhere,
            is_short: false,
            forms: options.forms.clone(),
            charge: Charge::flat("script started", START_UNITS),
            units_max: units_max(place, lead, self.world().monotonic()),
            written_bytes: 0,
            deadline: self.world().monotonic() + limits.time,
        })
    }

    fn limits_until(&self, deadline: Instant) -> Result<Limits> {
        let limits = &self.inner.scripts.limits;
        let left = self.world().until(deadline);
        if left < Duration::from_millis(1) {
            return Err(ErrorKind::RetryWith.into());
        }
        Ok(Limits { time: limits.time.min(left), accepting: limits.accepting.min(left), ..limits.clone() })
    }

    fn settle_script(&self, place: &Place, kind: ErrorKind, charge: Charge, lsn: Lsn) -> Error {
        self.pay_key(&place.container, &place.range, KeyMark::of(&place.epk), &charge);
        place.range.note(|insight| insight.keyed(&place.epk, &place.key, charge.total()));
        let served = Some(Served { range_id: place.range.descriptor.id, lsn, item_lsn: None });
        Error::from(kind).with(Receipt { charge, served })
    }

    /// The script did not notice that its time is over; its thread will end without us.
    fn late(&self, place: &Place, limit: Duration) -> Error {
        tracing::warn!(
            container = place.container.resource.id,
            range = place.range.descriptor.id,
            "a script overstays its time; its thread is left to end by itself"
        );
        let kind = ErrorKind::Script(ScriptError::TimedOut { limit });
        self.settle_script(
            place,
            kind,
            Charge::flat("script started", START_UNITS),
            place.range.replica.partition.lsn(),
        )
    }
}

/// The range went between looking for it and asking it, and another has taken its place.
fn is_succeeded(error: &Error, place: &Place) -> bool {
    matches!(error.kind, ErrorKind::RangeGone)
        && place.range.current(&place.epk).descriptor.id != place.range.descriptor.id
}

/// The logical partition is not what the script saw. Refusals of single operations mean the same: on the script's
/// own snapshot they were accepted.
fn was_overtaken(error: &Failed) -> bool {
    let Failed::Refused(error) = error else { return false };
    matches!(
        error,
        OpError::Overtaken
            | OpError::NotFound
            | OpError::Conflict
            | OpError::KeyCollision
            | OpError::PreconditionFailed
    )
}

fn failed(error: &str) -> Error {
    tracing::error!(error, "a script could not be run");
    ErrorKind::Script(ScriptError::Engine("its thread failed".into())).into()
}

/// What a script may spend: what its partition has, and what comes in while it runs.
fn units_max(place: &Place, lead: &Lead, now: Instant) -> f64 {
    let most = |budget: &crate::throttle::Budget| budget.available(now) + SECONDS_AHEAD * budget.rate();
    let shared = place.container.shared_budget.as_ref().map_or(f64::INFINITY, |budget| most(budget));
    most(&lead.budget).min(shared)
}
