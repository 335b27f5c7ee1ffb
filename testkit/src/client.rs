//! A blocking keep-alive HTTP/1.1 client: one connection, one request at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::sign::{EMULATOR_KEY, Signer};

/// How long a server may keep silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one date is signed; servers take it for a quarter of an hour.
const DATE_FOR: Duration = Duration::from_secs(300);

pub struct Client {
    address: String,
    signer: Signer,
    /// When the signer's date was taken.
    dated: Instant,
    connection: Option<BufReader<TcpStream>>,
    buffer: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or(serde_json::Value::Null)
    }

    pub fn sub_status(&self) -> u32 {
        self.header("x-ms-substatus").and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

impl Client {
    /// Connects when the first request is sent.
    pub fn new(port: u16) -> Client {
        Client {
            address: format!("127.0.0.1:{port}"),
            signer: Signer::new(EMULATOR_KEY),
            dated: Instant::now(),
            connection: None,
            buffer: Vec::new(),
        }
    }

    pub fn signer(&mut self) -> &mut Signer {
        &mut self.signer
    }

    /// Sends a signed request; an error means that nobody knows whether it was carried out.
    pub fn send(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        self.keep_the_date();
        let authorization = self.signer.authorization(verb, path);
        let mut all = vec![
            ("authorization", authorization.as_str()),
            ("x-ms-version", "2020-07-15"),
            ("content-type", "application/json"),
        ];
        let date = self.signer.date().to_owned();
        all.push(("x-ms-date", &date));
        all.extend_from_slice(headers);
        self.send_raw(verb, path, &all, body)
    }

    /// The same to the port of the Table API.
    pub fn send_table(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        self.keep_the_date();
        let authorization = self.signer.table_authorization(path);
        let date = self.signer.date().to_owned();
        let mut all = vec![("authorization", authorization.as_str()), ("x-ms-date", &date)];
        all.extend_from_slice(headers);
        self.send_raw(verb, path, &all, body)
    }

    /// Clients that work for an hour sign the time that it is by then.
    fn keep_the_date(&mut self) {
        if self.dated.elapsed() > DATE_FOR {
            self.signer.renew();
            self.dated = Instant::now();
        }
    }

    /// Sends exactly these headers, besides `host` and `content-length`.
    pub fn send_raw(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let result = self.exchange(verb, path, headers, body);
        if result.is_err() {
            self.connection = None;
        }
        result
    }

    fn exchange(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        self.buffer.clear();
        write!(self.buffer, "{verb} {path} HTTP/1.1\r\nhost: {}\r\n", self.address)?;
        for (name, value) in headers {
            write!(self.buffer, "{name}: {value}\r\n")?;
        }
        write!(self.buffer, "content-length: {}\r\n\r\n", body.len())?;
        self.buffer.extend_from_slice(body);
        let message = std::mem::take(&mut self.buffer);
        let result = self.pass(&message, verb == "HEAD");
        self.buffer = message;
        result
    }

    /// Sends these bytes, whatever they are, and reads one answer.
    pub fn send_bytes(&mut self, message: &[u8]) -> io::Result<Reply> {
        let result = self.pass(message, message.starts_with(b"HEAD "));
        if result.is_err() {
            self.connection = None;
        }
        result
    }

    /// Sends these bytes on a connection of their own and hangs up without waiting for an answer.
    pub fn hang_up_after(&self, message: &[u8]) -> io::Result<()> {
        TcpStream::connect(&self.address)?.write_all(message)
    }

    /// The next request opens a new connection.
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    fn pass(&mut self, message: &[u8], is_head: bool) -> io::Result<Reply> {
        if self.connection.is_none() {
            let stream = TcpStream::connect(&self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            self.connection = Some(BufReader::with_capacity(64 * 1024, stream));
        }
        let connection = self.connection.as_mut().expect("connected above");
        let sent = connection.get_mut().write_all(message);
        // A server may answer and hang up before it was sent everything; its answer counts.
        let reply = match (read_reply(connection, is_head), sent) {
            (Ok(reply), Ok(())) => reply,
            (Ok(reply), Err(_)) => {
                self.connection = None;
                return Ok(reply);
            }
            (Err(error), _) => return Err(error),
        };
        if reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = None;
        }
        Ok(reply)
    }
}

fn read_reply(connection: &mut BufReader<TcpStream>, is_head: bool) -> io::Result<Reply> {
    let line = read_line(connection)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut reply = Reply { status, ..Reply::default() };
    let mut length = 0;
    loop {
        let line = read_line(connection)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        }
        reply.headers.push((name.to_owned(), value.to_owned()));
    }
    // These announce the length of a body that does not follow.
    if is_head || status == 304 {
        return Ok(reply);
    }
    reply.body.resize(length, 0);
    connection.read_exact(&mut reply.body)?;
    Ok(reply)
}

/// Answers may echo what was sent, which need not be text.
fn read_line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = Vec::new();
    if connection.read_until(b'\n', &mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}
