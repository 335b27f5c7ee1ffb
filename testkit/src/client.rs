//! A blocking keep-alive HTTP/1.1 client: one connection, one request at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::sign::{EMULATOR_KEY, Signer};

pub struct Client {
    address: String,
    signer: Signer,
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
        if self.connection.is_none() {
            let stream = TcpStream::connect(&self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            self.connection = Some(BufReader::with_capacity(64 * 1024, stream));
        }
        self.buffer.clear();
        write!(self.buffer, "{verb} {path} HTTP/1.1\r\nhost: {}\r\n", self.address)?;
        for (name, value) in headers {
            write!(self.buffer, "{name}: {value}\r\n")?;
        }
        write!(self.buffer, "content-length: {}\r\n\r\n", body.len())?;
        self.buffer.extend_from_slice(body);
        let connection = self.connection.as_mut().expect("connected above");
        connection.get_mut().write_all(&self.buffer)?;
        let reply = read_reply(connection)?;
        if reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = None;
        }
        Ok(reply)
    }
}

fn read_reply(connection: &mut BufReader<TcpStream>) -> io::Result<Reply> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut reply = Reply { status, ..Reply::default() };
    let mut length = 0;
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        }
        reply.headers.push((name.to_owned(), value.to_owned()));
    }
    reply.body.resize(length, 0);
    connection.read_exact(&mut reply.body)?;
    Ok(reply)
}
