//! A gateway in a few hundred lines. No user ever meets it: it shows what another protocol has to bring along, and its tests
//! that nothing below has to change for it. The author of a real gateway may begin by reading it.
//!
//! ```text
//!   a line over TCP ── notation ──> typed values ── command ──> Db ── sink ──> lines
//! ```
//!
//! It has what the protocols that are not JSON have: values of types that JSON lacks ([`notation`]), items named by bytes, the
//! orders of BSON and CQL, partition keys placed exactly or by Cassandra's token, operators that work on what is stored
//! ([`add`]), and queries that no SQL text stands for ([`find`]). It is written on the public names of `doc`, `query`
//! and `cluster`; `cargo xtask tidy` keeps it from importing anything else.
//!
//! A request is one line: a word and its arguments, all in the notation. An answer is any number of lines that begin with
//! `ROW`, and then one that begins with `OK` or `NO`.

mod add;
mod command;
mod find;
mod limits;
mod notation;
mod refusal;
mod tables;

use std::net::SocketAddr;

use orrery_cluster::Db;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::refusal::Refusal;

/// Serves until it is dropped.
pub struct Gateway {
    pub address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Gateway {
    /// Listens on a free port of the loopback interface.
    pub async fn start(db: Db) -> std::io::Result<Gateway> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(db.clone(), stream));
            }
        });
        Ok(Gateway { address, accepting })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Answers the lines of one connection in their order, until it ends or sends one that is too long.
async fn serve(db: Db, stream: TcpStream) {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    loop {
        let mut line = String::new();
        let mut bounded = (&mut reading).take(limits::LINE_BYTES_MAX);
        match bounded.read_line(&mut line).await {
            Ok(read) if read > 0 && line.ends_with('\n') => {}
            _ => return,
        }
        if writing.write_all(answer(&db, line.trim_end()).await.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(db: &Db, line: &str) -> String {
    let (mut rows, last) = match command::run(db, line).await {
        Ok((rows, told)) => (rows, format!("OK {told}\n")),
        Err(Refusal { code, text }) => (String::new(), format!("NO {code} {}\n", text.replace('\n', " "))),
    };
    rows.push_str(&last);
    rows
}
