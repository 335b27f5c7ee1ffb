//! Clients in direct mode that break the protocol: they are refused or cut off, and harm nobody else.
//!
//! The seed is printed, and `ORRERY_TEST_SEED` repeats a run; `ORRERY_HOSTILE_REQUESTS` makes it longer.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use orrery_testkit::{Client, Random, eventually};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::Server;
use support::direct::{CREATE, Connection, Frame, Place, QUERY, READ, READ_FEED, UPSERT, authority};
use support::direct::{greeted, hear, hello, open};

mod support;

const ITEMS: &str = "/dbs/db/colls/items/docs";
/// Frames of each kind of wrong, unless the environment asks for more.
const FRAMES: usize = 250;
const MIB: u64 = 1024 * 1024;

fn world(arguments: &[&str]) -> (Server, Place) {
    let server =
        Server::start(&[&["--no-throttle", "--durability", "relaxed", "--log", "warn"], arguments].concat());
    let mut client = Client::new(server.port());
    let container = r#"{"id":"items","partitionKey":{"paths":["/key"],"kind":"Hash","version":2}}"#;
    for (path, body) in [("/dbs", r#"{"id":"db"}"#), ("/dbs/db/colls", container)] {
        assert_eq!(client.send("POST", path, &[], body.as_bytes()).expect("an answer").status, 201);
    }
    let place = Place::of(&server, ITEMS);
    (server, place)
}

fn samples(place: &Place) -> Vec<Frame> {
    let query = r#"{"query":"SELECT * FROM c WHERE c.id = @id","parameters":[{"name":"@id","value":"a"}]}"#;
    vec![
        place.ask(READ, "get", Some("a")),
        place.ask(CREATE, "post", None).body(r#"{"id":"b","key":"k","n":[1,2,{"x":null}]}"#),
        place.ask(UPSERT, "post", None).body(r#"{"id":"a","key":"k"}"#),
        place.ask(QUERY, "post", None).body(query),
        place.ask(READ_FEED, "get", None).number(0x04, 10),
        place.ask(READ_FEED, "get", None).text(0x3F, "Incremental Feed"),
        Frame::new(1, READ_FEED).text(0x13, "/apps/Orrery/services/Server/partitions/master/replicas/1p"),
    ]
}

/// Sends each frame on a connection of its own: what a wrong one leaves behind may be half an answer, or the beginning of another
/// frame.
struct Attacker<'s> {
    server: &'s Server,
    authority: Vec<u8>,
    seen: BTreeMap<String, usize>,
}

impl<'s> Attacker<'s> {
    fn of(server: &'s Server) -> Attacker<'s> {
        Attacker { server, authority: authority(server), seen: BTreeMap::new() }
    }

    /// What becomes of a frame: its answer's status, or the end of the connection. After a frame that ends too early the
    /// client says that nothing more will come.
    fn send(&mut self, frame: &[u8], is_whole: bool) {
        let mut connection = greeted(self.server, &self.authority).expect("the server takes connections");
        let sent = connection.write_all(frame).and_then(|()| connection.flush());
        if !is_whole || sent.is_err() {
            connection.conn.send_close_notify();
            let _ = connection.flush();
            let _ = connection.sock.shutdown(std::net::Shutdown::Write);
        }
        let what = match hear(&mut connection) {
            Ok(heard) => {
                assert!(heard.status < 500, "{}: {}", heard.status, String::from_utf8_lossy(&heard.body));
                heard.status.to_string()
            }
            Err(error) => {
                let is_silence = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                assert!(!is_silence, "no answer to {frame:02x?}");
                "ended".to_owned()
            }
        };
        *self.seen.entry(what).or_default() += 1;
    }

    /// The server lives, and serves others.
    fn check(&mut self, place: &Place, what: &str) {
        assert!(!self.server.log().contains("panicked"), "{what}: {}", self.server.log());
        let mut other = greeted(self.server, &self.authority).expect("the server takes connections");
        other.write_all(&place.ask(READ, "get", Some("none")).numbered(1)).expect("sent");
        other.flush().expect("sent");
        assert_eq!(hear(&mut other).expect("an answer").status, 404, "{what}");
        println!("{what}: {:?}", std::mem::take(&mut self.seen));
    }
}

fn changed(random: &mut Random, sample: &Frame) -> Vec<u8> {
    let mut bytes = sample.clone().numbered(1);
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
    }
    bytes
}

/// Tokens of another type, twice, missing, with a length that is not theirs, or cut.
fn with_wrong_tokens(random: &mut Random, sample: &Frame) -> Vec<u8> {
    let mut frame = sample.clone().token(2, 0, &[u8::from(sample.payload.is_some())]).number(0x4D, 1);
    let place = random.below(frame.tokens.len());
    match random.below(6) {
        0 => frame.tokens[place][2] = random.below(17) as u8,
        1 => frame.tokens.push(frame.tokens[place].clone()),
        2 => drop(frame.tokens.remove(place)),
        3 => frame.tokens[place][3] ^= 1 << random.below(8),
        4 => frame.tokens[place].truncate(3),
        _ => frame.tokens[place][..2].copy_from_slice(&(random.below(0x110) as u16).to_le_bytes()),
    }
    frame.bytes()
}

/// Lengths of frames and payloads that are not theirs.
fn with_lying_lengths(random: &mut Random, sample: &Frame) -> Vec<u8> {
    let mut bytes = sample.clone().numbered(1);
    let head = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let at = if bytes.len() > head && random.below(2) == 0 { head } else { 0 };
    let truth = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let lies = [0, 1, 23, truth - 1, truth + 1, truth + 1000, 0xFFFF, 0x10_0000, 0x7FFF_FFFF, u32::MAX];
    let lie = *random.pick(&lies);
    bytes[at..at + 4].copy_from_slice(&lie.to_le_bytes());
    bytes
}

#[test]
fn broken_frames_are_refused_or_end_their_connection() {
    let mut random = Random::from_environment();
    let frames = std::env::var("ORRERY_HOSTILE_REQUESTS").ok().and_then(|text| text.parse().ok());
    let frames: usize = frames.unwrap_or(FRAMES);
    let (server, place) = world(&["--header-timeout-seconds", "5"]);
    let samples = samples(&place);
    let mut attacker = Attacker::of(&server);
    type Wrong = fn(&mut Random, &Frame) -> Vec<u8>;
    let kinds: [(&str, Wrong); 3] =
        [("changed", changed), ("wrong tokens", with_wrong_tokens), ("lying lengths", with_lying_lengths)];
    for (what, wrong) in kinds {
        for _ in 0..frames {
            let sample = random.pick(&samples).clone();
            attacker.send(&wrong(&mut random, &sample), false);
        }
        attacker.check(&place, what);
    }
    for _ in 0..frames {
        let count = random.below(200);
        attacker.send(&random.bytes(count), false);
    }
    attacker.check(&place, "random bytes");
    let whole = samples[1].clone().numbered(1);
    for end in 0..whole.len() {
        attacker.send(&whole[..end], false);
    }
    attacker.check(&place, "every truncation");
    for sample in &samples {
        attacker.send(&sample.clone().numbered(1), true);
    }
    attacker.check(&place, "nothing wrong");
}

/// They open TLS and say nothing, or not all of what a client says first: each is gone when its time is over.
#[test]
fn connections_without_a_greeting_are_closed() {
    const SILENT: usize = 300;
    let (server, place) = world(&["--header-timeout-seconds", "1"]);
    let authority = authority(&server);
    let begun = hello();
    let mut silent: Vec<Connection> = (0..SILENT)
        .map(|number| {
            let mut stream = open(server.connect(), &authority).expect("TLS");
            stream.write_all(&begun[..number % begun.len()]).and_then(|()| stream.flush()).expect("sent");
            stream
        })
        .collect();
    // Others are served meanwhile.
    let mut attacker = Attacker::of(&server);
    attacker.check(&place, "beside silent connections");
    for stream in &mut silent {
        let ended = hear(stream).map(|heard| heard.status);
        assert!(ended.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock), "{ended:?}");
    }
}

/// As many as a machine of the size of a laptop may ever see. Their handshakes are done and they say nothing.
#[test]
fn ten_thousand_connections_without_a_greeting_leave_room_for_others() {
    const CONNECTIONS: usize = 10_000;
    const EACH_BYTES_MAX: u64 = 48 * 1024;
    let silent = CONNECTIONS.min(open_files() - 500);
    let most = (silent + 100).to_string();
    let (server, place) = world(&["--max-connections", &most, "--header-timeout-seconds", "600"]);
    let authority = authority(&server);
    let before = anonymous_bytes(&server);
    // What a client needs to go on is dropped: the sockets alone keep the server's ends open.
    let open_some = &|count: usize| -> Vec<TcpStream> {
        (0..count).map(|_| open(server.connect(), &authority).expect("TLS").sock).collect()
    };
    let opened: Vec<Vec<TcpStream>> = thread::scope(|scope| {
        let halves = [silent / 2, silent - silent / 2];
        let threads = halves.map(|half| scope.spawn(move || open_some(half)));
        threads.map(|thread| thread.join().expect("no client panics")).into()
    });
    let each = anonymous_bytes(&server).saturating_sub(before) / silent as u64;
    println!("{silent} silent connections take {each} bytes each");
    assert!(each < EACH_BYTES_MAX, "{each} bytes for each of {silent} connections");
    Attacker::of(&server).check(&place, "beside ten thousand silent connections");
    drop(opened);
    Attacker::of(&server).check(&place, "after ten thousand silent connections");
}

/// How many files this process may have open: as many as it can get.
fn open_files() -> usize {
    let now = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, ..now });
    let most = if raised.is_ok() { now.maximum } else { now.current };
    most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// A server that has as many connections as it may have takes the next when one of them has ended.
#[test]
fn no_more_connections_than_there_may_be() {
    let (server, place) = world(&["--max-connections", "60", "--header-timeout-seconds", "2"]);
    let authority = authority(&server);
    let before = anonymous_bytes(&server);
    let opened: Vec<io::Result<Connection>> = (0..200).map(|_| open(server.connect(), &authority)).collect();
    assert!(opened.iter().filter(|stream| stream.is_ok()).count() <= 60);
    let taken = anonymous_bytes(&server).saturating_sub(before);
    assert!(taken < 32 * MIB, "{} MiB for silent connections", taken / MIB);
    eventually("there is room again", || {
        let stream = greeted_soon(&server, &authority);
        stream.is_ok()
    });
    drop(opened);
    Attacker::of(&server).check(&place, "after too many connections");
}

fn greeted_soon(server: &Server, authority: &[u8]) -> io::Result<Connection> {
    let stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut stream = open(stream, authority)?;
    stream.write_all(&hello())?;
    stream.flush()?;
    hear(&mut stream).map(|_| stream)
}

fn anonymous_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux tells");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}
