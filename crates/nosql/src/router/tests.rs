use proptest::prelude::*;

use super::*;

fn shown(path: &str) -> String {
    match route(path) {
        Ok(route) => format!("{:?}", route.endpoint),
        Err(refusal) => refusal.wire().status.as_str().to_owned(),
    }
}

#[test]
fn paths_name_endpoints() {
    for (path, expected) in [
        ("/", "Account"),
        ("", "Account"),
        ("//", "Account"),
        ("/dbs", "Databases"),
        ("/dbs/", "Databases"),
        ("/dbs/d", "Database { database: \"d\" }"),
        ("//dbs//d//", "Database { database: \"d\" }"),
        ("/dbs/d%20e%2Ff", "Database { database: \"d e/f\" }"),
        ("/dbs/d/colls", "Containers { database: \"d\" }"),
        ("/dbs/d/colls/c/", "Container { database: \"d\", container: \"c\" }"),
        ("/dbs/d/colls/c/docs", "Items { database: \"d\", container: \"c\" }"),
        ("/dbs/d/colls/c/docs/%C3%A9%2B+", "Item { database: \"d\", container: \"c\", item: \"é++\" }"),
        ("/dbs/d/colls/c/pkranges", "Ranges { database: \"d\", container: \"c\" }"),
        ("/dbs/d/colls/c/conflicts", "Conflicts { database: \"d\", container: \"c\", conflict: None }"),
        ("/dbs/d/colls/c/operations/partitionkeydelete", "KeyDelete { database: \"d\", container: \"c\" }"),
        ("/offers", "Offers"),
        ("/offers/AbCd", "Offer { offer: \"AbCd\" }"),
        ("/dbs/d/users", "DatabaseChildren { kind: User, database: \"d\" }"),
        ("/dbs/d/users/u/permissions", "Permissions { database: \"d\", user: \"u\" }"),
        ("/dbs/d/users/u/permissions/p", "Permission { database: \"d\", user: \"u\", permission: \"p\" }"),
        ("/dbs/d/users/u/other/p", "404"),
        (
            "/dbs/d/clientencryptionkeys/k",
            "DatabaseChild { kind: EncryptionKey, database: \"d\", child: \"k\" }",
        ),
        (
            "/dbs/d/colls/c/sprocs/s",
            "Script { kind: Procedure, database: \"d\", container: \"c\", script: \"s\" }",
        ),
        ("/dbs/d/colls/c/triggers", "Scripts { kind: Trigger, database: \"d\", container: \"c\" }"),
        ("/dbs/d/colls/c/udfs", "Scripts { kind: Function, database: \"d\", container: \"c\" }"),
        ("/dbs/d/colls/c/docs/i/attachments", "Unsupported { feature: \"Attachments\" }"),
        ("/topology", "Unsupported { feature: \"Direct connection mode\" }"),
        ("/operations/dtc", "Unsupported { feature: \"Distributed transactions (operations)\" }"),
        ("/dbs/d/else", "404"),
        ("/DBS", "404"),
        ("/dbs/d/colls/c/docs/i/x", "404"),
        ("/a/b/c/d/e/f/g/h/i/j", "404"),
        ("/dbs/%FF", "400"),
    ] {
        assert_eq!(shown(path), expected, "{path}");
    }
    assert_eq!(shown(&"/dbs/x".repeat(10_000)), "400");
}

#[test]
fn what_is_signed_is_the_resource_or_the_owner_of_a_feed() {
    for (path, kind, link) in [
        ("/", "", ""),
        ("/dbs", "dbs", ""),
        ("/dbs/d%20e", "dbs", "dbs/d e"),
        ("/dbs/d/colls", "colls", "dbs/d"),
        ("/dbs/d/colls/c", "colls", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/docs/", "docs", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/docs/i", "docs", "dbs/d/colls/c/docs/i"),
        ("/dbs/d/colls/c/pkranges", "pkranges", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c"),
        ("/offers/AbCd", "offers", "offers/AbCd"),
    ] {
        let route = route(path).expect("a good path");
        let joined: Vec<&str> = route.signed.link().iter().map(|segment| segment.text.as_ref()).collect();
        assert_eq!((route.signed.resource_type, joined.join("/").as_str()), (kind, link), "{path}");
    }
}

proptest! {
    #[test]
    fn no_path_panics(path in "[/a-z%0-9A-Fé\\\\?#\u{0}-\u{ff}]{0,200}") {
        let _ = route(&path);
    }

    #[test]
    fn encoded_names_come_back(name in "\\PC{1,60}") {
        let encoded = percent_encoding::utf8_percent_encode(&name, percent_encoding::NON_ALPHANUMERIC).to_string();
        let path = format!("/dbs/d/colls/c/docs/{encoded}");
        match route(&path) {
            Ok(route) => {
                let item = name.into();
                prop_assert_eq!(route.endpoint, Endpoint::Item { database: "d".into(), container: "c".into(), item });
            }
            Err(_) => prop_assert!(check_reachable(&name).is_err(), "{name:?}"),
        }
    }
}
