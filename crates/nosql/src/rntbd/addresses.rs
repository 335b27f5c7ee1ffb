//! Where clients in direct mode find partitions: `GET //addresses/?$resolveFor=…&$partitionKeyRangeIds=0,1`.
//!
//! All partitions have one address, that of the server as the client has dialled it. Each is shown with two replicas, a primary
//! and a secondary, though there is one: clients read from secondaries, and where they are told of none they ask for the
//! addresses again before each read.

use http::{Method, StatusCode};
use orrery_cluster::Rid;

use super::place::Place;
use crate::account::on_port_of;
use crate::address::rid_of_length;
use crate::call::Call;
use crate::envelope::push_text;
use crate::errors::{Own, Refusal};
use crate::gateway::Direct;
use crate::respond::Reply;
use crate::router::{Endpoint, Route, Signed};
use orrery_gateway::{Peer, Scheme};

/// What a client wants to find.
pub(crate) struct Asked {
    what: What,
    /// The container's RID as it was signed.
    link: String,
}

enum What {
    Master,
    Ranges { container: Rid, ranges: Vec<u32> },
}

/// Refuses direct mode where it cannot be had. The client does not look at the answer's reason, but its user does.
pub(crate) fn check(direct: Direct, peer: Peer) -> Result<(), Refusal> {
    let why = match (direct, peer.scheme) {
        (Direct::Off, _) => "is switched off (--direct-port none): choose gateway mode.",
        (_, Scheme::Http) => "needs TLS: use the https endpoint, or choose gateway mode.",
        (Direct::SamePort, Scheme::Https) if !peer.ends_tls => {
            "does not pass a proxy that ends TLS: choose gateway mode."
        }
        (_, Scheme::Https) => return Ok(()),
    };
    Err(Own::DirectMode(why).into())
}

impl Asked {
    pub fn read(query: &str, method: &Method) -> Result<Asked, Refusal> {
        if *method != Method::GET {
            return Err(Own::MethodNotAllowed.into());
        }
        let resolved = parameter(query, "$resolveFor").unwrap_or_default();
        let words: Vec<&str> = resolved.split('/').filter(|word| !word.is_empty()).collect();
        match *words {
            ["dbs"] => Ok(Asked { what: What::Master, link: String::new() }),
            ["dbs", _, "colls", rid, "docs"] => {
                let container = rid_of_length(rid, 8).ok_or(Own::NotFound)?;
                let ranges = parameter(query, "$partitionKeyRangeIds").unwrap_or_default();
                let ranges = ranges.split(',').map(|id| crate::items::range_id(id.trim()));
                let ranges = ranges.take(RANGES_MAX).collect::<Result<Vec<u32>, Refusal>>()?;
                Ok(Asked { what: What::Ranges { container, ranges }, link: rid.to_owned() })
            }
            _ => Err(Refusal::bad_request(
                "The parameter '$resolveFor' names neither 'dbs' nor the items of a container by its resource id.",
            )),
        }
    }

    /// Who may read the partitions of a container may know where they are.
    pub fn route(&self) -> Route<'_> {
        match &self.what {
            What::Master => Route { endpoint: Endpoint::Account, signed: Signed::whole("dbs", &self.link) },
            What::Ranges { container, .. } => {
                let database = container.database_part().map(|rid| rid.to_string()).unwrap_or_default();
                let container = self.link.as_str().into();
                let endpoint = Endpoint::Ranges { database: database.into(), container };
                Route { endpoint, signed: Signed::whole("docs", &self.link) }
            }
        }
    }

    /// Ranges that never were are left out; where none is left, the client looks which there are. One that others have
    /// succeeded has its address still: the Java client looks only once, and if the range that it finds then is gone as
    /// well before it has the address, it tells its user that the item is not there. The partition itself sends it on.
    pub fn answer(&self, call: &Call<'_>, direct: Direct) -> Result<Reply, Refusal> {
        let host = host(call, direct);
        let mut found = Vec::new();
        match &self.what {
            What::Master => found.push((Place::Master, "M".to_owned())),
            What::Ranges { container, ranges } => {
                let known = call.catalog.container_by_rid(*container).ok_or(Own::NotFound)?;
                let was_there = |range| known.lsn_of(range).is_some() || known.gone_range(range).is_some();
                let there = ranges.iter().filter(|range| was_there(**range));
                found.extend(
                    there.map(|range| {
                        (Place::Range { container: *container, range: *range }, range.to_string())
                    }),
                );
                if found.is_empty() {
                    return Err(orrery_cluster::ErrorKind::RangeGone.into());
                }
            }
        }
        let rows: Vec<Vec<u8>> = found
            .iter()
            .flat_map(|(place, id)| [true, false].map(|is_primary| row(&host, place, id, is_primary)))
            .collect();
        let count = rows.len();
        let mut body = b"{\"_rid\":\"\",\"Addresss\":[".to_vec();
        body.extend_from_slice(&rows.join(&b','));
        body.extend_from_slice(format!("],\"_count\":{count}}}").as_bytes());
        Ok(Reply::new(StatusCode::OK, body))
    }
}

/// More ranges than this are asked for in several requests.
const RANGES_MAX: usize = 1024;

fn row(host: &str, place: &Place, range: &str, is_primary: bool) -> Vec<u8> {
    let partition = place.partition();
    let mut out = b"{\"_rid\":\"\",\"isPrimary\":".to_vec();
    out.extend_from_slice(if is_primary { b"true" } else { b"false" });
    out.extend_from_slice(b",\"isAuxiliary\":false");
    push_text(&mut out, "protocol", "rntbd");
    push_text(&mut out, "logicalUri", &format!("urn:orrery/{partition}"));
    push_text(&mut out, "physcialUri", &format!("rntbd://{host}{}", place.replica(is_primary)));
    push_text(&mut out, "partitionIndex", &partition);
    push_text(&mut out, "partitionKeyRangeId", range);
    out.push(b'}');
    out
}

/// What the client shall dial: what it has just dialled, unless the operator says otherwise.
fn host(call: &Call<'_>, direct: Direct) -> String {
    let dialled = match call.advertised_host {
        Some(name) => on_port_of(name, call.trace.host),
        None => call.trace.host.to_owned(),
    };
    let (name, port) = match dialled.rsplit_once(':') {
        // The colons of an address in brackets are not before a port.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (dialled.as_str(), HTTPS_PORT),
    };
    match direct {
        Direct::Port(port) => format!("{name}:{port}"),
        Direct::SamePort | Direct::Off => format!("{name}:{port}"),
    }
}

const HTTPS_PORT: &str = "443";

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().ok().map(String::from);
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (decode(key)? == name).then(|| decode(value))?
    })
}
