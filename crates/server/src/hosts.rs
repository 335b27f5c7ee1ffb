//! The names under which the server answers while the well-known key opens it.
//!
//! A page that a developer visits runs in a browser on the same machine as the server. Browsers keep pages of one
//! origin from reading another, and tell origins apart by name; so an attacker lets a name of their own point to
//! 127.0.0.1 once the page is loaded (DNS rebinding), and the page reads from the server what it likes: the key is no
//! secret. What betrays such a request is its `Host`, which is the attacker's name and which no page can change. While
//! the emulator key is in use, requests are therefore answered only under names that nobody can rent: addresses,
//! names without a dot, those that the network reserves for the machine and its neighbours, and those that the operator
//! has named. The same holds where any token of Entra ID is believed. With keys of the account's own a page cannot sign,
//! and any name is served.
//!
//! Clients of a connection say the same name each time, so a connection remembers the last one that was accepted, and
//! a request costs one comparison of a few bytes.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::Full;

use crate::limits;

/// What ends the names of this machine (RFC 6761) and of networks that are nobody else's (`.internal`, which is
/// reserved for that; container runtimes put the machine they run on there).
const LOCAL_ENDINGS: [&str; 2] = [".localhost", ".internal"];

/// Which names are accepted, and whether it matters now.
pub struct Hosts {
    /// Whether anybody could sign a request; keys may change while the server runs.
    is_guarded: AtomicBool,
    /// In lower case. One that begins with `*.` stands for any one label in that place, as in certificates.
    named: Vec<String>,
    refused: AtomicU64,
}

/// The host that a connection's requests have named, when it was accepted.
#[derive(Default)]
pub struct Accepted(Vec<u8>);

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    /// HTTP asks for exactly one.
    Missing,
    Several,
    Foreign,
}

impl Hosts {
    /// The names of the operator: those that clients are told to dial, and those on the certificate.
    pub fn new<'a>(named: impl Iterator<Item = &'a str>, is_guarded: bool) -> Hosts {
        let named = named.map(|name| bare(name).trim_end_matches('.').to_ascii_lowercase()).collect();
        Hosts { is_guarded: AtomicBool::new(is_guarded), named, refused: AtomicU64::new(0) }
    }

    /// Says whether anybody can sign a request from now on.
    pub fn guard(&self, is_guarded: bool) {
        self.is_guarded.store(is_guarded, Relaxed);
    }

    /// The answer to a request that names no host, several, or one that is not served.
    pub fn refuse<B>(&self, request: &Request<B>, accepted: &mut Accepted) -> Option<Response<Full<Bytes>>> {
        let wrong = self.check(request, accepted).err()?;
        let (status, text) = match wrong {
            Wrong::Missing => (StatusCode::BAD_REQUEST, "the request names no host\n".to_owned()),
            Wrong::Several => (StatusCode::BAD_REQUEST, "the request has several Host headers\n".to_owned()),
            Wrong::Foreign => (StatusCode::MISDIRECTED_REQUEST, self.foreign(request)),
        };
        Some(answer(status, text, request.version()))
    }

    fn check<B>(&self, request: &Request<B>, accepted: &mut Accepted) -> Result<(), Wrong> {
        let mut headers = request.headers().get_all(HOST).iter();
        let header = headers.next();
        if headers.next().is_some() {
            return Err(Wrong::Several);
        }
        // In the target of the request: what HTTP/2 calls the authority, and the absolute form of HTTP/1.
        let target = request.uri().authority();
        let is_missing = match request.version() {
            Version::HTTP_09 | Version::HTTP_10 => false,
            Version::HTTP_11 => header.is_none(),
            _ => header.is_none() && target.is_none(),
        };
        if is_missing {
            return Err(Wrong::Missing);
        }
        if !self.is_guarded.load(Relaxed) {
            return Ok(());
        }
        let named = [header.map(HeaderValue::as_bytes), target.map(|target| target.as_str().as_bytes())];
        for host in named.into_iter().flatten() {
            if accepted.0 == host {
                continue;
            }
            if !self.accepts(host) {
                return Err(Wrong::Foreign);
            }
            accepted.0.clear();
            accepted.0.extend_from_slice(host);
        }
        Ok(())
    }

    /// Whether a host as requests name it, perhaps with a port, is one of those that are served.
    fn accepts(&self, host: &[u8]) -> bool {
        let Some(name) = std::str::from_utf8(host).ok().and_then(without_port) else { return false };
        if let Some(inner) = name.strip_prefix('[') {
            let address = inner.strip_suffix(']').unwrap_or_default();
            return address.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() || name.len() > limits::MAX_HOST_NAME_BYTES || !name.split('.').all(is_label) {
            return false;
        }
        !name.contains('.')
            || name.parse::<Ipv4Addr>().is_ok()
            || LOCAL_ENDINGS.iter().any(|ending| ends_with(name, ending))
            || self.named.iter().any(|named| is_named(name, named))
    }

    /// Says how the name can be allowed, to the client and, not too often, in the log.
    fn foreign<B>(&self, request: &Request<B>) -> String {
        let header = request.headers().get(HOST).map(|host| host.as_bytes().escape_ascii().to_string());
        let target =
            request.uri().authority().map(|target| target.as_str().as_bytes().escape_ascii().to_string());
        let host: String =
            target.or(header).unwrap_or_default().chars().take(limits::MAX_HOST_NAME_BYTES).collect();
        let refused = self.refused.fetch_add(1, Relaxed) + 1;
        if refused.is_power_of_two() {
            tracing::warn!(
                host,
                refused,
                "a request for a name that is not served with the emulator key; --tls-name or --advertised-host allow it"
            );
        }
        let name = without_port(&host).unwrap_or(&host);
        format!(
            "This server does not answer to the name `{host}`.\n\n\
             Anybody can open it, with the well-known emulator key or with --entra-development, so a web page could reach \
             it under a name of its own. That is why it answers to addresses, names without a dot, localhost, *.localhost, \
             *.internal and the names that it was started with, and to no others. To allow this one, start it with one of\n\n    \
             --tls-name {name}\n    --advertised-host {name}\n    --key-file FILE    (your own keys; then any name is served)\n"
        )
    }
}

