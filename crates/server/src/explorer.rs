//! The explorer: a page of files that are embedded in the binary, compressed when it was built.
//!
//! The files hold no secrets, so anybody may load them; what the page then does needs a key, as for any other client.
//! Names that carry a hash of their file are kept by browsers for ever, the others are asked for each time.
//! The page may load nothing from elsewhere and be framed by nobody.

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;

include!(concat!(env!("OUT_DIR"), "/explorer.rs"));

/// One file of the page.
pub struct Asset {
    name: &'static str,
    kind: &'static str,
    /// Tells versions of the file apart.
    tag: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

const MISSING: &str = include_str!("explorer/missing.html");
const PAGE: &str = "index.html";
const POLICY: &str =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// Whether a browser asks for the root of the server, where clients find the account document: they ask for JSON, and sign.
pub fn is_wanted<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let accepts_pages = || {
        let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        lists.flat_map(|list| list.split(',')).any(|entry| {
            entry.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html"))
        })
    };
    request.uri().path() == "/"
        && (request.method() == Method::GET || request.method() == Method::HEAD)
        && !headers.contains_key(AUTHORIZATION)
        && accepts_pages()
}

/// Sends a browser to the explorer. The same address means something else to clients, so nothing may keep the answer.
pub fn lead_there() -> Response<Full<Bytes>> {
    let text = "the explorer is at /_explorer\n";
    let mut response = page(StatusCode::FOUND, "text/plain; charset=utf-8", text);
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/_explorer"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept, authorization"));
    response
}

/// The name of the explorer's file at a path, if the path is the explorer's.
pub fn file_at(path: &str) -> Option<&str> {
    match path.strip_prefix("/_explorer")? {
        "" | "/" => Some(PAGE),
        rest => rest.strip_prefix('/'),
    }
}

pub fn answer(name: &str, method: &Method, headers: &HeaderMap) -> Response<Full<Bytes>> {
    answer_from(ASSETS, name, method, headers)
}

fn answer_from(assets: &[Asset], name: &str, method: &Method, headers: &HeaderMap) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        let mut response =
            page(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", "only GET is allowed here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match assets.iter().find(|asset| asset.name == name) {
        Some(asset) => send(asset, headers),
        None if assets.is_empty() && name == PAGE => {
            page(StatusCode::OK, "text/html; charset=utf-8", MISSING)
        }
        None => page(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "there is no such page\n"),
    }
}

