//! Proxies in front of the server, and the address that clients have really dialled.
//!
//! A proxy that ends TLS dials the server over plain HTTP and perhaps under another name. Answers that name addresses, the
//! account document first of all, must name what the client dialled, or the client goes on past the proxy. Either the
//! operator says once and for all what that is (`--public-url`), or a proxy says it with each request
//! (`X-Forwarded-Proto`, `X-Forwarded-Host`). Anybody can send such headers, so they count only where the connection comes
//! from a network that the operator trusts (`--trusted-proxy`).

use std::net::IpAddr;
use std::str::FromStr;

use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Uri};
use orrery_gateway::Scheme;

use crate::listener::Peer;

const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// What stands between clients and the server.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    public: Option<PublicUrl>,
    trusted: Vec<Network>,
}

/// The address that all clients dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    scheme: Scheme,
    /// With the port, if the URL has one.
    host: String,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Proxies {
    pub fn new(public: Option<PublicUrl>, trusted: Vec<Network>) -> Proxies {
        Proxies { public, trusted }
    }

    /// Writes into a request what its client dialled, where that is known to be something else; true where a name came
    /// from a header that still has to be checked.
    pub fn apply<B>(&self, request: &mut Request<B>, peer: &mut Peer) -> bool {
        if let Some(public) = &self.public {
            peer.scheme = public.scheme;
            let host = HeaderValue::from_str(&public.host).expect("the host of a URL is ASCII");
            request.headers_mut().insert(HOST, host);
            return false;
        }
        if self.trusted.is_empty() || !self.trusted.iter().any(|network| network.has(peer.remote.ip())) {
            return false;
        }
        if let Some(scheme) = first(request, &PROTO).and_then(|text| scheme(&text)) {
            (peer.scheme, peer.ends_tls) = (scheme, false);
        }
        let host = first(request, &FORWARDED_HOST).filter(|host| !host.is_empty());
        let Some(host) = host.and_then(|host| HeaderValue::from_str(&host).ok()) else { return false };
        request.headers_mut().insert(HOST, host);
        true
    }
}

/// What the proxy in front of all others has seen: it stands first.
fn first<B>(request: &Request<B>, name: &HeaderName) -> Option<String> {
    let value = request.headers().get(name)?.to_str().ok()?;
    value.split(',').next().map(|text| text.trim().to_owned())
}

fn scheme(text: &str) -> Option<Scheme> {
    match text.to_ascii_lowercase().as_str() {
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        _ => None,
    }
}

impl PublicUrl {
    /// The name, without a port.
    pub fn name(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => name,
            _ => &self.host,
        }
    }

    /// The URL of the root, as the account document has it.
    pub fn root(&self) -> String {
        format!("{}://{}/", self.scheme.as_str(), self.host)
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<PublicUrl, String> {
        let wrong = "expected a URL such as https://db.example.com/, without a path";
        let url: Uri = text.parse().map_err(|_| wrong)?;
        let scheme = url.scheme_str().and_then(scheme).ok_or(wrong)?;
        let authority = url.authority().ok_or(wrong)?.as_str();
        if !matches!(url.path(), "" | "/") || url.query().is_some() || authority.contains('@') {
            return Err(wrong.to_owned());
        }
        Ok(PublicUrl { scheme, host: authority.to_owned() })
    }
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        // Servers that listen on `::` see addresses of version 4 in this form.
        let (ours, theirs) = (self.address.to_canonical(), address.to_canonical());
        match (ours, theirs) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differ = ours.to_bits() ^ theirs.to_bits();
                self.bits == 0 || differ >> (32 - self.bits) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differ = ours.to_bits() ^ theirs.to_bits();
                self.bits == 0 || differ >> (128 - self.bits) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || "expected an address or a network such as 10.0.0.0/8 or fd00::/8".to_owned();
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical();
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Network { address, bits }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().expect(text)
    }

    #[test]
    fn networks_have_the_addresses_of_their_prefix() {
        for (net, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("192.168.4.0/22", "192.168.7.255", "192.168.8.0"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::1", "::1", "::2"),
            ("10.0.0.0/8", "::ffff:10.1.1.1", "::ffff:11.1.1.1"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
        ] {
            assert!(network(net).has(inside.parse().expect(inside)), "{net} {inside}");
            assert!(!network(net).has(outside.parse().expect(outside)), "{net} {outside}");
        }
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/-1", "localhost", "10.0.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_public_url_has_a_host_and_no_path() {
        let url: PublicUrl = "https://db.example.com:8443".parse().expect("a URL");
        assert_eq!((url.name(), url.root().as_str()), ("db.example.com", "https://db.example.com:8443/"));
        assert_eq!("http://[::1]/".parse::<PublicUrl>().expect("a URL").name(), "[::1]");
        for wrong in
            ["db.example.com", "ftp://a/", "https://a/x", "https://a/?x", "https://u@a/", "https://", "/"]
        {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }

    fn dialled(proxies: &Proxies, from: &str, headers: &[(&str, &str)]) -> (String, bool) {
        let mut request = Request::builder().uri("/").header(HOST, "orrery:8081");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).expect("a request");
        let remote = format!("{from}:1234").parse().expect("an address");
        let mut peer = Peer::of(Scheme::Http, remote);
        let is_to_check = proxies.apply(&mut request, &mut peer);
        let host = request.headers()[HOST].to_str().expect("text");
        (format!("{}://{host}/", peer.scheme.as_str()), is_to_check)
    }

    #[test]
    fn headers_count_from_trusted_proxies_only() {
        let proxies = Proxies::new(None, vec![network("10.0.0.0/8")]);
        let headers = [("x-forwarded-proto", "https, http"), ("x-forwarded-host", "a.example, b.example")];
        assert_eq!(dialled(&proxies, "10.1.1.1", &headers), ("https://a.example/".into(), true));
        assert_eq!(dialled(&proxies, "11.1.1.1", &headers), ("http://orrery:8081/".into(), false));
        assert_eq!(dialled(&Proxies::default(), "10.1.1.1", &headers), ("http://orrery:8081/".into(), false));
        let odd = [("x-forwarded-proto", "gopher"), ("x-forwarded-host", "")];
        assert_eq!(dialled(&proxies, "10.1.1.1", &odd), ("http://orrery:8081/".into(), false));
        let public = Proxies::new("https://db.example".parse().ok(), vec![network("10.0.0.0/8")]);
        assert_eq!(dialled(&public, "10.1.1.1", &headers), ("https://db.example/".into(), false));
    }
}
