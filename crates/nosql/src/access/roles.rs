//! What the roles of a principal allow.
//!
//! A role definition is a list of actions, an assignment gives a role to a principal within a scope: the account, a
//! database or a container. Both are resources of the account. Actions are named as the service names them. Two
//! roles are there without being stored. Nothing but items can be changed this way: databases, containers, scripts,
//! users and throughput need a key of the account.

use std::borrow::Cow;

use http::StatusCode;
use orrery_cluster::{Catalog, ChildKind, Rid};
use orrery_doc::Value;

use super::{Act, Asked, Grant, ItemAct};
use crate::address;
use crate::auth::Principal;
use crate::errors::{Own, Refusal};
use crate::router::Endpoint;

const READ_METADATA: &str = "Microsoft.DocumentDB/databaseAccounts/readMetadata";
const CONTAINERS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/";
const EXECUTE_QUERY: &str = "executeQuery";
const READ_CHANGE_FEED: &str = "readChangeFeed";
const EXECUTE_PROCEDURE: &str = "executeStoredProcedure";
const MANAGE_CONFLICTS: &str = "manageConflicts";
/// What can be done below a container, without the part that all of these actions start with.
const DATA_ACTIONS: [&str; 10] = [
    EXECUTE_QUERY,
    READ_CHANGE_FEED,
    EXECUTE_PROCEDURE,
    MANAGE_CONFLICTS,
    "items/create",
    "items/read",
    "items/replace",
    "items/upsert",
    "items/delete",
    // Part of the service; nothing is masked here.
    "items/unmask",
];

/// The roles that are always there: Cosmos DB Built-in Data Reader and Data Contributor.
const READER: &str = "00000000-0000-0000-0000-000000000001";
const CONTRIBUTOR: &str = "00000000-0000-0000-0000-000000000002";

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
    let rights = Rights { principal, catalog: asked.catalog };
    match need {
        Need::Key => Err(not_for_principals(asked)),
        Need::Metadata if rights.allow(READ_METADATA, Some(&scope)) => Ok(Grant::Everything),
        Need::AnyMetadata if rights.allow(READ_METADATA, None) => Ok(Grant::Everything),
        Need::Metadata | Need::AnyMetadata => Err(blocked(principal, asked, &scope, READ_METADATA, 5301)),
        Need::Data(action) => {
            let action = format!("{CONTAINERS}{action}");
            if rights.allow(&action, Some(&scope)) {
                return Ok(Grant::Everything);
            }
            Err(blocked(principal, asked, &scope, &action, if scope.by_rid { 5303 } else { 5302 }))
        }
        Need::Items => {
            let acts = [ItemAct::Create, ItemAct::Read, ItemAct::Replace, ItemAct::Upsert, ItemAct::Delete];
            let allowed =
                |act: &ItemAct| rights.allow(&format!("{CONTAINERS}{}", item_action(*act)), Some(&scope));
            let acts: Vec<ItemAct> = acts.into_iter().filter(allowed).collect();
            if acts.is_empty() {
                let action = format!("{CONTAINERS}{}", item_action(ItemAct::Create));
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

    /// Whether an assignment's scope is this one or around it.
    fn is_within(&self, assigned: &str) -> bool {
        let Some(assigned) = relative_scope(assigned) else { return false };
        let mut own = self.link();
        own.push('/');
        assigned.is_empty() || own.starts_with(&format!("{assigned}/"))
    }
}

/// A scope below the account: empty, `dbs/d` or `dbs/d/colls/c`. Scopes may be written from the top of a subscription.
fn relative_scope(text: &str) -> Option<&str> {
    let below = match text.split_once("/databaseAccounts/") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, below)| below),
        None => text,
    };
    let below = below.trim_matches('/');
    let parts: Vec<&str> = below.split('/').collect();
    let is_named = |place: usize| parts.get(place).is_some_and(|part| !part.is_empty());
    let is_scope = match parts.len() {
        1 => below.is_empty(),
        2 => parts[0] == "dbs" && is_named(1),
        4 => parts[0] == "dbs" && is_named(1) && parts[2] == "colls" && is_named(3),
        _ => false,
    };
    is_scope.then_some(below)
}

/// The roles of one principal.
struct Rights<'a> {
    principal: &'a Principal,
    catalog: &'a Catalog,
}

