//! Bringing a stored directory to the format of this build, before anything else is written to it.
//!
//! Every format is opened by its number. One that this build can still read is converted here, once, in one commit: from then on
//! the directory says that it is of the new format, and older builds refuse it instead of misreading what comes to be
//! written. Partition states are read in their old form and written in the new one with the next commit of each partition.

use orrery_doc::Epk;
use orrery_store::engine::Engine;
use orrery_store::{Action, Group, Op, Precondition, Txn};

use super::changes::record_target;
use super::load::Loaded;
use super::record::{FORMAT, Record};
use crate::options::{DbOptions, OpenError};
use crate::range::Range;

/// Writes the format's number and the account's record, unless they are stored already.
pub fn upgrade(
    engine: &Engine,
    catalog_range: &Range,
    loaded: &mut Loaded,
    options: &DbOptions,
) -> Result<(), OpenError> {
    let is_current = loaded.counters.format == FORMAT && loaded.is_account_stored;
    if is_current {
        return Ok(());
    }
    let (before, records) = (loaded.counters.format, loaded.records);
    loaded.counters.format = FORMAT;
    let account = loaded.catalog.account().as_ref().clone();
    write(
        engine,
        catalog_range,
        [Record::Account(account), Record::Counters(loaded.counters.clone())],
        options,
    )?;
    if before != FORMAT {
        tracing::info!(
            from = before,
            to = FORMAT,
            records,
            "the data directory was brought to the format of this build"
        );
    }
    Ok(())
}

/// Commits records before anybody can ask for them.
fn write(engine: &Engine, range: &Range, records: [Record; 2], options: &DbOptions) -> Result<(), OpenError> {
    let (snapshot, schema) = (engine.snapshot(), range.replica.schema.load_full());
    let mut group = Group::new(&range.replica.partition, &snapshot, &schema, options.limits);
    let put = |record: Record| Op {
        target: record_target(&record.id()),
        action: Action::Upsert(record.to_doc()),
        precondition: Precondition::None,
        indexed: false,
        unlinked: false,
    };
    let ops = records.into_iter().map(put).collect();
    let txn = Txn { scope: Epk::MIN, key: None, ops, now: range.replica.world().now() };
    group.run(&txn).map_err(|refusal| OpenError::Catalog(refusal.error.to_string()))?;
    let mut prepared = group.finish();
    let mut batch = std::mem::take(&mut prepared.batch);
    // A full disk must not keep a server from starting.
    batch.set_frees(true);
    engine.commit(batch)?;
    engine.persist()?;
    range.replica.partition.publish(range.replica.partition.apply(prepared));
    Ok(())
}
