//! What hangs below the account, a database, a container or a user: roles, users, permissions, keys and scripts.
//!
//! All of these are alike: a name that is unique among its kind below one owner, a body of JSON that the catalog
//! does not look into, a version. They go when their owner goes. There may be many below one owner, and a body may be
//! a long script, so a family is shared between catalogs until it changes, and a body is never copied.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use orrery_doc::{Doc, json};
use orrery_store::{Etag, ItemHeader, limits};
use serde::{Deserialize, Serialize};

use super::Catalog;
use super::changes::check_version;
use super::definition::{check_name, check_script_name};
use super::load::make_resource;
use super::record::{ChildRecord, Counters, Record, RecordId, to_doc, to_json};
use crate::db::Db;
use crate::error::{ErrorKind, QuotaKind, Result};
use crate::resource::{Resource, ResourceKind};
use crate::rid::Rid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChildKind {
    /// Below a database.
    User,
    EncryptionKey,
    /// Below a user.
    Permission,
    /// Below a container.
    Procedure,
    Trigger,
    Function,
    /// Below the account.
    RoleDefinition,
    RoleAssignment,
    /// What an API keeps about the account; the name says which API and what.
    AccountSetting,
    /// The same about a container.
    ContainerSetting,
}

/// One resource below an owner. Cheap to hold: the catalog shares it.
#[derive(Clone, Debug)]
pub struct Child {
    pub resource: Resource,
    pub kind: ChildKind,
    pub owner: Rid,
    /// Grows with each child that is made, so it gives the order of creation.
    pub number: u32,
}

/// The children of one kind below one owner.
#[derive(Clone, Default)]
pub(super) struct Family {
    members: BTreeMap<u32, Arc<Child>>,
    names: HashMap<String, u32>,
}

/// What a kind may have below one owner.
struct Quota {
    count: usize,
    bytes: usize,
    /// As messages name it.
    name: &'static str,
}

impl ChildKind {
    pub const ALL: [ChildKind; 10] = [
        ChildKind::User,
        ChildKind::EncryptionKey,
        ChildKind::Permission,
        ChildKind::Procedure,
        ChildKind::Trigger,
        ChildKind::Function,
        ChildKind::RoleDefinition,
        ChildKind::RoleAssignment,
        ChildKind::AccountSetting,
        ChildKind::ContainerSetting,
    ];

    /// What its owners are.
    pub fn owner_kind(self) -> ResourceKind {
        match self {
            ChildKind::User | ChildKind::EncryptionKey => ResourceKind::Database,
            ChildKind::Permission => ResourceKind::Child(ChildKind::User),
            ChildKind::RoleDefinition | ChildKind::RoleAssignment | ChildKind::AccountSetting => {
                ResourceKind::Account
            }
            ChildKind::Procedure | ChildKind::Trigger | ChildKind::Function | ChildKind::ContainerSetting => {
                ResourceKind::Container
            }
        }
    }

    /// The most of this kind below one owner.
    pub fn count_max(self) -> usize {
        self.quota().count
    }

    fn quota(self) -> Quota {
        let (count, bytes, name) = match self {
            ChildKind::User => (limits::USERS_MAX, limits::CHILD_BYTES_MAX, "Users"),
            ChildKind::EncryptionKey => {
                (limits::ENCRYPTION_KEYS_MAX, limits::CHILD_BYTES_MAX, "ClientEncryptionKeys")
            }
            ChildKind::Permission => (limits::PERMISSIONS_MAX, limits::CHILD_BYTES_MAX, "Permissions"),
            ChildKind::Procedure => (limits::PROCEDURES_MAX, limits::SCRIPT_BYTES_MAX, "StoredProcedures"),
            ChildKind::Trigger => (limits::TRIGGERS_MAX, limits::SCRIPT_BYTES_MAX, "Triggers"),
            ChildKind::Function => (limits::FUNCTIONS_MAX, limits::SCRIPT_BYTES_MAX, "UserDefinedFunctions"),
            ChildKind::RoleDefinition => {
                (limits::ROLE_DEFINITIONS_MAX, limits::CHILD_BYTES_MAX, "RoleDefinitions")
            }
            ChildKind::RoleAssignment => {
                (limits::ROLE_ASSIGNMENTS_MAX, limits::CHILD_BYTES_MAX, "RoleAssignments")
            }
            ChildKind::AccountSetting | ChildKind::ContainerSetting => {
                (limits::SETTINGS_MAX, limits::CHILD_BYTES_MAX, "Settings")
            }
        };
        Quota { count, bytes, name }
    }

    fn check_name(self, id: &str) -> Result<()> {
        match self {
            ChildKind::Procedure | ChildKind::Trigger | ChildKind::Function => check_script_name(id),
            _ => check_name(id),
        }
    }

