//! A disk that loses its power: what is on it then is what was synced, and perhaps some of the rest.
//!
//! It promises no more than POSIX does. The content of a file is kept once the file was synced, its name once its folder
//! was. Of what was written since, every sector is kept or lost by itself; names change in their order, as in the journal
//! of a file system, so that any number of the last changes may be lost.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use orrery_testkit::Random;

use crate::trace::{Call, Fd, What};
use crate::writer::Moment;

const SECTOR: usize = 512;

/// A file or a folder, and all that was ever done to it.
struct Node {
    is_folder: bool,
    changes: Vec<Change>,
    /// From when to when it was synced.
    syncs: Vec<(Moment, Moment)>,
}

struct Change {
    start: Moment,
    end: Option<Moment>,
    what: Edit,
}

enum Edit {
    Write { at: u64, data: Vec<u8> },
    SetLength(u64),
    Allocate(u64),
    Link { name: String, node: usize },
    Unlink { name: String },
    Rename { from: String, to: String },
}

struct OpenFile {
    node: usize,
    position: u64,
}

pub struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
    /// What the process sees under each path.
    live: HashMap<PathBuf, usize>,
}

/// How much survives of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    None,
    Some,
    All,
}

/// How and when the power goes.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub at: Moment,
    pub survivors: Survivors,
    /// The last sync of any file below this folder did not happen: what a server would leave that answers too soon.
    pub unsynced: Option<&'static str>,
}

impl Disk {
    /// An empty folder, which is durable itself.
    pub fn new(root: &Path) -> Disk {
        let folder = Node { is_folder: true, changes: Vec::new(), syncs: Vec::new() };
        Disk { root: root.to_owned(), nodes: vec![folder], live: HashMap::from([(root.to_owned(), 0)]) }
    }

    /// Takes over what a process has done. What processes before it have left to the system is still there for it.
    pub fn play(&mut self, mut calls: Vec<Call>) {
        // A number stands for a file from the end of the call that opens it to the beginning of the one that closes it.
        calls.sort_by_key(|call| match call.what {
            What::Open { .. } => call.end.unwrap_or(call.start),
            _ => call.start,
        });
        let mut open = HashMap::new();
        for call in calls {
            self.take(call, &mut open);
        }
    }

    fn take(&mut self, call: Call, open: &mut HashMap<Fd, OpenFile>) {
        let Call { start, end, what } = call;
        match what {
            What::Open { path, creates, truncates, fd } => {
                open.remove(&fd);
                if let Some(node) = self.open(&path, creates, truncates, (start, end)) {
                    open.insert(fd, OpenFile { node, position: 0 });
                }
            }
            What::Close { fd } => drop(open.remove(&fd)),
            What::Rename { from, to } => self.rename(&from, &to, (start, end)),
            What::Remove { path } => self.remove(&path, (start, end)),
            What::MakeFolder { path } => drop(self.create(&path, true, (start, end))),
            What::Seek { fd, to } => {
                if let Some(file) = open.get_mut(&fd) {
                    file.position = to;
                }
            }
            What::Write { fd, at, data } => {
                let Some(file) = open.get_mut(&fd) else { return };
                let place = at.unwrap_or(file.position);
                if at.is_none() {
                    file.position += data.len() as u64;
                }
                self.change(file.node, (start, end), Edit::Write { at: place, data });
            }
            What::SetLength { fd, length } => {
                self.change_open(open, fd, (start, end), Edit::SetLength(length))
            }
            What::Allocate { fd, length } => self.change_open(open, fd, (start, end), Edit::Allocate(length)),
            What::Sync { fd } => {
                if let (Some(file), Some(end)) = (open.get(&fd), end) {
                    self.nodes[file.node].syncs.push((start, end));
                }
            }
        }
    }

    fn change(&mut self, node: usize, (start, end): (Moment, Option<Moment>), what: Edit) {
        self.nodes[node].changes.push(Change { start, end, what });
    }

