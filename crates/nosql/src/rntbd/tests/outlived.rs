//! Connections that must end by themselves, and what must not hold them up.

use super::*;
use orrery_cluster::limits::{DIRECT_PLACE_BYTES, DIRECT_REQUESTS_MAX};

const AHEAD: usize = 1024 * 1024;

fn times() -> RequestTime {
    RequestTime { header: LONG, request: LONG, idle: LONG, unknown: LONG }
}

/// A client of a server that is so patient and so observed, and how its connection ends. Either side may be ahead of its
/// reader by so many bytes.
fn serve<O: Observer>(
    gateway: &Gateway,
    times: RequestTime,
    observer: O,
    ahead: usize,
) -> (Client, tokio::task::JoinHandle<Result<(), Ended>>) {
    let (stream, other) = tokio::io::duplex(ahead);
    let gateway = gateway.clone();
    let served = tokio::spawn(async move {
        let stopping = std::future::pending();
        gateway.serve_direct(other, peer(Scheme::Https), observer, times, stopping).await
    });
    (Client { stream, next: 0 }, served)
}

/// A client that asks without pause and may not ask is cut off as one that is silent: its next request is never read.
#[tokio::test]
async fn bytes_that_wait_do_not_keep_an_unknown_client() {
    let (gateway, rid) = world().await;
    let times = RequestTime { unknown: Duration::ZERO, ..times() };
    let (mut client, served) = serve(&gateway, times, Failing(StatusCode::UNAUTHORIZED), AHEAD);
    let unsigned = Asking::new(3, READ).text(Asked::DatabaseName, "d").text(Asked::CollectionName, "c");
    let unsigned = unsigned.text(Asked::DocumentName, "a").text(Asked::ReplicaPath, &path_of(&rid, 0)).key();
    let mut bytes = hello();
    (1..100).for_each(|transport| bytes.extend_from_slice(&unsigned.bytes(transport)));
    client.send(&bytes).await;
    let ended = timeout(LONG, served).await.expect("in time").expect("no panic");
    assert!(matches!(ended, Err(Ended::Unknown)), "{ended:?}");
}

/// Fails over each answer of this status.
#[derive(Clone)]
struct Failing(StatusCode);

impl Observer for Failing {
    type Request = ();

    fn begins(&self) {}

    fn answered(&self, status: StatusCode, _: f64) {
        assert_ne!(status, self.0, "no such answer is meant to be sent");
    }

    fn sending(&self, _: Weak<Unsent>) {}
}

/// A client that waits for an answer which will never come sends nothing more, so its connection ends without that.
#[tokio::test]
async fn a_request_that_ends_badly_ends_its_connection() {
    let (gateway, rid) = world().await;
    let (mut client, served) = serve(&gateway, times(), Failing(StatusCode::CREATED), AHEAD);
    client.send(&hello()).await;
    client.hear().await.expect("a welcome");
    let create = Asking::on_items(CREATE, "post", None, &rid).key().body(r#"{"id":"a","pk":"k"}"#);
    client.send(&create.bytes(1)).await;
    assert!(client.is_closed().await);
    let ended = served.await.expect("no panic");
    assert!(matches!(ended, Err(Ended::Failed)), "{ended:?}");
}

/// Notes how many requests are in progress, and the most that were.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<(usize, usize)>>);

struct InProgress(Counting);

impl Observer for Counting {
    type Request = InProgress;

    fn begins(&self) -> InProgress {
        let mut counts = self.0.lock().expect("nobody panicked");
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        InProgress(self.clone())
    }

    fn answered(&self, _: StatusCode, _: f64) {}

    fn sending(&self, _: Weak<Unsent>) {}
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.0.lock().expect("nobody panicked").0 -= 1;
    }
}

/// However long the headers of requests are, those of one connection that are not answered have a bounded length together.
#[tokio::test(flavor = "multi_thread")]
async fn requests_with_long_headers_take_several_places() {
    let (gateway, rid) = world().await;
    let counting = Counting::default();
    // No answer can be sent whole before it is read, and none is.
    let (client, served) = serve(&gateway, times(), counting.clone(), 64);
    let (mut reading, mut writing) = tokio::io::split(client.stream);
    let long = "x".repeat(40 * DIRECT_PLACE_BYTES);
    const COUNT: u32 = 50;
    let sending = async {
        writing.write_all(&hello()).await.expect("sent");
        for transport in 1..=COUNT {
            let create = Asking::on_items(CREATE, "post", None, &rid).key().text(Asked::EntityId, &long);
            let body = json!({"id": transport.to_string(), "pk": "k"}).to_string();
            writing.write_all(&create.body(&body).bytes(transport)).await.expect("sent");
        }
    };
    let sent = timeout(Duration::from_secs(1), sending).await;
    assert!(sent.is_err(), "the server has taken {COUNT} requests of {} bytes", long.len());
    let most = counting.0.lock().expect("nobody panicked").1;
    // The greeting is not answered either.
    assert!(most <= 1 + DIRECT_REQUESTS_MAX / 40, "{most} requests in progress");
    let mut some = [0; HEAD_BYTES];
    reading.read_exact(&mut some).await.expect("the connection lives");
    served.abort();
}
