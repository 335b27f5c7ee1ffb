//! What a permission allows the bearer of its token.
//!
//! A permission names a resource by its link: a container, an item, a script, or a whole database. Its tokens are bound to
//! what was there under that link when they were made. It opens that
//! resource and all below it, and beyond it only what clients must read to find their way: the account, and the
//! definition and partitions of the container. With a partition key it opens the items of that key alone, and a
//! request must name the key in its header, because only the header says where a feed or a query goes.

use orrery_cluster::{Catalog, Child, ChildKind, Rid};
use orrery_doc::{PartitionKey, Value, json};

use super::{Act, Asked, Grant, insufficient, is_within};
use crate::address;
use crate::auth::{Bound, Claim};
use crate::children::Branch;
use crate::errors::Refusal;
use crate::items;
use crate::router::{self, Endpoint};

/// The RIDs of what is in a container begin with that of the container.
const CONTAINER_RID_BYTES: usize = 8;

/// A resource in the tree of an account, found in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Database(Rid),
    Container(Rid),
    /// Items are not in the catalog, so one that is named by RID and one that is named by id are never the same.
    Item {
        container: Rid,
        by_rid: bool,
        item: String,
    },
    Script {
        container: Rid,
        script: Rid,
    },
}

pub(super) fn check(claim: Claim, asked: &Asked<'_>) -> Result<Grant, Refusal> {
    let rid = claim.permission;
    let user = Rid::from_slice(&rid.as_bytes()[..8]);
    let permission = asked.catalog.child_by_rid(ChildKind::Permission, user, rid).ok_or_else(insufficient)?;
    if matches!(asked.endpoint, Endpoint::Account) && asked.act.is_read() {
        return Ok(Grant::Everything);
    }
    let held = held(asked.catalog, permission).ok_or_else(insufficient)?;
    if !is_bound_to(claim.resource, held.rid(), asked.catalog) {
        return Err(insufficient());
    }
    let key = key(permission)?;
    if is_way_there(&held, asked) {
        return Ok(Grant::Everything);
    }
    let writes = permission.resource.body.root().get("permissionMode").as_str().is_some_and(is_all);
    if !(writes || asked.act.is_read()) || !covers(&held, key.is_some(), asked) {
        return Err(insufficient());
    }
    let Some(allowed) = key else { return Ok(Grant::Everything) };
    match (asked.act, asked.headers.partition_key) {
        // The operations name their keys themselves.
        (Act::Bulk, _) => Ok(Grant::Key(allowed)),
        (_, Some(header)) if is_within(&items::parse_key(header)?, &allowed) => Ok(Grant::Key(allowed)),
        _ => Err(insufficient()),
    }
}

/// What a token of a permission is for: the resource that is there now under the link.
pub(crate) fn claim_of(catalog: &Catalog, permission: &Child) -> Claim {
    let resource = held(catalog, permission).map(|place| place.rid());
    Claim { permission: permission.resource.rid, resource: Bound::to(resource) }
}

/// Whether a token is for this resource. A container that was given another partition key is the same to those who hold
/// tokens for it, though its RID is another; what is below it has moved with it.
fn is_bound_to(bound: Bound, resource: Rid, catalog: &Catalog) -> bool {
    let (Bound(mut bytes), wanted) = (bound, Bound::to(Some(resource)));
    while Bound(bytes) != wanted {
        let Some(next) = catalog.successor(Rid::from_slice(&bytes[..CONTAINER_RID_BYTES])) else {
            return false;
        };
        bytes[..CONTAINER_RID_BYTES].copy_from_slice(next.as_bytes());
    }
    true
}

impl Place {
    /// The RID of the resource, or for an item, which is not in the catalog, of its container.
    fn rid(&self) -> Rid {
        match self {
            Place::Database(rid) | Place::Container(rid) => *rid,
            Place::Item { container, .. } => *container,
            Place::Script { script, .. } => *script,
        }
    }
}

fn is_all(mode: &str) -> bool {
    mode.eq_ignore_ascii_case("All")
}

/// The resource that the permission names, when it is there and in the user's own database.
fn held(catalog: &Catalog, permission: &Child) -> Option<Place> {
    let link = permission.resource.body.root().get("resource").as_str()?;
    let segments = router::link_segments(link)?;
    let place = place(catalog, &router::link_endpoint(&segments)?)?;
    let database = match &place {
        Place::Database(rid) => *rid,
        Place::Container(container) | Place::Item { container, .. } | Place::Script { container, .. } => {
            container.database_part()?
        }
    };
    (Some(database) == permission.resource.rid.database_part()).then_some(place)
}

