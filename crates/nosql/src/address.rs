//! Finding what a path names: by id or by RID, never by a mixture.
//!
//! Ids are tried first. Text that is no id may be a RID, as links in `_self` are made of them; then
//! every segment must be one, and each must lie within the one before it.

use std::sync::Arc;

use orrery_cluster::{Catalog, Container, Database, Rid};

use crate::errors::{Own, Refusal};

/// A container, and whether the client named it by RID: an item in the same path is then named by RID too.
#[derive(Clone)]
pub(crate) struct ContainerAddress {
    pub container: Arc<Container>,
    pub by_rid: bool,
}

/// The database that the text names.
pub(crate) fn database(catalog: &Catalog, text: &str) -> Option<Arc<Database>> {
    find_database(catalog, text).map(|(database, _)| database.clone())
}

/// The database as the owner of something else in the path.
pub(crate) fn owner_database(catalog: &Catalog, text: &str) -> Result<Arc<Database>, Refusal> {
    database(catalog, text).ok_or_else(|| Own::OwnerNotFound.into())
}

/// The container, for itself or as the owner of what the request is about. The service tells a missing database apart
/// from everything else that is missing, and a missing container from nothing: its clients find out by themselves.
pub(crate) fn container(catalog: &Catalog, database: &str, text: &str) -> Result<ContainerAddress, Refusal> {
    let (owner, by_rid) = find_database(catalog, database).ok_or(Own::OwnerNotFound)?;
    find_container(catalog, owner, by_rid, text)
        .map(|container| ContainerAddress { container, by_rid })
        .ok_or_else(|| Own::NotFound.into())
}

/// The database, and whether the client named it by RID.
pub(crate) fn find_database<'c>(catalog: &'c Catalog, text: &str) -> Option<(&'c Arc<Database>, bool)> {
    if let Some(database) = catalog.database(text) {
        return Some((database, false));
    }
    let rid = rid_of_length(text, 4)?;
    catalog.database_by_rid(rid).map(|database| (database, true))
}

fn find_container(catalog: &Catalog, owner: &Database, by_rid: bool, text: &str) -> Option<Arc<Container>> {
    if !by_rid {
        return owner.container(text).cloned();
    }
    let rid = rid_of_length(text, 8)?;
    (rid.database_part() == Some(owner.resource.rid)).then_some(())?;
    catalog.container_by_rid(rid).cloned()
}

/// A RID of the given length in bytes, written as the service writes it: padding included.
pub(crate) fn rid_of_length(text: &str, bytes: usize) -> Option<Rid> {
    let padding = (3 - bytes % 3) % 3;
    let digits = text.trim_end_matches('=').len();
    if text.len() != bytes.div_ceil(3) * 4 || text.len() - digits != padding {
        return None;
    }
    Rid::parse(text).filter(|rid| rid.as_bytes().len() == bytes)
}

/// A RID of any length that resources of the catalog have.
pub(crate) fn catalog_rid(text: &str) -> Option<Rid> {
    [3, 4, 8].into_iter().find_map(|bytes| rid_of_length(text, bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rids_are_read_by_length() {
        assert!(rid_of_length("YOt1AA==", 4).is_some());
        assert!(rid_of_length("YOt1APKY9kQ=", 8).is_some());
        assert!(rid_of_length("YOt1APKY9kQBAAAAAAAAAA==", 16).is_some());
        assert!(rid_of_length("AbCd", 3).is_some());
        for (text, bytes) in
            [("YOt1AA", 4), ("YOt1AAAA", 4), ("abcdefghijklmnopqrstuvwx", 16), ("", 3), ("====", 3)]
        {
            assert_eq!(rid_of_length(text, bytes), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[A-Za-z0-9+/=-]{0,30}|\\PC{0,30}") {
            for bytes in [3, 4, 8, 16] {
                if let Some(rid) = rid_of_length(&text, bytes) {
                    prop_assert_eq!(rid.as_bytes().len(), bytes);
                }
            }
        }
    }
}
