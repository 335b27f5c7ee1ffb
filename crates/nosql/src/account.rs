//! The account document: what clients read first, to learn regions, consistency and query limits.

use http::{HeaderValue, Method};
use orrery_cluster::{Consistency, RegionRecord};
use orrery_doc::json;

use crate::call::Call;
use crate::envelope::{push_name, push_text};
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::respond::Reply;

/// Limits that query engines inside clients obey. A JSON text inside JSON.
const QUERY_ENGINE_CONFIGURATION: &str = concat!(
    r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,"#,
    r#""maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"#,
    r#""queryMaxGroupByTableCellCount":500000,"queryMaxInMemorySortDocumentCount":500,"#,
    r#""maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"#,
    r#""sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"#,
    r#""allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":true,"#,
    r#""maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"sqlDisableQueryILOptimization":false,"#,
    r#""sqlDisableFilterPlanOptimization":false,"sqlAllowTop":true,"enableSpatialIndexing":true}"#,
);

pub(crate) fn serve(call: &Call<'_>) -> Result<Reply, Refusal> {
    match *call.trace.method {
        // Nobody has media any more, but some clients show the two figures.
        Method::GET | Method::HEAD => Ok(Reply::ok(render(call))
            .header(names::MAX_MEDIA_STORAGE, HeaderValue::from_static("10240"))
            .header(names::MEDIA_STORAGE, HeaderValue::from_static("0"))),
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// Clients dial what is advertised here, so unless the operator knows better it is what this client has just
/// dialled.
fn render(call: &Call<'_>) -> Vec<u8> {
    let account = call.db.account();
    let host = match call.advertised_host {
        Some(name) => on_port_of(name, call.trace.host),
        None => call.trace.host.to_owned(),
    };
    let endpoint = format!("{}://{host}/", call.trace.scheme.as_str());
    let catalog = call.db.catalog_now();
    let regions = catalog.account();

    let mut out = b"{\"_self\":\"\"".to_vec();
    push_text(&mut out, "id", &account.name);
    push_text(&mut out, "_rid", call.trace.host);
    push_text(&mut out, "media", "//media/");
    push_text(&mut out, "addresses", "//addresses/");
    push_text(&mut out, "_dbs", "//dbs/");
    push_locations(&mut out, "writableLocations", &regions.writable(), &endpoint);
    push_locations(&mut out, "readableLocations", &regions.readable(), &endpoint);
    push_name(&mut out, "enableMultipleWriteLocations");
    out.extend_from_slice(if regions.is_written_in_many() { b"true" } else { b"false" });
    out.extend_from_slice(
        b",\"continuousBackupEnabled\":false,\
          \"enableNRegionSynchronousCommit\":false,\"enablePerPartitionFailoverBehavior\":false",
    );
    let replicas = b"{\"asyncReplication\":false,\"minReplicaSetSize\":1,\"maxReplicasetSize\":1}";
    for name in ["userReplicationPolicy", "systemReplicationPolicy"] {
        push_name(&mut out, name);
        out.extend_from_slice(replicas);
    }
    push_name(&mut out, "userConsistencyPolicy");
    out.extend_from_slice(b"{\"defaultConsistencyLevel\":\"");
    out.extend_from_slice(consistency_name(account.consistency).as_bytes());
    out.extend_from_slice(b"\"}");
    out.extend_from_slice(b",\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1}");
    push_text(&mut out, "queryEngineConfiguration", QUERY_ENGINE_CONFIGURATION);
    out.push(b'}');
    out
}

/// A list of regions; those without an endpoint of their own are where this client has just dialled.
fn push_locations(out: &mut Vec<u8>, name: &str, regions: &[&RegionRecord], dialled: &str) {
    push_name(out, name);
    out.push(b'[');
    for (place, region) in regions.iter().enumerate() {
        out.extend_from_slice(if place == 0 { b"{\"name\":" } else { b",{\"name\":" });
        json::write_str(&region.name, out);
        push_text(out, "databaseAccountEndpoint", region.endpoint.as_deref().unwrap_or(dialled));
        out.push(b'}');
    }
    out.push(b']');
}

/// The name with the port of another host, if that has one.
pub(crate) fn on_port_of(name: &str, host: &str) -> String {
    match host.rsplit_once(':') {
        // The colons of an address in brackets are not before a port.
        Some((_, port)) if !port.contains(']') => format!("{name}:{port}"),
        _ => name.to_owned(),
    }
}

fn consistency_name(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Strong => "Strong",
        Consistency::BoundedStaleness => "BoundedStaleness",
        Consistency::Session => "Session",
        Consistency::ConsistentPrefix => "ConsistentPrefix",
        Consistency::Eventual => "Eventual",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_listed_with_their_endpoints() {
        let region = |id: u16, endpoint: Option<&str>| RegionRecord {
            id,
            name: format!("Region {id}"),
            endpoint: endpoint.map(str::to_owned),
            write: id == 0,
            priority: u32::from(id),
        };
        let (first, second) = (region(0, None), region(1, Some("https://other:1/")));
        let shown = |regions: &[&RegionRecord]| {
            let mut out = b"{\"_self\":\"\"".to_vec();
            push_locations(&mut out, "x", regions, "http://here/");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(
            shown(&[&first, &second]),
            concat!(
                r#"{"_self":"","x":[{"name":"Region 0","databaseAccountEndpoint":"http://here/"},"#,
                r#"{"name":"Region 1","databaseAccountEndpoint":"https://other:1/"}]"#
            )
        );
        assert_eq!(shown(&[]), r#"{"_self":"","x":[]"#);
    }

    #[test]
    fn an_advertised_name_keeps_the_port() {
        for (host, wanted) in [
            ("localhost:8081", "127.0.0.1:8081"),
            ("localhost", "127.0.0.1"),
            ("[::1]:8081", "127.0.0.1:8081"),
            ("[::1]", "127.0.0.1"),
        ] {
            assert_eq!(on_port_of("127.0.0.1", host), wanted, "{host}");
        }
    }
}
