//! What the journal promises: everything that was synced comes back, in its order, and damage is seen.

use std::cell::RefCell;

use super::*;

thread_local! {
    static WHILE_SYNCING: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// What this thread does the next time that it syncs for the committer.
pub fn do_while_syncing(what: impl FnOnce() + 'static) {
    WHILE_SYNCING.set(Some(Box::new(what)));
}

pub fn while_syncing() {
    if let Some(what) = WHILE_SYNCING.take() {
        what();
    }
}

const SEGMENT_BYTES: u64 = 16 << 20;
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
    let place = JournalPlace::new(folder.to_owned(), folder.join("mark"), SEGMENT_BYTES);
    let mut journal = Journal::open(&place, Access::Own, &mut |sequence, writes| {
        if !writes.is_empty() {
            assert_eq!(writes[0].key, format!("key {sequence}"));
            assert!(writes[0].value.as_ref().unwrap().iter().all(|byte| *byte == sequence as u8));
            assert_eq!((&writes[1].key[..], &writes[1].value), (&b"gone"[..], &None));
            found.push(sequence);
        }
        Ok(())
    })?;
    journal.keep_mark()?;
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

/// How many segments there are.
fn files(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name != "mark").count()
}

/// The text with which a journal is refused.
fn refusal(folder: &Path) -> String {
    match open(folder) {
        Ok((_, found)) => panic!("opened with {found:?}"),
        Err(error) => error.to_string(),
    }
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
    let files = files(dir.path());
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
    append(&mut journal, 1, 1000);
    append(&mut journal, 2, 1000);
    journal.sync().unwrap();
    let begin = journal.bytes();
    append(&mut journal, 3, 1000);
    let end = journal.bytes();
    drop(journal);
    // Lost in the content and in the head of the record.
    for (from, to) in [(end - 10, end + 8), (begin + 20, begin + 30)] {
        zero(&dir.path().join("0"), from, to);
        let (journal, found) = open(dir.path()).unwrap();
        assert_eq!((found, journal.last()), (vec![1, 2], 2));
        let file = dir.path().join("0");
        assert_eq!(journal.torn_tail(), Some(&TornTail { file, offset: begin, sequence: 2 }));
    }
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 3, 500);
    drop(journal);
    let (mut journal, found) = open(dir.path()).unwrap();
    assert_eq!((found, journal.torn_tail()), (vec![1, 2, 3], None));
    append(&mut journal, 4, 500);
    drop(journal);
    flip(&dir.path().join("2"), RECORDS_AT + 100);
    let (journal, found) = open(dir.path()).unwrap();
    assert_eq!(found, [1, 2, 3]);
    assert_eq!(journal.torn_tail().map(|torn| torn.offset), Some(RECORDS_AT));
}

fn zero(path: &Path, from: u64, to: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; (to - from) as usize], from).unwrap();
}

/// A folder with so many records, each synced, and where each of them begins and the last ends.
fn synced_records(count: u64) -> (tempfile::TempDir, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    let mut begins = vec![RECORDS_AT];
    for sequence in 1..=count {
        append(&mut journal, sequence, 700);
        journal.sync().unwrap();
        begins.push(journal.bytes());
    }
    (dir, begins)
}

/// Two thousand creates acknowledged, and one bit flipped in the middle.
#[test]
fn a_flipped_bit_in_what_was_durable_is_refused_with_its_place() {
    let (dir, begins) = synced_records(200);
    let path = dir.path().join("0");
    for number in [0, 1, 100, 198, 199] {
        for at in [0, 9, 13, 20, 28, 36, 300] {
            flip(&path, begins[number] + at);
            let text = refusal(dir.path());
            assert!(text.contains(&format!("{}, byte {}", path.display(), begins[number])), "{text}");
            assert!(text.contains("restore"), "{text}");
            flip(&path, begins[number] + at);
        }
    }
    assert_eq!(open(dir.path()).unwrap().1.len(), 200);
}

/// The machine lost its power: the mark beside the journal is an old one, and the records must tell.
#[test]
fn later_records_tell_what_was_durable_without_the_mark() {
    let (dir, begins) = synced_records(50);
    std::fs::remove_file(dir.path().join("mark")).unwrap();
    let path = dir.path().join("0");
    for number in [0, 20, 48] {
        flip(&path, begins[number] + 8);
        let text = refusal(dir.path());
        assert!(text.contains(&format!("byte {}", begins[number])), "{text}");
        flip(&path, begins[number] + 8);
    }
    // Nothing follows the last one. It is left out and reported.
    flip(&path, begins[49] + 100);
    let (journal, found) = open(dir.path()).unwrap();
    assert_eq!(found.len(), 49);
    assert_eq!(journal.torn_tail().map(|torn| torn.offset), Some(begins[49]));
}

