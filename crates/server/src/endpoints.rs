//! Where clients of each API find the server, and the connection strings that say it.

use std::net::{IpAddr, SocketAddr};

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
    let host = shown_host(address.ip());
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

/// A server that listens on all addresses is shown by the one that needs no network.
fn shown_host(ip: IpAddr) -> String {
    match ip {
        ip if ip.is_loopback() || ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_that_clients_can_dial() {
        for (bound, shown) in [
            ("127.0.0.1", "localhost"),
            ("::1", "localhost"),
            ("0.0.0.0", "localhost"),
            ("::", "localhost"),
            ("10.1.2.3", "10.1.2.3"),
            ("fd00::7", "[fd00::7]"),
        ] {
            assert_eq!(shown_host(bound.parse().expect(bound)), shown, "{bound}");
        }
    }
}
