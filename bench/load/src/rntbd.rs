//! The client's side of direct mode, as far as loads need it: reads and creates of items, many at once.
//!
//! ```text
//!   length 4 | kind of request, or status 4 | activity id 16 | tokens ... || length 4 | payload ...
//! ```

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::latency::Latency;
use crate::load::{Source, Stream};

const HEAD_BYTES: usize = 24;
const READ_BYTES: usize = 64 * 1024;

const CONNECTION: (u16, u16) = (0, 0);
/// Resource and operation of the requests that loads send.
pub const ITEM_CREATE: (u16, u16) = (3, 1);
pub const ITEM_READ: (u16, u16) = (3, 3);

/// Numbers of tokens of requests.
pub mod token {
    pub const RESOURCE_ID: u16 = 0x00;
    pub const AUTHORIZATION: u16 = 0x01;
    pub const PAYLOAD_PRESENT: u16 = 0x02;
    pub const DATE: u16 = 0x03;
    pub const REPLICA_PATH: u16 = 0x13;
    pub const DATABASE: u16 = 0x15;
    pub const CONTAINER: u16 = 0x16;
    pub const ITEM: u16 = 0x17;
    pub const PARTITION_KEY: u16 = 0x2B;
    pub const CONTAINER_RID: u16 = 0x35;
    pub const TIME_LEFT: u16 = 0x49;
    pub const ATTEMPTS: u16 = 0x4A;
    pub const TRANSPORT: u16 = 0x4D;
}

/// The same of answers.
mod told {
    pub const PAYLOAD_PRESENT: u16 = 0x00;
    pub const TRANSPORT: u16 = 0x35;
}

/// Types of values.
mod kind {
    pub const BYTE: u8 = 0;
    pub const LONG: u8 = 2;
    pub const SMALL_TEXT: u8 = 7;
    pub const TEXT: u8 = 8;
    pub const BYTES: u8 = 11;
}

/// Writes one frame behind whatever is there.
pub struct Frame<'b> {
    out: &'b mut Vec<u8>,
    start: usize,
}

impl<'b> Frame<'b> {
    pub fn begin(out: &'b mut Vec<u8>, (resource, operation): (u16, u16)) -> Frame<'b> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&resource.to_le_bytes());
        out.extend_from_slice(&operation.to_le_bytes());
        out.extend_from_slice(&[7; 16]);
        Frame { out, start }
    }

    pub fn byte(self, id: u16, value: u8) -> Self {
        self.token(id, kind::BYTE, &[value])
    }

    pub fn number(self, id: u16, value: u32) -> Self {
        self.token(id, kind::LONG, &value.to_le_bytes())
    }

    pub fn text(self, id: u16, text: &str) -> Self {
        self.counted(id, kind::TEXT, text.as_bytes())
    }

    pub fn bytes(self, id: u16, bytes: &[u8]) -> Self {
        self.counted(id, kind::BYTES, bytes)
    }

    pub fn small_text(self, id: u16, text: &str) -> Self {
        let this = self.token(id, kind::SMALL_TEXT, &[u8::try_from(text.len()).expect("a short text")]);
        this.out.extend_from_slice(text.as_bytes());
        this
    }

    /// The number by which its answer is found, which stands last so that [`number`] can write it.
    pub fn end(self, payload: &[u8]) {
        let this = self
            .byte(token::PAYLOAD_PRESENT, u8::from(!payload.is_empty()))
            .number(token::TRANSPORT, 0)
            .finish();
        if !payload.is_empty() {
            this.out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            this.out.extend_from_slice(payload);
        }
    }

    fn finish(self) -> Self {
        let length = (self.out.len() - self.start) as u32;
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_le_bytes());
        self
    }

    fn counted(self, id: u16, kind: u8, value: &[u8]) -> Self {
        let length = u16::try_from(value.len()).expect("a text that fits into its token");
        let this = self.token(id, kind, &length.to_le_bytes());
        this.out.extend_from_slice(value);
        this
    }

    fn token(self, id: u16, kind: u8, value: &[u8]) -> Self {
        self.out.extend_from_slice(&id.to_le_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(value);
        self
    }
}

/// Gives the frame that begins there its number.
fn number(frame: &mut [u8], number: u32) {
    let length = u32_at(frame, 0) as usize;
    frame[length - 4..length].copy_from_slice(&number.to_le_bytes());
}

/// Opens a connection that has TLS already.
pub async fn greet(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<()> {
    let mut hello = Vec::new();
    Frame::begin(&mut hello, CONNECTION)
        .number(0, 1)
        .small_text(1, "2020-07-15")
        .small_text(2, "orrery-bench")
        .finish();
    stream.write_all(&hello).await?;
    stream.flush().await?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).await.context("the port does not speak direct mode")?;
    stream.read_exact(&mut vec![0; (u32_at(&head, 0) as usize).saturating_sub(HEAD_BYTES)]).await?;
    ensure!(u32_at(&head, 4) == 200, "the connection was refused: {}", u32_at(&head, 4));
    Ok(())
}

