//! What the roles of a principal allow, whichever gateway asks.
//!
//! A role definition is a list of actions, an assignment gives a role to a principal within a scope: the account, a
//! database or a container. Both are resources of the account. Actions are named as the service names them, for each API
//! with a beginning of its own. Two roles are there without being stored.

use orrery_cluster::{Catalog, ChildKind, Rid};
use orrery_doc::Value;

use crate::entra::Principal;

pub const READ_METADATA: &str = "Microsoft.DocumentDB/databaseAccounts/readMetadata";
/// What actions on NoSQL containers begin with, and those on tables.
pub const SQL_CONTAINERS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/";
pub const TABLES: &str = "Microsoft.DocumentDB/databaseAccounts/tables/";
/// What actions on what is in a table begin with.
pub const TABLE_CONTAINERS: &str = "Microsoft.DocumentDB/databaseAccounts/tables/containers/";

pub const EXECUTE_QUERY: &str = "executeQuery";
pub const READ_CHANGE_FEED: &str = "readChangeFeed";
pub const EXECUTE_PROCEDURE: &str = "executeStoredProcedure";
pub const MANAGE_CONFLICTS: &str = "manageConflicts";

/// What can be done below a NoSQL container, without the part that all of these actions start with.
const SQL_ACTIONS: [&str; 10] = [
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

/// The same below `tables/`.
const TABLE_ACTIONS: [&str; 13] = [
    "write",
    "delete",
    "containers/write",
    "containers/delete",
    "containers/executeQuery",
    "containers/readChangeFeed",
    "containers/executeStoredProcedure",
    "containers/manageConflicts",
    "containers/entities/create",
    "containers/entities/read",
    "containers/entities/replace",
    "containers/entities/upsert",
    "containers/entities/delete",
];

/// The roles that are always there: Cosmos DB Built-in Data Reader and Data Contributor.
const READER: &str = "00000000-0000-0000-0000-000000000001";
const CONTRIBUTOR: &str = "00000000-0000-0000-0000-000000000002";

/// A scope below the account: empty, `dbs/d` or `dbs/d/colls/c`. Scopes may be written from the top of a subscription.
pub fn relative_scope(text: &str) -> Option<&str> {
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

/// Whether an assignment's scope is that of a link, or around it.
pub fn covers(assigned: &str, link: &str) -> bool {
    let Some(assigned) = relative_scope(assigned) else { return false };
    assigned.is_empty() || format!("{link}/").starts_with(&format!("{assigned}/"))
}

/// The roles of one principal.
pub struct Rights<'a> {
    pub principal: &'a Principal,
    pub catalog: &'a Catalog,
}

impl Rights<'_> {
    /// Whether a role allows the action on what a link names, or on anything.
    pub fn allow(&self, action: &str, link: Option<&str>) -> bool {
        let mut has_roles = false;
        for assignment in self.catalog.children(ChildKind::RoleAssignment, Rid::ACCOUNT) {
            let root = assignment.resource.body.root();
            if !root.get("principalId").as_str().is_some_and(|id| self.is_member(id)) {
                continue;
            }
            has_roles = true;
            let assigned = root.get("scope").as_str().unwrap_or_default();
            let role = root.get("roleDefinitionId").as_str().unwrap_or_default();
            if link.is_none_or(|link| covers(assigned, link)) && role_allows(self.catalog, role, action) {
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

/// The service's words for a request that no role allows.
pub fn blocked(account: &str, principal: &Principal, action: &str, link: &str) -> String {
    format!(
        "Request blocked by Auth {account} : Request is blocked because principal [{}] does not have required RBAC \
         permissions to perform action [{action}] on resource [{link}]. \
         Learn more: https://aka.ms/cosmos-native-rbac.",
        principal.id,
    )
}

/// The id of a role, which may be written as the path of a definition.
fn role_id(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

fn role_allows(catalog: &Catalog, role: &str, action: &str) -> bool {
    let below = action.strip_prefix(SQL_CONTAINERS).or_else(|| action.strip_prefix(TABLES));
    match role_id(role) {
        READER => {
            let own = below.map(|below| below.strip_prefix("containers/").unwrap_or(below));
            let reads = ["items/read", "entities/read", EXECUTE_QUERY, READ_CHANGE_FEED];
            action == READ_METADATA || own.is_some_and(|own| reads.contains(&own))
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

/// Whether a pattern names an action that there is.
fn is_known(pattern: &str) -> bool {
    let below_sql = SQL_ACTIONS.iter().map(|action| format!("{SQL_CONTAINERS}{action}"));
    let below_tables = TABLE_ACTIONS.iter().map(|action| format!("{TABLES}{action}"));
    let mut all = below_sql.chain(below_tables).chain([READ_METADATA.to_owned()]);
    all.any(|action| matches_action(pattern, &action))
}

/// What is wrong with a role definition that could not mean anything.
pub fn check_definition(root: Value<'_>) -> Result<(), String> {
    let id = root.get("id").as_str().unwrap_or_default();
    if id == READER || id == CONTRIBUTOR {
        return Err("The built-in role definitions cannot be changed.".into());
    }
    if root.get("roleName").as_str().is_none_or(str::is_empty) {
        return Err("A role definition needs a 'roleName'.".into());
    }
    let scopes = root.get("assignableScopes");
    let mut scopes = scopes.as_array().into_iter().flat_map(|list| list.iter());
    if scopes.any(|scope| scope.as_str().and_then(relative_scope).is_none()) {
        return Err("An assignable scope must be '/', '/dbs/{db}' or '/dbs/{db}/colls/{coll}'.".into());
    }
    let permissions = root.get("permissions").as_array().into_iter().flat_map(|list| list.iter());
    for permission in permissions {
        if permission.get("notDataActions").as_array().is_some_and(|list| !list.is_empty()) {
            return Err("'notDataActions' are not supported.".into());
        }
    }
    let mut count = 0;
    for pattern in data_actions(root) {
        if !is_known(pattern) {
            let shown: String = pattern.chars().take(128).collect();
            return Err(format!("'{shown}' is not a data action."));
        }
        count += 1;
    }
    if count == 0 {
        return Err("A role definition needs 'permissions' with 'dataActions'.".into());
    }
    Ok(())
}

/// What is wrong with an assignment that gives nothing to nobody, or a role where it may not be assigned.
pub fn check_assignment(catalog: &Catalog, root: Value<'_>) -> Result<(), String> {
    if root.get("principalId").as_str().is_none_or(str::is_empty) {
        return Err("A role assignment needs a 'principalId'.".into());
    }
    let Some(scope) = root.get("scope").as_str().and_then(relative_scope) else {
        return Err("The 'scope' must be '/', '/dbs/{db}' or '/dbs/{db}/colls/{coll}'.".into());
    };
    let id = role_id(root.get("roleDefinitionId").as_str().unwrap_or_default());
    if id == READER || id == CONTRIBUTOR {
        return Ok(());
    }
    let Some(definition) = catalog.child(ChildKind::RoleDefinition, Rid::ACCOUNT, id) else {
        return Err("The 'roleDefinitionId' names no role definition of this account.".into());
    };
    let Some(assignable) = definition.resource.body.root().get("assignableScopes").as_array() else {
        return Ok(());
    };
    let is_around = |outer: &str| outer.is_empty() || format!("{scope}/").starts_with(&format!("{outer}/"));
    let mut assignable = assignable.iter().filter_map(|scope| scope.as_str()).filter_map(relative_scope);
    match assignable.any(is_around) {
        true => Ok(()),
        false => Err("The role may not be assigned within this scope.".into()),
    }
}

/// Whether the role is assigned to any principal.
pub fn is_assigned(catalog: &Catalog, definition: &str) -> bool {
    catalog.children(ChildKind::RoleAssignment, Rid::ACCOUNT).any(|assignment| {
        let role = assignment.resource.body.root().get("roleDefinitionId").as_str();
        role.is_some_and(|role| role_id(role) == definition)
    })
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
        for (link, assigned, wanted) in [
            ("dbs/d/colls/c", "/", true),
            ("dbs/d/colls/c", "/dbs/d", true),
            ("dbs/d/colls/c", "/dbs/d/colls/c", true),
            ("dbs/d/colls/cc", "/dbs/d/colls/c", false),
            ("dbs/d", "/dbs/d/colls/c", false),
            ("dbs/dd/colls/c", "/dbs/d", false),
            ("dbs/d/colls/c", "/nonsense", false),
            ("", "/dbs/d", false),
            ("", "/", true),
        ] {
            assert_eq!(covers(assigned, link), wanted, "{link} in {assigned}");
        }
    }

    #[test]
    fn patterns_are_actions_or_end_in_a_star() {
        let read = format!("{SQL_CONTAINERS}items/read");
        assert!(matches_action(&format!("{SQL_CONTAINERS}items/*"), &read));
        assert!(matches_action(&format!("{SQL_CONTAINERS}*"), &read));
        assert!(matches_action(&read.to_uppercase(), &read));
        assert!(!matches_action(&format!("{SQL_CONTAINERS}items/re"), &read));
        assert!(!matches_action(
            &format!("{SQL_CONTAINERS}items/*"),
            &format!("{SQL_CONTAINERS}{EXECUTE_QUERY}")
        ));
    }

    #[test]
    fn actions_of_both_apis_are_known() {
        for (pattern, wanted) in [
            (READ_METADATA.to_owned(), true),
            (format!("{SQL_CONTAINERS}*"), true),
            (format!("{TABLES}*"), true),
            (format!("{TABLE_CONTAINERS}entities/*"), true),
            (format!("{TABLE_CONTAINERS}items/read"), false),
            (format!("{SQL_CONTAINERS}entities/read"), false),
            ("*".to_owned(), true),
            ("fly".to_owned(), false),
        ] {
            assert_eq!(is_known(&pattern), wanted, "{pattern}");
        }
    }
}
