//! Deleting all items of one logical partition.

use std::sync::Arc;

use orrery_doc::{Epk, EpkRange, PartitionKey, epk};
use orrery_store::limits::PAGE_BYTES_MAX;
use orrery_store::{Action, Op, Precondition, Scan, Target, View};

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::receipt::Receipt;
use crate::request::WriteOptions;

/// Items that one transaction deletes, and their bytes, which the history may have to keep; a larger logical partition
/// takes several.
const ITEMS_PER_TXN: usize = 1_000;
const BYTES_PER_TXN: usize = PAGE_BYTES_MAX;

impl Db {
    /// Deletes everything under a full partition key that was there when the request came.
    pub async fn delete_partition(&self, container: &Arc<Container>, key: &PartitionKey) -> Result<Receipt> {
        let scope = epk(&container.definition.key, key);
        let mut receipt = Receipt::default();
        loop {
            let (ids, last) = self.ids_within(container, &scope)?;
            if ids.is_empty() {
                return Ok(receipt);
            }
            let delete = |id| Op {
                target: Target::Id(id),
                action: Action::Delete,
                precondition: Precondition::None,
                indexed: true,
            };
            let ops = ids.into_iter().map(delete).collect();
            match self.write(container, key, ops, &WriteOptions::default()).await {
                Ok(reply) => receipt = reply.receipt,
                // Somebody else deleted one of them first: look again.
                Err(error) if matches!(error.kind, ErrorKind::Op { .. }) => continue,
                Err(error) => return Err(error),
            }
            if last {
                return Ok(receipt);
            }
        }
    }

    /// The ids of the next transaction, and whether that is all.
    fn ids_within(&self, container: &Container, scope: &Epk) -> Result<(Vec<String>, bool)> {
        let range = container.range_of(scope);
        let lsn = self.admit(container, range, None)?;
        let snapshot = self.inner.committer.snapshot_owned();
        let (mut ids, mut bytes, mut is_full) = (Vec::new(), 0, false);
        let view = View::new(&range.partition, &snapshot, lsn, range.lifetimes());
        let from_here = EpkRange::new(scope.clone(), Epk::max());
        let scanned = view.scan(&from_here, None, |key, item| {
            if key.epk != *scope || is_full {
                return Scan::Stop;
            }
            ids.push(key.id);
            bytes += item.header.json_bytes as usize;
            is_full = ids.len() >= ITEMS_PER_TXN || bytes >= BYTES_PER_TXN;
            Scan::Continue
        });
        scanned.map_err(|error| ErrorKind::Op { place: 0, error })?;
        Ok((ids, !is_full))
    }
}
