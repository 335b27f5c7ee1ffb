//! The ceiling of point reads: hyper alone, sending bytes that a real answer had.
//!
//! It runs in a process of its own, as the server does, on a runtime set up in the same way. The
//! headers are copied as a whole, which is cheaper than any program that makes them could be.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use orrery_testkit::Reply;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The process, ended when dropped.
pub struct Bare {
    child: Child,
    pub address: SocketAddr,
}

impl Bare {
    /// Starts this program again as a server that always gives this answer.
    pub fn start(answer: &Reply) -> Result<Bare> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("bare")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let text = json!({"headers": answer.headers, "body": String::from_utf8_lossy(&answer.body)});
        let mut input = child.stdin.take().context("the child's input is piped")?;
        input.write_all(text.to_string().as_bytes())?;
        drop(input);
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the child's output is piped")?).read_line(&mut line)?;
        let address = line.trim().parse().context("the bare server did not start")?;
        Ok(Bare { child, address })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It may have ended already, which is fine here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child: reads the answer from standard input, says where it listens, and serves until killed.
pub fn serve() -> Result<()> {
    let template: Value = serde_json::from_reader(std::io::stdin())?;
    let mut headers = HeaderMap::new();
    for pair in template["headers"].as_array().context("headers")? {
        let (name, value) = (pair[0].as_str().context("a name")?, pair[1].as_str().context("a value")?);
        // hyper adds these two itself, for the real server too.
        if !name.eq_ignore_ascii_case("content-length") && !name.eq_ignore_ascii_case("date") {
            headers.insert(HeaderName::try_from(name)?, HeaderValue::from_str(value)?);
        }
    }
    let body = Bytes::from(template["body"].as_str().context("a body")?.to_owned());
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(accept(headers, body))
}

async fn accept(headers: HeaderMap, body: Bytes) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (headers, body) = (headers.clone(), body.clone());
        tokio::spawn(async move {
            let service = service_fn(|_: Request<Incoming>| {
                let mut response = Response::new(Full::new(body.clone()));
                *response.headers_mut() = headers.clone();
                async { Ok::<_, Infallible>(response) }
            });
            // A connection that ends badly is the client's business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
