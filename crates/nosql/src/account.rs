//! The account document: what clients read first, to learn regions, consistency and query limits.

use http::{HeaderValue, Method};
use orrery_cluster::Consistency;
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
    let mut locations = b"[{\"name\":".to_vec();
    json::write_str(&account.region, &mut locations);
    push_text(&mut locations, "databaseAccountEndpoint", &endpoint);
    locations.extend_from_slice(b"}]");

    let mut out = b"{\"_self\":\"\"".to_vec();
    push_text(&mut out, "id", &account.name);
    push_text(&mut out, "_rid", call.trace.host);
    push_text(&mut out, "media", "//media/");
    push_text(&mut out, "addresses", "//addresses/");
    push_text(&mut out, "_dbs", "//dbs/");
    for name in ["writableLocations", "readableLocations"] {
        push_name(&mut out, name);
        out.extend_from_slice(&locations);
    }
    out.extend_from_slice(
        b",\"enableMultipleWriteLocations\":false,\"continuousBackupEnabled\":false,\
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

/// The name with the port of another host, if that has one.
fn on_port_of(name: &str, host: &str) -> String {
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
