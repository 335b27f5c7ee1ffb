//! Writing the items of files into a container, many at once.
//!
//! Items are upserts, so one may be written twice. Each goes to the worker that its partition key chooses: what belongs
//! to one logical partition keeps its order. The state remembers the place in the file up to which everything was
//! acknowledged.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Error, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::items::{Items, KeyPaths, line_of};
use super::state::{Origin, StateFile};
use super::wire::Wire;
use super::{Import, Place, lock};
use crate::job::progress_bar;

/// Items that wait for one worker.
const WAITING: usize = 16;
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 256 * 1024;
/// Bytes in front of the place where an import goes on, by which its file is known again.
const REMEMBERED_BYTES: u64 = 4 * 1024;
/// How often a write is repeated because partitions are moving.
const MOVES_MAX: usize = 100;
const PAUSE_MOVED: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
struct State {
    #[serde(flatten)]
    origin: Origin,
    /// Everything before this byte of the file was written.
    offset: u64,
    /// The digest of what stands in front of that byte: a file in which other text stands there is another file.
    before: String,
}

/// One item on its way.
struct Item {
    /// Its place among the items of this run, and where it ends in its file.
    number: u64,
    end: u64,
    key: String,
    body: Bytes,
}

pub async fn run(import: Import) -> anyhow::Result<()> {
    let mut wire = Wire::new(&import.place);
    let paths = wire.key_paths().await?;
    let mut total = 0;
    for file in &import.files {
        total += import_file(&import, &paths, file).await.with_context(|| file.display().to_string())?;
    }
    eprintln!("{total} items");
    Ok(())
}

async fn import_file(import: &Import, paths: &KeyPaths, path: &Path) -> anyhow::Result<u64> {
    // One import at a time: two would share the state.
    let data = File::open(path)?;
    lock(&data, path)?;
    let state_file = StateFile::beside(path, "import");
    let offset = match state_file.read::<State>()? {
        None => 0,
        Some(state) => {
            let anew = format!("delete {} to start anew", state_file.path().display());
            ensure!(
                state.origin == Origin::of(&import.place),
                "a part of it was imported into {}; go on there, or {anew}",
                state.origin
            );
            ensure!(
                data.metadata()?.len() >= state.offset,
                "the file is shorter than its state says; {anew}"
            );
            ensure!(
                digest_before(&data, state.offset)? == state.before,
                "what was imported of it has changed since, before byte {}; {anew}",
                state.offset
            );
            eprintln!("{}: going on at byte {}", path.display(), state.offset);
            state.offset
        }
    };
    let bar = progress_bar(std::fs::metadata(path)?.len().max(1));
    let (done, dones) = mpsc::channel(usize::from(import.parallel) * WAITING);
    let mut tasks = tokio::task::JoinSet::new();
    let mut workers = Vec::new();
    for _ in 0..import.parallel {
        let (give, given) = mpsc::channel(WAITING);
        workers.push(give);
        tasks.spawn(write_items(import.place.clone(), path.to_owned(), given, done.clone()));
    }
    drop(done);
    let sent = Arc::new(AtomicU64::new(0));
    let reader = read_items(path.to_owned(), offset, paths.clone(), workers, sent.clone());
    let reader = tokio::task::spawn_blocking(reader);
    let keeper = Keeper { import, data: &data, state_file: &state_file, offset, bar: &bar };
    let kept = keeper.run(dones).await;
    let mut failure = None;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended? {
            failure.get_or_insert(error);
        }
    }
    let read = reader.await?;
    let items = kept?;
    bar.finish_and_clear();
    match failure.map_or(read, Err) {
        Ok(()) => {
            ensure!(items == sent.load(Ordering::Relaxed), "not every item was acknowledged");
            state_file.remove()?;
            Ok(items)
        }
        Err(error) if error.is::<BadFile>() => Err(error),
        Err(error) => Err(error.context("what was imported so far is remembered; run it again to go on")),
    }
}