/// The name in front of a port, if what follows it is one. Names of users do not belong here.
fn without_port(host: &str) -> Option<&str> {
    let name_end = match host.strip_prefix('[') {
        Some(inner) => inner.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(name_end);
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// An operator may write an address of the sixth version with its brackets or without.
fn bare(name: &str) -> &str {
    name.trim_start_matches('[').trim_end_matches(']')
}

fn is_label(label: &str) -> bool {
    !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn ends_with(name: &str, ending: &str) -> bool {
    let at = name.len().saturating_sub(ending.len());
    at > 0 && name[at..].eq_ignore_ascii_case(ending)
}

fn is_named(name: &str, named: &str) -> bool {
    match named.strip_prefix("*.") {
        Some(parent) => name.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent)),
        None => name.eq_ignore_ascii_case(named),
    }
}

fn answer(status: StatusCode, text: String, version: Version) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // What follows on this connection is not wanted either, nor is a body that is still to come.
    if version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new(["db.example.com", "*.Wild.test", "10.1.2.3", "Dotted.test."].into_iter(), true)
    }

    #[test]
    fn addresses_local_names_and_those_of_the_operator_are_accepted() {
        for host in [
            "localhost",
            "LOCALHOST:8081",
            "localhost.",
            "localhost.:8081",
            "localhost:",
            "a.localhost",
            "a.b.LocalHost.",
            "127.0.0.1",
            "127.0.0.1:1",
            "192.168.7.9:65535",
            "0.0.0.0",
            "[::1]",
            "[::1]:8081",
            "[fe80::1%25eth0]:8081",
            "[::ffff:127.0.0.1]",
            "cosmos",
            "cosmos_db-1:8081",
            "host.docker.internal:8081",
            "metadata.google.internal.",
            "db.example.com",
            "DB.example.COM.:443",
            "a.wild.test",
            "dotted.test",
        ] {
            assert!(hosts().accepts(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn names_that_can_be_rented_and_what_is_no_name_are_not() {
        for host in [
            "evil.com",
            "evil.com:8081",
            "evil.com.",
            "EVIL.COM",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "evil-localhost.com",
            "evil.localhost.com",
            "internal.evil.com",
            "evilinternal.com",
            "xlocalhost.x",
            ".localhost",
            ".internal",
            "..",
            ".",
            "",
            ":8081",
            "localhost..",
            "a..localhost",
            "127.0.0.1:80:80",
            "localhost:port",
            "localhost:123456",
            "localhost@evil.com",
            "evil.com@localhost",
            "user:1@evil.com",
            "user@localhost",
            "[::1",
            "[evil.com]",
            "[::1]evil.com",
            "[]",
            "::1",
            "localhost/evil.com",
            "evil.com#.localhost",
            "evil.com%00.localhost",
            "a b",
            "localhost,evil.com",
            "x.db.example.com",
            "wild.test",
            "a.b.wild.test",
            "evil\u{ff0e}com",
            "127.0.0.1 ",
            "1.2.3",
            "256.0.0.1",
            "127.0.0.1.", // the last is below
        ] {
            let is_address_with_a_dot = host == "127.0.0.1.";
            assert_eq!(hosts().accepts(host.as_bytes()), is_address_with_a_dot, "{host}");
        }
        assert!(!hosts().accepts(b"evil\xff"));
        assert!(!hosts().accepts("a".repeat(300).as_bytes()));
    }

    fn outcome(hosts: &Hosts, version: Version, target: &str, headers: &[&str]) -> Result<(), Wrong> {
        let mut request = Request::builder().version(version).uri(target);
        for host in headers {
            request = request.header(HOST, *host);
        }
        hosts.check(&request.body(()).expect("a request"), &mut Accepted::default())
    }

    #[test]
    fn every_place_that_names_a_host_is_looked_at() {
        let hosts = hosts();
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        assert_eq!(outcome(&hosts, one, "/", &["localhost"]), Ok(()));
        assert_eq!(outcome(&hosts, one, "http://localhost/", &["localhost"]), Ok(()));
        assert_eq!(outcome(&hosts, one, "http://evil.com/", &["localhost"]), Err(Wrong::Foreign));
        assert_eq!(outcome(&hosts, one, "http://localhost/", &["evil.com"]), Err(Wrong::Foreign));
        assert_eq!(outcome(&hosts, one, "http://localhost@evil.com/", &["localhost"]), Err(Wrong::Foreign));
        assert_eq!(outcome(&hosts, one, "http://localhost/", &[]), Err(Wrong::Missing));
        assert_eq!(outcome(&hosts, one, "/", &[]), Err(Wrong::Missing));
        assert_eq!(outcome(&hosts, one, "/", &["localhost", "localhost"]), Err(Wrong::Several));
        assert_eq!(outcome(&hosts, Version::HTTP_10, "/", &[]), Ok(()));
        assert_eq!(outcome(&hosts, Version::HTTP_10, "/", &["evil.com"]), Err(Wrong::Foreign));
        assert_eq!(outcome(&hosts, two, "http://localhost:8081/", &[]), Ok(()));
        assert_eq!(outcome(&hosts, two, "http://evil.com/", &[]), Err(Wrong::Foreign));
        assert_eq!(outcome(&hosts, two, "http://localhost/", &["evil.com"]), Err(Wrong::Foreign));
        assert_eq!(outcome(&hosts, two, "/", &["localhost"]), Ok(()));
        assert_eq!(outcome(&hosts, two, "/", &[]), Err(Wrong::Missing));
    }

    #[test]
    fn a_connection_remembers_only_what_was_accepted() {
        let (hosts, mut accepted) = (hosts(), Accepted::default());
        let request =
            |host: &str| Request::builder().uri("/").header(HOST, host).body(()).expect("a request");
        for (host, wanted) in [
            ("localhost", Ok(())),
            ("localhost", Ok(())),
            ("evil.com", Err(Wrong::Foreign)),
            ("evil.com", Err(Wrong::Foreign)),
            ("127.0.0.1", Ok(())),
        ] {
            assert_eq!(hosts.check(&request(host), &mut accepted), wanted, "{host}");
        }
        hosts.guard(false);
        assert_eq!(hosts.check(&request("evil.com"), &mut accepted), Ok(()));
        hosts.guard(true);
        assert_eq!(hosts.check(&request("evil.com"), &mut accepted), Err(Wrong::Foreign));
    }
}
