//! Replays exchanges of official clients with the Table API of the service, and compares every answer with ours.
//!
//! The status must be the same, the headers that the service sends must be there, and bodies must say the same at every
//! level. What a server makes up differs: for versions and continuations the first answer teaches which of our values
//! stands for which recorded one, and later requests go out with ours. What is known to differ is listed in `known.rs`,
//! with the reason, and must differ as it is said there.

mod compare;
mod known;
mod recording;

use std::path::Path;

use compare::Lessons;
use orrery_testkit::{Client, Reply, Server};
use recording::{Exchange, Recording};

#[test]
fn recorded_exchanges_with_tables_get_the_same_answers() {
    let Some(folder) = recording::folder() else {
        println!("not run: the recorded exchanges (shared/vectors/table-recorded-cosmos) are not here");
        return;
    };
    let arguments = ["--in-memory", "--table-port", "0", "--no-throttle"];
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_orrery")), &arguments);
    let mut client = Client::new(server.table_port().expect("it was asked for"));
    let (mut differences, mut replayed, mut differ) = (Vec::new(), 0, 0);
    for recording in recording::all(&folder) {
        let mut lessons = Lessons::default();
        for (place, exchange) in recording.exchanges.iter().enumerate() {
            let reply = send(&mut client, &lessons, exchange);
            let found = compare::differences(exchange, &reply, &mut lessons);
            if let Some(next) = recording.exchanges.get(place + 1) {
                compare::learn_continuation(exchange, next, &reply, &mut lessons);
            }
            replayed += 1;
            match known::reason(&recording, exchange) {
                Some(reason) if found.is_empty() => {
                    differences.push(format!("{}: is the same after all, though {reason}", exchange.name));
                }
                Some(_) => differ += 1,
                None => differences.extend(found),
            }
        }
        clean(&mut client, &recording);
    }
    println!("replayed {replayed} exchanges, of which {differ} differ as is known");
    assert!(replayed >= 500, "only {replayed} exchanges were found");
    let shown: Vec<_> = differences.iter().take(60).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
}

fn send(client: &mut Client, lessons: &Lessons, exchange: &Exchange) -> Reply {
    client.signer().renew();
    let path = lessons.rewrite(&exchange.path);
    let (path, authorization) = match exchange.sas_rights() {
        Some((rights, table)) => {
            let bare = path.split('?').next().unwrap_or_default();
            (format!("{bare}?{}", client.signer().table_sas(table, rights)), None)
        }
        None => {
            let authorization = client.signer().table_authorization(&path);
            (path, Some(authorization))
        }
    };
    let date = client.signer().date().to_owned();
    let mut headers = vec![("x-ms-date", date)];
    headers.extend(authorization.map(|authorization| ("authorization", authorization)));
    for (name, value) in &exchange.headers {
        headers.push((name, lessons.rewrite(value)));
    }
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = client.send_raw(&exchange.verb, &path, &headers, lessons.rewrite(&exchange.body).as_bytes());
    reply.unwrap_or_else(|error| panic!("{}: {error}", exchange.name))
}

/// Each recording began with an empty account.
fn clean(client: &mut Client, recording: &Recording) {
    client.signer().renew();
    let headers = [("accept", "application/json;odata=nometadata")];
    let listed = client.send_table("GET", "/Tables", &headers, b"").expect("the server answers").json();
    for table in listed["value"].as_array().expect("a list of tables") {
        let name = table["TableName"].as_str().expect("a name");
        let name: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("/Tables('{name}')");
        let status = client.send_table("DELETE", &path, &headers, b"").expect("the server answers").status;
        assert_eq!(status, 204, "{} {path}", recording.name);
    }
}
