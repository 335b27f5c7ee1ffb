//! Access to a real server: keys that change while it runs, what survives a crash, what the audit log tells, and which
//! options are refused. Who may use which route of the NoSQL API is in the gateway's own tests; of the Table API it is here.

mod tables;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use orrery_testkit::{Client, EMULATOR_KEY, Reply, Server, Signer, eventually};
use serde_json::{Value, json};

const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECOND: &str = "HxwdHhobGBkWFxQVEhMQEQ4PDA0KCwgJBgcEBQIDAAE=";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn send(client: &mut Client, verb: &str, path: &str, body: &Value) -> Reply {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    client.send(verb, path, &[], text.as_bytes()).expect("the server answers")
}

/// Whether requests signed with the key are let in.
fn opens(server: &Server, key: &str) -> bool {
    let mut client = Client::new(server.port());
    *client.signer() = Signer::new(key);
    send(&mut client, "GET", "/dbs", &Value::Null).status == 200
}

#[test]
fn keys_change_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let write = |text: &str| std::fs::write(&file, text).expect("the file can be written");
    write(&format!("primary = {FIRST}\nsecondary = {EMULATOR_KEY}\n"));
    let server = Server::start(binary(), &["--in-memory", "--key-file", file.to_str().expect("text")]);
    assert!(opens(&server, FIRST) && opens(&server, EMULATOR_KEY) && !opens(&server, SECOND));

    write(&format!("primary = {SECOND}\nsecondary = {EMULATOR_KEY}\n# the first is withdrawn\n"));
    eventually("the new key opens", || opens(&server, SECOND));
    assert!(opens(&server, EMULATOR_KEY), "the other key stays valid throughout");
    assert!(!opens(&server, FIRST), "a withdrawn key opens nothing");

    // A broken file must not lock everybody out.
    write("primary = nonsense\n");
    let hangup =
        Command::new("kill").args(["-HUP", &server.id().to_string()]).status().expect("kill is there");
    assert!(hangup.success());
    std::thread::sleep(Duration::from_millis(300));
    assert!(opens(&server, SECOND), "the keys stay as they were");
    write(&format!("primary = {FIRST}\n"));
    eventually("the file that is right again is read", || opens(&server, FIRST));
}

#[test]
fn users_permissions_and_roles_survive_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start_on(binary(), folder.path(), &[]);
    let mut client = Client::new(server.port());
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let role = json!({"id": "r", "roleName": "reads", "permissions": [{"dataActions": [
        "Microsoft.DocumentDB/databaseAccounts/readMetadata"]}]});
    let made = [
        ("/dbs", json!({"id": "d"})),
        ("/dbs/d/colls", json!({"id": "c", "partitionKey": key})),
        ("/dbs/d/users", json!({"id": "u"})),
        ("/dbs/d/users", json!({"id": "gone"})),
        (
            "/dbs/d/users/u/permissions",
            json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"}),
        ),
        ("/dbs/d/colls/c/udfs", json!({"id": "f", "body": "function f() { return 1; }"})),
        ("/roledefinitions", role),
        (
            "/roleassignments",
            json!({"id": "a", "principalId": "p", "roleDefinitionId": "r", "scope": "/dbs/d"}),
        ),
    ]
    .map(|(feed, body)| {
        let reply = send(&mut client, "POST", feed, &body);
        assert_eq!(reply.status, 201, "{feed}: {}", reply.json());
        (format!("{feed}/{}", body["id"].as_str().expect("an id")), reply.json())
    });
    assert_eq!(send(&mut client, "DELETE", "/dbs/d/users/gone", &Value::Null).status, 204);
    let token = made[4].1["_token"].as_str().expect("a token").to_owned();
    server.kill();

    let server = Server::start_on(binary(), folder.path(), &[]);
    let mut client = Client::new(server.port());
    for (path, before) in &made {
        let reply = send(&mut client, "GET", path, &Value::Null);
        if path.ends_with("gone") {
            assert_eq!(reply.status, 404);
            continue;
        }
        let after = reply.json();
        for name in ["_rid", "_etag", "_self", "_ts", "id"] {
            assert_eq!(after[name], before[name], "{path}");
        }
    }
    let next = send(&mut client, "POST", "/dbs/d/users", &json!({"id": "next"})).json();
    assert!(made.iter().all(|(_, before)| before["_rid"] != next["_rid"]), "no RID is given twice");
    // The token of before the crash is as good as it was.
    let headers = [("authorization", token.as_str())];
    let read = client.send_raw("GET", "/dbs/d/colls/c/docs", &headers, b"").expect("the server answers");
    assert_eq!(read.status, 200, "{}", read.json());
    let written = client.send_raw("DELETE", "/dbs/d/colls/c", &headers, b"").expect("the server answers");
    assert_eq!(written.status, 403, "{}", written.json());
    server.stop();
}

