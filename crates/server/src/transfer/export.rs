//! Reading a container, several partitions at once, into one file.
//!
//! The key space is divided into parts, first one for each physical partition. A reader asks for the pages of one part; when
//! its partition is gone, the part is cut at the borders of those that took its place, and each goes on with the same
//! continuation. All pages go through one writer, which stores how far each part has come.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, mpsc};

use super::items::{of_page, without_system};
use super::state::{Origin, StateFile};
use super::wire::{PartitionRange, Wire};
use super::{Export, Format, Place, lock};
use crate::job::progress_bar;

const PAGE_ITEMS: &str = "1000";
/// Pages that may wait for the writer, for each reader.
const PAGES_WAITING: usize = 2;
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// How long partitions may keep moving before a part gives up.
const MOVES_MAX: usize = 100;
const PAUSE_MOVED: Duration = Duration::from_millis(200);

/// How far an export has come.
#[derive(Serialize, Deserialize)]
struct State {
    #[serde(flatten)]
    origin: Origin,
    is_array: bool,
    /// Bytes of the file that count.
    bytes: u64,
    items: u64,
    parts: Vec<Part>,
}

/// A part of the key space.
#[derive(Clone, Serialize, Deserialize)]
struct Part {
    number: usize,
    min: String,
    max: String,
    continuation: Option<String>,
    is_done: bool,
}

/// What readers tell the writer.
enum Told {
    /// A page of a part: its items as text, and where the part goes on.
    Page { number: usize, items: Vec<Vec<u8>>, continuation: Option<String> },
    /// A part that is now several.
    Cut { number: usize, into: Vec<Part> },
}

/// What readers share.
struct Readers {
    place: Place,
    keeps_system: bool,
    waiting: Mutex<VecDeque<Part>>,
    /// The next number for a part.
    next_part: AtomicUsize,
    told: mpsc::Sender<Told>,
}

pub async fn run(export: Export) -> anyhow::Result<()> {
    let is_stdout = export.out.as_os_str() == "-";
    let state_file = (!is_stdout).then(|| StateFile::beside(&export.out, "export"));
    let mut wire = Wire::new(&export.place);
    let state = match state_file.as_ref().map(StateFile::read).transpose()?.flatten() {
        Some(state) => resumed(state, &export)?,
        None => fresh(&mut wire, &export).await?,
    };
    let total = wire.count().await.unwrap_or_default();
    let (told, tells) = mpsc::channel(usize::from(export.parallel) * PAGES_WAITING);
    let open = state.parts.iter().filter(|part| !part.is_done).cloned().collect();
    let readers = Arc::new(Readers {
        place: export.place.clone(),
        keeps_system: export.keep_system,
        waiting: Mutex::new(open),
        next_part: AtomicUsize::new(next_number(&state.parts)),
        told,
    });
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..export.parallel {
        tasks.spawn(read_parts(readers.clone()));
    }
    drop(readers);
    let writer = Writer::open(&export, state, state_file)?;
    let written = tokio::task::spawn_blocking(move || writer.run(tells, total));
    let mut failure = None;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended? {
            failure.get_or_insert(error);
        }
    }
    let written = written.await??;
    let items = written.items;
    conclude(&written, failure)?;
    eprintln!("{items} items");
    Ok(())
}

/// An export in which no reader failed is still none while a part of the key space was not read to its end.
fn conclude(written: &Written, failure: Option<anyhow::Error>) -> anyhow::Result<()> {
    let open = written.parts_open;
    let unread = (open > 0).then(|| anyhow!("{open} parts of the container were not read to their end"));
    match failure.or(unread) {
        Some(error) => Err(error.context("what was exported so far is kept; run it again to go on")),
        None => Ok(()),
    }
}

/// A number that no part has. Readers take numbers before the writer hears of their parts, so an interrupted export may
/// have left gaps, and there may be fewer parts than numbers.
fn next_number(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.number + 1).max().unwrap_or_default()
}

fn resumed(state: State, export: &Export) -> anyhow::Result<State> {
    ensure!(
        state.origin == Origin::of(&export.place) && state.is_array == (export.format == Format::Array),
        "the file has an unfinished export of {} in another format or place; delete its state to start anew",
        state.origin
    );
    eprintln!("going on behind {} items", state.items);
    Ok(state)
}

async fn fresh(wire: &mut Wire, export: &Export) -> anyhow::Result<State> {
    let ranges = wire.ranges().await?;
    let part = |(number, range): (usize, PartitionRange)| Part {
        number,
        min: range.min_inclusive,
        max: range.max_exclusive,
        continuation: None,
        is_done: false,
    };
    Ok(State {
        origin: Origin::of(&export.place),
        is_array: export.format == Format::Array,
        bytes: 0,
        items: 0,
        parts: ranges.into_iter().enumerate().map(part).collect(),
    })
}

async fn read_parts(readers: Arc<Readers>) -> anyhow::Result<()> {
    let mut wire = Wire::to_known(&readers.place);
    loop {
        let Some(part) = readers.waiting.lock().await.pop_front() else { return Ok(()) };
        read_part(&mut wire, &readers, part).await?;
    }
}