/// With relaxed durability several batches may be unsynced, and the system writes them in any order.
#[test]
fn any_part_of_what_was_not_synced_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 1, 2000);
    journal.sync().unwrap();
    let mut begins = Vec::new();
    for sequence in 2..=6 {
        begins.push(journal.bytes());
        append(&mut journal, sequence, 2000);
    }
    drop(journal);
    zero(&dir.path().join("0"), begins[1], begins[1] + 512);
    let (journal, found) = open(dir.path()).unwrap();
    assert_eq!((found, journal.last()), (vec![1, 2], 2));
    assert_eq!(journal.torn_tail().map(|torn| torn.offset), Some(begins[1]));
    drop(journal);
    // What follows the torn place is of no interest once another segment has been begun.
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 3, 10);
    journal.sync().unwrap();
    drop(journal);
    let (journal, found) = open(dir.path()).unwrap();
    assert_eq!((found, journal.torn_tail()), (vec![1, 2, 3], None));
}

#[test]
fn a_segment_that_is_cut_off_is_refused() {
    let (dir, begins) = synced_records(20);
    let path = dir.path().join("0");
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 100, RECORDS_AT, begins[3], begins[10] + 50, begins[20], SEGMENT_BYTES - 1] {
        for keeps_mark in [true, false] {
            let mark = std::fs::read(dir.path().join("mark")).unwrap();
            std::fs::write(&path, &whole[..length as usize]).unwrap();
            if !keeps_mark {
                std::fs::write(dir.path().join("mark"), b"").unwrap();
            }
            // Without the mark a file that was never begun looks like one that was cut off before its first head ends.
            if keeps_mark || length >= RECORDS_AT {
                refusal(dir.path());
            }
            std::fs::write(dir.path().join("mark"), mark).unwrap();
        }
    }
}

#[test]
fn an_older_copy_of_the_newest_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    let mut copies = Vec::new();
    for sequence in 1..=5 {
        append(&mut journal, sequence, 700);
        journal.sync().unwrap();
        copies.push(std::fs::read(dir.path().join("0")).unwrap());
    }
    drop(journal);
    for copy in &copies[..4] {
        std::fs::write(dir.path().join("0"), copy).unwrap();
        assert!(refusal(dir.path()).contains("durable"));
    }
    std::fs::write(dir.path().join("0"), &copies[4]).unwrap();
    assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3, 4, 5]);
}

/// The newest holds the last writes, and the one before it looks like a whole journal.
#[test]
fn a_newest_segment_that_is_missing_is_refused() {
    for removed in [true, false] {
        let dir = three_segments();
        match removed {
            true => std::fs::remove_file(dir.path().join("2")).unwrap(),
            false => zero(&dir.path().join("2"), 0, RECORDS_AT),
        }
        assert!(refusal(dir.path()).contains("generation 3"));
    }
}

#[test]
fn a_head_is_there_twice() {
    let (dir, _) = synced_records(20);
    let path = dir.path().join("0");
    for at in [0, 9, 20, 50, 80, 2048, 2060, 2130] {
        flip(&path, at);
        let (journal, found) = open(dir.path()).unwrap();
        assert_eq!((found.len(), journal.remarks().len()), (20, 1), "{at}");
        drop(journal);
        // The start has written it again.
        assert_eq!(open(dir.path()).unwrap().0.remarks().len(), 0, "{at}");
    }
    flip(&path, 9);
    flip(&path, 2060);
    refusal(dir.path());
}

/// The power goes while a file is begun anew: of its two heads one is of the last life, or does not read back.
#[test]
fn a_segment_that_was_being_begun_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    append(&mut journal, 1, 100);
    journal.begin_segment(&[2; Keyspace::ALL.len()]).unwrap();
    journal.free_before(2);
    append_over(&mut journal, 2, 100, &[2; Keyspace::ALL.len()]);
    journal.sync().unwrap();
    let before = std::fs::read(dir.path().join("0")).unwrap();
    let mark = std::fs::read(dir.path().join("mark")).unwrap();
    journal.begin_segment(&[2; Keyspace::ALL.len()]).unwrap();
    drop(journal);
    let after = std::fs::read(dir.path().join("0")).unwrap();
    assert_ne!(before[..100], after[..100], "the first file is the one that is begun anew");
    for survivors in 0..4 {
        for garbles in [false, true] {
            let mut torn = before.clone();
            for (bit, place) in [(1, 0), (2, 2048)] {
                if survivors & bit != 0 {
                    torn[place..place + 2048].copy_from_slice(&after[place..place + 2048]);
                } else if garbles {
                    torn[place + 10] ^= 1;
                }
            }
            std::fs::write(dir.path().join("0"), torn).unwrap();
            std::fs::write(dir.path().join("mark"), &mark).unwrap();
            let (_, found) = open(dir.path()).unwrap();
            assert_eq!(found, [2], "{survivors} {garbles}");
        }
    }
}