    pub(super) fn rid(self, owner: Rid, number: u32) -> Rid {
        match self {
            ChildKind::User
            | ChildKind::EncryptionKey
            | ChildKind::RoleDefinition
            | ChildKind::RoleAssignment
            | ChildKind::AccountSetting => Rid::user(owner, number),
            _ => Rid::child(owner, ResourceKind::Child(self), u64::from(number)),
        }
    }
}

impl Catalog {
    /// The child of a name.
    pub fn child(&self, kind: ChildKind, owner: Rid, name: &str) -> Option<&Arc<Child>> {
        let family = self.families.get(&(owner, kind))?;
        family.members.get(family.names.get(name)?)
    }

    pub fn child_by_rid(&self, kind: ChildKind, owner: Rid, rid: Rid) -> Option<&Arc<Child>> {
        let number = rid.number_below(owner)?;
        let child = self.families.get(&(owner, kind))?.members.get(&number)?;
        (child.resource.rid == rid).then_some(child)
    }

    /// In the order of creation.
    pub fn children(&self, kind: ChildKind, owner: Rid) -> impl Iterator<Item = &Arc<Child>> {
        self.families.get(&(owner, kind)).into_iter().flat_map(|family| family.members.values())
    }

    pub fn children_count(&self, kind: ChildKind, owner: Rid) -> usize {
        self.families.get(&(owner, kind)).map_or(0, |family| family.members.len())
    }

    /// The child with this RID, of whichever kind.
    fn any_child(&self, rid: Rid) -> Option<&Arc<Child>> {
        let owner = rid.owner()?;
        ChildKind::ALL.into_iter().find_map(|kind| self.child_by_rid(kind, owner, rid))
    }

    pub(super) fn has_child(&self, rid: Rid) -> bool {
        self.any_child(rid).is_some()
    }

    pub(super) fn put_child(&mut self, child: Child) -> Arc<Child> {
        let family = self.families.entry((child.owner, child.kind)).or_default();
        let family = Arc::make_mut(family);
        let child = Arc::new(child);
        if let Some(before) = family.members.insert(child.number, child.clone()) {
            family.names.remove(&before.resource.id);
        }
        family.names.insert(child.resource.id.clone(), child.number);
        child
    }

    /// Forgets a child, if it is still there, and all that is below it.
    pub(super) fn remove_child(&mut self, rid: Rid) {
        let Some(child) = self.any_child(rid).cloned() else { return };
        self.remove_children(rid);
        if let Some(family) = self.families.get_mut(&(child.owner, child.kind)) {
            let family = Arc::make_mut(family);
            family.members.remove(&child.number);
            family.names.remove(&child.resource.id);
        }
    }

    /// Forgets everything below an owner.
    pub(super) fn remove_children(&mut self, owner: Rid) {
        for kind in ChildKind::ALL {
            let Some(family) = self.families.remove(&(owner, kind)) else { continue };
            family.members.values().for_each(|child| self.remove_children(child.resource.rid));
        }
    }

    /// The records of everything below an owner; users have something below them in turn.
    pub(super) fn child_records(&self, owner: Rid) -> Vec<RecordId> {
        let mut ids = Vec::new();
        for kind in ChildKind::ALL {
            for child in self.children(kind, owner) {
                ids.push(RecordId::Child(child.resource.rid));
                ids.extend(self.child_records(child.resource.rid));
            }
        }
        ids
    }

    fn check_owner(&self, kind: ChildKind, owner: Rid) -> Result<()> {
        let exists = match kind.owner_kind() {
            ResourceKind::Account => owner == Rid::ACCOUNT,
            ResourceKind::Database => self.database_by_rid(owner).is_some(),
            ResourceKind::Container => self.container_by_rid(owner).is_some(),
            _ => owner
                .database_part()
                .is_some_and(|database| self.child_by_rid(ChildKind::User, database, owner).is_some()),
        };
        if exists { Ok(()) } else { Err(ErrorKind::OwnerNotFound(kind.owner_kind()).into()) }
    }

    fn check_room(&self, kind: ChildKind, owner: Rid) -> Result<()> {
        let quota = kind.quota();
        let count = match (kind, owner.database_part()) {
            // All permissions of a database go with it in one transaction, so they are limited together.
            (ChildKind::Permission, Some(database)) => self
                .children(ChildKind::User, database)
                .map(|user| self.children_count(kind, user.resource.rid))
                .sum(),
            _ => self.children_count(kind, owner),
        };
        if count < quota.count {
            return Ok(());
        }
        let message = format!("The number of {} is limited to {}.", quota.name, quota.count);
        Err(ErrorKind::QuotaExceeded(QuotaKind::Children, message).into())
    }
}

impl Db {
    pub async fn create_child(&self, kind: ChildKind, owner: Rid, body: Doc) -> Result<Arc<Child>> {
        self.write_child(kind, owner, Wanted::New, body).await.map(|(child, _)| child)
    }

