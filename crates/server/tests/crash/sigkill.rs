//! Kill the server at any moment, start it again, and compare.

use std::time::Duration;

use orrery_testkit::{Client, Random, Server};

use crate::{OPTIONS, binary, create_containers, storm, verify, writer};

const ROUNDS: u32 = 50;
/// A kill before so many writes of its round were acknowledged would prove little.
const WRITES_PER_KILL: u64 = 11;

#[test]
fn nothing_acknowledged_is_lost_to_sigkill() {
    let mut random = Random::from_environment();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut server = Server::start_on(binary(), directory.path(), &OPTIONS);
    create_containers(server.port());
    let mut writers = writer::some(random.seed());
    for round in 0..ROUNDS {
        let pause = Duration::from_millis(20 + random.below(200) as u64);
        storm(&mut writers, server.port(), pause, WRITES_PER_KILL, || server.kill());
        if round % 10 == 0 {
            verify(directory.path()).expect("all accounts agree");
        }
        server = Server::start_on(binary(), directory.path(), &OPTIONS);
        let mut client = Client::new(server.port());
        for writer in &mut writers {
            writer.settle(&mut client).unwrap_or_else(|finding| panic!("round {round}: {finding}"));
        }
    }
    server.stop();
    verify(directory.path()).expect("all accounts agree");
    let total: usize = writers.iter().map(|writer| writer.history().len()).sum();
    println!("{ROUNDS} kills, {total} acknowledged writes, 0 lost");
    assert!(total > ROUNDS as usize * 10, "only {total} writes were acknowledged: the test proves little");
}
