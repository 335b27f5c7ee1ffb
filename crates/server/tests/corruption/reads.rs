//! Which bytes of a directory a start and a scan read, as `strace` saw it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use orrery_testkit::{Random, Server, eventually};

use crate::{OPTIONS, binary};

/// For each file, by its path in the directory, the parts that were read.
pub struct Reads(HashMap<PathBuf, Vec<(u64, u64)>>);

impl Reads {
    pub fn has(&self, file: &Path) -> bool {
        self.0.contains_key(file)
    }

    pub fn hits(&self, file: &Path, offset: u64) -> bool {
        self.0.get(file).is_some_and(|parts| parts.iter().any(|(from, to)| (*from..*to).contains(&offset)))
    }

    /// A place of a file that was read.
    pub fn place(&self, file: &Path, random: &mut Random) -> Option<u64> {
        let (from, to) = *random.pick(self.0.get(file)?);
        Some(from + random.below((to - from) as usize) as u64)
    }
}

/// Starts a server on a directory, asks it, and tells what it has read meanwhile.
pub fn of<T>(directory: &Path, ask: impl FnOnce(u16) -> T) -> (T, Reads) {
    let found = Command::new("strace").arg("--version").output();
    assert!(found.is_ok(), "this test needs strace (apt-get install strace; `make test` does that)");
    let trace = directory.with_extension("trace");
    let mut strace = Command::new("strace");
    strace.args(["-D", "-f", "-y", "-s", "0", "--seccomp-bpf", "-e", "trace=openat,read,pread64,lseek"]);
    strace.arg("-o").arg(&trace).arg(binary());
    let server = Server::start_as(strace, directory, &OPTIONS);
    let (id, answer) = (server.id(), ask(server.port()));
    server.kill();
    let mut text = String::new();
    eventually("the trace has an end", || {
        text = std::fs::read_to_string(&trace).unwrap_or_default();
        text.lines().last().is_some_and(|line| line.starts_with(&format!("{id} ")) && line.ends_with("+++"))
    });
    let _ = std::fs::remove_file(&trace);
    (answer, Reads(understand(&text, directory)))
}

fn understand(text: &str, directory: &Path) -> HashMap<PathBuf, Vec<(u64, u64)>> {
    let mut parts: HashMap<PathBuf, Vec<(u64, u64)>> = HashMap::new();
    let mut begun: HashMap<&str, String> = HashMap::new();
    let mut positions: HashMap<String, u64> = HashMap::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some((first, _)) = call.split_once("<unfinished") {
            begun.insert(thread, first.to_owned());
            continue;
        }
        let call = match call.split_once(" resumed>") {
            Some((_, rest)) => begun.remove(thread).unwrap_or_default() + rest,
            None => call.to_owned(),
        };
        let Some((call, result)) = call.rsplit_once(" = ") else { continue };
        let Some((name, arguments)) = call.trim_end().trim_end_matches(')').split_once('(') else { continue };
        let words: Vec<&str> = arguments.split(", ").collect();
        if name == "openat" {
            positions.insert(result.to_owned(), 0);
            continue;
        }
        let Ok(count) = result.split(' ').next().unwrap_or_default().parse::<u64>() else { continue };
        let file = words[0];
        let from = match name {
            "lseek" => {
                positions.insert(file.to_owned(), count);
                continue;
            }
            "pread64" => words.last().and_then(|word| word.parse().ok()).unwrap_or(0),
            _ => {
                let position = positions.entry(file.to_owned()).or_default();
                *position += count;
                *position - count
            }
        };
        let path = file.split_once('<').map(|(_, path)| Path::new(path.trim_end_matches('>')));
        if let Some(path) = path.and_then(|path| path.strip_prefix(directory).ok()).filter(|_| count > 0) {
            parts.entry(path.to_owned()).or_default().push((from, from + count));
        }
    }
    parts
}
