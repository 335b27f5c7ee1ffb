//! A collector of OpenTelemetry as small as can be: it takes OTLP over HTTP, and keeps what comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use orrery_testkit::wait_for;
use serde_json::Value;

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Message {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

/// What it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Takes,
    Refuses,
    /// Reads, and never answers.
    IsSilent,
}

pub struct Collector {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    manner: Manner,
    messages: Vec<Message>,
}

impl Collector {
    pub fn new(manner: Manner) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let state = Arc::new(Mutex::new(State { manner, messages: Vec::new() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || while serve(&stream, &shared).is_some() {});
            }
        });
        Collector { port, state }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/otlp/", self.port)
    }

    pub fn behaves(&self, manner: Manner) {
        self.state.lock().expect("not poisoned").manner = manner;
    }

    pub fn messages(&self) -> Vec<Message> {
        self.state.lock().expect("not poisoned").messages.clone()
    }

    /// All spans that came, in their order.
    pub fn spans(&self) -> Vec<Value> {
        let traces = self.messages().into_iter().filter(|message| message.path == "/otlp/v1/traces");
        let spans = |message: Message| {
            message.body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
        };
        traces.flat_map(spans).collect()
    }

    /// Waits for a span, and returns it.
    #[track_caller]
    pub fn span(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        wait_for(|| {
            let spans = self.spans();
            spans
                .iter()
                .find(|span| is_it(span))
                .cloned()
                .ok_or_else(|| format!("no {what} among {spans:#?}"))
        })
    }
}

/// One request; none when the connection is over.
fn serve(stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut next = || {
        line.clear();
        let count = reader.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    };
    let path = next()?.strip_prefix("POST ")?.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    while let Some(header) = next().filter(|line| !line.is_empty()) {
        let (name, value) = header.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).expect("what comes is JSON");
    let manner = {
        let mut state = state.lock().expect("not poisoned");
        if state.manner == Manner::Takes {
            state.messages.push(Message { path, headers, body });
        }
        state.manner
    };
    let status = match manner {
        Manner::Takes => "200 OK",
        Manner::Refuses => "400 Bad Request",
        Manner::IsSilent => return Some(()),
    };
    let mut out = stream;
    write!(out, "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}").ok()
}
