//! What is known about the headers of answers: those that we do not send, and those whose values must be the same.

use crate::exchange::Exchange;

/// Headers of the service that our answers lack, each with the reason.
const NOT_SENT: [(&str, &str); 4] = [
    ("transfer-encoding", "our answers are framed by their length"),
    (
        "strict-transport-security",
        "one port serves HTTP and HTTPS, and a browser told so would refuse the first",
    ),
    ("collection-partition-index", "a place inside the service's own federation of machines"),
    ("collection-service-index", "a place inside the service's own federation of machines"),
];

/// Headers that are missing in one exchange only.
const NOT_SENT_THERE: [(&str, &str, &str); 1] = [(
    "query_operations/1",
    "x-ms-continuation",
    "the service offers a next page whenever a page is full; ours knows that nothing follows",
)];

/// Headers that only the primary replica sends; which replica answered a recorded read was chance.
const OF_THE_PRIMARY: [&str; 4] = [
    "x-ms-cosmos-quorum-acked-llsn",
    "x-ms-current-replica-set-size",
    "x-ms-current-write-quorum",
    "x-ms-quorum-acked-lsn",
];

/// Headers whose values depend on nothing but the requests so far.
const SAME_VALUE: [&str; 8] = [
    "content-type",
    "cache-control",
    "pragma",
    "x-ms-alt-content-path",
    "x-ms-cosmos-query-execution-info",
    "x-ms-documentdb-partitionkeyrangeid",
    "x-ms-item-count",
    "x-ms-number-of-read-regions",
];

/// Headers whose values the server makes up, and which name the same thing wherever they appear.
const LEARNED: [&str; 4] = ["etag", "x-ms-content-path", "x-ms-continuation", "x-ms-session-token"];

#[derive(Debug, PartialEq)]
pub enum Expectation {
    /// It need not be there.
    Absent,
    /// It must be there, with any value.
    Present,
    /// It must be there, with the value that stands for the recorded one.
    Learned,
    /// It must be there, with the recorded value.
    Same,
}

pub fn expectation(exchange: &Exchange, name: &str) -> Expectation {
    let is_query = exchange.headers.iter().any(|(name, _)| name == "x-ms-documentdb-isquery");
    let is_write = exchange.verb != "GET" && !is_query;
    let not_sent = NOT_SENT.iter().any(|(header, _)| *header == name)
        || NOT_SENT_THERE.iter().any(|(place, header, _)| *place == exchange.name && *header == name)
        // HTTP forbids to state the length of what an answer of this status never has.
        || (name == "content-length" && exchange.status == 204);
    if not_sent || (!is_write && OF_THE_PRIMARY.contains(&name)) {
        Expectation::Absent
    } else if SAME_VALUE.contains(&name) {
        Expectation::Same
    } else if LEARNED.contains(&name) {
        Expectation::Learned
    } else {
        Expectation::Present
    }
}