    fn change_open(
        &mut self,
        open: &HashMap<Fd, OpenFile>,
        fd: Fd,
        time: (Moment, Option<Moment>),
        what: Edit,
    ) {
        if let Some(file) = open.get(&fd) {
            self.change(file.node, time, what);
        }
    }

    fn open(
        &mut self,
        path: &Path,
        creates: bool,
        truncates: bool,
        time: (Moment, Option<Moment>),
    ) -> Option<usize> {
        match self.live.get(path) {
            Some(&node) => {
                if truncates {
                    self.change(node, time, Edit::SetLength(0));
                }
                Some(node)
            }
            None if creates => self.create(path, false, time),
            None => {
                assert!(!path.starts_with(&self.root), "{} came from nowhere", path.display());
                None
            }
        }
    }

    /// Elsewhere than on this disk nothing is created.
    fn create(&mut self, path: &Path, is_folder: bool, time: (Moment, Option<Moment>)) -> Option<usize> {
        let (folder, name) = self.place(path)?;
        let node = self.nodes.len();
        self.nodes.push(Node { is_folder, changes: Vec::new(), syncs: Vec::new() });
        self.live.insert(path.to_owned(), node);
        self.change(folder, time, Edit::Link { name, node });
        Some(node)
    }

    fn rename(&mut self, from: &Path, to: &Path, time: (Moment, Option<Moment>)) {
        let (Some((folder, from_name)), Some((other, to_name))) = (self.place(from), self.place(to)) else {
            return;
        };
        assert_eq!(folder, other, "only names in one folder are exchanged");
        let node = self.live.remove(from).expect("what is renamed is there");
        self.live.insert(to.to_owned(), node);
        self.change(folder, time, Edit::Rename { from: from_name, to: to_name });
    }

    fn remove(&mut self, path: &Path, time: (Moment, Option<Moment>)) {
        if let Some((folder, name)) = self.place(path) {
            self.live.remove(path).expect("what is removed is there");
            self.change(folder, time, Edit::Unlink { name });
        }
    }

    /// The folder that a path is in, and its name there; nothing if it is not on this disk.
    fn place(&self, path: &Path) -> Option<(usize, String)> {
        let folder = *self.live.get(path.parent()?)?;
        Some((folder, path.file_name()?.to_str()?.to_owned()))
    }

    /// The moments at which names come and go, which is where flushes, merges and new segments begin and end.
    pub fn turning_points(&self) -> Vec<Moment> {
        let folders = self.nodes.iter().filter(|node| node.is_folder);
        let around = |change: &Change| [change.start, change.end.unwrap_or(change.start)];
        folders.flat_map(|folder| folder.changes.iter().flat_map(around)).collect()
    }

    /// How many names have come and gone in the folders of this name.
    pub fn turnover(&self, folder: &str) -> (usize, usize) {
        let folders = self.live.iter().filter(|(path, _)| path.ends_with(folder));
        let changes: Vec<&Edit> =
            folders.flat_map(|(_, node)| &self.nodes[*node].changes).map(|change| &change.what).collect();
        let come = changes.iter().filter(|edit| matches!(edit, Edit::Link { .. })).count();
        let gone = changes.iter().filter(|edit| matches!(edit, Edit::Unlink { .. })).count();
        (come, gone)
    }

    /// How often files in the folders of this name were begun, also anew.
    pub fn beginnings(&self, folder: &str) -> usize {
        let inside =
            self.live.iter().filter(|(path, _)| path.parent().is_some_and(|path| path.ends_with(folder)));
        let changes = inside.flat_map(|(_, node)| &self.nodes[*node].changes);
        changes.filter(|change| matches!(change.what, Edit::Write { at: 0, .. })).count()
    }

    /// Lays out in a folder what is on the disk after the power has gone.
    pub fn lose_power(&self, loss: Loss, random: &mut Random, into: &Path) {
        self.lay_out(0, false, loss, random, into);
    }

