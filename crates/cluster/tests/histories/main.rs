//! Procedures, triggers, batches and point writes at the same time, and a check that nobody was lied to.
//!
//! Every logical partition is a small bank with accounts, a counter and two people of whom one must be on duty:
//!
//! - *Transfers* read accounts, move money between two of them and write an entry. Some throw half way. Money is
//!   never made or lost, the entries are exactly those that were acknowledged, and balances follow from them.
//! - *Counting* is done by a procedure, by a trigger, by a patch and in batches. Each is told the number it
//!   reached: no two are told the same, and the last number is how many counted.
//! - *Duty*: a person who finds both on duty may leave. If two leave at the same time, each because the other was there,
//!   nobody is: write skew, which a check of written items alone would not find.
//!
//! *Audits*, by procedure and by batch, look at everything at once and find it in order at every moment. Items that
//! only failed scripts have made are never seen by anybody.
//!
//! The second test plants a bug, scripts that commit whatever happened since they began, and expects to be told.
//!
//! The seed is printed; `ORRERY_TEST_SEED` repeats a run, as far as threads let it, and `ORRERY_OPERATIONS` makes it longer.

mod bank;
mod scripts;
mod teller;

use std::sync::Arc;
use std::time::Instant;

use bank::Bank;
use orrery_testkit::Random;
use teller::{Teller, Told};

/// Operations on items that a run does at least.
const OPERATIONS: usize = 100_000;
/// Who works at the same time.
const TELLERS: usize = 12;
/// Operations after which a planted bug must have been found.
#[cfg(debug_assertions)]
const OPERATIONS_WITH_BUG: usize = 100_000;

fn seed() -> u64 {
    let given = std::env::var("ORRERY_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        now.as_nanos() as u64
    });
    println!("ORRERY_TEST_SEED={seed}");
    seed
}

/// Lets all tellers work until they have done so much, or something is wrong.
async fn work(bank: &Arc<Bank>, seed: u64, operations: usize) -> Told {
    let mut tasks = Vec::new();
    for number in 0..TELLERS {
        let random = Random::new(seed.wrapping_add(number as u64));
        let mut teller = Teller::new(bank.clone(), random, number);
        tasks.push(tokio::spawn(async move {
            while teller.told.operations < operations / TELLERS + 1 && !bank_is_wrong(&teller) {
                teller.work().await;
            }
            teller.told
        }));
    }
    let mut told = Told::default();
    for task in tasks {
        told.add(task.await.expect("no teller panics"));
    }
    told
}

/// One teller that has found something wrong ends the work of all.
fn bank_is_wrong(teller: &Teller) -> bool {
    if !teller.told.wrong.is_empty() {
        teller.bank.close();
    }
    teller.bank.is_closed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_made_or_seen_half_done() {
    let operations =
        std::env::var("ORRERY_OPERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(OPERATIONS);
    let (seed, started) = (seed(), Instant::now());
    let mut told = Told::default();
    // Scripts of one logical partition wait for each other to save work, and nothing must depend on it.
    for races in [false, true] {
        let bank = Arc::new(if races { Bank::in_memory().await } else { Bank::on_disk().await });
        if races {
            bank.db.let_scripts_race();
        }
        let half = work(&bank, seed, operations / 2).await;
        let wrong = bank.check(&half).await;
        bank.db.close().await;
        told.add(half);
        told.wrong.extend(wrong);
    }
    println!("{} in {:.1} s", told.summary(), started.elapsed().as_secs_f64());
    assert!(told.wrong.is_empty(), "seed {seed}: {:#?}", &told.wrong[..told.wrong.len().min(10)]);
    assert!(told.operations >= operations, "{} operations are too few", told.operations);
    for (what, count) in told.kinds() {
        assert!(count > 0, "nothing of this kind was done: {what}");
    }
}

/// The bug can be planted in builds with assertions only.
#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_planted_bug_is_found() {
    let seed = seed();
    let bank = Arc::new(Bank::in_memory().await);
    bank.db.let_scripts_race();
    bank.db.ignore_script_conflicts();
    let mut told = work(&bank, seed, OPERATIONS_WITH_BUG).await;
    let wrong = bank.check(&told).await;
    told.wrong.extend(wrong);
    println!("{}; {}", told.summary(), told.wrong.first().map_or("nothing was found", String::as_str));
    assert!(!told.wrong.is_empty(), "scripts overwrote what others wrote, and nobody noticed");
}