#[test]
fn control_operations_are_in_the_audit_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let server = Server::start_logged(binary(), &["--in-memory", "--log-format", "json"], &log);
    let mut client = Client::new(server.port());
    send(&mut client, "POST", "/dbs", &json!({"id": "audited"}));
    send(&mut client, "GET", "/dbs/audited", &Value::Null);
    send(&mut client, "DELETE", "/dbs/missing", &Value::Null);
    *client.signer() = Signer::new(FIRST);
    send(&mut client, "DELETE", "/dbs/audited", &Value::Null);
    server.stop();
    let text = std::fs::read_to_string(&log).expect("the log can be read");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let entries: Vec<String> = lines
        .filter(|line| line["target"] == "audit")
        .map(|line| {
            let field = |name: &str| line["fields"][name].to_string().replace('"', "");
            format!(
                "{} {} {} {} {}",
                field("who"),
                field("act"),
                field("what"),
                field("path"),
                field("status")
            )
        })
        .collect();
    let wanted = [
        "account key Create Databases /dbs 201",
        "account key Delete Database /dbs/missing 404",
        "unknown Delete Database /dbs/audited 401",
    ];
    assert_eq!(entries, wanted);
}

#[test]
fn token_issuers_without_keys_and_open_doors_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.json");
    std::fs::write(&keys, "{\"keys\":[]}").expect("the file can be written");
    let keys = keys.to_str().expect("text");
    let own = folder.path().join("own");
    std::fs::write(&own, format!("primary = {FIRST}\n")).expect("the file can be written");
    for (args, wanted) in [
        (vec!["--entra-issuer", "https://issuer"], "--entra-keys"),
        (vec!["--entra-issuer", "https://issuer", "--entra-keys", keys], "audience"),
        (vec!["--entra-issuer", "i", "--entra-audience", "a", "--entra-keys", keys], "no RSA key"),
        (vec!["--entra-development", "--entra-issuer", "i"], "excludes"),
        (
            vec!["--entra-development", "--bind", "0.0.0.0", "--key-file", own.to_str().expect("text")],
            "everybody could make a token",
        ),
    ] {
        let refused = Server::try_start_on(binary(), &folder.path().join("data"), &args).err();
        let said = refused.unwrap_or_else(|| panic!("{args:?} started"));
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
}

#[test]
fn what_others_could_read_or_change_is_tightened_and_the_log_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, keys, log) =
        (folder.path().join("data"), folder.path().join("keys"), folder.path().join("log"));
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode can be set");
    };
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    std::fs::create_dir(&data).expect("a folder");
    std::fs::write(&keys, format!("primary = {FIRST}\n")).expect("the file can be written");
    set(&data, 0o755);
    set(&keys, 0o644);
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let options = ["--data-dir", &text(&data), "--key-file", &text(&keys)];
    Server::start_logged(binary(), &options, &log).stop();
    assert_eq!((mode(&data), mode(&keys)), (0o700, 0o600));
    let said = std::fs::read_to_string(&log).expect("the log can be read");
    for path in [&data, &keys] {
        let of_path = |line: &&str| line.contains(&*path.to_string_lossy()) && line.contains("tightened");
        assert!(said.lines().any(|line| of_path(&line)), "{}: {said}", path.display());
    }
    // A folder that the server makes itself is nobody else's from the beginning.
    let own = folder.path().join("own");
    Server::start_on(binary(), &own, &[]).stop();
    assert_eq!(mode(&own), 0o700);
}

#[test]
fn keys_that_can_be_guessed_open_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    for key in ["AAAAAAAAAAAAAAAAAAAAAA==", "/////////////////////w==", "AAAA", "YWJhYmFiYWJhYmFiYWJhYmFi"] {
        std::fs::write(&keys, format!("primary = {key}\n")).expect("the file can be written");
        let args = ["--key-file", keys.to_str().expect("text")];
        let refused = Server::try_start_on(binary(), &folder.path().join("data"), &args).err();
        let said = refused.unwrap_or_else(|| panic!("{key} opens the server"));
        assert!(said.contains("line 1"), "{key}: {said}");
    }
}

/// Anybody who reaches the port may read `/metrics`.
#[test]
fn metrics_name_databases_and_containers_on_loopback_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    std::fs::write(&keys, format!("primary = {FIRST}\n")).expect("the file can be written");
    let own = ["--in-memory", "--key-file", keys.to_str().expect("text")];
    for (more, shows_names) in [
        (&[][..], true),
        (&["--bind", "0.0.0.0"][..], false),
        (&["--bind", "0.0.0.0", "--metrics-names"][..], true),
    ] {
        let server = Server::start(binary(), &[&own[..], more].concat());
        let mut client = Client::new(server.port());
        *client.signer() = Signer::new(FIRST);
        assert_eq!(send(&mut client, "POST", "/dbs", &json!({"id": "secret-db"})).status, 201);
        let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
        for id in ["secret-one", "secret-two"] {
            let made =
                send(&mut client, "POST", "/dbs/secret-db/colls", &json!({"id": id, "partitionKey": key}));
            assert_eq!(made.status, 201);
        }
        let page = client.send_raw("GET", "/metrics", &[], b"").expect("the server answers").body;
        let page = String::from_utf8_lossy(&page).into_owned();
        let series: Vec<&str> =
            page.lines().filter(|line| line.starts_with("orrery_partition_items{")).collect();
        assert_eq!(series.len(), 2, "{more:?}: {series:?}");
        assert_ne!(series[0], series[1], "{more:?}: two partitions are two series");
        assert_eq!(page.contains("secret"), shows_names, "{more:?}: {series:?}");
    }
}
