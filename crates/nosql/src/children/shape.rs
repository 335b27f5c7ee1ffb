//! What tells the kinds of children apart on the wire.

use std::time::SystemTime;

use orrery_cluster::{Child, ChildKind, limits};
use orrery_doc::{Doc, DocBuilder, Value};

use crate::access;
use crate::call::Call;
use crate::children::Branch;
use crate::envelope::{self, push_number, push_text};
use crate::errors::{Own, Refusal};

/// The word of paths.
pub(crate) fn segment(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::User => "users",
        ChildKind::EncryptionKey => "clientencryptionkeys",
        ChildKind::Permission => "permissions",
        ChildKind::Procedure => "sprocs",
        ChildKind::Trigger => "triggers",
        ChildKind::Function => "udfs",
        ChildKind::RoleDefinition => "roledefinitions",
        ChildKind::RoleAssignment => "roleassignments",
        ChildKind::AccountSetting | ChildKind::ContainerSetting => "settings",
    }
}

/// The name of the array in feeds.
pub(super) fn array(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::User => "Users",
        ChildKind::EncryptionKey => "ClientEncryptionKeys",
        ChildKind::Permission => "Permissions",
        ChildKind::Procedure => "StoredProcedures",
        ChildKind::Trigger => "Triggers",
        ChildKind::Function => "UserDefinedFunctions",
        ChildKind::RoleDefinition => "RoleDefinitions",
        ChildKind::RoleAssignment => "RoleAssignments",
        ChildKind::AccountSetting | ChildKind::ContainerSetting => "Settings",
    }
}

/// The word of the quota headers.
pub(super) fn quota_word(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::User => "users",
        ChildKind::EncryptionKey => "clientEncryptionKeys",
        ChildKind::Permission => "permissions",
        ChildKind::Procedure => "storedProcedures",
        ChildKind::Trigger => "triggers",
        ChildKind::Function => "functions",
        ChildKind::RoleDefinition => "roleDefinitions",
        ChildKind::RoleAssignment => "roleAssignments",
        ChildKind::AccountSetting | ChildKind::ContainerSetting => "settings",
    }
}

pub(super) fn quota(kind: ChildKind) -> usize {
    kind.count_max()
}

/// What the server itself adds; clients send it back.
const SYSTEM_PROPERTIES: [&str; 7] = ["_rid", "_self", "_etag", "_ts", "_permissions", "_token", CREATED];

/// When a key was made, in seconds. It is kept with the key, whose `_ts` moves on when it is wrapped anew.
const CREATED: &str = "_cts";

/// Reads a body that a client sent, checks what its kind must have, and leaves out what the server adds.
pub(super) fn accept(
    call: &Call<'_>,
    branch: &Branch,
    current: Option<&Child>,
    body: &[u8],
) -> Result<Doc, Refusal> {
    let sent = envelope::parse_body(body)?;
    let id = envelope::required_id(&sent)?;
    match branch.kind {
        ChildKind::User => {}
        ChildKind::EncryptionKey => check_encryption_key(sent.root())?,
        ChildKind::Permission => check_permission(sent.root())?,
        ChildKind::Procedure | ChildKind::Function => check_script(sent.root())?,
        ChildKind::Trigger => check_trigger(sent.root())?,
        ChildKind::RoleDefinition => access::check_definition(sent.root()).map_err(Refusal::bad_request)?,
        ChildKind::RoleAssignment => {
            access::check_assignment(call.catalog, sent.root()).map_err(Refusal::bad_request)?
        }
        // No path of this protocol leads to them.
        ChildKind::AccountSetting | ChildKind::ContainerSetting => return Err(Own::MethodNotAllowed.into()),
    }
    let mut kept = DocBuilder::with_capacity(body.len());
    kept.begin_object();
    for (name, value) in sent.root().as_object().into_iter().flat_map(|object| object.iter()) {
        if !SYSTEM_PROPERTIES.contains(&name) {
            kept.field(name, value);
        }
    }
    if branch.kind == ChildKind::EncryptionKey {
        let same = call.catalog.child(branch.kind, branch.owner_rid(), id).map(AsRef::as_ref);
        kept.field(CREATED, Value::Int(current.or(same).map_or_else(now, created) as i64));
    }
    kept.end_object();
    Ok(kept.finish())
}

