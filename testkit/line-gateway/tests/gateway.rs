//! The small gateway, driven over TCP as a client drives it.

use std::path::Path;

use orrery_cluster::{Db, DbOptions, Storage};
use orrery_line_gateway::Gateway;
use orrery_testkit::wait_for;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// RU/s that start a table with four physical partitions.
const FOUR_PARTITIONS: u32 = 24_000;

struct Client {
    reading: BufReader<OwnedReadHalf>,
    writing: OwnedWriteHalf,
}

impl Client {
    async fn of(gateway: &Gateway) -> Client {
        let stream = TcpStream::connect(gateway.address).await.expect("the gateway listens");
        let (reading, writing) = stream.into_split();
        Client { reading: BufReader::new(reading), writing }
    }

    /// Sends a line. The rows of the answer, without the word before them, and its last line.
    async fn ask(&mut self, line: &str) -> (Vec<String>, String) {
        self.writing.write_all(format!("{line}\n").as_bytes()).await.expect("the gateway reads");
        let mut rows = Vec::new();
        loop {
            let mut line = String::new();
            self.reading.read_line(&mut line).await.expect("the gateway answers");
            assert!(!line.is_empty(), "the gateway ended the connection");
            match line.trim_end().strip_prefix("ROW ") {
                Some(row) => rows.push(row.to_owned()),
                None => return (rows, line.trim_end().to_owned()),
            }
        }
    }

    async fn ok(&mut self, line: &str) -> Vec<String> {
        let (rows, last) = self.ask(line).await;
        assert!(last.starts_with("OK"), "{line}: {last}");
        rows
    }

    async fn refused(&mut self, line: &str) -> String {
        let (_, last) = self.ask(line).await;
        last.strip_prefix("NO ").unwrap_or_else(|| panic!("{line}: {last}")).to_owned()
    }
}

fn open(storage: Storage) -> Db {
    let options = DbOptions { storage, ..DbOptions::in_memory("lines", "here") };
    // What was closed before may be held by a task for a moment longer.
    wait_for(|| Db::open(options.clone()).map_err(|error| format!("the database does not open: {error}")))
}

fn on_disk(path: &Path) -> Db {
    let path = path.to_owned();
    open(Storage::Disk { path, cache_bytes: 1 << 20, disk_bytes_max: None, write_buffer_bytes: None })
}

/// Values in MongoDB's order, one of each type that the notation has. JSON would show eight of them as texts.
const BSON_LADDER: [&str; 19] = [
    "min",
    "null",
    "int32(-7)",
    "2.5",
    "dec(1e000000000000000000000000004030)",
    "int32(31)",
    "9007199254740993",
    "\"\"",
    "\"z\\u0000\"",
    "{\"a\":int32(1),\"b\":date(5)}",
    "[true,oid(0102030405060708090a0b0c)]",
    "bin(0 ff00)",
    "oid(ff02030405060708090a0b0c)",
    "false",
    "true",
    "date(-1)",
    "date(1)",
    "ts(5 1)",
    "max",
];

/// Any order but the right one.
fn shuffled(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |step| step * 7 % count)
}

async fn filled(client: &mut Client, kind: &str, indexed: &str) {
    let partitions =
        client.ask(&format!("MAKE \"t\" \"{kind}\" {FOUR_PARTITIONS} [\"pk\"] {indexed}")).await.1;
    assert_eq!(partitions, "OK 4 partitions");
    for place in shuffled(BSON_LADDER.len()) {
        let value = BSON_LADDER[place];
        client.ok(&format!("NEW \"t\" {{\"_id\":{place},\"pk\":{value},\"v\":{value}}}")).await;
    }
}

