//! Frames of direct mode as a client writes them, right or wrong, and TLS connections that carry them.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use orrery_testkit::{Client, EMULATOR_KEY, Signer};
use rustls::{ClientConnection, StreamOwned};

use super::Server;
use super::http::{get, tls};

pub type Connection = StreamOwned<ClientConnection, TcpStream>;

const HEAD_BYTES: usize = 24;
const ACTIVITY: [u8; 16] = [9; 16];
const TEXT: u8 = 8;

/// Operations on items.
pub const CREATE: u16 = 1;
pub const READ: u16 = 3;
pub const READ_FEED: u16 = 4;
pub const QUERY: u16 = 0x0F;
pub const UPSERT: u16 = 0x13;
const ITEM: u16 = 3;

/// A frame before it is bytes.
#[derive(Clone)]
pub struct Frame {
    pub resource: u16,
    pub operation: u16,
    /// Each with its number and its type.
    pub tokens: Vec<Vec<u8>>,
    pub payload: Option<Vec<u8>>,
}

impl Frame {
    pub fn new(resource: u16, operation: u16) -> Frame {
        Frame { resource, operation, tokens: Vec::new(), payload: None }
    }

    pub fn token(mut self, id: u16, kind: u8, value: &[u8]) -> Frame {
        self.tokens.push([&id.to_le_bytes()[..], &[kind], value].concat());
        self
    }

    pub fn text(self, id: u16, text: &str) -> Frame {
        let length = (text.len() as u16).to_le_bytes();
        self.token(id, TEXT, &[&length[..], text.as_bytes()].concat())
    }

    pub fn short_text(self, id: u16, text: &str) -> Frame {
        self.token(id, 7, &[&[text.len() as u8], text.as_bytes()].concat())
    }

    pub fn number(self, id: u16, number: u32) -> Frame {
        self.token(id, 2, &number.to_le_bytes())
    }

    pub fn body(mut self, body: &str) -> Frame {
        self.payload = Some(body.as_bytes().to_vec());
        self
    }

    /// With the tokens that each request must have.
    pub fn numbered(self, transport: u32) -> Vec<u8> {
        let has_payload = u8::from(self.payload.is_some());
        self.token(2, 0, &[has_payload]).number(0x4D, transport).bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let tokens = self.tokens.concat();
        let mut out = ((HEAD_BYTES + tokens.len()) as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&self.resource.to_le_bytes());
        out.extend_from_slice(&self.operation.to_le_bytes());
        out.extend_from_slice(&ACTIVITY);
        out.extend_from_slice(&tokens);
        if let Some(payload) = &self.payload {
            out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            out.extend_from_slice(payload);
        }
        out
    }
}

/// The first frame of a client: protocol 1, version 2020-07-15, an agent.
pub fn hello() -> Vec<u8> {
    Frame::new(0, 0).number(0, 1).short_text(1, "2020-07-15").short_text(2, "test").bytes()
}

/// A container with one partition, as clients in direct mode know it.
pub struct Place {
    items: String,
    rid: String,
    signer: Signer,
}

impl Place {
    /// Looks up the container of these items: `/dbs/{database}/colls/{container}/docs`.
    pub fn of(server: &Server, items: &str) -> Place {
        let path = items.trim_end_matches("/docs");
        let found = Client::new(server.port()).send("GET", path, &[], b"").expect("an answer").json();
        let rid = found["_rid"].as_str().expect("a container has a RID").to_owned();
        Place { items: items.to_owned(), rid, signer: Signer::new(EMULATOR_KEY) }
    }

    /// A signed operation on the items of the key `k`.
    pub fn ask(&self, operation: u16, verb: &str, item: Option<&str>) -> Frame {
        let path = item.map_or(self.items.clone(), |item| format!("{}/{item}", self.items));
        let names: Vec<&str> = self.items.split('/').collect();
        let replica = format!("/apps/Orrery/services/Server/partitions/{}-0/replicas/1p", self.rid);
        let frame = Frame::new(ITEM, operation)
            .text(0x01, &self.signer.authorization(verb, &path))
            .short_text(0x03, self.signer.date())
            .text(0x13, &replica)
            .text(0x15, names[2])
            .text(0x16, names[4])
            .text(0x35, &self.rid);
        match item {
            Some(item) => frame.text(0x17, item).text(0x2B, "[\"k\"]"),
            None if operation == CREATE || operation == UPSERT => frame.text(0x2B, "[\"k\"]"),
            None => frame.text(0x2C, "0"),
        }
    }
}

/// An answer, whatever is in it.
pub struct Heard {
    pub status: u32,
    pub body: Vec<u8>,
}

/// Reads the next answer of a connection.
pub fn hear(stream: &mut impl Read) -> io::Result<Heard> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    if head[8..] != ACTIVITY {
        return Err(io::Error::other("this answers no frame of ours"));
    }
    let mut tokens = vec![0; number(&head[..4]) as usize - HEAD_BYTES];
    stream.read_exact(&mut tokens)?;
    let mut heard = Heard { status: number(&head[4..8]), body: Vec::new() };
    // The first token of an answer says whether it has a payload; that of a welcome has another type.
    if tokens.starts_with(&[0, 0, 0, 1]) {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        heard.body = vec![0; number(&length) as usize];
        stream.read_exact(&mut heard.body)?;
    }
    Ok(heard)
}

/// TLS, and nothing said within it.
pub fn open(stream: TcpStream, authority: &[u8]) -> io::Result<Connection> {
    let mut stream = tls(stream, "localhost", authority)?;
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream)
}

/// A connection that has been greeted.
pub fn greeted(server: &Server, authority: &[u8]) -> io::Result<Connection> {
    let mut stream = open(server.connect(), authority)?;
    stream.write_all(&hello())?;
    stream.flush()?;
    assert_eq!(hear(&mut stream)?.status, 200, "a greeting is answered");
    Ok(stream)
}

pub fn authority(server: &Server) -> Vec<u8> {
    get(server, "/_explorer/emulator.pem").body
}
