//! `--seed`: a server that begins with what a file names.

use orrery_testkit::Server;
use serde_json::Value;

use crate::{Desk, bare, binary, refusal};

const SEED: &str = r#"{"databases":[{"id":"shop","throughput":400,"containers":[
    {"id":"orders","partitionKey":"/customer","items":[
        {"id":"1","customer":"ada","total":42,"big":12345678901234567}]},
    {"id":"events","partitionKey":["/tenant","/user"],"autoscale":4000,"properties":{"defaultTtl":-1},
     "itemFiles":["events.jsonl"]}]}]}"#;
const EVENTS: &str = "{\"id\":\"1\",\"tenant\":\"t\",\"user\":\"u\"}\n{\"id\":\"2\",\"tenant\":\"t\"}\n";

#[test]
fn a_seed_makes_what_is_missing_and_leaves_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let seed = folder.path().join("seed.json");
    std::fs::write(&seed, SEED).expect("written");
    std::fs::write(folder.path().join("events.jsonl"), EVENTS).expect("written");
    let data = folder.path().join("data");
    let seed = seed.to_str().expect("a text path");
    let start = || Server::start_on(binary(), &data, &["--seed", seed]);
    let desk = Desk { server: start(), folder: tempfile::tempdir().expect("a folder") };
    let count = |desk: &Desk, of: &str| desk.run(&["query", of, "SELECT VALUE COUNT(1) FROM c"]);
    assert_eq!((count(&desk, "shop/orders").as_str(), count(&desk, "shop/events").as_str()), ("1\n", "2\n"));
    assert!(desk.run(&["throughput", "show", "shop"]).starts_with("shop: 400 RU/s"));
    assert!(desk.run(&["throughput", "show", "shop/events"]).contains("autoscale up to 4000"));
    let listed: Value =
        serde_json::from_str(&desk.run(&["list", "containers", "shop", "--json"])).expect("JSON");
    let events =
        listed.as_array().expect("a list").iter().find(|one| one["id"] == "events").expect("it is there");
    assert_eq!((&events["defaultTtl"], &events["partitionKey"]["kind"]), (&(-1).into(), &"MultiHash".into()));

    // What a user has changed stays, at the next start with the same file.
    desk.file("change.jsonl", "{\"id\":\"1\",\"customer\":\"ada\",\"total\":43}\n");
    desk.run(&["import", "change.jsonl", "--database", "shop", "--container", "orders"]);
    let Desk { server, folder } = desk;
    server.stop();
    let desk = Desk { server: start(), folder };
    assert_eq!(desk.run(&["query", "shop/orders", "SELECT VALUE c.total FROM c"]), "43\n");
    assert_eq!(count(&desk, "shop/events"), "2\n");
}

#[test]
fn an_item_that_a_unique_key_refuses_is_no_item_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let seed = folder.path().join("seed.json");
    let twice = r#"{"databases":[{"id":"shop","containers":[{"id":"orders","partitionKey":"/pk",
        "properties":{"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}},
        "items":[{"id":"1","pk":"a","mail":"x"},{"id":"2","pk":"a","mail":"x"}]}]}]}"#;
    std::fs::write(&seed, twice).expect("written");
    let data = folder.path().join("data").display().to_string();
    let line = ["serve", "--nosql-port", "0", "--table-port", "none", "--data-dir", &data, "--seed"];
    let said = refusal(bare(&[&line[..], &[seed.to_str().expect("a text path")]].concat()));
    assert!(said.contains("409") && said.contains("seed.json"), "{said}");
}

#[test]
fn a_folder_of_seeds_is_read_in_the_order_of_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, content: &str| std::fs::write(folder.path().join(name), content).expect("written");
    write("2.json", r#"{"databases":[{"id":"shop","containers":[{"id":"b","partitionKey":"/id"}]}]}"#);
    write("1.json", r#"{"databases":[{"id":"shop","throughput":500}]}"#);
    write("notes.txt", "not a seed");
    let desk = Desk::with(&["--seed", folder.path().to_str().expect("a text path")]);
    assert!(
        desk.run(&["throughput", "show", "shop"]).starts_with("shop: 500 RU/s"),
        "the first file comes first"
    );
    assert!(desk.run(&["list", "containers", "shop"]).starts_with("b "));
}

#[test]
fn a_wrong_seed_stops_the_server_and_names_file_container_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("events.jsonl"), "{\"id\":\"1\",\"a\":\"t\"}\n{\"id\":\"x/y\"}\n")
        .expect("written");
    let container =
        |rest: &str| format!(r#"{{"databases":[{{"id":"d","containers":[{{"id":"c",{rest}}}]}}]}}"#);
    for (content, wanted) in [
        ("{".to_owned(), "EOF"),
        ("{\"database\":[]}".to_owned(), "unknown field `database`"),
        (container("\"partitionKey\":7"), "d/c: partitionKey is a path"),
        (
            container("\"partitionKey\":\"/a\",\"throughput\":400,\"autoscale\":4000"),
            "d/c: c has throughput or autoscale",
        ),
        (container("\"partitionKey\":\"/a\",\"throughput\":1"), "the server answered 400"),
        (
            container("\"partitionKey\":\"/a\",\"items\":[{\"id\":\"1\"},{\"id\":7}]"),
            "d/c: item 2: the server answered 400",
        ),
        (
            container("\"partitionKey\":\"/a\",\"itemFiles\":[\"events.jsonl\"]"),
            "events.jsonl: line 2: the server",
        ),
        (container("\"partitionKey\":\"/a\",\"itemFiles\":[\"none.jsonl\"]"), "none.jsonl"),
    ] {
        let seed = folder.path().join("seed.json");
        std::fs::write(&seed, &content).expect("written");
        let data = folder.path().join("data");
        let seed = seed.to_str().expect("a text path");
        let said = Server::try_start_on(binary(), &data, &["--seed", seed]).err();
        let said = said.unwrap_or_else(|| panic!("it starts with {content}"));
        assert!(said.contains(seed) && said.contains(wanted), "{content}: {said}");
        std::fs::remove_dir_all(&data).expect("it was made");
    }
}