/// The numbers that the rows have as ids.
fn ids(rows: &[String]) -> Vec<usize> {
    let id = |row: &String| row.strip_prefix("{\"_id\":")?.split([',', '}']).next()?.parse().ok();
    rows.iter().map(|row| id(row).unwrap_or_else(|| panic!("{row}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_values_come_back_as_they_were_sent() {
    let gateway = Gateway::start(open(Storage::Memory)).await.expect("a free port");
    let mut client = Client::of(&gateway).await;
    filled(&mut client, "bson", "[]").await;
    for (place, value) in BSON_LADDER.iter().enumerate() {
        let item = format!("{{\"_id\":{place},\"pk\":{value},\"v\":{value}}}");
        assert_eq!(
            client.ok(&format!("GET \"t\" {{\"_id\":{place},\"pk\":{value}}}")).await,
            [item.as_str()]
        );
        // A query copies the item into a row, which must lose nothing either.
        let found = client.ok(&format!("FIND \"t\" {{\"where\":[[\"_id\",\"=\",{place}]]}}")).await;
        assert_eq!(found, [item.as_str()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_order_and_compare_as_mongodb_does_with_an_index_and_without() {
    for (indexed, by) in [("[]", "scan"), ("[\"v\"]", "scan"), ("[\"v\"]", "index")] {
        let gateway = Gateway::start(open(Storage::Memory)).await.expect("a free port");
        let mut client = Client::of(&gateway).await;
        filled(&mut client, "bson", indexed).await;
        let all: Vec<usize> = (0..BSON_LADDER.len()).collect();
        for page in [1, 3, 100] {
            let find =
                |way| format!("FIND \"t\" {{\"sort\":[\"v\",\"{way}\"],\"page\":{page},\"by\":\"{by}\"}}");
            let (rows, told) = client.ask(&find("up")).await;
            assert_eq!(ids(&rows), all, "{told}");
            assert_eq!(told.contains("index order"), by == "index", "{told}");
            let rows = client.ok(&find("down")).await;
            assert!(ids(&rows).into_iter().eq(all.iter().rev().copied()), "{rows:?}");
        }
        // A number is compared with numbers and a date with dates, whatever stands between them.
        for (condition, wanted) in [
            ("[\"v\",\">\",3]", &[4, 5, 6][..]),
            ("[\"v\",\"<=\",31.0]", &[2, 3, 4, 5]),
            ("[\"v\",\">=\",date(-1)]", &[15, 16]),
            ("[\"v\",\"<\",true]", &[13]),
            ("[\"v\",\">\",\"\"]", &[8]),
            ("[\"v\",\"=\",int32(31)]", &[5]),
            ("[\"v\",\"=\",9007199254740992]", &[]),
            ("[\"v\",\">\",bin(0 00)],[\"v\",\"<\",bin(0 ffff)]", &[11]),
        ] {
            let find = format!("FIND \"t\" {{\"where\":[{condition}],\"by\":\"{by}\"}}");
            let mut found = ids(&client.ok(&find).await);
            found.sort_unstable();
            assert_eq!(found, wanted, "{condition} by {by} with an index of {indexed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_key_come_in_the_order_of_ids_that_are_bytes() {
    let gateway = Gateway::start(open(Storage::Memory)).await.expect("a free port");
    let mut client = Client::of(&gateway).await;
    client.ok("MAKE \"t\" \"bson\" 400 [\"pk\"] []").await;
    for place in shuffled(BSON_LADDER.len()) {
        client.ok(&format!("NEW \"t\" {{\"_id\":{},\"pk\":1,\"n\":{place}}}", BSON_LADDER[place])).await;
    }
    let in_order: Vec<String> = (0..BSON_LADDER.len())
        .map(|place| format!("{{\"_id\":{},\"pk\":1,\"n\":{place}}}", BSON_LADDER[place]))
        .collect();
    for page in [1, 4, 100] {
        // 1.0 is the same key as 1, as it is to MongoDB.
        assert_eq!(client.ok(&format!("LIST \"t\" {{\"pk\":1.0}} {page}")).await, in_order);
    }
    assert_eq!(
        client.refused("NEW \"t\" {\"_id\":31.0,\"pk\":int32(1)}").await.split(' ').next(),
        Some("EXISTS")
    );
    client.ok("DEL \"t\" {\"_id\":bin(0 ff00),\"pk\":1}").await;
    assert!(client.refused("GET \"t\" {\"_id\":bin(0 ff00),\"pk\":1}").await.starts_with("MISSING"));
    assert_eq!(client.ok("LIST \"t\" {\"pk\":1} 100").await.len(), BSON_LADDER.len() - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_of_many_clients_all_count() {
    const CLIENTS: usize = 8;
    const EACH: usize = 25;
    let gateway = Gateway::start(open(Storage::Memory)).await.expect("a free port");
    let mut client = Client::of(&gateway).await;
    client.ok("MAKE \"t\" \"bson\" 400 [\"pk\"] []").await;
    client.ok("PUT \"t\" {\"_id\":\"a\",\"pk\":1,\"n\":int32(2147483547),\"at\":date(3)}").await;
    let mut adding = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::of(&gateway).await;
        adding.push(tokio::spawn(async move {
            for _ in 0..EACH {
                client.ok("ADD \"t\" {\"_id\":\"a\",\"pk\":1} \"n\" 1").await;
                client.ok("ADD \"t\" {\"_id\":\"b\",\"pk\":1} \"n\" 2").await;
            }
        }));
    }
    for task in adding {
        task.await.expect("a client that is answered");
    }
    // What was an integer of 32 bits became too large for one; all else of the item is as it was.
    let rows = client.ok("LIST \"t\" {\"pk\":1} 10").await;
    let wanted =
        ["{\"_id\":\"a\",\"pk\":1,\"at\":date(3),\"n\":2147483747}", "{\"_id\":\"b\",\"pk\":1,\"n\":400}"];
    assert_eq!(rows, wanted);
    assert!(client.refused("ADD \"t\" {\"_id\":\"a\",\"pk\":1} \"at\" 1").await.starts_with("NUMBER"));
    assert_eq!(client.ok("LIST \"t\" {\"pk\":1} 10").await, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_with_a_token_live_on_after_a_restart_and_a_split() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = |n: usize| format!("\"_id\":bin(0 ff{n:02x}),\"a\":int32({}),\"b\":\"k{n}\"", n % 4);
    let db = on_disk(folder.path());
    {
        let gateway = Gateway::start(db.clone()).await.expect("a free port");
        let mut client = Client::of(&gateway).await;
        let made = client.ask(&format!("MAKE \"t\" \"cql\" {FOUR_PARTITIONS} [\"a\",\"b\"] [\"v\"]")).await.1;
        assert_eq!(made, "OK 4 partitions");
        for n in 0..40 {
            client.ok(&format!("NEW \"t\" {{{},\"v\":date({})}}", key(n), 100 - n)).await;
        }
        let table =
            db.catalog().database("lines").and_then(|all| all.container("t").cloned()).expect("a table");
        let first = table.ranges()[0].id;
        assert_eq!(db.split(&table, first, 2).await.expect("a split").len(), 2);
    }
    db.close().await;
    drop(db);

    let db = on_disk(folder.path());
    let table = db.catalog().database("lines").and_then(|all| all.container("t").cloned()).expect("a table");
    assert_eq!(table.ranges().len(), 5);
    let holding = table.ranges().iter().filter(|range| range.lsn.0 > 1).count();
    assert!(holding >= 4, "items of {holding} partitions");
    let gateway = Gateway::start(db.clone()).await.expect("a free port");
    let mut client = Client::of(&gateway).await;
    for n in 0..40 {
        let item = format!("{{{},\"v\":date({})}}", key(n), 100 - n);
        assert_eq!(client.ok(&format!("GET \"t\" {{{}}}", key(n))).await, [item]);
    }
    // To Cassandra an int and a bigint are two types, so this is another key.
    assert!(
        client.refused("GET \"t\" {\"_id\":bin(0 ff01),\"a\":1,\"b\":\"k1\"}").await.starts_with("MISSING")
    );
    let rows =
        client.ok("FIND \"t\" {\"sort\":[\"v\",\"up\"],\"where\":[[\"v\",\"<\",date(90)]],\"page\":7}").await;
    let wanted: Vec<String> =
        (11..40).rev().map(|n| format!("{{{},\"v\":date({})}}", key(n), 100 - n)).collect();
    assert_eq!(rows, wanted);
    assert!(client.refused("MAKE \"t\" \"cql\" 400 [\"a\"] []").await.starts_with("EXISTS"));
    drop(gateway);
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_with_its_reason() {
    let gateway = Gateway::start(open(Storage::Memory)).await.expect("a free port");
    let mut client = Client::of(&gateway).await;
    client.ok("MAKE \"t\" \"bson\" 400 [\"pk\"] []").await;
    for (line, reason) in [
        ("DANCE", "'DANCE' is no command"),
        ("PUT \"t\"", "'PUT' is no command, or has other arguments"),
        ("PUT \"u\" {\"_id\":1,\"pk\":1}", "there is no table 'u'"),
        ("PUT \"t\" {\"pk\":1}", "has no '_id'"),
        ("PUT \"t\" {\"_id\":1,", "is no text"),
        ("PUT \"t\" oid(01)", "is no value"),
        ("FIND \"t\" {\"where\":[[\"v\",\"~\",1]]}", "'~' is no operator"),
        ("MAKE \"u\" \"sql\" 400 [\"pk\"] []", "not 'sql'"),
        ("MAKE \"u\" \"bson\" 400 [] []", "at least one path"),
    ] {
        let refusal = client.refused(line).await;
        assert!(refusal.contains(reason), "{line}: {refusal}");
    }
    let deep = format!("PUT \"t\" {}", "[".repeat(100_000));
    assert!(client.refused(&deep).await.contains("nested too deeply"));
    let long_id = format!("PUT \"t\" {{\"_id\":\"{}\",\"pk\":1}}", "x".repeat(5_000));
    assert!(client.refused(&long_id).await.contains("an item id has at most"));
}
