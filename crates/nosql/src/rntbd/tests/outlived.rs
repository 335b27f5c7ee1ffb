//! Connections that must end by themselves, and what must not hold them up.

use super::*;

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

