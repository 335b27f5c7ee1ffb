//! The audit log: who changed what is not an item, and how it ended.
//!
//! One line for each such request, refused ones included, under the log target `audit`, so that an operator can
//! send these lines elsewhere. Names of resources stand in the path; bodies, which may hold scripts and wrapped
//! keys, are not logged.

use http::StatusCode;

use crate::access::Act;
use crate::auth::Identity;
use crate::call::Trace;
use crate::errors::Refusal;
use crate::respond::Reply;
use crate::router::RouteKind;
use orrery_gateway::Peer;

/// A request that changes what is not an item.
pub(crate) struct Entry {
    kind: RouteKind,
    act: Act,
    who: Option<std::borrow::Cow<'static, str>>,
}

impl Entry {
    /// Nothing is kept of requests on items and of those that only read.
    pub fn of(kind: RouteKind, act: Act) -> Option<Entry> {
        let is_data = matches!(
            kind,
            RouteKind::Items
                | RouteKind::Item
                | RouteKind::KeyDelete
                | RouteKind::Conflicts
                | RouteKind::Conflict
        );
        let is_change = !act.is_read() && act != Act::Execute;
        (is_change && !is_data).then_some(Entry { kind, act, who: None })
    }

    pub fn by(&mut self, identity: &Identity) {
        self.who = Some(identity.name());
    }

    pub fn write(&self, trace: &Trace<'_>, peer: &Peer, result: &Result<Reply, Refusal>) {
        let (status, substatus) = match result {
            Ok(reply) => (reply.status, 0),
            Err(refusal) => {
                let wire = refusal.wire();
                (wire.status, wire.substatus)
            }
        };
        tracing::info!(
            target: "audit",
            who = self.who.as_deref().unwrap_or("unknown"),
            act = ?self.act,
            what = ?self.kind,
            path = trace.path,
            status = StatusCode::as_u16(&status),
            substatus,
            remote = %peer.remote,
            activity = trace.activity.as_str(),
            "control operation"
        );
    }
}