/// A journal of the build before: its records are read, and what comes next is of the present format.
#[test]
fn a_journal_of_the_first_format_is_read_and_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = old_journal(dir.path(), 5);
    let (mut journal, found) = open(dir.path()).unwrap();
    assert_eq!((found, journal.has_current_format()), (vec![1, 2, 3, 4, 5], false));
    append(&mut journal, 6, 100);
    assert!(journal.has_current_format());
    journal.sync().unwrap();
    drop(journal);
    assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3, 4, 5, 6]);
    // A torn end is cut off; a record in the middle is damage.
    for (place, is_refused) in [(records.pop().unwrap(), false), (records[2], true)] {
        let dir = tempfile::tempdir().unwrap();
        old_journal(dir.path(), 5);
        flip(&dir.path().join("0"), place + 60);
        match is_refused {
            true => assert!(refusal(dir.path()).contains(&format!("byte {place}"))),
            false => assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3, 4]),
        }
    }
}

#[test]
fn a_record_in_pieces_has_the_bytes_of_the_whole() {
    let (seed, sequence, place) = (77, 5, (8192, 4096));
    let keys = (seed, &Tags::of(seed));
    let large = vec![7; 2_500_000];
    let many: Vec<Write> =
        (0..60_000_u32).map(|number| write(&format!("key {number}"), Some(&number.to_le_bytes()))).collect();
    for writes in
        [vec![], vec![write("gone", None)], vec![write("a", Some(&large)), write("b", Some(&large))], many]
    {
        let (mut whole, mut buffer) = (Vec::new(), Vec::new());
        record::encode(&mut whole, keys, place, sequence, &writes).unwrap();
        let (mut pieces, mut places, mut longest) = (Vec::new(), Vec::new(), 0);
        let mut put = |at: u64, piece: &[u8]| {
            let end = at as usize + piece.len();
            pieces.resize(pieces.len().max(end), 0);
            pieces[at as usize..end].copy_from_slice(piece);
            places.push(at);
            longest = longest.max(piece.len());
            Ok(())
        };
        let end = record::encode_in_pieces(&mut buffer, keys, place, sequence, &writes, &mut put).unwrap();
        assert!(pieces == whole && end as usize == whole.len() - END_BYTES, "{} writes", writes.len());
        assert_eq!(places.last(), Some(&0), "before its head there is no record");
        let write_bytes = writes.iter().map(Write::journal_bytes).max().unwrap_or(0);
        assert!(longest < PIECE_BYTES + write_bytes + END_BYTES + RECORD_HEAD, "{longest} bytes at once");
    }
}

/// Writes a segment as the build before did, and returns where its records begin.
fn old_journal(folder: &Path, count: u64) -> Vec<u64> {
    let (seed, floors) = (77, NOTHING_IN_TABLES);
    let head = Head { format: Format::Old, generation: 4, seed, previous: 0, length: 0, floors };
    let mut bytes = head.encode_old();
    bytes.resize(RECORDS_AT as usize, 0);
    let mut begins = Vec::new();
    for sequence in 1..=count {
        let value = vec![sequence as u8; 200];
        let writes = [write(&format!("key {sequence}"), Some(&value)), write("gone", None)];
        let mut buffer = Vec::new();
        record::encode(&mut buffer, (0, &Tags::of(0)), (0, 0), sequence, &writes).unwrap();
        begins.push(bytes.len() as u64);
        bytes.extend(old::encode(seed, sequence, &buffer[RECORD_HEAD..buffer.len() - END_BYTES]));
    }
    std::fs::write(folder.join("0"), bytes).unwrap();
    begins
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
    assert_eq!(files(dir.path()), 2);
    assert_eq!(open(dir.path()).unwrap().1, [21]);
}

#[test]
fn long_records_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path()).unwrap();
    for (sequence, bytes) in [(1, 10), (2, 3_000_000), (3, 10), (4, 20_000_000), (5, PIECE_BYTES)] {
        append(&mut journal, sequence, bytes);
    }
    drop(journal);
    assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3, 4, 5]);
}

/// Or a client that knows the numbers could store bytes that read as a record once the file is written over.
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
    let damages: [(&str, &[u64]); 3] =
        [("0", &[9, 2057]), ("0", &[RECORDS_AT + 100]), ("1", &[RECORDS_AT + 14])];
    for (file, places) in damages {
        let dir = three_segments();
        places.iter().for_each(|at| flip(&dir.path().join(file), *at));
        let Err(error) = open(dir.path()) else { panic!("damage in {file} at {places:?} was not seen") };
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
    assert_eq!(files(dir.path()), 2);
    assert_eq!(open(dir.path()).unwrap().1, [1, 2, 3, 4, 5, 6]);
    assert!(Spare::make((dir.path().join("no folder/1"), SEGMENT_BYTES)).is_err());
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
    assert!(files(dir.path()) <= FREE_MAX + 4);
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
    assert_eq!(files(dir.path()), 2);
    assert_eq!(open(dir.path()).unwrap().1, [1]);
}
