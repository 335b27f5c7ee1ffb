//! What a process did to files, as `strace` saw it: which calls, on what, and from when to when.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use orrery_testkit::{Server, eventually};

use crate::writer::Moment;
use crate::{OPTIONS, binary};

/// Calls that change files, make changes durable, or say which file a number stands for. Those of the second line are
/// not understood here, so that a test fails if the server should begin to use them.
const CALLS: &str = "open,openat,close,lseek,write,pwrite64,writev,pwritev,ftruncate,fallocate,fsync,fdatasync,\
    rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,\
    creat,truncate,pwritev2,copy_file_range,sendfile,splice,link,linkat,symlink,symlinkat,sync,syncfs,\
    sync_file_range,io_uring_setup";
/// Of how many bytes a call's data is told. No write is longer.
const DATA_MAX: &str = "134217728";

/// The last line of a trace is shorter.
const END_BYTES: u64 = 1024;

pub type Fd = i64;

#[derive(Debug)]
pub struct Call {
    pub start: Moment,
    /// Nothing where the process was killed in the middle of it.
    pub end: Option<Moment>,
    pub what: What,
}

#[derive(Debug)]
pub enum What {
    Open {
        path: PathBuf,
        creates: bool,
        truncates: bool,
        fd: Fd,
    },
    Close {
        fd: Fd,
    },
    Seek {
        fd: Fd,
        to: u64,
    },
    /// Without a place it is where the last one ended.
    Write {
        fd: Fd,
        at: Option<u64>,
        data: Vec<u8>,
    },
    SetLength {
        fd: Fd,
        length: u64,
    },
    /// At least so long from now on.
    Allocate {
        fd: Fd,
        length: u64,
    },
    Sync {
        fd: Fd,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    MakeFolder {
        path: PathBuf,
    },
}

/// A server whose calls are written down.
pub struct Traced {
    server: Server,
    trace: PathBuf,
}

/// Starts a server under the eyes of `strace`.
pub fn start(directory: &Path, options: &[&str], output: &Path) -> Server {
    let found = Command::new("strace").arg("--version").output();
    assert!(found.is_ok(), "this test needs strace (apt-get install strace; `make test` does that)");
    let mut strace = Command::new("strace");
    // The tracer is the one beside: the process that we start becomes the server.
    strace.args(["-D", "-f", "--seccomp-bpf"]).args(options).arg("-o").arg(output).arg(binary());
    Server::start_as(strace, directory, &OPTIONS)
}

impl Traced {
    pub fn start(directory: &Path, trace: PathBuf) -> Traced {
        let calls = format!("trace={CALLS}");
        let server = start(directory, &["-ttt", "-T", "-xx", "-s", DATA_MAX, "-e", &calls], &trace);
        Traced { server, trace }
    }

    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Kills the server and returns what it has done.
    pub fn kill(self) -> Vec<Call> {
        let id = self.server.id();
        self.server.kill();
        eventually("the trace has an end", || has_ended(&self.trace, id).expect("the trace is there"));
        read(&std::fs::read(&self.trace).expect("the trace is there"))
    }
}

/// Whether the last line of a trace is the end of the process, which is that of its last thread.
fn has_ended(trace: &Path, id: u32) -> io::Result<bool> {
    let mut file = File::open(trace)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let last = end.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(last.starts_with(format!("{id} ").as_bytes()) && last.ends_with(b"+++"))
}

/// Reads a trace. Calls in the middle of which the process was killed are looked up in the file system as it is now.
fn read(text: &[u8]) -> Vec<Call> {
    let mut calls = Vec::new();
    // What a thread has begun and not ended.
    let mut begun: HashMap<&str, (Moment, &str)> = HashMap::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line = std::str::from_utf8(line).expect("a trace is text");
        let (thread, rest) = line.split_once(' ').expect("a thread");
        let (time, rest) = rest.trim_start().split_once(' ').expect("a time");
        let start = moment(time);
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(head) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (start, head));
        } else if rest.starts_with("<... ") {
            let (start, head) = begun.remove(thread).expect("a call that was begun");
            let (_, tail) = rest.split_once(" resumed>").expect("a call that goes on");
            calls.extend(finished(start, &format!("{}{tail}", head.trim_end())));
        } else {
            calls.extend(finished(start, rest));
        }
    }
    calls.extend(begun.into_values().filter_map(|(start, head)| interrupted(start, head)));
    look_up_writes(&mut calls);
    calls
}

/// A write in the middle of which the process was killed has left what the file shows now, and that is what the next process
/// reads: a disk that later held more would be one that nobody has written.
fn look_up_writes(calls: &mut [Call]) {
    let mut open: HashMap<Fd, PathBuf> = HashMap::new();
    for Call { end, what, .. } in calls {
        match what {
            What::Open { path, fd, .. } => drop(open.insert(*fd, path.clone())),
            What::Close { fd } => drop(open.remove(fd)),
            What::Write { fd, at: Some(at), data } if end.is_none() => {
                let file = open.get(fd).and_then(|path| File::open(path).ok());
                let mut found = vec![0; data.len()];
                let count = file.and_then(|file| file.read_at(&mut found, *at).ok()).unwrap_or(0);
                found.truncate(count);
                *data = found;
            }
            _ => {}
        }
    }
}

/// A call that has ended: `name(arguments) = result <seconds>`. Those that failed changed nothing.
fn finished(start: Moment, text: &str) -> Option<Call> {
    let (call, result) = text.rsplit_once(" = ")?;
    let call = call.trim_end().strip_suffix(')')?;
    let mut words = result.split_whitespace();
    let result = words.next()?;
    if result == "?" {
        return interrupted(start, call);
    }
    let result: i64 = result.parse().expect("a result is a number");
    let seconds = words.next_back()?.trim_matches(['<', '>']);
    if result < 0 {
        return None;
    }
    Some(Call { start, end: Some(start + moment(seconds)), what: understand(call, Some(result))? })
}