fn place(catalog: &Catalog, endpoint: &Endpoint<'_>) -> Option<Place> {
    match endpoint {
        Endpoint::Database { database } => {
            address::database(catalog, database).map(|database| Place::Database(database.resource.rid))
        }
        Endpoint::Container { database, container } => {
            let at = address::container(catalog, database, container).ok()?;
            Some(Place::Container(at.container.resource.rid))
        }
        Endpoint::Item { database, container, item } => {
            let at = address::container(catalog, database, container).ok()?;
            let container = at.container.resource.rid;
            Some(Place::Item { container, by_rid: at.by_rid, item: item.to_string() })
        }
        Endpoint::Script { kind, database, container, script } => {
            let at = address::container(catalog, database, container).ok()?;
            let script = Branch::in_container(*kind, &at).find(catalog, script)?;
            Some(Place::Script { container: at.container.resource.rid, script: script.resource.rid })
        }
        _ => None,
    }
}

/// The partition key that the permission is limited to. One that cannot be read must not open everything.
fn key(permission: &Child) -> Result<Option<PartitionKey>, Refusal> {
    match permission.resource.body.root().get("resourcePartitionKey") {
        Value::Undefined | Value::Null => Ok(None),
        value => key_of(value).map(Some).map_err(|_| insufficient()),
    }
}

/// Reads the key of a permission: a list of components, or one component alone.
pub(crate) fn key_of(value: Value<'_>) -> Result<PartitionKey, Refusal> {
    let mut text = Vec::new();
    json::write(value, &mut text);
    let text = String::from_utf8_lossy(&text);
    match value.as_array() {
        Some(_) => items::parse_key(&text),
        None => items::parse_key(&format!("[{text}]")),
    }
}

/// What clients read of a container on their way to what is in it.
fn is_way_there(held: &Place, asked: &Asked<'_>) -> bool {
    let (database, container) = match (asked.endpoint, asked.act) {
        (Endpoint::Container { database, container }, Act::Read)
        | (Endpoint::Ranges { database, container }, Act::List)
        | (Endpoint::Items { database, container }, Act::Plan) => (database, container),
        _ => return false,
    };
    let Ok(at) = address::container(asked.catalog, database, container) else { return false };
    let wanted = at.container.resource.rid;
    match held {
        Place::Database(rid) => wanted.database_part() == Some(*rid),
        Place::Container(rid) => *rid == wanted,
        Place::Item { container, .. } | Place::Script { container, .. } => *container == wanted,
    }
}

/// Whether what is asked for is the resource that the permission names, or below it.
fn covers(held: &Place, by_key: bool, asked: &Asked<'_>) -> bool {
    let in_container = |database: &str, container: &str| {
        let Ok(at) = address::container(asked.catalog, database, container) else { return false };
        let wanted = at.container.resource.rid;
        match held {
            Place::Database(rid) => wanted.database_part() == Some(*rid),
            Place::Container(rid) => *rid == wanted,
            Place::Item { .. } | Place::Script { .. } => false,
        }
    };
    let is_held = |endpoint: &Endpoint<'_>| place(asked.catalog, endpoint).as_ref() == Some(held);
    match asked.endpoint {
        Endpoint::Items { database, container }
        | Endpoint::KeyDelete { database, container }
        | Endpoint::Conflicts { database, container, .. } => in_container(database, container),
        Endpoint::Item { database, container, .. } => {
            in_container(database, container) || is_held(asked.endpoint)
        }
        Endpoint::Script { database, container, .. } => {
            let is_open = !by_key || asked.act == Act::Execute;
            is_open && in_container(database, container) || is_held(asked.endpoint)
        }
        Endpoint::Container { database, container }
        | Endpoint::Ranges { database, container }
        | Endpoint::Scripts { database, container, .. } => !by_key && in_container(database, container),
        Endpoint::Database { .. } => !by_key && asked.act.is_read() && is_held(asked.endpoint),
        Endpoint::Account
        | Endpoint::Databases
        | Endpoint::Containers { .. }
        | Endpoint::DatabaseChildren { .. }
        | Endpoint::DatabaseChild { .. }
        | Endpoint::Permissions { .. }
        | Endpoint::Permission { .. }
        | Endpoint::Offers
        | Endpoint::Offer { .. }
        | Endpoint::Roles { .. }
        | Endpoint::Role { .. }
        | Endpoint::Unsupported { .. } => false,
    }
}
