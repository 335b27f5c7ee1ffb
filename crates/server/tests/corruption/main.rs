//! A bad disk, a slip of the hand, a restored file: whatever happens to the files of a stopped server, the next start refuses,
//! or the read that meets it does, or it makes no difference. Nothing is lost in silence.

mod answers;
mod damage;
mod formats;
mod looking;
mod reads;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use damage::{Case, Fate, kind};
use orrery_testkit::Random;

/// Small files; throughput is not what is tested here.
const OPTIONS: [&str; 3] = ["--no-throttle", "--write-buffer-bytes", "32KiB"];
/// How many cases there are, where `ORRERY_CORRUPTIONS` does not say otherwise.
const CASES: usize = 520;
/// Cases that run at once.
const THREADS: usize = 2;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

#[test]
fn no_damage_to_a_file_loses_anything_in_silence() {
    let mut random = Random::from_environment();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let bases = world::build(folder.path(), random.number());
    let asked = std::env::var("ORRERY_CORRUPTIONS").ok().and_then(|text| text.parse().ok());
    let cases: Vec<Case<'_>> =
        (0..asked.unwrap_or(CASES)).map(|_| Case::choose(&bases, &mut random)).collect();
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    let results: Mutex<Vec<(usize, Result<Fate, String>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let place = folder.path().join(format!("place-{thread}"));
            let (cases, next, results) = (&cases, &next, &results);
            scope.spawn(move || {
                while let Some((number, case)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(number).map(|case| (number, case))
                } {
                    let fate = case.run(&place);
                    results.lock().expect("no panic").push((number, fate));
                }
            });
        }
    });
    let results = results.into_inner().expect("no panic");
    assert_eq!(results.len(), cases.len());
    let losses: Vec<String> = results
        .iter()
        .filter_map(|(number, fate)| Some(format!("{}: {}", cases[*number], fate.as_ref().err()?)))
        .collect();
    report(&cases, &results, begun);
    assert!(losses.is_empty(), "{} silent losses:\n{}", losses.len(), losses.join("\n"));
    let read = cases.iter().filter(|case| case.is_read).count();
    assert!(read * 2 >= cases.len(), "{read} of {} cases hit what is read", cases.len());
}

/// A table by kind of file.
fn report(cases: &[Case<'_>], results: &[(usize, Result<Fate, String>)], begun: Instant) {
    let mut rows: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
    for (number, fate) in results {
        let case = &cases[*number];
        for row in [kind(&case.file), "~ all"] {
            let counts = rows.entry(row).or_default();
            counts[0] += 1;
            counts[1] += usize::from(case.is_read);
            if let Some(column) =
                fate.as_ref().ok().and_then(|fate| Fate::ALL.iter().position(|other| other == fate))
            {
                counts[2 + column] += 1;
            }
        }
    }
    println!(
        "{:28} {:>6} {:>6} {:>9} {:>8} {:>7} {:>7}",
        "", "cases", "read", "at start", "at read", "healed", "none"
    );
    for (name, counts) in rows {
        let [cases, read, start, reading, healed, none] = counts;
        println!("{name:28} {cases:>6} {read:>6} {start:>9} {reading:>8} {healed:>7} {none:>7}");
    }
    println!("{:.0} s", begun.elapsed().as_secs_f64());
}
