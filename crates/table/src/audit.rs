//! The audit log: who made or deleted tables, or changed what concerns rights and the service as a whole, and how it ended.

use http::StatusCode;
use orrery_gateway::{ActivityId, Peer};

use crate::auth::{Act, Grant};

/// A request that changes what is not an entity.
pub(crate) struct Entry {
    act: Act,
    who: String,
}

impl Entry {
    /// Nothing is kept of requests on entities and of those that only read.
    pub fn of(act: Option<Act>, grant: &Grant) -> Option<Entry> {
        let act = act.filter(|act| {
            matches!(act, Act::CreateTable | Act::DeleteTable | Act::WriteService | Act::WritePolicies)
        })?;
        let who = match grant {
            Grant::Everything => "account key".to_owned(),
            Grant::ReadOnly => "read-only account key".to_owned(),
            Grant::Sas(_) => "shared access signature".to_owned(),
            Grant::Principal(principal) => format!("principal {}", principal.id),
        };
        Some(Entry { act, who })
    }

    pub fn write(&self, path: &str, request: ActivityId, peer: &Peer, status: StatusCode) {
        tracing::info!(
            target: "audit",
            who = self.who,
            act = ?self.act,
            what = "Table",
            path,
            status = status.as_u16(),
            remote = %peer.remote,
            activity = request.as_str(),
            "control operation"
        );
    }
}
