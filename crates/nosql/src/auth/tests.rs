use proptest::prelude::*;

use super::*;
use crate::router::route;

const PRIMARY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const SECONDARY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const READER: &str = "HxwdHhobGBkWFxQVEhMQEQ4PDA0KCwgJBgcEBQIDAAE=";
const DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";

fn keys() -> Keys {
    orrery_gateway::Keys::new([PRIMARY, SECONDARY], [READER]).expect("the keys are base64").into()
}

/// Signs as a client does: one text, put together, hashed, base64.
fn sign(key: &str, lines: [&str; 5]) -> String {
    let text = lines.join("\n") + "\n";
    let mut mac = prepare(key).expect("base64");
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn token(signature: &str) -> String {
    let token = format!("type=master&ver=1.0&sig={signature}");
    percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn check(
    method: &Method,
    path: &str,
    authorization: &str,
    x_ms_date: &str,
    is_write: bool,
) -> Result<(), u16> {
    let headers = RequestHeaders {
        authorization: Some(authorization),
        x_ms_date: Some(x_ms_date),
        ..RequestHeaders::default()
    };
    let now = httpdate::parse_http_date(DATE).expect("a date");
    let route = route(path).expect("a path");
    match authenticate(&keys(), None, method, &route.signed, &headers, now) {
        Ok(Identity::Account { read_only: true }) if is_write => Err(403),
        Ok(_) => Ok(()),
        Err(refusal) => Err(refusal.wire().status.as_u16()),
    }
}

#[test]
fn the_documented_example_is_met() {
    // The worked example of the vendor's documentation on access control.
    let key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
    let expected = "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=";
    assert_eq!(sign(key, ["get", "dbs", "dbs/ToDoList", &DATE.to_lowercase(), ""]), expected);
}

#[test]
fn all_forms_that_clients_sign_are_accepted() {
    let date = DATE.to_lowercase();
    let get = Method::GET;
    for (path, kind, link) in [
        ("/", "", ""),
        ("/dbs/ToDoList", "dbs", "dbs/ToDoList"),
        ("/dbs/My%20Db/colls/C%C3%A9", "colls", "dbs/My Db/colls/Cé"),
        ("/dbs/My%20Db/colls/C%C3%A9", "colls", "dbs/My%20Db/colls/C%C3%A9"),
        ("/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c"),
        // By RID: only the last one, in lower case, or as it is.
        ("/dbs/YOt1AA==/colls/YOt1APKY9kQ=", "colls", "yot1apky9kq="),
        ("/dbs/YOt1AA==/colls/YOt1APKY9kQ=", "colls", "YOt1APKY9kQ="),
        ("/dbs/YOt1AA==/colls/YOt1APKY9kQ=/docs/", "docs", "yot1apky9kq="),
        ("/offers/AbCd", "offers", "abcd"),
        ("/dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/operations/partitionkeydelete", "partitionkey", "dbs/d/colls/c"),
    ] {
        for key in [PRIMARY, SECONDARY, READER] {
            let signature = sign(key, ["get", kind, link, &date, ""]);
            assert_eq!(check(&get, path, &token(&signature), DATE, false), Ok(()), "{path} {link}");
            let bare = format!("type=master&ver=1.0&sig={signature}");
            assert_eq!(check(&get, path, &bare, DATE, false), Ok(()), "{path} {link} not encoded");
        }
    }
}

#[test]
fn the_date_header_serves_when_the_other_is_missing() {
    let (date, route) = (DATE.to_lowercase(), route("/dbs/d").expect("a path"));
    let now = httpdate::parse_http_date(DATE).expect("a date");
    let by_date = token(&sign(PRIMARY, ["get", "dbs", "dbs/d", "", &date]));
    let by_both = token(&sign(PRIMARY, ["get", "dbs", "dbs/d", &date, &date]));
    let by_first = token(&sign(PRIMARY, ["get", "dbs", "dbs/d", &date, ""]));
    for (authorization, x_ms_date, accepted) in [
        (&by_date, None, true),
        (&by_both, Some(DATE), true),
        (&by_first, Some(DATE), true),
        (&by_both, None, false),
    ] {
        let headers = RequestHeaders {
            authorization: Some(authorization),
            x_ms_date,
            date: Some(DATE),
            ..RequestHeaders::default()
        };
        let result = authenticate(&keys(), None, &Method::GET, &route.signed, &headers, now);
        assert_eq!(result.is_ok(), accepted);
    }
}

#[test]
fn what_was_not_signed_is_refused() {
    let date = DATE.to_lowercase();
    let good = sign(PRIMARY, ["get", "docs", "dbs/d/colls/c/docs/i", &date, ""]);
    let path = "/dbs/d/colls/c/docs/i";
    assert_eq!(check(&Method::GET, path, &token(&good), DATE, false), Ok(()));
    let other_key = sign("b3RoZXI=", ["get", "docs", "dbs/d/colls/c/docs/i", &date, ""]);
    for (method, path, authorization) in [
        (Method::PUT, path, token(&good)),
        (Method::GET, "/dbs/d/colls/c/docs/I", token(&good)),
        (Method::GET, "/dbs/D/colls/c/docs/i", token(&good)),
        (Method::GET, "/dbs/d/colls/c", token(&good)),
        (Method::GET, path, token(&other_key)),
        (Method::GET, path, token(&good[..40])),
        (Method::GET, path, token("")),
        (Method::GET, path, String::from("type=master&ver=1.0")),
        (Method::GET, path, String::from("type=master&ver=2.0&sig=") + &good),
        (Method::GET, path, String::from("type=resource&ver=1.0&sig=") + &good),
        (Method::GET, path, String::from("type=aad&ver=1.0&sig=e30.e30.") + &"x".repeat(4000)),
        (Method::GET, path, String::from("Bearer abc")),
        (Method::GET, path, String::from("%ff%ff")),
        (Method::GET, path, "&".repeat(2000)),
    ] {
        assert_eq!(check(&method, path, &authorization, DATE, false), Err(401), "{method} {path}");
    }
}

#[test]
fn a_name_that_is_no_rid_cannot_be_signed_by_its_last_segment() {
    let signature = sign(PRIMARY, ["get", "docs", "i", &DATE.to_lowercase(), ""]);
    assert_eq!(check(&Method::GET, "/dbs/d/colls/c/docs/i", &token(&signature), DATE, false), Err(401));
}

#[test]
fn read_only_keys_do_not_write() {
    let signature = sign(READER, ["post", "docs", "dbs/d/colls/c", &DATE.to_lowercase(), ""]);
    let authorization = token(&signature);
    assert_eq!(check(&Method::POST, "/dbs/d/colls/c/docs", &authorization, DATE, true), Err(403));
    assert_eq!(check(&Method::POST, "/dbs/d/colls/c/docs", &authorization, DATE, false), Ok(()));
}

#[test]
fn clocks_may_be_fifteen_minutes_apart() {
    let base = httpdate::parse_http_date(DATE).expect("a date");
    let far = "Thu, 27 Apr 1970 00:00:00 GMT";
    for (offset, expected) in
        [(0i64, Ok(())), (899, Ok(())), (-899, Ok(())), (901, Err(403)), (-901, Err(403))]
    {
        let moved = Duration::from_secs(offset.unsigned_abs());
        let date = httpdate::fmt_http_date(if offset > 0 { base + moved } else { base - moved });
        let signature = sign(PRIMARY, ["get", "", "", &date.to_lowercase(), ""]);
        assert_eq!(check(&Method::GET, "/", &token(&signature), &date, false), expected, "{offset}");
    }
    for date in [far, "yesterday", "", &"x".repeat(100)] {
        let signature = sign(PRIMARY, ["get", "", "", &date.to_lowercase(), ""]);
        assert!(check(&Method::GET, "/", &token(&signature), date, false).is_err(), "{date}");
    }
}

#[test]
fn a_missing_header_is_named() {
    let headers = RequestHeaders::default();
    let route = route("/").expect("a path");
    let refused = authenticate(&keys(), None, &Method::GET, &route.signed, &headers, SystemTime::now())
        .expect_err("no");
    let body = String::from_utf8(refused.wire().body("id", "/")).expect("UTF-8");
    assert!(body.contains("Required Header authorization is missing"), "{body}");
    assert!(body.starts_with("{\"code\":\"Unauthorized\""), "{body}");
}

proptest! {
    #[test]
    fn no_header_panics_or_passes(authorization in "\\PC{0,300}", date in "\\PC{0,80}") {
        prop_assert!(check(&Method::GET, "/dbs/d", &authorization, &date, false).is_err());
    }

    #[test]
    fn no_token_panics_or_passes(signature in "[a-zA-Z0-9+/=%]{0,100}") {
        let authorization = format!("type=master&ver=1.0&sig={signature}");
        prop_assert_eq!(check(&Method::GET, "/dbs/d", &authorization, DATE, false), Err(401));
    }
}
