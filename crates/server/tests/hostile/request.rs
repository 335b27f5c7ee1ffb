//! A request as bytes: nothing in it has to be text.

use orrery_testkit::{Random, Signer};

use crate::junk;

#[derive(Clone)]
pub struct Request {
    pub verb: &'static str,
    pub path: Vec<u8>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// What is sent in place of all the rest.
    pub on_the_wire: Option<Vec<u8>>,
}

impl Request {
    pub fn new(verb: &'static str, path: &str, headers: &[(&str, &str)], body: &str) -> Request {
        let mut request = Request {
            verb,
            path: path.as_bytes().to_vec(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
            on_the_wire: None,
        };
        request.set_header("x-ms-version", b"2020-07-15".to_vec());
        for (name, value) in headers {
            request.set_header(name, value.as_bytes().to_vec());
        }
        request
    }

    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_slice())
    }

    pub fn set_header(&mut self, name: &str, value: Vec<u8>) {
        self.headers.retain(|(header, _)| header != name);
        self.headers.push((name.to_owned(), value));
    }

    /// Signs for the path as it is, so that whatever else is wrong is found behind the signature.
    pub fn sign(&mut self, signer: &Signer) {
        let path = String::from_utf8_lossy(&self.path).into_owned();
        let authorization = signer.authorization(self.verb, &path);
        self.set_header("authorization", authorization.into_bytes());
        self.set_header("x-ms-date", signer.date().as_bytes().to_vec());
    }

    /// The same as the Table API has it.
    pub fn sign_table(&mut self, signer: &Signer) {
        let path = String::from_utf8_lossy(&self.path).into_owned();
        self.set_header("authorization", signer.table_authorization(&path).into_bytes());
        self.set_header("x-ms-date", signer.date().as_bytes().to_vec());
    }

    /// Deletes no database or container: without them all later requests would fail in the same dull way.
    pub fn spare_resources(&mut self) {
        let in_docs = self.path.windows(6).any(|window| window == b"/docs/");
        if self.verb == "DELETE" && !in_docs {
            self.verb = "GET";
        }
    }

    /// Changes bytes of the head that was signed.
    pub fn change_on_the_wire(&mut self, random: &mut Random) {
        let message = self.to_bytes();
        // The length stays, or the server would rightly wait for more; so does the first byte, which may mean TLS.
        let length = message.windows(16).position(|window| window == b"\r\ncontent-length");
        let (head, rest) = message.split_at(length.expect("every request has a length"));
        let changed = junk::mutate(random, &head[1..]);
        self.on_the_wire = Some([&head[..1], &changed, rest].concat());
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        if let Some(bytes) = &self.on_the_wire {
            return bytes.clone();
        }
        let mut bytes = Vec::with_capacity(512 + self.body.len());
        bytes.extend_from_slice(self.verb.as_bytes());
        bytes.push(b' ');
        // A space or a line break would only end the path.
        bytes.extend(self.path.iter().filter(|byte| !b" \r\n".contains(byte)));
        bytes.extend_from_slice(b" HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend(value.iter().filter(|byte| !b"\r\n".contains(byte)));
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// The request in words, for a message about its failure.
    pub fn describe(&self) -> String {
        let bytes = self.to_bytes();
        let shown = &bytes[..bytes.len().min(4_000)];
        format!("{} bytes: {}", bytes.len(), shown.escape_ascii())
    }
}
