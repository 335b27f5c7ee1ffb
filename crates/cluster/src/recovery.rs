//! What a start does about an end of the journal that was never known to be durable.
//!
//! The writes in it are gone. With `relaxed` durability clients were told of them, and readers may have seen them, so
//! their LSNs, ETags and RIDs must not be given to others. All partitions leap ahead by more than can have been lost, and the
//! leap is durable before anything is served. It is the first commit after the start: a start that is interrupted before
//! finds the torn end again.

use orrery_store::engine::{Batch, Engine, EngineError};
use orrery_store::{Lsn, Partition};

use crate::catalog::Catalog;

/// Partitions whose LSNs the log tells.
const TOLD_MAX: usize = 16;

/// Reports what was not as it should be, and makes good what can be.
pub fn recover(engine: &Engine, catalog_partition: &Partition, catalog: &Catalog) -> Result<(), EngineError> {
    for remark in engine.remarks() {
        tracing::warn!("{remark}");
    }
    let Some(torn) = engine.torn_tail() else { return Ok(()) };
    let ranges = catalog.containers().flat_map(|container| &container.ranges);
    let partitions = std::iter::once(catalog_partition).chain(ranges.map(|range| &range.replica.partition));
    let mut batch = Batch::new();
    let leaps: Vec<(u32, Lsn, Lsn)> = partitions
        .map(|partition| {
            let (before, after) = partition.leap(&mut batch);
            (partition.spec.number, before, after)
        })
        .collect();
    engine.commit(batch)?;
    engine.persist()?;
    let tell = |(number, before, after): &(u32, Lsn, Lsn)| {
        format!("partition {number}: from {} to {}", before.0, after.0)
    };
    let lsns: Vec<String> = leaps.iter().take(TOLD_MAX).map(tell).collect();
    tracing::warn!(
        file = %torn.file.display(),
        offset = torn.offset,
        sequence = torn.sequence,
        partitions = leaps.len(),
        lsns = lsns.join("; "),
        "the end of the journal was being written when the server stopped, and is left out: it had never been known to be \
         durable. LSNs leap so that none is given twice"
    );
    Ok(())
}