fn send(asset: &Asset, headers: &HeaderMap) -> Response<Full<Bytes>> {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (body, encoding) = if accepts(accepted, "br") {
        (asset.brotli, Some("br"))
    } else if accepts(accepted, "gzip") {
        (asset.gzip, Some("gzip"))
    } else {
        (asset.plain, None)
    };
    // Each form of a file is a representation of its own, with its own tag.
    let tag = format!("\"{}-{}\"", asset.tag, encoding.unwrap_or("plain"));
    let seen = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_current =
        seen.flat_map(|value| value.split(',')).any(|one| one.trim().trim_start_matches("W/") == tag);
    let mut response = match is_current {
        true => page(StatusCode::NOT_MODIFIED, asset.kind, ""),
        false => page(StatusCode::OK, asset.kind, body),
    };
    let found = response.headers_mut();
    found.insert(ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits and a word"));
    found.insert(VARY, HeaderValue::from_static("accept-encoding"));
    found.insert(
        CACHE_CONTROL,
        HeaderValue::from_static(if is_hashed(asset.name) { FOR_EVER } else { ASK_AGAIN }),
    );
    if let Some(encoding) = encoding.filter(|_| !is_current) {
        found.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

/// Scripts and styles are named after what is in them: `main-5T6FSIZB.js`.
fn is_hashed(name: &str) -> bool {
    let Some((stem, _)) = name.rsplit_once('.') else { return false };
    stem.rsplit_once('-').is_some_and(|(_, hash)| hash.len() == 8)
}

/// Whether a list of encodings has this one, and not with a weight of nothing.
fn accepts(list: &str, encoding: &str) -> bool {
    list.split(',').any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let refused = parts
            .filter_map(|part| part.strip_prefix("q="))
            .any(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
        named && !refused
    })
}

fn page(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const FILES: &[Asset] = &[
        Asset {
            name: "index.html",
            kind: "text/html; charset=utf-8",
            tag: "01",
            plain: b"page",
            gzip: b"gz",
            brotli: b"br",
        },
        Asset {
            name: "main-5T6FSIZB.js",
            kind: "text/javascript; charset=utf-8",
            tag: "02",
            plain: b"js",
            gzip: b"",
            brotli: b"",
        },
    ];

    fn get(
        assets: &[Asset],
        name: &str,
        headers: &[(http::HeaderName, &'static str)],
    ) -> (StatusCode, HeaderMap, Bytes) {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let (parts, body) = answer_from(assets, name, &Method::GET, &headers).into_parts();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let body = runtime.block_on(body.collect()).expect("it is in memory").to_bytes();
        (parts.status, parts.headers, body)
    }

    #[test]
    fn paths_below_the_explorer_name_files() {
        for (path, wanted) in [
            ("/_explorer", Some("index.html")),
            ("/_explorer/", Some("index.html")),
            ("/_explorer/index.html", Some("index.html")),
            ("/_explorer/a/b", Some("a/b")),
            ("/_explorers", None),
            ("/dbs", None),
        ] {
            assert_eq!(file_at(path), wanted, "{path}");
        }
    }

    #[test]
    fn files_come_in_the_smallest_form_that_is_accepted() {
        for (accepted, body, encoding) in [
            ("gzip, deflate, br", "br", Some("br")),
            ("gzip, br;q=0", "gz", Some("gzip")),
            ("deflate", "page", None),
        ] {
            let (status, headers, found) = get(FILES, "index.html", &[(ACCEPT_ENCODING, accepted)]);
            assert_eq!((status, &found[..]), (StatusCode::OK, body.as_bytes()), "{accepted}");
            assert_eq!(
                headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()),
                encoding,
                "{accepted}"
            );
        }
    }

    #[test]
    fn a_known_version_is_not_sent_again() {
        let (_, headers, _) = get(FILES, "index.html", &[]);
        assert_eq!(headers[ETAG], "\"01-plain\"");
        let (status, headers, body) = get(FILES, "index.html", &[(IF_NONE_MATCH, "\"00\", W/\"01-plain\"")]);
        assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(headers[CACHE_CONTROL], "no-cache");
        // Another form of the same file is not what the browser has.
        let again = get(FILES, "index.html", &[(IF_NONE_MATCH, "\"01-br\"")]);
        assert_eq!(again.0, StatusCode::OK);
    }

    #[test]
    fn hashed_names_are_kept_for_ever_and_everything_has_the_policy() {
        let (_, headers, _) = get(FILES, "main-5T6FSIZB.js", &[]);
        assert_eq!(headers[CACHE_CONTROL], FOR_EVER);
        assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY);
        let (status, headers, _) = get(FILES, "nothing.js", &[]);
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY);
    }

    #[test]
    fn a_binary_without_the_page_says_how_to_get_it() {
        let (status, _, body) = get(&[], "index.html", &[]);
        assert_eq!(status, StatusCode::OK);
        assert!(String::from_utf8_lossy(&body).contains("make explorer"));
        let refused = answer_from(&[], "index.html", &Method::POST, &HeaderMap::new());
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn what_is_embedded_is_whole() {
        assert!(ASSETS.is_empty() || ASSETS.iter().any(|asset| asset.name == PAGE));
        for asset in ASSETS {
            assert!(!asset.plain.is_empty() && asset.gzip.len() < asset.plain.len() + 64, "{}", asset.name);
        }
    }
}
