//! One case: a file of a directory is damaged, and a server started on what is left.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use orrery_testkit::{Random, Server};

use crate::answers::{Answers, Difference};
use crate::support::{SOCKET_PATIENCE, http};
use crate::world::{self, Base, copy_all, files};
use crate::{OPTIONS, binary};

/// What is done to a file.
#[derive(Clone, Debug)]
pub enum Damage {
    /// A bit at an offset.
    Flip(u64, u8),
    Truncate(u64),
    Remove,
    /// The same file at an earlier time.
    Older(PathBuf),
    /// The folder of the directory that the file is in, with all that it has.
    RemoveFolder,
}

pub struct Case<'a> {
    pub base: &'a Base,
    pub file: PathBuf,
    pub damage: Damage,
    /// Whether a start or a scan reads what was damaged.
    pub is_read: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    RefusedAtStart,
    RefusedAtRead,
    Healed,
    NoEffect,
}

impl Fate {
    pub const ALL: [Fate; 4] = [Fate::RefusedAtStart, Fate::RefusedAtRead, Fate::Healed, Fate::NoEffect];
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} {:?}", self.base.name, self.file.display(), self.damage)
    }
}

/// The kind of a file.
pub fn kind(file: &Path) -> &'static str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    match (folder, name) {
        ("journal", _) => "journal segment",
        ("tables", _) => match file.iter().next().and_then(|name| name.to_str()) {
            Some("item") => "table of items, catalog too",
            Some("index") => "table of index",
            Some("feed") => "table of feed",
            _ => "table of meta",
        },
        ("tls", _) => "tls",
        (_, "current") => "current",
        (_, "manifest") => "manifest",
        (_, "mark") => "mark",
        (_, "lock") => "lock",
        (_, name) if name.starts_with('v') => "list of tables",
        _ => "other",
    }
}

