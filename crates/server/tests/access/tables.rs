//! Who may use which route of the Table API: keys, signatures of a table, signatures of the account, principals.

use orrery_testkit::{Client, Reply, Server, Signer, development_token};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use serde_json::json;

use crate::{FIRST, SECOND, binary, send};

/// Who asks.
enum Bearer {
    Key(&'static str),
    /// Letters of rights, and the table that they are for.
    Table(&'static str, &'static str),
    /// A stored policy of the table.
    Policy(&'static str),
    /// All rights on entities, from one partition key to another.
    Range(&'static str, &'static str),
    /// Somebody with the role of this name.
    Principal(&'static str),
    /// Letters of rights, and kinds of resources.
    Account(&'static str, &'static str),
    /// The same, but for another service, or not any more, or signed with a key that only reads.
    OtherService,
    Expired,
    SignedByReader,
    Nobody,
}

/// The columns.
const BEARERS: [Bearer; 21] = [
    Bearer::Key(FIRST),
    Bearer::Key(SECOND),
    Bearer::Table("r", "t"),
    Bearer::Table("a", "t"),
    Bearer::Table("u", "t"),
    Bearer::Table("d", "t"),
    Bearer::Table("raud", "other"),
    Bearer::Account("rwdlacu", "sco"),
    Bearer::Account("rwdlacu", "o"),
    Bearer::Account("rl", "sco"),
    Bearer::OtherService,
    Bearer::Expired,
    Bearer::SignedByReader,
    Bearer::Nobody,
    Bearer::Policy("reads"),
    Bearer::Policy("gone"),
    Bearer::Range("a", "q"),
    Bearer::Range("q", "z"),
    Bearer::Principal("reader"),
    Bearer::Principal("writer"),
    Bearer::Principal("transactor"),
];

/// The roles, and where their principals have them.
const ROLES: [(&str, &str, &[&str]); 3] = [
    ("reader", "/dbs/TablesDB/colls/t", &["containers/entities/read"]),
    ("writer", "/dbs/TablesDB", &["containers/entities/*", "containers/executeQuery", "write", "delete"]),
    ("transactor", "/dbs/TablesDB/colls/t", &["containers/executeStoredProcedure"]),
];

const POLICY: &str = "<SignedIdentifiers><SignedIdentifier><Id>reads</Id><AccessPolicy><Expiry>2099-01-01</Expiry>\
    <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

/// The rows: a request, and a letter for each bearer. A dot passes; F is 403 and U 401.
const MATRIX: &str = "
GET    /Tables                                  ..FFFFF.F.FFFUFFFFFFF
GET    /Tables('t')                             ..FFFFF.F.FFFUFFFFFFF
POST   /Tables                                  .FFFFFF.FFFFFUFFFFF.F
DELETE /Tables('none')                          .FFFFFF.FFFFFUFFFFF.F
GET    /t()                                     ...FFFF...FFFU.F..F.F
GET    /t(PartitionKey='p',RowKey='r')          ...FFFF...FFFU.F.F..F
POST   /t                                       .FF.FFF..FFFFUFF.FF.F
UPDATE /t(PartitionKey='p',RowKey='r')          .FFF.FF..FFFFUFF.FF.F
PUT    /t(PartitionKey='p',RowKey='r')          .FFFFFF..FFFFUFF.FF.F
MERGE  /t(PartitionKey='p',RowKey='r')          .FFFFFF..FFFFUFF.FF.F
DELETE /t(PartitionKey='p',RowKey='r')          .FFFF.F..FFFFUFF.FF.F
BATCH  /$batch                                  .FF.FFF..FFFFUFF.FFF.
READ   /$batch                                  ...FFFF...FFFU.F.F..F
GET    /?restype=service&comp=properties        ..FFFFF.F.FFFUFFFFFFF
PUT    /?restype=service&comp=properties        .FFFFFF.FFFFFUFFFFFFF
GET    /?restype=service&comp=stats             ..FFFFF.F.FFFUFFFFFFF
GET    /t?comp=acl                              ..FFFFFFFFFFFUFFFFFFF
PUT    /t?comp=acl                              .FFFFFFFFFFFFUFFFFFFF
";

#[test]
fn every_route_of_tables_is_open_to_whom_it_should_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    std::fs::write(&keys, format!("primary = {FIRST}\nprimary-readonly = {SECOND}\n"))
        .expect("it can be written");
    let options = [
        "--in-memory",
        "--table-port",
        "0",
        "--entra-development",
        "--key-file",
        keys.to_str().expect("text"),
    ];
    let server = Server::start(binary(), &options);
    give_roles(&server);
    let mut client = Client::new(server.table_port().expect("it was asked for"));
    for (verb, path, body) in [
        ("POST", "/Tables", r#"{"TableName":"t"}"#),
        ("POST", "/t", r#"{"PartitionKey":"p","RowKey":"r"}"#),
        ("PUT", "/t?comp=acl", POLICY),
    ] {
        assert!(ask(&mut client, &Bearer::Key(FIRST), verb, path, body).status < 300, "{path}");
    }
    let mut wrong = Vec::new();
    for (row, line) in MATRIX.lines().filter(|line| !line.is_empty()).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [verb, path, wanted] = words[..] else { panic!("{line}") };
        let found: String = BEARERS
            .iter()
            .enumerate()
            .map(|(column, bearer)| {
                // What inserts or makes a table does it under a new name each time.
                let name = format!("n{row}x{column}");
                match request(&mut client, bearer, verb, path, &name).status {
                    401 => 'U',
                    403 => 'F',
                    status if status < 500 || status == 501 => '.',
                    status => panic!("{verb} {path}: {status}"),
                }
            })
            .collect();
        if found != wanted {
            wrong.push(format!("{verb} {path}: {found} and not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn give_roles(server: &Server) {
    let mut account = Client::new(server.port());
    *account.signer() = Signer::new(FIRST);
    for (name, scope, actions) in ROLES {
        let tables = "Microsoft.DocumentDB/databaseAccounts/tables/";
        let actions: Vec<String> = actions.iter().map(|action| format!("{tables}{action}")).collect();
        let role = json!({"id": name, "roleName": name, "permissions": [{"dataActions": actions}]});
        let given = json!({"id": name, "principalId": name, "roleDefinitionId": name, "scope": scope});
        for (path, body) in [("/roledefinitions", role), ("/roleassignments", given)] {
            assert_eq!(send(&mut account, "POST", path, &body).status, 201, "{path}: {name}");
        }
    }
}

fn request(client: &mut Client, bearer: &Bearer, verb: &str, path: &str, name: &str) -> Reply {
    let body = match (verb, path) {
        ("GET" | "DELETE", _) => String::new(),
        ("BATCH", _) => format!(
            "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n\
             POST http://localhost/t HTTP/1.1\r\nContent-Type: application/json\r\n\r\n\
             {{\"PartitionKey\":\"p\",\"RowKey\":\"{name}\"}}\r\n--c--\r\n--b--\r\n"
        ),
        ("READ", _) => "--b\r\nContent-Type: application/http\r\n\r\n\
             GET http://localhost/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n--b--\r\n"
            .to_owned(),
        (_, "/Tables") => format!(r#"{{"TableName":"{name}"}}"#),
        _ => format!(r#"{{"PartitionKey":"p","RowKey":"{name}"}}"#),
    };
    let verb = if matches!(verb, "BATCH" | "READ") { "POST" } else { verb };
    let reply = ask(client, bearer, verb, path, &body);
    // Refusals of a batch may be within its answer.
    match String::from_utf8_lossy(&reply.body).contains("HTTP/1.1 403") {
        true => Reply { status: 403, ..reply },
        false => reply,
    }
}

fn ask(client: &mut Client, bearer: &Bearer, verb: &str, path: &str, body: &str) -> Reply {
    let kind = if path == "/$batch" { "multipart/mixed; boundary=b" } else { "application/json" };
    let mut headers = vec![("content-type", kind)];
    // These insist on an entity that is there.
    if matches!(verb, "UPDATE" | "DELETE") {
        headers.push(("if-match", "*"));
    }
    let verb = if verb == "UPDATE" { "PUT" } else { verb };
    let signed = match bearer {
        Bearer::Key(key) => {
            let signer = Signer::new(key);
            let authorization = signer.table_authorization(path);
            headers.extend([("authorization", authorization.as_str()), ("x-ms-date", signer.date())]);
            return client.send_raw(verb, path, &headers, body.as_bytes()).expect("an answer");
        }
        Bearer::Principal(name) => {
            let authorization = format!("Bearer {}", development_token(name));
            headers.push(("authorization", authorization.as_str()));
            return client.send_raw(verb, path, &headers, body.as_bytes()).expect("an answer");
        }
        Bearer::Nobody => path.to_owned(),
        Bearer::Table(rights, table) => with(path, &Signer::new(FIRST).table_sas(table, rights)),
        Bearer::Policy(name) => with(path, &of_table(&[("si", name)])),
        Bearer::Range(from, to) => {
            with(path, &of_table(&[("sp", "raud"), ("se", LATER), ("spk", from), ("epk", to)]))
        }
        Bearer::Account(rights, kinds) => with(path, &of_account(FIRST, rights, "t", kinds, LATER)),
        Bearer::OtherService => with(path, &of_account(FIRST, "rwdlacu", "b", "sco", LATER)),
        Bearer::Expired => with(path, &of_account(FIRST, "rwdlacu", "t", "sco", "2020-01-01")),
        Bearer::SignedByReader => with(path, &of_account(SECOND, "rwdlacu", "t", "sco", LATER)),
    };
    client.send_raw(verb, &signed, &headers, body.as_bytes()).expect("an answer")
}

const LATER: &str = "2999-01-01";
const VERSION: &str = "2019-02-02";

fn with(path: &str, query: &str) -> String {
    format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' })
}

fn of_table(terms: &[(&str, &str)]) -> String {
    Signer::new(FIRST).table_sas_with("t", terms)
}

fn of_account(key: &str, rights: &str, service: &str, kinds: &str, end: &str) -> String {
    let lines = ["orrery", rights, service, kinds, "", end, "", "", VERSION, ""];
    let signature = signature(key, &lines.join("\n"));
    format!("ss={service}&srt={kinds}&sp={rights}&se={end}&sv={VERSION}&sig={signature}")
}

fn signature(key: &str, text: &str) -> String {
    utf8_percent_encode(&Signer::new(key).sign_text(text), NON_ALPHANUMERIC).to_string()
}
