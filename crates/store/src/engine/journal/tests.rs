//! What the journal promises: everything that was synced comes back, in its order, and damage is seen.

use super::*;

const NOTHING_IN_TABLES: Floors = [1; Keyspace::ALL.len()];

fn write(key: &str, value: Option<&[u8]>) -> Write {
    let value = value.map(Bytes::copy_from_slice);
    Write { keyspace: Keyspace::Item, key: Bytes::copy_from_slice(key.as_bytes()), value }
}

fn append(journal: &mut Journal, sequence: u64, bytes: usize) {
    append_over(journal, sequence, bytes, &NOTHING_IN_TABLES);
}

fn append_over(journal: &mut Journal, sequence: u64, bytes: usize, floors: &Floors) {
    let value = vec![sequence as u8; bytes];
    let writes = [write(&format!("key {sequence}"), Some(&value)), write("gone", None)];
    journal.append(sequence, &writes, floors).unwrap();
}

/// Opens a journal and returns the sequence numbers that it gave back.
fn open(folder: &Path) -> Result<(Journal, Vec<u64>), EngineError> {
    let mut found = Vec::new();
    let journal = Journal::open(folder, |sequence, writes| {
        if !writes.is_empty() {
            assert_eq!(writes[0].key, format!("key {sequence}"));
            assert!(writes[0].value.as_ref().unwrap().iter().all(|byte| *byte == sequence as u8));
            assert_eq!((&writes[1].key[..], &writes[1].value), (&b"gone"[..], &None));
            found.push(sequence);
        }
        Ok(())
    })?;
    Ok((journal, found))
}

/// A folder with three segments, all of which are needed.
fn three_segments() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for sequence in 1..=9 {
        append(&mut journal, sequence, 5 << 20);
    }
    dir
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

#[test]
fn batches_come_back_in_their_order_over_segments_and_starts() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for start in 0..4_u64 {
        let (mut journal, found) = open(dir.path()).unwrap();
        assert_eq!(found, expected);
        assert_eq!(journal.last(), expected.last().copied().unwrap_or(0));
        for number in 0..5 {
            let sequence = 1 + start * 100 + number * 7;
            append(&mut journal, sequence, 5 << 20);
            expected.push(sequence);
        }
        journal.sync().unwrap();
    }
    // A batch that is larger than a segment has one for itself.
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 1000, 40 << 20);
    append(&mut journal, 1001, 10);
    drop(journal);
    expected.extend([1000, 1001]);
    assert_eq!(open(dir.path()).unwrap().1, expected);
}

#[test]
fn segments_are_written_over_once_their_content_is_in_tables() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for sequence in 1..=100_u64 {
        let oldest = sequence.saturating_sub(4).max(1);
        append_over(&mut journal, sequence, 5 << 20, &[oldest; Keyspace::ALL.len()]);
        journal.free_before(oldest);
    }
    drop(journal);
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert!((3..=5).contains(&files), "{files} files");
    let (_, found) = open(dir.path()).unwrap();
    assert_eq!(found.last(), Some(&100));
    assert!(found.len() < 20 && found.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{found:?}");
}

#[test]
fn what_a_head_says_is_in_tables_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for sequence in 1..=9 {
        append(&mut journal, sequence, 100);
    }
    let mut floors = [10; Keyspace::ALL.len()];
    floors[Keyspace::Item as usize] = 8;
    journal.begin_segment(&floors).unwrap();
    drop(journal);
    assert_eq!(open(dir.path()).unwrap().1, [8, 9]);
    let (mut journal, _) = open(dir.path()).unwrap();
    journal.begin_segment(&[10; Keyspace::ALL.len()]).unwrap();
    drop(journal);
    let (journal, found) = open(dir.path()).unwrap();
    assert!(found.is_empty());
    assert_eq!(journal.last(), 9);
    assert!(journal.bytes() <= RECORDS_AT);
}

#[test]
fn a_torn_end_is_cut_off_and_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for sequence in 1..=3 {
        append(&mut journal, sequence, 1000);
    }
    let end = journal.bytes();
    drop(journal);
    // Cut in the content, in the head of the record, and damaged instead of cut.
    for cut in [10, 1030] {
        let file = OpenOptions::new().write(true).open(dir.path().join("0")).unwrap();
        file.set_len(end - cut).unwrap();
        let (journal, found) = open(dir.path()).unwrap();
        assert_eq!((found, journal.last()), (vec![1, 2], 2));
    }
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 3, 500);
    drop(journal);
    let (mut journal, found) = open(dir.path()).unwrap();
    assert_eq!(found, [1, 2, 3]);
    append(&mut journal, 4, 500);
    drop(journal);
    flip(&dir.path().join("2"), RECORDS_AT + 100);
    assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3]);
}