    /// Replaces the child of the body's name, or makes it; says whether it is new.
    pub async fn upsert_child(
        &self,
        kind: ChildKind,
        owner: Rid,
        body: Doc,
        if_match: Option<Etag>,
    ) -> Result<(Arc<Child>, bool)> {
        self.write_child(kind, owner, Wanted::Any { if_match }, body).await
    }

    /// Replaces a child, which may get another name.
    pub async fn replace_child(
        &self,
        kind: ChildKind,
        owner: Rid,
        rid: Rid,
        body: Doc,
        if_match: Option<Etag>,
    ) -> Result<Arc<Child>> {
        self.write_child(kind, owner, Wanted::Old { rid, if_match }, body).await.map(|(child, _)| child)
    }

    async fn write_child(
        &self,
        kind: ChildKind,
        owner: Rid,
        wanted: Wanted,
        body: Doc,
    ) -> Result<(Arc<Child>, bool)> {
        self.carry(move |db| async move { db.put_child(kind, owner, wanted, body).await }).await
    }

    async fn put_child(
        &self,
        kind: ChildKind,
        owner: Rid,
        wanted: Wanted,
        body: Doc,
    ) -> Result<(Arc<Child>, bool)> {
        let body_json = to_json(&body)?;
        let id = body.root().get("id").as_str().unwrap_or_default();
        kind.check_name(id)?;
        check_size(kind, &body)?;
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        let catalog = self.catalog();
        catalog.check_owner(kind, owner)?;
        let current = wanted.find(&catalog, kind, owner, id)?;
        let number = match &current {
            Some(child) => child.number,
            None => {
                catalog.check_room(kind, owner)?;
                take_number(&mut next)
            }
        };
        let record =
            ChildRecord { rid: kind.rid(owner, number), child: kind, owner, number, body: body_json };
        let rid = record.rid;
        let catalog = self.change_catalog(&mut counters, next, vec![Record::Child(record)], vec![]).await?;
        let child = catalog.child_by_rid(kind, owner, rid).cloned();
        Ok((child.ok_or(ErrorKind::NotFound(ResourceKind::Child(kind)))?, current.is_none()))
    }

    /// Deletes a child and what is below it.
    pub async fn delete_child(
        &self,
        kind: ChildKind,
        owner: Rid,
        rid: Rid,
        if_match: Option<Etag>,
    ) -> Result<()> {
        self.carry(move |db| async move { db.drop_child(kind, owner, rid, if_match).await }).await
    }

    async fn drop_child(&self, kind: ChildKind, owner: Rid, rid: Rid, if_match: Option<Etag>) -> Result<()> {
        let mut counters = self.inner.control.lock().await;
        let catalog = self.catalog();
        Wanted::Old { rid, if_match }.find(&catalog, kind, owner, "")?;
        let mut gone = vec![RecordId::Child(rid)];
        gone.extend(catalog.child_records(rid));
        let next = counters.clone();
        self.change_catalog(&mut counters, next, vec![], gone).await?;
        Ok(())
    }
}

/// Which child a write is about.
enum Wanted {
    New,
    Old { rid: Rid, if_match: Option<Etag> },
    Any { if_match: Option<Etag> },
}

impl Wanted {
    /// The child that is there, after checking that it is as the writer wants it.
    fn find(self, catalog: &Catalog, kind: ChildKind, owner: Rid, id: &str) -> Result<Option<Arc<Child>>> {
        let resource = ResourceKind::Child(kind);
        let of_this_name = catalog.child(kind, owner, id);
        match self {
            Wanted::New if of_this_name.is_some() => Err(ErrorKind::AlreadyExists(resource).into()),
            Wanted::New => Ok(None),
            Wanted::Any { if_match } => {
                of_this_name.map_or(Ok(()), |child| check_version(if_match, child.resource.etag))?;
                Ok(of_this_name.cloned())
            }
            Wanted::Old { rid, if_match } => {
                let child = catalog.child_by_rid(kind, owner, rid).ok_or(ErrorKind::NotFound(resource))?;
                check_version(if_match, child.resource.etag)?;
                if of_this_name.is_some_and(|other| other.number != child.number) {
                    return Err(ErrorKind::AlreadyExists(resource).into());
                }
                Ok(Some(child.clone()))
            }
        }
    }
}

fn check_size(kind: ChildKind, body: &Doc) -> Result<()> {
    let mut text = Vec::new();
    json::write(body.root(), &mut text);
    let limit = kind.quota().bytes;
    if text.len() > limit {
        return Err(orrery_store::OpError::TooLarge { bytes: text.len() }.into());
    }
    Ok(())
}

fn take_number(counters: &mut Counters) -> u32 {
    counters.child += 1;
    counters.child
}

/// A child as it was stored.
pub(super) fn load_child(record: &ChildRecord, header: &ItemHeader) -> std::result::Result<Child, String> {
    let body = to_doc(&record.body)?;
    let resource = make_resource(ResourceKind::Child(record.child), record.rid, body, header)?;
    Ok(Child { resource, kind: record.child, owner: record.owner, number: record.number })
}
