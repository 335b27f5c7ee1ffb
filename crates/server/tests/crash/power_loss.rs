//! Take the power away at any moment, give it back, and compare.
//!
//! One run of a real server is written down, call by call, with all that it wrote to its files; it is killed and started
//! again half-way, so that the second life builds on what the first had not synced. From that the disk can be put
//! back to any moment, losing what a disk may lose, and a server started on it.

use std::path::Path;
use std::time::Duration;

use orrery_testkit::{Client, Random, Server, eventually};

use crate::disk::{Disk, Loss, Survivors};
use crate::trace::Traced;
use crate::writer::{self, Moment, Writer};
use crate::{OPTIONS, binary, create_containers, storm, verify};

/// Filling of the largest items, in bytes, and how many writes there are with it. Write buffers are flushed at rest after
/// each. The second fills more than a segment of the journal.
const STORMS: [(usize, u64); 3] = [(8_000, 150), (100_000, 400), (8_000, 150)];
/// Writes of a life before it is ended.
const LAST_WRITES: u64 = 100;
/// How often the power goes, where `ORRERY_LOSSES` does not say otherwise.
const LOSSES: usize = 48;
/// Losses of which a server that had answered before its last sync would not stand one.
const CONTROLS: usize = 8;

#[test]
fn nothing_acknowledged_is_lost_to_a_power_cut() {
    let mut random = Random::from_environment();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a new folder");
    let mut disk = Disk::new(&data);
    let mut writers = writer::some(random.seed());

    let traced = Traced::start(&data, folder.path().join("first"));
    create_containers(traced.port());
    let authority = authority(&mut Client::new(traced.port()));
    let begun = writer::now();
    live(&data, traced, &mut writers, &mut disk);
    let traced = Traced::start(&data, folder.path().join("second"));
    let mut client = Client::new(traced.port());
    for writer in &mut writers {
        writer.settle(&mut client).expect("a kill loses nothing");
    }
    live(&data, traced, &mut writers, &mut disk);
    let (tables, merged) = disk.turnover("tables");
    let segments = disk.beginnings("journal");
    let is_enough = tables > 10 && merged > 3 && segments > 2;
    assert!(is_enough, "{tables} tables, {merged} merged, {segments} segments: the test proves little");

    let acknowledged: Vec<Moment> =
        writers.iter().flat_map(|writer| writer.history()).filter_map(|step| step.answered).collect();
    let mut turns = disk.turning_points();
    turns.retain(|moment| *moment > begun);
    let place = folder.path().join("place");
    let losses = std::env::var("ORRERY_LOSSES").ok().and_then(|text| text.parse().ok()).unwrap_or(LOSSES);
    for number in 0..losses {
        let at = *random.pick(if number.is_multiple_of(2) { &turns } else { &acknowledged });
        let survivors = *random.pick(&[Survivors::None, Survivors::Some, Survivors::Some, Survivors::All]);
        let loss = Loss { at, survivors, unsynced: None };
        disk.lose_power(loss, &mut random, &place);
        let found = if number.is_multiple_of(4) { verify(&place) } else { Ok(()) };
        let found = found.and_then(|()| compare(&place, &writers, at, &authority));
        found.unwrap_or_else(|finding| panic!("{loss:?} after {:?}: {finding}", since(begun, at)));
        std::fs::remove_dir_all(&place).expect("our own folder");
    }

    // What finds nothing must be able to find something.
    let is_found_out = (0..CONTROLS).any(|_| {
        let at = *random.pick(&acknowledged);
        let loss = Loss { at, survivors: Survivors::None, unsynced: Some("journal") };
        disk.lose_power(loss, &mut random, &place);
        let found = compare(&place, &writers, at, &authority);
        std::fs::remove_dir_all(&place).expect("our own folder");
        found.is_err()
    });
    assert!(is_found_out, "a missing sync is not noticed");
    println!(
        "{losses} losses of power in {} acknowledged writes, {tables} tables and {segments} segments: 0 lost",
        acknowledged.len()
    );
}

/// Storms with rests between them, until tables have been flushed and merged, and a kill in the last storm.
fn live(data: &Path, traced: Traced, writers: &mut [Writer], disk: &mut Disk) {
    let port = traced.port();
    let mut oldest = None;
    for (fill_max, writes) in STORMS {
        writers.iter_mut().for_each(|writer| writer.fill_max = fill_max);
        oldest = oldest_table(data);
        let newest = newest_table(data);
        storm(writers, port, Duration::ZERO, writes, || {});
        eventually("write buffers are flushed at rest", || newest_table(data) > newest);
    }
    eventually("tables are merged at rest", || oldest_table(data) > oldest);
    let mut calls = Vec::new();
    storm(writers, port, Duration::ZERO, LAST_WRITES, || calls = traced.kill());
    disk.play(calls);
}

/// Tables of items, by their numbers.
fn tables(data: &Path) -> Vec<u64> {
    let names = std::fs::read_dir(data.join("item/tables")).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn newest_table(data: &Path) -> Option<u64> {
    tables(data).into_iter().max()
}

fn oldest_table(data: &Path) -> Option<u64> {
    tables(data).into_iter().min()
}

/// Starts a server on what is left, and asks it for everything that clients were told.
fn compare(place: &Path, writers: &[Writer], at: Moment, trusted: &[u8]) -> Result<(), String> {
    let server = Server::try_start_on(binary(), place, &OPTIONS)?;
    let mut client = Client::new(server.port());
    if authority(&mut client) != trusted {
        return Err("the authority that clients trust is another one".to_owned());
    }
    writers.iter().try_for_each(|writer| writer.belief_at(at).check(&mut client).map(drop))
}

/// What clients trust.
fn authority(client: &mut Client) -> Vec<u8> {
    let reply = client.send("GET", "/_explorer/emulator.pem", &[], b"").expect("the server is up");
    assert_eq!(reply.status, 200);
    reply.body
}

fn since(begun: Moment, at: Moment) -> Duration {
    Duration::from_micros(at.saturating_sub(begun))
}
