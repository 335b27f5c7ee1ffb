//! What the roles of a principal allow.
//!
//! Roles are the same for all gateways; what a request needs of them is said here. Nothing but items can be changed this
//! way: databases, containers, scripts, users and throughput need a key of the account.

use std::borrow::Cow;

use http::StatusCode;
use orrery_cluster::{Catalog, ChildKind};
use orrery_gateway::roles::{
    self, EXECUTE_PROCEDURE, EXECUTE_QUERY, MANAGE_CONFLICTS, READ_CHANGE_FEED, READ_METADATA, Rights,
    SQL_CONTAINERS,
};

use super::{Act, Asked, Grant, ItemAct};
use crate::address;
use crate::auth::Principal;
use crate::errors::{Own, Refusal};
use crate::router::Endpoint;

/// What a request needs.
enum Need {
    /// To read about something that is not an item, within the scope of the request.
    Metadata,
    /// To read about anything at all.
    AnyMetadata,
    /// An action below a container.
    Data(&'static str),
    /// What each operation of a batch needs.
    Items,
    /// A key of the account.
    Key,
}

/// The names of what a request is about, from the account down.
#[derive(Default)]
struct Scope<'a> {
    database: Option<Cow<'a, str>>,
    container: Option<Cow<'a, str>>,
    by_rid: bool,
}

pub(super) fn check(principal: &Principal, asked: &Asked<'_>) -> Result<Grant, Refusal> {
    let need = need(asked.endpoint, asked.act);
    let scope = Scope::of(asked.endpoint, asked.catalog);
    let link = scope.link();
    let rights = Rights { principal, catalog: asked.catalog };
    match need {
        Need::Key => Err(not_for_principals(asked)),
        Need::Metadata if rights.allow(READ_METADATA, Some(&link)) => Ok(Grant::Everything),
        Need::AnyMetadata if rights.allow(READ_METADATA, None) => Ok(Grant::Everything),
        Need::Metadata | Need::AnyMetadata => Err(blocked(principal, asked, &scope, READ_METADATA, 5301)),
        Need::Data(action) => {
            let action = format!("{SQL_CONTAINERS}{action}");
            if rights.allow(&action, Some(&link)) {
                return Ok(Grant::Everything);
            }
            Err(blocked(principal, asked, &scope, &action, if scope.by_rid { 5303 } else { 5302 }))
        }
        Need::Items => {
            let acts = [ItemAct::Create, ItemAct::Read, ItemAct::Replace, ItemAct::Upsert, ItemAct::Delete];
            let allowed =
                |act: &ItemAct| rights.allow(&format!("{SQL_CONTAINERS}{}", item_action(*act)), Some(&link));
            let acts: Vec<ItemAct> = acts.into_iter().filter(allowed).collect();
            if acts.is_empty() {
                let action = format!("{SQL_CONTAINERS}{}", item_action(ItemAct::Create));
                return Err(blocked(principal, asked, &scope, &action, 5302));
            }
            Ok(Grant::Acts(acts))
        }
    }
}

