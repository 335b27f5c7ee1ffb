//! A server with one database, some load for it, and patience for what is counted once a second.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use orrery_testkit::{Client, Reply, Server, wait_for};
use serde_json::{Value, json};

pub struct World {
    pub server: Server,
    pub client: Client,
}

pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

impl World {
    pub fn start(args: &[&str]) -> World {
        let server = Server::start(binary(), &[&["--in-memory"], args].concat());
        let mut client = Client::new(server.port());
        let reply = client.send("POST", "/dbs", &[], br#"{"id":"db"}"#).expect("the server is up");
        assert_eq!(reply.status, 201);
        World { server, client }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/", self.server.port())
    }

    pub fn container(&mut self, id: &str, throughput: u32) {
        let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
        let body = json!({"id": id, "partitionKey": key}).to_string();
        let throughput = throughput.to_string();
        let headers = [("x-ms-offer-throughput", throughput.as_str())];
        let reply = self.client.send("POST", "/dbs/db/colls", &headers, body.as_bytes());
        assert_eq!(reply.expect("an answer").status, 201);
    }

    pub fn create(&mut self, container: &str, key: &str, id: &str, fill: usize) -> Reply {
        create(&mut self.client, container, key, id, fill)
    }

    pub fn read(&mut self, container: &str, key: &str, id: &str) -> Reply {
        read(&mut self.client, container, key, id)
    }

    pub fn get(&mut self, path: &str) -> Value {
        let reply = self.client.send("GET", path, &[], b"").expect("an answer");
        assert_eq!(reply.status, 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        reply.json()
    }

    /// Asks until the answer is as it must be; says what it was when it never is.
    #[track_caller]
    pub fn wait_for(&mut self, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        wait_for(|| {
            let answer = self.get(path);
            if is_there(&answer) { Ok(answer) } else { Err(format!("{path} stays {answer}")) }
        })
    }
}

fn create(client: &mut Client, container: &str, key: &str, id: &str, fill: usize) -> Reply {
    let body = json!({"id": id, "pk": key, "fill": "x".repeat(fill)}).to_string();
    let header = json!([key]).to_string();
    let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
    let path = format!("/dbs/db/colls/{container}/docs");
    client.send("POST", &path, &headers, body.as_bytes()).expect("an answer")
}

fn read(client: &mut Client, container: &str, key: &str, id: &str) -> Reply {
    let header = json!([key]).to_string();
    let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
    let path = format!("/dbs/db/colls/{container}/docs/{id}");
    client.send("GET", &path, &headers, b"").expect("an answer")
}

/// Reads that go on until it is dropped: three of four are for one key.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    pub fn on(world: &World, container: &'static str) -> Load {
        let (port, stop) = (world.server.port(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut client = Client::new(port);
            for n in 0u64.. {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let key = if n % 4 < 3 { "hot".to_owned() } else { format!("cold-{}", n % 100) };
                read(&mut client, container, &key, "none");
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Load { stop, thread: Some(thread) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