async fn read_part(wire: &mut Wire, readers: &Readers, mut part: Part) -> anyhow::Result<()> {
    let mut moves = 0;
    loop {
        let ranges = wire.ranges().await?;
        let within: Vec<&PartitionRange> = ranges
            .iter()
            .filter(|range| range.max_exclusive > part.min && range.min_inclusive < part.max)
            .collect();
        let [range] = within.as_slice() else {
            let into = cut(&part, &within, &readers.next_part);
            ensure!(!into.is_empty(), "the server lists no partition for a part of the key space");
            readers.tell(Told::Cut { number: part.number, into: into.clone() }).await?;
            readers.waiting.lock().await.extend(into);
            return Ok(());
        };
        if read_pages(wire, readers, &mut part, range).await? {
            return Ok(());
        }
        moves += 1;
        ensure!(moves < MOVES_MAX, "the partitions of the container do not come to rest");
        tokio::time::sleep(PAUSE_MOVED).await;
    }
}

/// The parts of a part, by the partitions that hold it now.
fn cut(part: &Part, ranges: &[&PartitionRange], numbers: &AtomicUsize) -> Vec<Part> {
    let piece = |range: &&PartitionRange| Part {
        number: numbers.fetch_add(1, Ordering::Relaxed),
        min: range.min_inclusive.clone().max(part.min.clone()),
        max: range.max_exclusive.clone().min(part.max.clone()),
        continuation: part.continuation.clone(),
        is_done: false,
    };
    ranges.iter().map(piece).collect()
}

/// Reads to the end; false when the partition is gone.
async fn read_pages(
    wire: &mut Wire,
    readers: &Readers,
    part: &mut Part,
    range: &PartitionRange,
) -> anyhow::Result<bool> {
    loop {
        let mut headers = vec![
            ("x-ms-documentdb-partitionkeyrangeid", range.id.clone()),
            ("x-ms-max-item-count", PAGE_ITEMS.to_owned()),
        ];
        if (&range.min_inclusive, &range.max_exclusive) != (&part.min, &part.max) {
            headers.push(("x-ms-read-key-type", "EffectivePartitionKeyRange".to_owned()));
            headers.push(("x-ms-start-epk", part.min.clone()));
            headers.push(("x-ms-end-epk", part.max.clone()));
        }
        headers.extend(part.continuation.clone().map(|token| ("x-ms-continuation", token)));
        let reply = wire.send(&Method::GET, "/docs", "docs", &headers, Bytes::new()).await?;
        if reply.status == StatusCode::GONE {
            return Ok(false);
        }
        if !reply.status.is_success() {
            return Err(reply.refusal());
        }
        let continuation = reply.header("x-ms-continuation").map(str::to_owned);
        let mut items = Vec::new();
        for item in of_page(&reply.body).context("the server sent a page that is not one")? {
            let mut text = Vec::with_capacity(item.get().len());
            match readers.keeps_system {
                true => text.extend_from_slice(item.get().as_bytes()),
                false => without_system(item.get(), &mut text)?,
            }
            items.push(text);
        }
        part.continuation.clone_from(&continuation);
        let is_last = continuation.is_none();
        readers.tell(Told::Page { number: part.number, items, continuation }).await?;
        if is_last {
            return Ok(true);
        }
    }
}

impl Readers {
    async fn tell(&self, told: Told) -> anyhow::Result<()> {
        if self.told.send(told).await.is_err() {
            bail!("the file can no longer be written");
        }
        Ok(())
    }
}

/// Writes the pages, and the state behind them.
struct Writer {
    out: Box<dyn Output>,
    state: State,
    state_file: Option<StateFile>,
    saved: Instant,
}

/// What has come of an export.
struct Written {
    items: u64,
    parts_open: usize,
}

trait Output: Write + Send {
    /// Makes durable what was written, where that can be.
    fn settle(&mut self) -> std::io::Result<()>;
}

impl Output for BufWriter<std::fs::File> {
    fn settle(&mut self) -> std::io::Result<()> {
        self.flush()?;
        self.get_ref().sync_data()
    }
}

impl Output for BufWriter<std::io::Stdout> {
    fn settle(&mut self) -> std::io::Result<()> {
        self.flush()
    }
}

impl Writer {
    fn open(export: &Export, state: State, state_file: Option<StateFile>) -> anyhow::Result<Writer> {
        let out: Box<dyn Output> = match &state_file {
            None => Box::new(BufWriter::new(std::io::stdout())),
            Some(_) => {
                let path = &export.out;
                let is_new = state.bytes == 0;
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
                let mut file = file.with_context(|| path.display().to_string())?;
                lock(&file, path)?;
                let held = file.metadata()?.len();
                ensure!(!is_new || held == 0, "{} is there already and not empty", path.display());
                ensure!(held >= state.bytes, "{} is shorter than its state says", path.display());
                file.set_len(state.bytes)?;
                file.seek(SeekFrom::End(0))?;
                Box::new(BufWriter::new(file))
            }
        };
        Ok(Writer { out, state, state_file, saved: Instant::now() })
    }

