//! The load: many keep-alive connections on one thread. Over HTTP each has one request under way, in direct mode several.
//!
//! The client shares the machine with what it measures, so it must cost little and the same for
//! everybody: requests are bytes made beforehand or in a buffer that is kept, answers are read into
//! another, and only their status and length are looked at.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::latency::Latency;
use crate::rntbd;
use crate::tls::Tls;

/// Where requests come from. One source feeds all connections.
pub trait Source {
    /// Writes the next request into the empty buffer; false when there are no more.
    fn next(&mut self, request: &mut Vec<u8>) -> bool;

    /// The status that every answer must have.
    fn status(&self) -> u16;

    /// Whether an answer may have this status.
    fn accepts(&self, status: u16) -> bool {
        status == self.status()
    }
}

/// When to stop, whichever comes first: the time, or the end of the source.
#[derive(Clone, Copy)]
pub struct Plan {
    pub address: SocketAddr,
    pub connections: usize,
    pub time: Duration,
}

pub struct Outcome {
    pub requests: u64,
    pub seconds: f64,
    pub latency: Latency,
}

impl Outcome {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }
}

/// What connections speak.
#[derive(Clone)]
pub enum Wire {
    Http,
    Https(Tls),
    /// RNTBD inside TLS, with so many requests under way on each connection.
    Direct(Tls, usize),
}

/// A connection, whatever is below it.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

impl Wire {
    /// Connects and greets: what only happens once is not measured.
    async fn open(&self, address: SocketAddr) -> Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await.context("the server does not listen")?;
        stream.set_nodelay(true)?;
        Ok(match self {
            Wire::Http => Box::new(stream),
            Wire::Https(tls) => Box::new(tls.open(stream).await?),
            Wire::Direct(tls, _) => {
                let mut stream = tls.open(stream).await?;
                rntbd::greet(&mut stream).await?;
                Box::new(stream)
            }
        })
    }
}

/// A thread's own runtime, for the load of one process.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Sends until the plan is fulfilled. An answer with another status ends the whole with its text.
pub fn run(plan: Plan, source: impl Source + 'static) -> Result<Outcome> {
    run_over(&Wire::Http, plan, source)
}

pub fn run_over(wire: &Wire, plan: Plan, source: impl Source + 'static) -> Result<Outcome> {
    runtime()?.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..plan.connections {
            streams.push(wire.open(plan.address).await?);
        }
        let source = Rc::new(RefCell::new(source));
        let latency = Rc::new(RefCell::new(Latency::default()));
        let tasks = LocalSet::new();
        let began = Instant::now();
        let mut running = Vec::new();
        for stream in streams {
            let (source, latency) = (Rc::clone(&source), Rc::clone(&latency));
            let end = began + plan.time;
            running.push(match wire {
                Wire::Http | Wire::Https(_) => tasks.spawn_local(converse(stream, end, source, latency)),
                Wire::Direct(_, at_once) => {
                    tasks.spawn_local(rntbd::converse(stream, *at_once, end, source, latency))
                }
            });
        }
        tasks
            .run_until(async {
                for task in running {
                    task.await.context("a connection panicked")??;
                }
                anyhow::Ok(())
            })
            .await?;
        let seconds = began.elapsed().as_secs_f64();
        let latency = latency.take();
        Ok(Outcome { requests: latency.count(), seconds, latency })
    })
}

/// One request, and all of its answer as text.
pub fn ask(address: SocketAddr, request: &[u8]) -> Result<String> {
    runtime()?.block_on(async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request).await?;
        let mut answer = vec![0; 16 * 1024];
        let (_, length) = read_answer(&mut stream, &mut answer).await?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    })
}

async fn converse(
    mut stream: Box<dyn Stream>,
    end: Instant,
    source: Rc<RefCell<impl Source>>,
    latency: Rc<RefCell<Latency>>,
) -> Result<()> {
    let wanted = source.borrow().status();
    let (mut request, mut answer) = (Vec::with_capacity(4096), vec![0; 16 * 1024]);
    let mut sent = Instant::now();
    while sent < end {
        request.clear();
        if !source.borrow_mut().next(&mut request) {
            break;
        }
        stream.write_all(&request).await?;
        stream.flush().await?;
        let (status, length) = read_answer(&mut stream, &mut answer).await?;
        if status != wanted && !source.borrow().accepts(status) {
            let shown = String::from_utf8_lossy(&answer[..length.min(2000)]).into_owned();
            bail!("{status} instead of {wanted}: {shown}");
        }
        let now = Instant::now();
        latency.borrow_mut().record(now - sent);
        sent = now;
    }
    Ok(())
}

/// Reads one answer into the buffer, which grows when it must; returns its status and its bytes.
pub async fn read_answer(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<(u16, usize)> {
    let mut filled = 0;
    let mut wanted = None;
    loop {
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        filled += read;
        if wanted.is_none() {
            wanted = whole_length(&buffer[..filled])?;
        }
        if let Some(wanted) = wanted
            && filled >= wanted
        {
            let status = std::str::from_utf8(&buffer[9..12])?.parse()?;
            return Ok((status, filled));
        }
    }
}

/// The bytes of the whole answer, once it can be told.
fn whole_length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(head) = memmem::find(answer, b"\r\n\r\n") else { return Ok(None) };
    let lines = answer[..head].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    for line in lines {
        if let Some(digits) = without(line, b"content-length: ") {
            let length = std::str::from_utf8(digits)?.parse::<usize>()?;
            return Ok(Some(head + 4 + length));
        }
        if without(line, b"transfer-encoding: chunked").is_some() {
            // Answers come one at a time, so the last chunk ends what there is.
            return Ok(answer.ends_with(b"\r\n0\r\n\r\n").then_some(answer.len()));
        }
    }
    Ok(Some(head + 4))
}

/// What follows the beginning of a line, in whatever case its letters are.
fn without<'a>(line: &'a [u8], beginning: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(beginning.len())?;
    start.eq_ignore_ascii_case(beginning).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_answer_is_known_once_its_headers_are_there() {
        for (answer, wanted) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r", None),
            ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n", Some(51)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", Some(51)),
            ("HTTP/1.1 304 Not Modified\r\nx: y\r\n\r\nabc", Some(35)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", None),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", Some(58)),
        ] {
            assert_eq!(whole_length(answer.as_bytes()).expect("readable"), wanted, "{answer}");
        }
    }
}