/// The digest of the last bytes in front of an offset.
fn digest_before(data: &File, offset: u64) -> std::io::Result<String> {
    let from = offset.saturating_sub(REMEMBERED_BYTES);
    let mut bytes = vec![0; (offset - from) as usize];
    data.read_exact_at(&mut bytes, from)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the file and gives each item to its worker. It ends early when a worker has given up.
fn read_items(
    path: PathBuf,
    offset: u64,
    paths: KeyPaths,
    workers: Vec<mpsc::Sender<Item>>,
    sent: Arc<AtomicU64>,
) -> impl FnOnce() -> anyhow::Result<()> {
    move || {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut items = Items::new(BufReader::with_capacity(READ_BYTES, file), offset);
        loop {
            let before = items.offset();
            let next = items.next().map_err(|error| bad_file(error, &path, before))?;
            let Some((body, end)) = next else { return Ok(()) };
            let value: serde_json::Value =
                serde_json::from_slice(&body).map_err(|error| bad_file(error.into(), &path, before))?;
            let key = paths.header(&value);
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            let worker = &workers[(hasher.finish() % workers.len() as u64) as usize];
            let number = sent.fetch_add(1, Ordering::Relaxed);
            if worker.blocking_send(Item { number, end, key, body: body.into() }).is_err() {
                return Ok(());
            }
        }
    }
}

/// The file itself is wrong: to read it again would change nothing.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}; what stands before it is written. Mend the file and import it again")]
struct BadFile {
    line: u64,
    why: Error,
}

/// What went wrong between two items; a disk that cannot be read says nothing about the file.
fn bad_file(why: Error, path: &Path, before: u64) -> anyhow::Error {
    match why.kind() {
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => {
            // The last item may have ended in front of the end of its line.
            let line = line_of(path, before + u64::from(before > 0));
            BadFile { line, why }.into()
        }
        _ => why.into(),
    }
}

/// Writes what it is given, one after the other, and says which are done.
async fn write_items(
    place: Place,
    path: PathBuf,
    mut given: mpsc::Receiver<Item>,
    done: mpsc::Sender<(u64, u64)>,
) -> anyhow::Result<()> {
    let mut wire = Wire::to_known(&place);
    while let Some(item) = given.recv().await {
        let written = (item.number, item.end);
        let outcome = write_item(&mut wire, item).await;
        outcome.with_context(|| format!("line {}, into {}", line_of(&path, written.1), place.name()))?;
        if done.send(written).await.is_err() {
            bail!("the import has ended");
        }
    }
    Ok(())
}

async fn write_item(wire: &mut Wire, item: Item) -> anyhow::Result<()> {
    let headers = [
        ("x-ms-documentdb-partitionkey", item.key),
        ("x-ms-documentdb-is-upsert", "True".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("prefer", "return=minimal".to_owned()),
    ];
    for _ in 0..MOVES_MAX {
        let reply = wire.send(&Method::POST, "/docs", "docs", &headers, item.body.clone()).await?;
        match reply.status {
            status if status.is_success() => return Ok(()),
            // Its partition has just split; the server knows the new one by itself.
            StatusCode::GONE => tokio::time::sleep(PAUSE_MOVED).await,
            _ => return Err(reply.refusal()),
        }
    }
    bail!("the partitions of the container do not come to rest")
}

/// Remembers how far the file was written, although items are done out of order.
struct Keeper<'i> {
    import: &'i Import,
    data: &'i File,
    state_file: &'i StateFile,
    offset: u64,
    bar: &'i ProgressBar,
}

impl Keeper<'_> {
    async fn run(mut self, mut dones: mpsc::Receiver<(u64, u64)>) -> anyhow::Result<u64> {
        let (began, mut saved) = (Instant::now(), Instant::now());
        let mut items = 0;
        // The first item that is not done, and those behind it that are, with where they end.
        let (mut next, mut ahead) = (0, BTreeMap::new());
        while let Some((number, end)) = dones.recv().await {
            items += 1;
            ahead.insert(number, end);
            while let Some(end) = ahead.remove(&next) {
                self.offset = end;
                next += 1;
            }
            self.bar.set_position(self.offset);
            let rate = items as f64 / began.elapsed().as_secs_f64().max(0.001);
            self.bar.set_message(format!("{items} items, {rate:.0} items/s"));
            if saved.elapsed() >= SAVE_INTERVAL {
                self.save()?;
                saved = Instant::now();
            }
        }
        self.save()?;
        Ok(items)
    }

    fn save(&self) -> anyhow::Result<()> {
        self.state_file.write(&State {
            origin: Origin::of(&self.import.place),
            offset: self.offset,
            before: digest_before(self.data, self.offset)?,
        })
    }
}