impl Rights<'_> {
    /// Whether a role allows the action within the scope, or within any scope.
    fn allow(&self, action: &str, scope: Option<&Scope<'_>>) -> bool {
        let mut has_roles = false;
        for assignment in self.catalog.children(ChildKind::RoleAssignment, Rid::ACCOUNT) {
            let root = assignment.resource.body.root();
            if !root.get("principalId").as_str().is_some_and(|id| self.is_member(id)) {
                continue;
            }
            has_roles = true;
            let assigned = root.get("scope").as_str().unwrap_or_default();
            let role = root.get("roleDefinitionId").as_str().unwrap_or_default();
            if scope.is_none_or(|scope| scope.is_within(assigned)) && role_allows(self.catalog, role, action)
            {
                return true;
            }
        }
        // A developer who works against the server need not assign roles first.
        self.principal.is_development && !has_roles && role_allows(self.catalog, CONTRIBUTOR, action)
    }

    fn is_member(&self, id: &str) -> bool {
        self.principal.id.eq_ignore_ascii_case(id)
            || self.principal.groups.iter().any(|group| group.eq_ignore_ascii_case(id))
    }
}

/// The id of a role, which may be written as the path of a definition.
fn role_id(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

fn role_allows(catalog: &Catalog, role: &str, action: &str) -> bool {
    let below = action.strip_prefix(CONTAINERS);
    match role_id(role) {
        READER => {
            action == READ_METADATA || matches!(below, Some("items/read" | EXECUTE_QUERY | READ_CHANGE_FEED))
        }
        CONTRIBUTOR => action == READ_METADATA || below.is_some(),
        custom => catalog.child(ChildKind::RoleDefinition, Rid::ACCOUNT, custom).is_some_and(|definition| {
            data_actions(definition.resource.body.root()).any(|pattern| matches_action(pattern, action))
        }),
    }
}

fn data_actions(definition: Value<'_>) -> impl Iterator<Item = &str> {
    let permissions = definition.get("permissions").as_array().into_iter().flat_map(|list| list.iter());
    let actions = permissions.flat_map(|permission| permission.get("dataActions").as_array());
    actions.flat_map(|list| list.iter()).filter_map(|action| action.as_str())
}

/// A pattern is an action, or ends in `*`.
fn matches_action(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => action.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
        None => pattern.eq_ignore_ascii_case(action),
    }
}

/// Refuses a role definition that could not mean anything.
pub(crate) fn check_definition(root: Value<'_>) -> Result<(), Refusal> {
    let id = root.get("id").as_str().unwrap_or_default();
    if id == READER || id == CONTRIBUTOR {
        return Err(Refusal::bad_request("The built-in role definitions cannot be changed."));
    }
    if root.get("roleName").as_str().is_none_or(str::is_empty) {
        return Err(Refusal::bad_request("A role definition needs a 'roleName'."));
    }
    let scopes = root.get("assignableScopes");
    let mut scopes = scopes.as_array().into_iter().flat_map(|list| list.iter());
    if scopes.any(|scope| scope.as_str().and_then(relative_scope).is_none()) {
        return Err(Refusal::bad_request(
            "An assignable scope must be '/', '/dbs/{db}' or '/dbs/{db}/colls/{coll}'.",
        ));
    }
    let permissions = root.get("permissions").as_array().into_iter().flat_map(|list| list.iter());
    for permission in permissions {
        if permission.get("notDataActions").as_array().is_some_and(|list| !list.is_empty()) {
            return Err(Refusal::bad_request("'notDataActions' are not supported."));
        }
    }
    let mut count = 0;
    for pattern in data_actions(root) {
        let known = DATA_ACTIONS.iter().map(|action| format!("{CONTAINERS}{action}"));
        if !known.chain([READ_METADATA.to_owned()]).any(|action| matches_action(pattern, &action)) {
            let shown: String = pattern.chars().take(128).collect();
            return Err(Refusal::bad_request(format!("'{shown}' is not a data action.")));
        }
        count += 1;
    }
    if count == 0 {
        return Err(Refusal::bad_request("A role definition needs 'permissions' with 'dataActions'."));
    }
    Ok(())
}

