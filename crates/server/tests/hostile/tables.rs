//! Requests of the Table API that work, and ways to break them: filters, batches, entities, addresses and signatures.

use std::fmt::Write;

use orrery_testkit::{Random, Signer};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::request::Request;
use crate::target::Target;
use crate::{Group, VERBS, json, junk};

pub const GROUPS: [Group<Samples>; 8] = [
    ("filters of tables", filter),
    ("batches of tables", batch),
    ("bodies of entities", entity),
    ("addresses of tables", address),
    ("keys of tables", authorization),
    ("shared access signatures", shared_access),
    ("tables changed at random", changed),
    ("tables changed on the wire", on_the_wire),
];

const ENTITY: &str = r#"{"PartitionKey":"p","RowKey":"r","a":1,"f":1.5,"s":"x","b":true,"L":"5","L@odata.type":"Edm.Int64","t":"2024-01-01T00:00:00Z","t@odata.type":"Edm.DateTime","g":"c9da6455-213d-42c9-9a79-3e9149a57833","g@odata.type":"Edm.Guid","x":"AAE=","x@odata.type":"Edm.Binary"}"#;
const JSON: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json;odata=fullmetadata")];
const BATCH_TYPE: &str = "multipart/mixed; boundary=b";

pub struct Samples {
    signer: Signer,
    requests: Vec<Request>,
}