    fn run(mut self, mut tells: mpsc::Receiver<Told>, total: u64) -> anyhow::Result<Written> {
        let bar = progress_bar(total.max(1));
        let began = (Instant::now(), self.state.items);
        while let Some(told) = tells.blocking_recv() {
            self.take(told)?;
            bar.set_position(self.state.items);
            let seconds = began.0.elapsed().as_secs_f64().max(0.001);
            let rate = (self.state.items - began.1) as f64 / seconds;
            bar.set_message(format!("{} items, {rate:.0} items/s", self.state.items));
            if self.saved.elapsed() >= SAVE_INTERVAL {
                self.save()?;
            }
        }
        bar.finish_and_clear();
        let parts_open = self.state.parts.iter().filter(|part| !part.is_done).count();
        let written = Written { items: self.state.items, parts_open };
        if parts_open > 0 {
            self.save()?;
            return Ok(written);
        }
        if self.state.is_array {
            let end: &[u8] = if self.state.items == 0 { b"[]\n" } else { b"\n]\n" };
            self.out.write_all(end)?;
        }
        self.out.settle()?;
        if let Some(file) = &self.state_file {
            file.remove()?;
        }
        Ok(written)
    }

    fn take(&mut self, told: Told) -> anyhow::Result<()> {
        match told {
            Told::Page { number, items, continuation } => {
                for item in items {
                    self.write(&item)?;
                }
                let part = self.part(number)?;
                part.is_done = continuation.is_none();
                part.continuation = continuation;
            }
            Told::Cut { number, into } => {
                self.part(number)?.is_done = true;
                self.state.parts.extend(into);
            }
        }
        Ok(())
    }

    fn write(&mut self, item: &[u8]) -> anyhow::Result<()> {
        let before: &[u8] = match (self.state.is_array, self.state.items) {
            (false, _) => b"",
            (true, 0) => b"[\n",
            (true, _) => b",\n",
        };
        let after: &[u8] = if self.state.is_array { b"" } else { b"\n" };
        for piece in [before, item, after] {
            self.out.write_all(piece)?;
            self.state.bytes += piece.len() as u64;
        }
        self.state.items += 1;
        Ok(())
    }

    fn part(&mut self, number: usize) -> anyhow::Result<&mut Part> {
        let parts = &mut self.state.parts;
        parts.iter_mut().find(|part| part.number == number).context("a page of an unknown part")
    }

    fn save(&mut self) -> anyhow::Result<()> {
        if let Some(file) = &self.state_file {
            self.out.settle()?;
            file.write(&self.state)?;
        }
        self.saved = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(number: usize) -> Part {
        Part { number, min: String::new(), max: "FF".to_owned(), continuation: None, is_done: false }
    }

    fn state(numbers: &[usize]) -> State {
        let origin = json!({"endpoint": "http://localhost:8081/", "database": "d", "container": "c"});
        State {
            origin: serde_json::from_value(origin).expect("an origin"),
            is_array: false,
            bytes: 0,
            items: 0,
            parts: numbers.iter().copied().map(part).collect(),
        }
    }

    /// What comes of an export whose readers tell of the last page of some of its parts.
    fn written(state: State, finished: &[usize]) -> Written {
        let path = tempfile::tempdir().expect("a folder");
        let file = std::fs::File::create(path.path().join("out")).expect("a file");
        let (told, tells) = mpsc::channel(finished.len().max(1));
        for number in finished {
            let page = Told::Page { number: *number, items: vec![b"{}".to_vec()], continuation: None };
            assert!(told.try_send(page).is_ok(), "there is room");
        }
        drop(told);
        let out = Box::new(BufWriter::new(file));
        let writer = Writer { out, state, state_file: None, saved: Instant::now() };
        writer.run(tells, 0).expect("the file can be written")
    }

    #[test]
    fn a_resumed_export_gives_out_numbers_that_no_part_has() {
        assert_eq!(next_number(&[]), 0);
        // The parts 2 and 3 were given out, but the writer had not heard of them when the state was stored.
        let parts = state(&[0, 1, 4, 5]).parts;
        let numbers = AtomicUsize::new(next_number(&parts));
        let range = |min: &str, max: &str| PartitionRange {
            id: "0".to_owned(),
            min_inclusive: min.to_owned(),
            max_exclusive: max.to_owned(),
        };
        let (left, right) = (range("", "7F"), range("7F", "FF"));
        let pieces = cut(&parts[0], &[&left, &right], &numbers);
        let is_new = |piece: &Part| parts.iter().all(|part| part.number != piece.number);
        assert!(pieces.len() == 2 && pieces.iter().all(is_new));
    }

    #[test]
    fn an_export_with_an_unread_part_fails() {
        let whole = written(state(&[0, 1]), &[0, 1]);
        assert_eq!((whole.items, whole.parts_open), (2, 0));
        assert!(conclude(&whole, None).is_ok());
        let unread = written(state(&[0, 1]), &[0]);
        assert_eq!((unread.items, unread.parts_open), (1, 1));
        assert!(conclude(&unread, None).is_err());
    }
}