/// Refuses an assignment that gives nothing to nobody, or a role where it may not be assigned.
pub(crate) fn check_assignment(catalog: &Catalog, root: Value<'_>) -> Result<(), Refusal> {
    if root.get("principalId").as_str().is_none_or(str::is_empty) {
        return Err(Refusal::bad_request("A role assignment needs a 'principalId'."));
    }
    let Some(scope) = root.get("scope").as_str().and_then(relative_scope) else {
        return Err(Refusal::bad_request(
            "The 'scope' must be '/', '/dbs/{db}' or '/dbs/{db}/colls/{coll}'.",
        ));
    };
    let id = role_id(root.get("roleDefinitionId").as_str().unwrap_or_default());
    if id == READER || id == CONTRIBUTOR {
        return Ok(());
    }
    let Some(definition) = catalog.child(ChildKind::RoleDefinition, Rid::ACCOUNT, id) else {
        return Err(Refusal::bad_request("The 'roleDefinitionId' names no role definition of this account."));
    };
    let Some(assignable) = definition.resource.body.root().get("assignableScopes").as_array() else {
        return Ok(());
    };
    let is_around = |outer: &str| outer.is_empty() || format!("{scope}/").starts_with(&format!("{outer}/"));
    let mut assignable = assignable.iter().filter_map(|scope| scope.as_str()).filter_map(relative_scope);
    match assignable.any(is_around) {
        true => Ok(()),
        false => Err(Refusal::bad_request("The role may not be assigned within this scope.")),
    }
}

/// Whether the role is assigned to any principal.
pub(crate) fn is_assigned(catalog: &Catalog, definition: &str) -> bool {
    catalog.children(ChildKind::RoleAssignment, Rid::ACCOUNT).any(|assignment| {
        let role = assignment.resource.body.root().get("roleDefinitionId").as_str();
        role.is_some_and(|role| role_id(role) == definition)
    })
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
    let message = format!(
        "Request blocked by Auth {} : Request is blocked because principal [{}] does not have required RBAC \
         permissions to perform action [{action}] on resource [{}]. \
         Learn more: https://aka.ms/cosmos-native-rbac.",
        asked.account,
        principal.id,
        scope.link(),
    );
    denied(substatus, message)
}

fn denied(substatus: u32, message: String) -> Refusal {
    Own::Denied { status: StatusCode::FORBIDDEN, substatus, message: message.into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_from_the_account_down() {
        for (text, wanted) in [
            ("/", Some("")),
            ("", Some("")),
            ("/dbs/d", Some("dbs/d")),
            ("/dbs/d/colls/c/", Some("dbs/d/colls/c")),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.DocumentDB/databaseAccounts/a/dbs/d",
                Some("dbs/d"),
            ),
            ("/subscriptions/s/resourceGroups/g/providers/Microsoft.DocumentDB/databaseAccounts/a", Some("")),
            ("/dbs", None),
            ("/dbs/d/colls", None),
            ("/dbs/d/users/u", None),
            ("/else", None),
        ] {
            assert_eq!(relative_scope(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_scope_covers_what_is_below_it_and_nothing_beside_it() {
        let scope = |database: &'static str, container: Option<&'static str>| Scope {
            database: Some(database.into()),
            container: container.map(Cow::Borrowed),
            by_rid: false,
        };
        for (own, assigned, wanted) in [
            (scope("d", Some("c")), "/", true),
            (scope("d", Some("c")), "/dbs/d", true),
            (scope("d", Some("c")), "/dbs/d/colls/c", true),
            (scope("d", Some("cc")), "/dbs/d/colls/c", false),
            (scope("d", None), "/dbs/d/colls/c", false),
            (scope("dd", Some("c")), "/dbs/d", false),
            (scope("d", Some("c")), "/nonsense", false),
        ] {
            assert_eq!(own.is_within(assigned), wanted, "{} in {assigned}", own.link());
        }
        assert!(!Scope::default().is_within("/dbs/d"));
        assert!(Scope::default().is_within("/"));
    }

    #[test]
    fn patterns_are_actions_or_end_in_a_star() {
        let read = format!("{CONTAINERS}items/read");
        assert!(matches_action(&format!("{CONTAINERS}items/*"), &read));
        assert!(matches_action(&format!("{CONTAINERS}*"), &read));
        assert!(matches_action(&read.to_uppercase(), &read));
        assert!(!matches_action(&format!("{CONTAINERS}items/re"), &read));
        assert!(!matches_action(&format!("{CONTAINERS}items/*"), &format!("{CONTAINERS}executeQuery")));
    }
}