impl Samples {
    /// Makes the table that the samples use.
    pub fn collect(target: &mut Target) -> Samples {
        let client = &mut target.client;
        for (path, body, status) in [("/Tables", r#"{"TableName":"t"}"#, 201), ("/t", ENTITY, 201)] {
            let reply = client.send_table("POST", path, &JSON, body.as_bytes()).expect("an answer");
            assert_eq!(reply.status, status, "{}", String::from_utf8_lossy(&reply.body));
        }
        for number in 0..20 {
            let path = format!("/t(PartitionKey='p{}',RowKey='r{number}')", number % 3);
            let body = format!(r#"{{"a":{number},"s":"{number}"}}"#);
            let reply = client.send_table("PUT", &path, &JSON, body.as_bytes()).expect("an answer");
            assert_eq!(reply.status, 204, "{}", String::from_utf8_lossy(&reply.body));
        }
        Samples { signer: client.signer().clone(), requests: requests() }
    }

    fn any(&self, random: &mut Random) -> Request {
        random.pick(&self.requests).clone()
    }
}

fn requests() -> Vec<Request> {
    let one = "/t(PartitionKey='p',RowKey='r')";
    let json = |verb, path: &str, body: &str| Request::new(verb, path, &JSON, body);
    let mut requests = vec![
        json("GET", "/Tables", ""),
        json("GET", "/Tables('t')", ""),
        json("GET", "/Tables?$filter=TableName%20ge%20'a'&$top=1", ""),
        json("POST", "/Tables", r#"{"TableName":"u"}"#),
        json("GET", "/t()", ""),
        json("GET", "/t()?$top=2&$select=a,s", ""),
        json("GET", "/t()?$filter=PartitionKey%20eq%20'p'%20and%20a%20gt%200", ""),
        json("GET", "/t()?NextPartitionKey=QUJD&NextRowKey=NA", ""),
        json("GET", one, ""),
        json("POST", "/t", &ENTITY.replace("\"r\"", "\"other\"")),
        json("PUT", one, ENTITY),
        json("MERGE", one, ENTITY),
        json("PATCH", one, ENTITY),
        json("DELETE", "/t(PartitionKey='p',RowKey='other')", ""),
        json("GET", "/?restype=service&comp=properties", ""),
        json("GET", "/?restype=service&comp=stats", ""),
        json("GET", "/t?comp=acl", ""),
        json("PUT", "/t?comp=acl", "<?xml version=\"1.0\"?><SignedIdentifiers></SignedIdentifiers>"),
        json(
            "PUT",
            "/?restype=service&comp=properties",
            "<?xml version=\"1.0\"?><StorageServiceProperties/>",
        ),
        json("OPTIONS", "/t", ""),
    ];
    requests.push(Request::new("POST", "/$batch", &[("content-type", BATCH_TYPE)], &changeset(3)));
    for (name, value) in [("if-match", "*"), ("x-http-method", "MERGE"), ("prefer", "return-no-content")] {
        let mut request = json(if name == "if-match" { "DELETE" } else { "POST" }, one, ENTITY);
        request.set_header(name, value.as_bytes().to_vec());
        requests.push(request);
    }
    requests
}

fn changeset(parts: usize) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for part in 0..parts {
        write!(
            body,
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {part}\r\n\r\n\
             PUT http://localhost/t(PartitionKey='p',RowKey='b{part}') HTTP/1.1\r\nContent-Type: application/json\r\n\
             Prefer: return-no-content\r\n\r\n{{\"a\":{part}}}\r\n"
        )
        .expect("writing to memory does not fail");
    }
    body + "--c--\r\n--b--\r\n"
}

fn filter(random: &mut Random, samples: &Samples) -> Request {
    let text = match random.below(6) {
        0 => nested(random),
        1 => vec!["a eq 1"; 1 + random.below(3_000)].join(*random.pick(&[" and ", " or "])).into_bytes(),
        2 => junk::mutate(
            random,
            b"PartitionKey eq 'p' and (a gt 1L or not (s le 'x')) and t ge datetime'2024-01-01'",
        ),
        _ => words(random),
    };
    let text = utf8_percent_encode(&String::from_utf8_lossy(&text), NON_ALPHANUMERIC).to_string();
    let more = *random.pick(&[
        "",
        "&$top=1",
        "&$top=99999999999999999999",
        "&$select=%20,,a",
        "&NextPartitionKey=%27",
    ]);
    let path = format!("/{}?$filter={text}{more}", random.pick(&["t()", "t()", "t()", "Tables"]));
    let mut request = Request::new("GET", &path, &JSON, "");
    request.sign_table(&samples.signer);
    request
}

fn nested(random: &mut Random) -> Vec<u8> {
    let depth = random.below(10_000);
    let (open, close) =
        *random.pick(&[("(", ")"), ("not ", ""), ("not(", ")"), ("(a eq 1 or ", ")"), ("((", ")")]);
    format!("{}a eq 1{}", open.repeat(depth), close.repeat(depth)).into_bytes()
}

/// Words of the language in any order.
fn words(random: &mut Random) -> Vec<u8> {
    const WORDS: [&str; 40] = [
        "a",
        "s",
        "PartitionKey",
        "RowKey",
        "Timestamp",
        "nothing",
        "eq",
        "ne",
        "gt",
        "ge",
        "lt",
        "le",
        "and",
        "or",
        "not",
        "(",
        ")",
        "'x'",
        "''",
        "'it''s'",
        "'",
        "1",
        "-1",
        "1.5",
        "1e999",
        "NaN",
        "9223372036854775807L",
        "99999999999999999999",
        "1L",
        "true",
        "false",
        "null",
        "datetime'2024-01-01T00:00:00Z'",
        "datetime'soon'",
        "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
        "guid'x'",
        "X'00ff'",
        "X'0'",
        "binary'zz'",
        "startswith(a,'x')",
    ];
    let count = 1 + random.below(60);
    (0..count).map(|_| *random.pick(&WORDS)).collect::<Vec<_>>().join(" ").into_bytes()
}

fn batch(random: &mut Random, samples: &Samples) -> Request {
    let good = changeset(1 + random.below(4));
    let body = match random.below(8) {
        0 => changeset(99 + random.below(300)).into_bytes(),
        1 => good.as_bytes()[..random.below(good.len())].to_vec(),
        2 => good.replace("--c\r\n", "--c\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n").into_bytes(),
        3 => good
            .replace("Content-ID: ", &format!("Content-ID: {}", "9".repeat(random.below(40_000))))
            .into_bytes(),
        4 => {
            let verb = *random.pick(&["GET", "POST", "DELETE", "MERGE", "BREW", ""]);
            good.replace("PUT", verb).into_bytes()
        }
        5 => {
            let end = *random.pick(&["\n", "\r", "\n\r"]);
            good.replace("\r\n", end).into_bytes()
        }
        6 => "--b\r\n".repeat(random.below(20_000)).into_bytes(),
        _ => junk::mutate(random, good.as_bytes()),
    };
    let kind = match random.below(5) {
        0 => junk::mutate(random, BATCH_TYPE.as_bytes()),
        1 => format!("multipart/mixed; boundary={}", "b".repeat(random.below(500))).into_bytes(),
        _ => BATCH_TYPE.as_bytes().to_vec(),
    };
    let mut request = Request::new("POST", "/$batch", &[], "");
    request.set_header("content-type", kind);
    request.body = body;
    request.sign_table(&samples.signer);
    request
}

fn entity(random: &mut Random, samples: &Samples) -> Request {
    let mut request = samples.any(random);
    request.body = match random.below(4) {
        0 => json::broken(random, &request.body),
        1 => json::surprise(random, ENTITY.as_bytes()),
        2 => json::surprise(random, &request.body),
        _ => wide(random),
    };
    request.sign_table(&samples.signer);
    request
}

/// An entity with many properties, deep ones, or long names.
fn wide(random: &mut Random) -> Vec<u8> {
    let property: String = match random.below(3) {
        0 => (0..random.below(2_000)).map(|place| format!(",\"p{place}\":{place}")).collect(),
        1 => format!(",\"{}\":1", "n".repeat(random.below(5_000))),
        _ => format!(",\"d\":{}{}", "[".repeat(5_000), "]".repeat(random.below(5_001))),
    };
    ENTITY.replacen(",\"a\"", &format!("{property},\"a\""), 1).into_bytes()
}

fn address(random: &mut Random, samples: &Samples) -> Request {
    let mut request = samples.any(random);
    request.path = match random.below(5) {
        0 => [b"/".to_vec(), junk::path_text(random)].concat(),
        1 => junk::repeated(random, 30_000),
        2 => {
            let key = String::from_utf8_lossy(&junk::text(random)).into_owned();
            let key = utf8_percent_encode(&key, NON_ALPHANUMERIC).to_string();
            format!("/t(PartitionKey='{key}',RowKey='{key}')").into_bytes()
        }
        3 => format!("/devstoreaccount1{}", String::from_utf8_lossy(&request.path)).into_bytes(),
        _ => junk::mutate(random, &request.path),
    };
    spare_the_table(&mut request);
    request.sign_table(&samples.signer);
    request
}

/// A request that works, but for who sent it and when.
fn authorization(random: &mut Random, samples: &Samples) -> Request {
    let mut request = samples.any(random);
    request.sign_table(&samples.signer);
    let name =
        *random.pick(&["authorization", "authorization", "x-ms-date", "date", "content-md5", "x-ms-version"]);
    let value = request.header(name).unwrap_or_default().to_vec();
    let value = match random.below(6) {
        0 => junk::text(random),
        1 => value[..random.below(value.len().max(1))].to_vec(),
        2 => value.iter().copied().filter(|byte| *byte != b' ').collect(),
        3 => junk::repeated(random, 60_000),
        4 => {
            [random.pick(&["Bearer ", "SharedKey ", "SharedKeyLite orrery:"]).as_bytes(), &junk::text(random)]
                .concat()
        }
        _ => junk::mutate(random, &value),
    };
    request.set_header(name, value);
    request
}

/// Rights in the address: some of them right, most of them wrong in one of many ways.
fn shared_access(random: &mut Random, samples: &Samples) -> Request {
    let mut request = samples.any(random);
    let terms = [
        ("sp", random.pick(&["r", "raud", "rwdlacu", "raud", "", "xyz"]).to_string()),
        (
            "se",
            random.pick(&["2999-01-01", "2999-01-01", "2999-01-01", "1999-01-01", "", "soon"]).to_string(),
        ),
        ("st", random.pick(&["", "", "", "2000-01-01", "2998-01-01", "2999-13-45T99:99:99Z"]).to_string()),
        ("sip", random.pick(&["", "", "", "127.0.0.1", "10.0.0.1-10.0.0.9", "-", "::"]).to_string()),
        ("spr", random.pick(&["", "", "https,http", "https", "ftp"]).to_string()),
        ("sv", random.pick(&["2019-02-02", "2020-12-06", "", "9999"]).to_string()),
        ("tn", random.pick(&["t", "t", "t", "T", "other", ""]).to_string()),
        ("spk", random.pick(&["", "", "", "p", "z"]).to_string()),
        ("epk", random.pick(&["", "", "", "p", "a"]).to_string()),
        ("si", random.pick(&["", "", "", "", "", "policy"]).to_string()),
    ];
    let of = |name: &str| terms.iter().find(|term| term.0 == name).map_or("", |term| term.1.as_str());
    let table = format!("/table/orrery/{}", of("tn").to_lowercase());
    let signed = [
        of("sp"),
        of("st"),
        of("se"),
        &table,
        of("si"),
        of("sip"),
        of("spr"),
        of("sv"),
        of("spk"),
        "",
        of("epk"),
        "",
    ]
    .join("\n");
    let signature = samples.signer.sign_text(&signed).into_bytes();
    let signature = if random.one_in(3) { junk::mutate(random, &signature) } else { signature };
    let mut query: Vec<String> = terms.iter().map(|(name, value)| format!("{name}={value}")).collect();
    query.push(format!("sig={}", percent_encoding::percent_encode(&signature, NON_ALPHANUMERIC)));
    if random.one_in(5) {
        query.remove(random.below(query.len()));
    }
    let path = String::from_utf8_lossy(&request.path).into_owned();
    let joint = if path.contains('?') { '&' } else { '?' };
    request.path = format!("{path}{joint}{}", query.join("&")).into_bytes();
    request
}

/// A request that works, changed in several places, then signed.
fn changed(random: &mut Random, samples: &Samples) -> Request {
    let mut request = samples.any(random);
    for _ in 0..1 + random.below(3) {
        match random.below(5) {
            0 => request.path = junk::mutate(random, &request.path),
            1 => request.body = json::surprise(random, &request.body),
            2 => request.verb = *random.pick(&VERBS),
            3 => {
                const HEADERS: [&str; 8] = [
                    "if-match",
                    "if-none-match",
                    "x-http-method",
                    "prefer",
                    "accept",
                    "content-type",
                    "x-ms-offer-throughput",
                    "maxdataserviceversion",
                ];
                let name = *random.pick(&HEADERS);
                request.set_header(name, junk::text(random));
            }
            _ => request.body = json::broken(random, &request.body),
        }
    }
    spare_the_table(&mut request);
    request.sign_table(&samples.signer);
    request
}

fn on_the_wire(random: &mut Random, samples: &Samples) -> Request {
    let mut request = samples.any(random);
    request.sign_table(&samples.signer);
    request.change_on_the_wire(random);
    request
}

/// Without the table all later requests would fail in the same dull way.
fn spare_the_table(request: &mut Request) {
    if request.verb == "DELETE" && !request.path.starts_with(b"/t(") {
        request.verb = "GET";
    }
}