/// A call in the middle of which the process was killed. One whose name could not be read any more was never carried out: the
/// kill came while the tracer held the thread before the call, and the kernel then leaves it out.
fn interrupted(start: Moment, call: &str) -> Option<Call> {
    if call.starts_with("???") {
        return None;
    }
    let what = understand(call.trim_end(), None).filter(has_happened)?;
    Some(Call { start, end: None, what })
}

/// Whether a call without a result has been carried out, where that can be seen from outside. Where it cannot, it may
/// have been, which is all that is ever said of what was not synced.
fn has_happened(what: &What) -> bool {
    match what {
        What::Rename { from, .. } => !from.exists(),
        What::Remove { path } => !path.exists(),
        What::MakeFolder { path } => path.exists(),
        What::Write { .. } | What::SetLength { .. } | What::Allocate { .. } => true,
        What::Open { path, .. } => path.exists(),
        What::Close { .. } | What::Seek { .. } | What::Sync { .. } => false,
    }
}

fn understand(call: &str, result: Option<i64>) -> Option<What> {
    let (name, arguments) = call.split_once('(')?;
    let words: Vec<&str> = arguments.split(", ").collect();
    let number = |at: usize| words[at].parse::<i64>().expect("a number");
    let length = |at: usize| number(at) as u64;
    let path = |at: usize| path(words[at]);
    let told = |data: Vec<u8>| match result {
        Some(taken) => data[..taken as usize].to_vec(),
        None => data,
    };
    Some(match name {
        "open" | "openat" => {
            let (at, flags) = if name == "open" { (0, words[1]) } else { (1, words[2]) };
            let (creates, truncates) = (flags.contains("O_CREAT"), flags.contains("O_TRUNC"));
            What::Open { path: path(at), creates, truncates, fd: result.unwrap_or(-1) }
        }
        "close" => What::Close { fd: number(0) },
        "lseek" => What::Seek { fd: number(0), to: result? as u64 },
        "write" => What::Write { fd: number(0), at: None, data: told(bytes(words[1])) },
        "pwrite64" => What::Write { fd: number(0), at: Some(length(3)), data: told(bytes(words[1])) },
        "writev" | "pwritev" => {
            let parts = words.iter().filter_map(|word| word.split_once("iov_base=")).map(|part| part.1);
            let data = parts.flat_map(bytes).collect();
            let at = (name == "pwritev").then(|| length(words.len() - 1));
            What::Write { fd: number(0), at, data: told(data) }
        }
        "ftruncate" => What::SetLength { fd: number(0), length: length(1) },
        "fallocate" => {
            assert_eq!(words[1], "0", "{arguments}: only plain allocation is understood");
            What::Allocate { fd: number(0), length: length(2) + length(3) }
        }
        "fsync" | "fdatasync" => What::Sync { fd: number(0) },
        "rename" => What::Rename { from: path(0), to: path(1) },
        "renameat" | "renameat2" => What::Rename { from: path(1), to: path(3) },
        "unlink" | "rmdir" => What::Remove { path: path(0) },
        "unlinkat" => What::Remove { path: path(1) },
        "mkdir" => What::MakeFolder { path: path(0) },
        "mkdirat" => What::MakeFolder { path: path(1) },
        _ => panic!("a server that uses {name} needs a test that understands it"),
    })
}

/// Seconds with six digits behind the point.
fn moment(text: &str) -> Moment {
    let (seconds, micros) = text.split_once('.').expect("a point");
    seconds.parse::<Moment>().expect("seconds") * 1_000_000 + micros.parse::<Moment>().expect("micros")
}

fn path(word: &str) -> PathBuf {
    PathBuf::from(String::from_utf8(bytes(word)).expect("our paths are text"))
}

/// The bytes of `"\x61\x62"`.
fn bytes(word: &str) -> Vec<u8> {
    let (text, rest) = word.trim_start_matches('"').split_once('"').expect("a text in quotes");
    assert!(!rest.starts_with("..."), "a call's data was cut off");
    let digit = |byte: u8| if byte.is_ascii_digit() { byte - b'0' } else { byte - b'a' + 10 };
    text.as_bytes().chunks_exact(4).map(|hex| digit(hex[2]) << 4 | digit(hex[3])).collect()
}

#[test]
fn a_write_that_was_not_carried_out_before_the_kill_is_not_there_after_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("journal");
    std::fs::write(&path, b"before").expect("our own folder");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let name = hex(path.to_str().expect("text").as_bytes());
    let trace = format!(
        "7 1.000000 openat(AT_FDCWD, \"{name}\", O_RDWR) = 5 <0.000001>\n\
         7 2.000000 pwrite64(5, \"{}\", 5, 0 <unfinished ...>\n",
        hex(b"after")
    );
    let calls = read(trace.as_bytes());
    let What::Write { data, .. } = &calls.last().expect("a call").what else { panic!("{calls:?}") };
    assert_eq!(data, b"befor");
}

#[test]
fn a_call_that_the_kill_made_unreadable_was_not_carried_out() {
    let unreadable: [&[u8]; 3] = [
        b"17 1.000000 ???( <unfinished ...>\n17 1.000100 +++ killed by SIGKILL +++\n",
        b"17 1.000000 ???() = ?\n17 1.000100 +++ killed by SIGKILL +++\n",
        b"17 1.000000 ???( <unfinished ...>\n17 1.000050 <... ??? resumed>) = ?\n17 1.000100 +++ killed by SIGKILL +++\n",
    ];
    for text in unreadable {
        assert_eq!(read(text).len(), 0);
    }
}