impl<'a> Case<'a> {
    /// Chooses a case. All kinds of files are as likely, and most places are such that are read.
    pub fn choose(bases: &'a [Base], random: &mut Random) -> Case<'a> {
        loop {
            let base = random.pick(bases);
            let all = files(&base.directory);
            let mut kinds: Vec<&str> = all.iter().map(|file| kind(file)).collect();
            kinds.sort_unstable();
            kinds.dedup();
            let chosen = *random.pick(&kinds);
            let candidates: Vec<&PathBuf> = all.iter().filter(|file| kind(file) == chosen).collect();
            let file = (*random.pick(&candidates)).clone();
            if let Some(case) = Case::of(base, file, random) {
                return case;
            }
        }
    }

    fn of(base: &'a Base, file: PathBuf, random: &mut Random) -> Option<Case<'a>> {
        let length = fs::metadata(base.directory.join(&file)).ok()?.len();
        let is_read = base.reads.has(&file);
        let older = |folder: &PathBuf| {
            let path = folder.join(&file);
            let content = fs::read(&path).ok()?;
            (fs::read(base.directory.join(&file)).ok()? != content).then_some(path)
        };
        let is_in_folder = file.components().count() > 1;
        let (damage, is_read) = match random.below(10) {
            0 if is_in_folder && random.one_in(3) => (Damage::RemoveFolder, is_read),
            0 => (Damage::Remove, is_read),
            1 if length > 0 => (Damage::Truncate(random.below(length as usize) as u64), is_read),
            2 | 3 => {
                let older: Vec<PathBuf> = base.older.iter().filter_map(older).collect();
                (Damage::Older(older.get(random.below(older.len().max(1)))?.clone()), is_read)
            }
            _ if length > 0 => {
                let read = base.reads.place(&file, random).filter(|_| !random.one_in(4));
                let at = read.unwrap_or_else(|| random.below(length as usize) as u64).min(length - 1);
                (Damage::Flip(at, random.below(8) as u8), base.reads.hits(&file, at))
            }
            _ => return None,
        };
        Some(Case { base, file, damage, is_read })
    }

    /// Damages a copy of the directory, starts a server on it, and compares. An error is a silent loss.
    pub fn run(&self, place: &Path) -> Result<Fate, String> {
        let log = place.with_extension("log");
        copy_all(&self.base.directory, place);
        self.carry_out(&place.join(&self.file));
        let fate = match Server::try_start_logged(binary(), place, &OPTIONS, &log) {
            Err(_) => {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let says_why = said.contains("orrery: ") && !said.contains("panicked");
                if says_why {
                    Ok(Fate::RefusedAtStart)
                } else {
                    Err(format!("refused without a reason: {said}"))
                }
            }
            Ok(server) => {
                let fate = self.use_it(server, place, &log);
                let said = fs::read_to_string(&log).unwrap_or_default();
                match fate {
                    Ok(_) if said.contains("panicked") => Err(said),
                    Ok(Fate::NoEffect) if self.is_told_in(&said) => Ok(Fate::Healed),
                    fate => fate,
                }
            }
        };
        let _ = fs::remove_file(&log);
        fs::remove_dir_all(place).expect("our own folder");
        fate
    }

    /// What was accepted at the start answers as before, takes a write, and does both after another start.
    fn use_it(&self, server: Server, place: &Path, log: &Path) -> Result<Fate, String> {
        let compare = |server: &Server, what: &str| {
            let answers = Answers::gather(server.port(), &self.base.ids);
            match answers.compare(&self.base.expected) {
                Difference::Wrong(text) => Err(format!("{what}: {text}")),
                Difference::Refused => Ok(Fate::RefusedAtRead),
                Difference::None => Ok(Fate::NoEffect),
            }
        };
        if compare(&server, "after the start")? == Fate::RefusedAtRead {
            return Ok(Fate::RefusedAtRead);
        }
        if self.check_trust(server.port(), log)? == Fate::RefusedAtRead {
            return Ok(Fate::RefusedAtRead);
        }
        let Some(lsn) = world::write_and_delete(server.port())? else { return Ok(Fate::RefusedAtRead) };
        if lsn <= self.base.acknowledged {
            return Err(format!("LSN {lsn} is given again: {} was acknowledged", self.base.acknowledged));
        }
        server.stop();
        match Server::try_start_logged(binary(), place, &OPTIONS, log) {
            Ok(server) => compare(&server, "after the second start"),
            // What was not read before may be read now.
            Err(_) => Ok(Fate::RefusedAtRead),
        }
    }

    /// Those who trust the authority that was there trust the server, unless nothing is left of it. Where it is damaged the
    /// server does without HTTPS and says so.
    fn check_trust(&self, port: u16, log: &Path) -> Result<Fate, String> {
        if self.file.starts_with("tls") && matches!(self.damage, Damage::RemoveFolder) {
            return Ok(Fate::NoEffect);
        }
        let answered = TcpStream::connect(("127.0.0.1", port)).and_then(|stream| {
            stream.set_read_timeout(Some(SOCKET_PATIENCE))?;
            let mut stream = http::tls(stream, "localhost", &self.base.authority)?;
            http::exchange(&mut stream, &http::request("/ready"))
        });
        let said = fs::read_to_string(log).unwrap_or_default();
        match answered {
            Ok(answer) if answer.status == 200 => Ok(Fate::NoEffect),
            Ok(answer) => Err(format!("over HTTPS: {}", answer.status)),
            Err(error) if error.kind() != ErrorKind::InvalidData && said.contains("ca.pem or ca.key") => {
                Ok(Fate::RefusedAtRead)
            }
            Err(error) => Err(format!("clients no longer trust the server: {error}")),
        }
    }

    /// Whether a warning names the file.
    fn is_told_in(&self, said: &str) -> bool {
        let file = self.file.display().to_string();
        said.lines().any(|line| line.contains("WARN") && line.contains(&file))
    }

    fn carry_out(&self, path: &Path) {
        if let Damage::RemoveFolder = self.damage {
            let below = self.file.components().count() - 1;
            let folder = path.ancestors().nth(below).expect("the file is in a folder");
            return fs::remove_dir_all(folder).expect("our own folder");
        }
        let mut content = fs::read(path).expect("the file is there");
        // Tables are links to those of others.
        fs::remove_file(path).expect("the file is there");
        match &self.damage {
            Damage::Flip(at, bit) => content[*at as usize] ^= 1 << bit,
            Damage::Truncate(length) => content.truncate(*length as usize),
            Damage::Remove | Damage::RemoveFolder => return,
            Damage::Older(older) => content = fs::read(older).expect("the copy is there"),
        }
        fs::write(path, content).expect("a temporary folder");
    }
}
