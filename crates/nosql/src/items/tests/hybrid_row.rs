//! Batches and bulk in the form that the .NET SDK sends.

use super::*;
use crate::hybrid_row::schema::{OPERATION, RESULT};
use crate::hybrid_row::{RecordWriter, Records, Row, Value};

/// Kinds of operations as the form numbers them.
const CREATE: i32 = 0;
const PATCH: i32 = 1;
const READ: i32 = 2;
const DELETE: i32 = 4;
const REPLACE: i32 = 5;
const UPSERT_KIND: i32 = 20;

fn row<'a>(kind: i32) -> Row<'a> {
    Row::new(&OPERATION).with("operationType", Value::Int32(kind)).with("resourceType", Value::Int32(2))
}

fn on<'a>(kind: i32, id: &'a str) -> Row<'a> {
    row(kind).with("id", Value::Utf8(id))
}

fn with_body<'a>(row: Row<'a>, body: &'a str) -> Row<'a> {
    row.with("resourceBody", Value::Binary(body.as_bytes()))
}

fn body(rows: &[Row<'_>]) -> Bytes {
    let mut out = RecordWriter::with_capacity(0);
    rows.iter().for_each(|row| out.push(row));
    Bytes::from(out.finish())
}

/// One result: status, sub-status, whether it has an ETag, and its body.
type Told = (i32, i32, bool, String);

impl World {
    async fn batch_rows(&self, key: &str, rows: &[Row<'_>]) -> Answer {
        let headers = [(KEY, key), (BATCH, "True"), (ATOMIC, "True"), ("x-ms-cosmos-batch-ordered", "True")];
        self.send_bytes(Method::POST, None, &headers, body(rows)).await
    }

    async fn bulk_rows(&self, rows: &[Row<'_>]) -> Answer {
        let headers = [(BATCH, "True"), (ATOMIC, "False"), (CONTINUE, "True"), (RANGE, "0")];
        self.send_bytes(Method::POST, None, &headers, body(rows)).await
    }
}

impl Answer {
    fn told(&self) -> Vec<Told> {
        let rows = Records::new(&self.bytes, &RESULT).map(|row| row.expect("a row"));
        rows.map(|row| {
            let text = row.binary("resourceBody").map(String::from_utf8_lossy).unwrap_or_default();
            assert!(matches!(row.get("requestCharge"), Some(Value::Float64(charge)) if charge >= 0.0));
            let status = row.int32("statusCode").expect("a status");
            let substatus = row.int32("subStatusCode").expect("a sub-status");
            (status, substatus, row.text("eTag").is_some(), text.into_owned())
        })
        .collect()
    }

    fn row_codes(&self) -> Vec<i32> {
        self.told().into_iter().map(|told| told.0).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_operation_runs_in_rows() {
    let world = World::simple().await;
    let key = r#"["x"]"#;
    let done = world
        .batch_rows(
            key,
            &[
                with_body(row(CREATE), "\u{feff} {\"id\":\"a\",\"pk\":\"x\",\"n\":1}"),
                with_body(row(UPSERT_KIND), r#"{"id":"b","pk":"x"}"#)
                    .with("minimalReturnPreference", Value::Bool(true)),
                with_body(on(REPLACE, "a"), r#"{"id":"a","pk":"x","n":2}"#).with("ifMatch", Value::Utf8("*")),
                with_body(
                    on(PATCH, "a"),
                    r#"{"operations":[{"op":"incr","path":"/n","value":5}],"condition":"from c where c.n = 2"}"#,
                ),
                on(READ, "a"),
                on(DELETE, "b").with("ifMatch", Value::Utf8("")),
            ],
        )
        .await;
    assert_eq!((done.status, done.row_codes()), (200, vec![201, 201, 200, 200, 200, 204]));
    assert_eq!(done.header("content-type"), Some("application/octet-stream"));
    let told = done.told();
    assert!(told[0].3.starts_with(r#"{"id":"a","pk":"x","n":1,"_rid":""#), "{}", told[0].3);
    assert!(told[4].3.contains(r#""n":7,"#), "{}", told[4].3);
    assert_eq!((told[1].2, told[1].3.as_str()), (true, ""), "an ETag and no item");
    assert_eq!((told[5].2, told[5].3.as_str()), (false, ""));
    assert_eq!(world.read(key, "a").await.field("n"), "7");
    assert_eq!(world.read(key, "b").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_batch_of_rows_tells_which_row_and_why() {
    let world = World::simple().await;
    let key = r#"["x"]"#;
    let good = with_body(row(CREATE), r#"{"id":"a","pk":"x"}"#);
    for (bad, status, substatus) in [
        (good.clone(), 409, 0),
        (on(READ, "missing"), 404, 0),
        (on(DELETE, "a").with("ifMatch", Value::Utf8("\"other\"")), 412, 0),
        (with_body(row(CREATE), r#"{"id":"c","pk":"y"}"#), 400, 1001),
        (with_body(row(CREATE), "not json at all"), 400, 0),
        (with_body(row(CREATE), "[1,2]"), 400, 0),
        (row(CREATE), 400, 0),
        (row(READ), 400, 0),
        (on(READ, "a").with("partitionKey", Value::Utf8(r#"["y"]"#)), 400, 1001),
        (with_body(row(CREATE), r#"{"id":"d","pk":"x"}"#).with("binaryId", Value::Binary(&[1])), 400, 0),
        (
            with_body(row(CREATE), r#"{"id":"d","pk":"x"}"#)
                .with("effectivePartitionKey", Value::Binary(&[1])),
            400,
            0,
        ),
        (
            with_body(row(CREATE), r#"{"id":"d","pk":"x"}"#).with("timeToLiveInSeconds", Value::Int32(9)),
            400,
            0,
        ),
    ] {
        let shown = format!("{bad:?}");
        let failed = world.batch_rows(key, &[good.clone(), bad, on(READ, "a")]).await;
        let told = failed.told();
        assert_eq!((failed.status, failed.row_codes()), (207, vec![424, status, 424]), "{shown}");
        assert_eq!(told[1].1, substatus, "{shown}");
        let error: serde_json::Value = serde_json::from_str(&told[1].3).expect("an error in JSON");
        assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
        assert_eq!(world.read(key, "a").await.status, 404, "nothing of it was done: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_read_refuse_the_whole_batch() {
    let world = World::simple().await;
    let key = r#"["x"]"#;
    let good = with_body(row(CREATE), r#"{"id":"a","pk":"x"}"#);
    let reads = vec![on(READ, "a"); 101];
    let unknown = [good.clone(), row(3)];
    let other_type =
        [Row::new(&OPERATION).with("operationType", Value::Int32(0)).with("resourceType", Value::Int32(1))];
    let untyped = [Row::new(&OPERATION).with("resourceType", Value::Int32(2))];
    for (rows, words) in [
        (&[][..], "Batch request has no operations."),
        (&reads, "Batch request has more operations than what is supported."),
        (&unknown, "'3'"),
        (&other_type, "resource type"),
        (&untyped, "no operation type"),
    ] {
        let refused = world.batch_rows(key, rows).await;
        assert_eq!(refused.status, 400, "{words}: {}", refused.body);
        assert!(refused.body.contains(words), "{}", refused.body);
    }
    let mut damaged = body(&[good]).to_vec();
    damaged[30] ^= 1;
    let headers = [(KEY, key), (BATCH, "True"), (ATOMIC, "True")];
    let refused = world.send_bytes(Method::POST, None, &headers, Bytes::from(damaged)).await;
    assert!(refused.status == 400 && refused.body.contains("HybridRow"), "{}", refused.body);
    let large = "x".repeat(orrery_cluster::limits::ITEM_BYTES_MAX);
    assert_eq!(world.batch_rows(key, &[with_body(row(CREATE), &large)]).await.status, 413);
    assert_eq!(world.read(key, "a").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_rows_stand_alone_and_name_their_keys() {
    let world = World::simple().await;
    let keyed = |row: Row<'static>, key: &'static str| row.with("partitionKey", Value::Utf8(key));
    let x = r#"["x"]"#;
    let done = world
        .bulk_rows(&[
            keyed(with_body(row(CREATE), r#"{"id":"a","pk":"x","n":1}"#), x),
            keyed(with_body(row(CREATE), r#"{"id":"b","pk":"\u00e9"}"#), r#"["\u00e9"]"#),
            keyed(with_body(row(CREATE), r#"{"id":"c"}"#), "[{}]"),
            keyed(on(READ, "missing"), x),
            keyed(with_body(row(CREATE), r#"{"id":"d","pk":"y"}"#), x),
            keyed(on(READ, "a"), x),
            with_body(row(CREATE), r#"{"id":"e","pk":"x"}"#),
        ])
        .await;
    assert_eq!((done.status, done.row_codes()), (207, vec![201, 201, 201, 404, 400, 200, 400]));
    assert!(done.told()[5].3.contains(r#""n":1"#), "operations on one item keep their order");
    assert_eq!(world.read(r#"["é"]"#, "b").await.status, 200);
    let all = world.bulk_rows(&[keyed(on(READ, "a"), x)]).await;
    assert_eq!((all.status, all.row_codes()), (200, vec![200]));
    // What it knows of an item lets a client ask for less.
    let etag = world.read(x, "a").await.etag;
    let same = world.bulk_rows(&[keyed(on(READ, "a"), x).with("ifNoneMatch", Value::Utf8(&etag))]).await;
    assert_eq!(same.told(), [(304, 0, true, String::new())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_rows_may_be_binary_json() {
    let world = World::simple().await;
    let binary = [0x80, 0xEA, 5, 0x2C, 0x81, b'a', 0x3B, 0x07];
    let create =
        row(CREATE).with("resourceBody", Value::Binary(&binary)).with("partitionKey", Value::Utf8("[{}]"));
    let done = world.bulk_rows(&[create]).await;
    assert_eq!(done.row_codes(), [201]);
    assert!(done.told()[0].3.starts_with(r#"{"id":"a","type":7,"#), "{}", done.told()[0].3);
}