/// The end of a file that was written over holds whole records of its last life.
#[test]
fn records_of_an_earlier_life_do_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for sequence in 1..=20 {
        append(&mut journal, sequence, 1000);
    }
    journal.begin_segment(&[21; Keyspace::ALL.len()]).unwrap();
    journal.free_before(21);
    journal.begin_segment(&[21; Keyspace::ALL.len()]).unwrap();
    append(&mut journal, 21, 1000);
    drop(journal);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(open(dir.path()).unwrap().1, [21]);
}

/// Or somebody who knows the numbers could store bytes that read as a record once the file is written over.
#[test]
fn nobody_can_tell_how_records_are_checked() {
    let seeds: Vec<u64> = (0..4)
        .map(|_| {
            let dir = tempfile::tempdir().unwrap();
            let (mut journal, _) = open(dir.path()).unwrap();
            append(&mut journal, 1, 10);
            journal.active.unwrap().seed
        })
        .collect();
    assert!(seeds.windows(2).all(|pair| pair[0] != pair[1]), "{seeds:?}");
}

#[test]
fn a_file_after_which_there_is_no_other_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(u64::MAX.to_string()), b"").unwrap();
    assert!(matches!(open(dir.path()), Err(EngineError::Corrupt(_))));
}

#[test]
fn damage_before_the_end_is_refused() {
    let damages: [(&str, u64); 3] = [("0", 9), ("0", RECORDS_AT + 100), ("1", RECORDS_AT + 14)];
    for (file, at) in damages {
        let dir = three_segments();
        flip(&dir.path().join(file), at);
        let Err(error) = open(dir.path()) else { panic!("damage in {file} at {at} was not seen") };
        assert!(matches!(error, EngineError::Corrupt(_)), "{error}");
    }
}

#[test]
fn a_segment_that_is_missing_is_seen() {
    let dir = three_segments();
    std::fs::write(dir.path().join("1"), b"").unwrap();
    assert!(matches!(open(dir.path()), Err(EngineError::Corrupt(_))));
}

#[test]
fn the_oldest_segment_that_is_needed_must_be_there() {
    let dir = three_segments();
    std::fs::remove_file(dir.path().join("0")).unwrap();
    assert!(matches!(open(dir.path()), Err(EngineError::Corrupt(_))));
}

#[test]
fn a_spare_segment_is_made_once_and_used() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 1, 100);
    assert_eq!(journal.place_for_spare(), None);
    append(&mut journal, 2, 5 << 20);
    let path = journal.place_for_spare().unwrap();
    assert_eq!(journal.place_for_spare(), None);
    journal.add_spare(Spare::make(path).unwrap());
    for sequence in 3..=6 {
        append(&mut journal, sequence, 5 << 20);
    }
    drop(journal);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3, 4, 5, 6]);
    assert!(Spare::make(dir.path().join("no folder/1")).is_err());
}

/// A head must be durable that does not ask for them, before files are deleted.
#[test]
fn what_a_burst_left_is_deleted_after_the_next_head() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for sequence in 1..=30 {
        append(&mut journal, sequence, 5 << 20);
    }
    journal.free_before(30);
    assert_eq!(journal.take_surplus().len(), 0);
    let floors = [30; Keyspace::ALL.len()];
    for sequence in 31..=33 {
        append_over(&mut journal, sequence, 10 << 20, &floors);
    }
    journal.take_surplus().into_iter().for_each(Spare::delete);
    drop(journal);
    assert!(std::fs::read_dir(dir.path()).unwrap().count() <= FREE_MAX + 4);
    assert_eq!(open(dir.path()).unwrap().1, [30, 31, 32, 33]);
}

/// A new file may be there without a head: the machine stopped between the two.
#[test]
fn files_that_were_never_written_to_are_used() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path()).unwrap();
    std::fs::write(dir.path().join("0"), vec![0; 8192]).unwrap();
    std::fs::write(dir.path().join("1"), b"").unwrap();
    let (mut journal, found) = open(dir.path()).unwrap();
    assert!(found.is_empty());
    append(&mut journal, 1, 100);
    drop(journal);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(open(dir.path()).unwrap().1, [1]);
}