fn need(endpoint: &Endpoint<'_>, act: Act) -> Need {
    match (endpoint, act) {
        (Endpoint::Account, Act::Read) => Need::AnyMetadata,
        (Endpoint::Databases | Endpoint::Containers { .. }, Act::List | Act::Query)
        | (Endpoint::Database { .. } | Endpoint::Container { .. }, Act::Read)
        | (Endpoint::Ranges { .. }, Act::List)
        | (Endpoint::DatabaseChildren { kind: ChildKind::EncryptionKey, .. }, Act::List | Act::Query)
        | (Endpoint::DatabaseChild { kind: ChildKind::EncryptionKey, .. }, Act::Read) => Need::Metadata,
        (Endpoint::Items { .. }, Act::List | Act::Changes) => Need::Data(READ_CHANGE_FEED),
        (Endpoint::Items { .. }, Act::Query | Act::Plan) => Need::Data(EXECUTE_QUERY),
        (Endpoint::Items { .. }, Act::Create) => Need::Data(item_action(ItemAct::Create)),
        (Endpoint::Items { .. }, Act::Upsert) => Need::Data(item_action(ItemAct::Upsert)),
        (Endpoint::Items { .. }, Act::Batch | Act::Bulk) => Need::Items,
        (Endpoint::Item { .. }, Act::Read) => Need::Data(item_action(ItemAct::Read)),
        (Endpoint::Item { .. }, Act::Replace | Act::Patch) => Need::Data(item_action(ItemAct::Replace)),
        (Endpoint::Item { .. } | Endpoint::KeyDelete { .. }, Act::Delete) => {
            Need::Data(item_action(ItemAct::Delete))
        }
        (Endpoint::Conflicts { .. }, Act::List | Act::Query | Act::Read | Act::Delete) => {
            Need::Data(MANAGE_CONFLICTS)
        }
        (Endpoint::Script { .. }, Act::Execute) => Need::Data(EXECUTE_PROCEDURE),
        // Said endpoint by endpoint, so that a new one is not forgotten.
        (
            Endpoint::Account
            | Endpoint::Databases
            | Endpoint::Database { .. }
            | Endpoint::Containers { .. }
            | Endpoint::Container { .. }
            | Endpoint::Items { .. }
            | Endpoint::Item { .. }
            | Endpoint::Ranges { .. }
            | Endpoint::Conflicts { .. }
            | Endpoint::KeyDelete { .. }
            | Endpoint::DatabaseChildren { .. }
            | Endpoint::DatabaseChild { .. }
            | Endpoint::Permissions { .. }
            | Endpoint::Permission { .. }
            | Endpoint::Scripts { .. }
            | Endpoint::Script { .. }
            | Endpoint::Offers
            | Endpoint::Offer { .. }
            | Endpoint::Roles { .. }
            | Endpoint::Role { .. }
            | Endpoint::Unsupported { .. },
            _,
        ) => Need::Key,
    }
}

fn item_action(act: ItemAct) -> &'static str {
    match act {
        ItemAct::Create => "items/create",
        ItemAct::Read => "items/read",
        ItemAct::Replace => "items/replace",
        ItemAct::Upsert => "items/upsert",
        ItemAct::Delete => "items/delete",
    }
}

impl<'a> Scope<'a> {
    /// The names behind RIDs; what does not exist keeps the text that the client sent.
    fn of(endpoint: &'a Endpoint<'a>, catalog: &Catalog) -> Scope<'a> {
        let (database, container) = match endpoint {
            Endpoint::Database { database }
            | Endpoint::Containers { database }
            | Endpoint::DatabaseChildren { database, .. }
            | Endpoint::DatabaseChild { database, .. } => (database, None),
            Endpoint::Container { database, container }
            | Endpoint::Items { database, container }
            | Endpoint::Item { database, container, .. }
            | Endpoint::Ranges { database, container }
            | Endpoint::Conflicts { database, container, .. }
            | Endpoint::KeyDelete { database, container }
            | Endpoint::Scripts { database, container, .. }
            | Endpoint::Script { database, container, .. } => (database, Some(container)),
            _ => return Scope::default(),
        };
        let found = address::find_database(catalog, database);
        let by_rid = found.as_ref().is_some_and(|(_, by_rid)| *by_rid);
        let at = container.and_then(|container| address::container(catalog, database, container).ok());
        Scope {
            database: Some(match found {
                Some((found, _)) => Cow::Owned(found.resource.id.clone()),
                None => Cow::Borrowed(database.as_ref()),
            }),
            container: container.map(|text| match at {
                Some(at) => Cow::Owned(at.container.resource.id.clone()),
                None => Cow::Borrowed(text.as_ref()),
            }),
            by_rid,
        }
    }

    fn link(&self) -> String {
        match (&self.database, &self.container) {
            (Some(database), Some(container)) => format!("dbs/{database}/colls/{container}"),
            (Some(database), None) => format!("dbs/{database}"),
            _ => String::new(),
        }
    }
}

fn not_for_principals(asked: &Asked<'_>) -> Refusal {
    let message = format!(
        "The given request [{} {}] cannot be authorized by AAD token in data plane. \
         Learn more: https://aka.ms/cosmos-native-rbac.",
        asked.method, asked.path
    );
    denied(5300, message)
}

fn blocked(
    principal: &Principal,
    asked: &Asked<'_>,
    scope: &Scope<'_>,
    action: &str,
    substatus: u32,
) -> Refusal {
    let message = roles::blocked(asked.account, principal, action, &scope.link());
    denied(substatus, message)
}

fn denied(substatus: u32, message: String) -> Refusal {
    Own::Denied { status: StatusCode::FORBIDDEN, substatus, message: message.into() }.into()
}
