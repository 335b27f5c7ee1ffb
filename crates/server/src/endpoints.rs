//! Where clients of each API find the server, and the connection strings that say it.

use std::net::SocketAddr;

use crate::config::Config;

/// What stands for the key where connection strings are shown to a client that has it.
pub const KEY_PLACEHOLDER: &str = "<key>";

/// One API of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub api: &'static str,
    pub http: String,
    pub https: String,
    /// With [`KEY_PLACEHOLDER`] in the place of the key.
    pub connection_string: String,
}

/// All APIs that are served.
pub fn all(config: &Config, address: SocketAddr, table_port: Option<u16>) -> Vec<Endpoint> {
    let host = match address.ip() {
        ip if ip.is_loopback() => "localhost".to_owned(),
        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    let endpoint = |api, port: u16, connection: &dyn Fn(&str) -> String| {
        let http = format!("http://{host}:{port}/");
        Endpoint { api, https: format!("https://{host}:{port}/"), connection_string: connection(&http), http }
    };
    let nosql = endpoint("nosql", address.port(), &|http| {
        format!("AccountEndpoint={http};AccountKey={KEY_PLACEHOLDER};")
    });
    let account = &config.account_name;
    let table = table_port.map(|port| {
        endpoint("table", port, &|http| {
            format!(
                "DefaultEndpointsProtocol=http;AccountName={account};AccountKey={KEY_PLACEHOLDER};\
                 TableEndpoint={http}{account};"
            )
        })
    });
    std::iter::once(nosql).chain(table).collect()
}
