//! Bytes that nobody should send, and small changes that make good bytes bad.

use orrery_testkit::Random;

const FRAGMENTS: [&str; 40] = [
    "",
    " ",
    "0",
    "-1",
    "1",
    "00",
    "-0",
    "1e400",
    "NaN",
    "18446744073709551616",
    "-9223372036854775809",
    "null",
    "true",
    "[]",
    "{}",
    "[{}]",
    "[null]",
    "[\"",
    "\"",
    "'",
    "%",
    "%00",
    "\u{0}",
    "\u{7f}",
    "\u{feff}",
    "\u{1F980}",
    "é",
    "ÿ",
    "=",
    "==",
    "#",
    ",",
    ":",
    ";",
    "*",
    "..",
    "/",
    "\\",
    "\\u0000",
    "W/\"\"",
];

/// Anything at all, mostly short.
pub fn text(random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0 => {
            let count = random.below(60);
            random.bytes(count)
        }
        1 => (0..random.below(60)).map(|_| 0x20 + random.below(0x5f) as u8).collect(),
        2 => [text(random), text(random)].concat(),
        3 if random.one_in(8) => repeated(random, 20_000),
        _ => random.pick(&FRAGMENTS).as_bytes().to_vec(),
    }
}

/// Text that may stand in a path: the rest is percent-encoded, now and then wrongly.
pub fn path_text(random: &mut Random) -> Vec<u8> {
    let mut path = Vec::new();
    for byte in text(random) {
        match byte {
            b'!'..=b'~' if byte != b'%' || random.one_in(4) => path.push(byte),
            _ => path.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    path
}

/// One fragment over and over.
pub fn repeated(random: &mut Random, bytes_max: usize) -> Vec<u8> {
    let fragment = random.pick(&["a", "%41", "[", "/", "é", "0,", "{\"a\":", "(", "NOT "]).as_bytes();
    fragment.repeat(random.below(bytes_max / fragment.len()))
}

/// Looks like a RID, of any length.
pub fn rid(random: &mut Random) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let length = *random.pick(&[0, 1, 3, 4, 6, 7, 8, 11, 12, 16, 20, 24, 28, 100]);
    let mut rid: Vec<u8> = (0..length).map(|_| *random.pick(ALPHABET)).collect();
    rid.extend_from_slice(random.pick(&["", "=", "==", "==="]).as_bytes());
    rid
}

/// One to four small changes.
pub fn mutate(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(4) {
        let place = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[place] = random.number() as u8,
            1 if !bytes.is_empty() => bytes[place] ^= 1 << random.below(8),
            2 => bytes.truncate(place),
            3 => {
                let end = place + random.below((bytes.len() - place).min(20));
                bytes.drain(place..end);
            }
            4 => {
                let end = place + random.below((bytes.len() - place).min(20));
                let copy = bytes[place..end].to_vec();
                bytes.splice(place..place, copy);
            }
            _ => {
                let fragment = random.pick(&FRAGMENTS).as_bytes();
                bytes.splice(place..place, fragment.iter().copied());
            }
        }
    }
    bytes
}

pub fn insert(random: &mut Random, bytes: &[u8], inserted: &[u8]) -> Vec<u8> {
    let place = random.below(bytes.len() + 1);
    [&bytes[..place], inserted, &bytes[place..]].concat()
}

/// Undoes the encoding of a signature, as a client with a bug would.
pub fn percent_decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = bytes;
    while let Some((byte, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) if *byte == b'%' => {
                decoded.push(value);
                rest = &tail[2..];
            }
            _ => {
                decoded.push(*byte);
                rest = tail;
            }
        }
    }
    decoded
}