/// One answer among the bytes of a connection.
struct Heard {
    status: u16,
    transport: usize,
    bytes: usize,
}

/// Keeps so many requests under way until the time is over.
pub async fn converse(
    mut stream: Box<dyn Stream>,
    at_once: usize,
    end: Instant,
    source: Rc<RefCell<impl Source>>,
    latency: Rc<RefCell<Latency>>,
) -> Result<()> {
    let wanted = source.borrow().status();
    let (mut out, mut answers) = (Vec::with_capacity(READ_BYTES), vec![0; READ_BYTES]);
    let mut sent = vec![Instant::now(); at_once];
    let (mut under_way, mut filled) = (0, 0);
    for place in 0..at_once {
        under_way += usize::from(next(&source, place, &mut out));
    }
    while under_way > 0 {
        if !out.is_empty() {
            stream.write_all(&out).await?;
            stream.flush().await?;
            out.clear();
        }
        if filled == answers.len() {
            answers.resize(filled * 2, 0);
        }
        let read = stream.read(&mut answers[filled..]).await?;
        ensure!(read > 0, "the server closed the connection");
        filled += read;
        let mut done = 0;
        while let Some(heard) = answer(&answers[done..filled])? {
            if heard.status != wanted && !source.borrow().accepts(heard.status) {
                let shown =
                    String::from_utf8_lossy(&answers[done..done + heard.bytes.min(2000)]).into_owned();
                bail!("{} instead of {wanted}: {shown}", heard.status);
            }
            done += heard.bytes;
            let (now, since) = (Instant::now(), sent.get_mut(heard.transport));
            let since = since.context("an answer to a request that was not sent")?;
            latency.borrow_mut().record(now - *since);
            *since = now;
            under_way -= 1;
            under_way += usize::from(now < end && next(&source, heard.transport, &mut out));
        }
        answers.copy_within(done..filled, 0);
        filled -= done;
    }
    Ok(())
}

fn next(source: &Rc<RefCell<impl Source>>, place: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let is_there = source.borrow_mut().next(out);
    if is_there {
        number(&mut out[start..], place as u32);
    }
    is_there
}

/// The first answer, if all of it has come.
fn answer(bytes: &[u8]) -> Result<Option<Heard>> {
    if bytes.len() < HEAD_BYTES {
        return Ok(None);
    }
    let length = u32_at(bytes, 0) as usize;
    let Some(head) = bytes.get(..length) else { return Ok(None) };
    let mut heard = Heard { status: u32_at(head, 4) as u16, transport: usize::MAX, bytes: length };
    let (mut at, mut has_payload) = (HEAD_BYTES, false);
    while at < length {
        let id = u16::from_le_bytes([head[at], head[at + 1]]);
        let value = at + 3;
        match id {
            told::PAYLOAD_PRESENT => has_payload = head[value] == 1,
            told::TRANSPORT => heard.transport = u32_at(head, value) as usize,
            _ => {}
        }
        at = value + value_bytes(head[at + 2], &head[value..])?;
    }
    if has_payload {
        if bytes.len() < length + 4 {
            return Ok(None);
        }
        heard.bytes += 4 + u32_at(bytes, length) as usize;
    }
    Ok((bytes.len() >= heard.bytes).then_some(heard))
}

/// How many bytes a value takes, with its length if one stands in front.
fn value_bytes(kind: u8, value: &[u8]) -> Result<usize> {
    Ok(match kind {
        0 => 1,
        1 => 2,
        2 | 3 | 13 => 4,
        4 | 5 | 14 => 8,
        6 => 16,
        7 | 10 => 1 + usize::from(value[0]),
        8 | 11 => 2 + usize::from(u16::from_le_bytes([value[0], value[1]])),
        9 | 12 => 4 + u32_at(value, 0) as usize,
        other => bail!("a token of the unknown type {other}"),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_length_and_its_number() {
        let mut out = vec![9];
        Frame::begin(&mut out, ITEM_READ).text(token::ITEM, "a").end(b"");
        number(&mut out[1..], 0x0403_0201);
        let mut wanted = vec![9, 41, 0, 0, 0, 3, 0, 3, 0];
        wanted.extend([7; 16]);
        wanted.extend([0x17, 0, 8, 1, 0, b'a', 2, 0, 0, 0, 0x4D, 0, 2, 1, 2, 3, 4]);
        assert_eq!(out, wanted);
    }

    #[test]
    fn an_answer_is_there_when_its_payload_is() {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[4] = 200;
        bytes.extend([0, 0, 0, 1, 4, 0, 8, 2, 0, b'h', b'i', 0x35, 0, 2, 5, 0, 0, 0]);
        bytes[0] = bytes.len() as u8;
        bytes.extend([3, 0, 0, 0, b'a', b'b', b'c', 99]);
        let whole = bytes.len() - 1;
        for end in 0..whole {
            assert!(answer(&bytes[..end]).expect("readable").is_none(), "{end} bytes");
        }
        let heard = answer(&bytes).expect("readable").expect("whole");
        assert_eq!((heard.status, heard.transport, heard.bytes), (200, 5, whole));
    }
}