    fn lay_out(&self, node: usize, unsynced: bool, loss: Loss, random: &mut Random, into: &Path) {
        let node = &self.nodes[node];
        if !node.is_folder {
            let content = node.content(unsynced, loss, random);
            let file = File::create(into).expect("a place to try it");
            return file.write_all_at(&content, 0).expect("a place to try it");
        }
        fs::create_dir_all(into).expect("a place to try it");
        let mut names: Vec<(String, usize)> = node.names(loss, random).into_iter().collect();
        names.sort();
        for (name, child) in names {
            let unsynced = unsynced || loss.unsynced == Some(name.as_str());
            self.lay_out(child, unsynced, loss, random, &into.join(name));
        }
    }
}

impl Node {
    /// What is kept for sure when the power goes, and what is not.
    fn changes_until(&self, loss: Loss, unsynced: bool) -> (Vec<&Change>, Vec<&Change>) {
        let mut syncs: Vec<Moment> =
            self.syncs.iter().filter(|(_, end)| *end <= loss.at).map(|(start, _)| *start).collect();
        syncs.sort_unstable();
        if unsynced {
            syncs.pop();
        }
        let synced = syncs.last().copied().unwrap_or(0);
        let begun = self.changes.iter().filter(|change| change.start <= loss.at);
        begun.partition(|change| change.end.is_some_and(|end| end <= synced))
    }

    fn names(&self, loss: Loss, random: &mut Random) -> HashMap<String, usize> {
        let (kept, pending) = self.changes_until(loss, false);
        let survivors = match loss.survivors {
            Survivors::None => 0,
            Survivors::Some => random.below(pending.len() + 1),
            Survivors::All => pending.len(),
        };
        let mut names = HashMap::new();
        for change in kept.into_iter().chain(pending.into_iter().take(survivors)) {
            match &change.what {
                Edit::Link { name, node } => drop(names.insert(name.clone(), *node)),
                Edit::Unlink { name } => drop(names.remove(name)),
                Edit::Rename { from, to } => {
                    let node = names.remove(from).expect("names change in their order");
                    names.insert(to.clone(), node);
                }
                _ => unreachable!("a folder has names only"),
            }
        }
        names
    }

    fn content(&self, unsynced: bool, loss: Loss, random: &mut Random) -> Vec<u8> {
        let (kept, pending) = self.changes_until(loss, unsynced);
        let mut content = Vec::new();
        for change in kept {
            edit(&mut content, &change.what, || true);
        }
        for change in pending {
            let fate = match loss.survivors {
                // A write is lost, torn, or kept.
                Survivors::Some => *random.pick(&[Survivors::None, Survivors::Some, Survivors::All]),
                all_or_none => all_or_none,
            };
            edit(&mut content, &change.what, || match fate {
                Survivors::None => false,
                Survivors::Some => random.one_in(2),
                Survivors::All => true,
            });
        }
        content
    }
}

/// Carries out a change as far as it survives: a write by sectors, anything else as a whole.
fn edit(content: &mut Vec<u8>, what: &Edit, mut survives: impl FnMut() -> bool) {
    match what {
        Edit::Write { at, data } => {
            let mut begin = 0;
            while begin < data.len() {
                let place = *at as usize + begin;
                let end = data.len().min(begin + SECTOR - place % SECTOR);
                if survives() {
                    let until = place + end - begin;
                    content.resize(content.len().max(until), 0);
                    content[place..until].copy_from_slice(&data[begin..end]);
                }
                begin = end;
            }
        }
        Edit::SetLength(length) if survives() => content.resize(*length as usize, 0),
        Edit::Allocate(length) if survives() => content.resize(content.len().max(*length as usize), 0),
        Edit::SetLength(_) | Edit::Allocate(_) => {}
        Edit::Link { .. } | Edit::Unlink { .. } | Edit::Rename { .. } => unreachable!("a file has no names"),
    }
}