/// Keys that were made before this was kept are as old as their last change.
fn created(key: &Child) -> u64 {
    let seconds = key.resource.body.root().get(CREATED).as_f64();
    seconds.map_or(key.resource.ts, |seconds| seconds as u64)
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Writes what the server adds to a child of this kind, beside what all resources have.
pub(super) fn push_extra(call: &Call<'_>, child: &Child, out: &mut Vec<u8>) {
    match child.kind {
        ChildKind::User => push_text(out, "_permissions", "permissions/"),
        ChildKind::Permission => {
            let seconds = call.headers.expiry_seconds.unwrap_or(limits::TOKEN_SECONDS_DEFAULT);
            let claim = access::claim_of(call.catalog, child);
            let token = call.keys.load().issue(claim, SystemTime::now(), seconds);
            push_text(out, "_token", &token);
        }
        ChildKind::EncryptionKey if child.resource.body.root().get(CREATED).is_undefined() => {
            push_number(out, CREATED, created(child));
        }
        _ => {}
    }
}

/// Refuses a time that no token of a permission may have.
pub(super) fn check_expiry(call: &Call<'_>, kind: ChildKind) -> Result<(), Refusal> {
    let allowed = limits::TOKEN_SECONDS_MIN..=limits::TOKEN_SECONDS_MAX;
    match call.headers.expiry_seconds {
        Some(seconds) if kind == ChildKind::Permission && !allowed.contains(&seconds) => {
            Err(Refusal::bad_request(format!(
                "The value '{seconds}' specified for the header 'x-ms-documentdb-expiry-seconds' is not between {} \
                 and {}.",
                allowed.start(),
                allowed.end()
            )))
        }
        _ => Ok(()),
    }
}

/// A role that is assigned cannot go.
pub(super) fn check_unused(call: &Call<'_>, child: &Child) -> Result<(), Refusal> {
    if child.kind == ChildKind::RoleDefinition && access::is_assigned(call.catalog, &child.resource.id) {
        return Err(Refusal::bad_request("The role definition is assigned; delete its assignments first."));
    }
    Ok(())
}

fn check_encryption_key(root: Value<'_>) -> Result<(), Refusal> {
    required(root, "wrappedDataEncryptionKey", |value| value.as_str().is_some())?;
    required(root, "encryptionAlgorithm", |value| value.as_str().is_some())?;
    required(root, "keyWrapMetadata", |value| value.as_object().is_some())
}

fn check_permission(root: Value<'_>) -> Result<(), Refusal> {
    required(root, "resource", |value| value.as_str().is_some_and(|link| !link.is_empty()))?;
    required(root, "permissionMode", |value| one_of(value, &["Read", "All"]))?;
    match root.get("resourcePartitionKey") {
        Value::Undefined | Value::Null => Ok(()),
        key => access::permission_key(key).map(|_| ()),
    }
}

fn check_script(root: Value<'_>) -> Result<(), Refusal> {
    required(root, "body", |value| value.as_str().is_some())
}

fn check_trigger(root: Value<'_>) -> Result<(), Refusal> {
    check_script(root)?;
    required(root, "triggerType", |value| one_of(value, &["Pre", "Post"]))?;
    required(root, "triggerOperation", |value| {
        one_of(value, &["All", "Create", "Update", "Delete", "Replace", "Upsert"])
    })
}

fn one_of(value: Value<'_>, words: &[&str]) -> bool {
    value.as_str().is_some_and(|text| words.iter().any(|word| word.eq_ignore_ascii_case(text)))
}

fn required(root: Value<'_>, name: &str, is_right: impl Fn(Value<'_>) -> bool) -> Result<(), Refusal> {
    let value = root.get(name);
    if is_right(value) {
        return Ok(());
    }
    Err(Refusal::bad_request(match value {
        Value::Undefined => {
            format!("The input content is invalid because the required properties - '{name}; ' - are missing")
        }
        _ => format!("The input content is invalid because the value of the property '{name}' is not valid."),
    }))
}
