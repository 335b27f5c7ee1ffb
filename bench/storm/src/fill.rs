//! Fills a small disk, to see how the engine refuses and how it comes back.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use orrery_store::engine::{Batch, Engine, EngineError, Keyspace};

use crate::Settings;
use crate::workload::{self, Random};

/// Space that is taken away before and given back after the disk is full.
const BALLAST_BYTES: usize = 64 << 20;
/// Writes that must succeed after space was given back.
const AFTER: u64 = 1000;

/// Writes until the engine refuses, gives space back, and writes on; every acknowledged write must be
/// there at the end.
pub fn fill(settings: &Settings, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let ballast = dir.join("ballast");
    std::fs::write(&ballast, vec![7; BALLAST_BYTES])?;
    let full = dir.join("full");
    let mut engine = Engine::open(settings.options(&full))?;
    let mut random = Random(1);
    let mut next = 0;
    let refusal = loop {
        match commit(&engine, workload::insert(&mut random, next, next)) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
    };
    println!("{next} writes, then: {refusal}");
    check(&engine, next)?;
    std::fs::remove_file(&ballast)?;
    for item in next..next + AFTER {
        let batch = workload::insert(&mut random, item, item);
        match commit(&engine, batch.clone()) {
            Ok(()) => {}
            // Without a reserve, background work met the full disk itself.
            Err(EngineError::Stopped(reason)) => {
                drop(engine);
                engine = Engine::open(settings.options(&full))?;
                println!("opened again, because: {reason}");
                check(&engine, item)?;
                commit(&engine, batch)?;
            }
            Err(other) => bail!("an unexpected refusal: {other}"),
        }
    }
    check(&engine, next + AFTER)?;
    if let Err(error) = engine.close() {
        println!("an unclean stop, because: {error}");
    }
    drop(engine);
    check(&Engine::open(settings.options(&full))?, next + AFTER)?;
    println!("{AFTER} more writes after space came back; all acknowledged writes are there");
    Ok(())
}

fn commit(engine: &Engine, batch: Batch) -> Result<(), EngineError> {
    engine.commit(batch)?;
    engine.persist()
}

fn check(engine: &Engine, items: u64) -> Result<()> {
    let snapshot = engine.snapshot();
    for item in 0..items {
        ensure!(snapshot.contains(Keyspace::Item, &workload::item_key(item))?, "item {item} is missing");
    }
    Ok(())
}
