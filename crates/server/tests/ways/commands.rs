//! The commands that work with data: create, list, query, throughput, delete, and what shells and manuals know of them.

use std::io::Write;
use std::process::Stdio;

use orrery_testkit::EMULATOR_KEY;
use portable_pty::CommandBuilder;
use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::{Desk, bare, binary, refusal, said};

fn shop() -> Desk {
    let desk = Desk::new();
    desk.run(&["create", "database", "shop"]);
    desk.run(&["create", "container", "shop/orders", "--key-path", "/customer", "--throughput", "400"]);
    let items: String = (0..30)
        .map(|n| {
            json!({"id": n.to_string(), "customer": format!("c{}", n % 3), "total": n}).to_string() + "\n"
        })
        .collect();
    desk.file("orders.jsonl", &items);
    desk.run(&["import", "--database", "shop", "--container", "orders", "orders.jsonl"]);
    desk
}

#[test]
fn databases_and_containers_are_made_listed_and_deleted() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["create", "database", "shop"]), "database shop is made\n");
    assert!(desk.fails(&["create", "database", "shop"]).contains("shop is there already"));
    assert_eq!(desk.run(&["create", "database", "shop", "--if-missing"]), "database shop is there already\n");
    assert!(desk.fails(&["create", "container", "none/c", "--key-path", "/a"]).contains("no database none"));
    desk.file(
        "policy.json",
        r#"{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[]}"#,
    );
    desk.run(&[
        "create",
        "container",
        "shop/events",
        "--key-path",
        "/tenant",
        "--key-path",
        "/user",
        "--autoscale",
        "4000",
        "--default-ttl",
        "-1",
        "--unique-key",
        "/mail,/name",
        "--indexing-policy",
        "policy.json",
    ]);
    assert_eq!(desk.run(&["list", "databases"]), "shop\n");
    let listed = desk.run(&["list", "containers", "shop"]);
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["events", "/tenant,", "/user"]);
    let json: Value =
        serde_json::from_str(&desk.run(&["list", "containers", "shop", "--json"])).expect("JSON");
    let events = &json[0];
    assert_eq!((&events["id"], &events["defaultTtl"]), (&json!("events"), &json!(-1)));
    assert_eq!(events["partitionKey"]["kind"], "MultiHash");
    assert_eq!(events["uniqueKeyPolicy"]["uniqueKeys"][0]["paths"], json!(["/mail", "/name"]));
    assert!(desk.fails(&["list", "containers", "none"]).contains("no database none"));

    let asked =
        desk.command(&["delete", "container", "shop/events"]).stdin(Stdio::null()).output().expect("it runs");
    assert!(!asked.status.success() && said(&asked).contains("--yes"), "{}", said(&asked));
    assert_eq!(
        desk.run(&["delete", "container", "shop/events", "--yes"]),
        "container shop/events is deleted\n"
    );
    assert!(
        desk.fails(&["delete", "container", "shop/events", "--yes"]).contains("no container shop/events")
    );
    desk.run(&["delete", "database", "shop", "-y"]);
    assert_eq!(desk.run(&["list", "databases", "--json"]), "[]\n");
}

#[test]
fn a_terminal_is_asked_before_something_is_deleted() {
    let desk = Desk::new();
    desk.run(&["create", "database", "shop"]);
    for (answer, is_deleted) in [("n\r", false), ("y\r", true)] {
        let mut command = CommandBuilder::new(binary());
        command.args(["delete", "database", "shop", "--endpoint", &desk.endpoint()]);
        let mut terminal = Terminal::run_command(command, 100, 10);
        terminal.wait_for("the question", |screen| screen.contains("[y/N]"));
        terminal.press(answer);
        assert_eq!(terminal.ends_well(), is_deleted, "{answer}");
    }
}

#[test]
fn a_query_prints_rows_and_what_they_cost() {
    let desk = shop();
    let sql = "SELECT c.id, c.total FROM c WHERE c.total > @least ORDER BY c.total DESC";
    let output = desk.command(&["query", "shop/orders", sql, "-p", "@least=26"]).output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted =
        ["{\"id\":\"29\",\"total\":29}", "{\"id\":\"28\",\"total\":28}", "{\"id\":\"27\",\"total\":27}"];
    assert_eq!(rows.lines().collect::<Vec<_>>(), wanted);
    assert!(said(&output).starts_with("3 rows, ") && said(&output).contains(" RU"), "{}", said(&output));

    let count = |key: &str| {
        desk.run(&["query", "shop/orders", "SELECT VALUE COUNT(1) FROM c", "--partition-key", key])
    };
    assert_eq!(
        (count("c1").as_str(), count("[\"c1\"]").as_str(), count("none").as_str()),
        ("10\n", "10\n", "0\n")
    );
    let array = desk.run(&[
        "query",
        "shop/orders",
        "SELECT VALUE c.total FROM c ORDER BY c.total",
        "--format",
        "array",
    ]);
    let array: Vec<u64> = serde_json::from_str(&array).expect("one JSON array");
    assert_eq!(array, (0..30).collect::<Vec<u64>>());
    assert_eq!(
        desk.run(&["query", "shop/orders", "SELECT VALUE 1 FROM c WHERE false", "--format", "array"]),
        "[]\n"
    );
    assert_eq!(desk.run(&["query", "shop/orders", "--max", "7"]).lines().count(), 7);

    let mut child =
        desk.command(&["query", "shop/orders", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child_in = child.as_mut().expect("it runs").stdin.take();
    child_in.expect("piped").write_all(b"SELECT VALUE MAX(c.total) FROM c").expect("it reads");
    let output = child.expect("it runs").wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"29\n");

    let wrong = desk.fails(&["query", "shop/orders", "SELEKT * FROM c"]);
    assert!(wrong.contains("400") && wrong.contains("SELEKT") && !wrong.contains("{\"errors\""), "{wrong}");
    assert!(desk.fails(&["query", "shop/none", "SELECT * FROM c"]).contains("no container shop/none"));
    assert!(desk.fails(&["query", "shop", "SELECT * FROM c"]).contains("DATABASE/CONTAINER"));
}

#[test]
fn throughput_is_shown_and_changed_between_its_kinds() {
    let desk = shop();
    let show = || desk.run(&["throughput", "show", "shop/orders"]);
    assert!(show().starts_with("shop/orders: 400 RU/s"), "{}", show());
    assert!(desk.run(&["throughput", "set", "shop/orders", "1000"]).starts_with("shop/orders: 1000 RU/s"));
    let autoscale = desk.run(&["throughput", "autoscale", "shop/orders", "5000"]);
    assert!(autoscale.starts_with("shop/orders: autoscale up to 5000 RU/s"), "{autoscale}");
    assert!(desk.run(&["throughput", "autoscale", "shop/orders", "6000"]).contains("up to 6000 RU/s"));
    assert!(
        desk.run(&["throughput", "set", "shop/orders", "600"]).starts_with("shop/orders: 600 RU/s"),
        "{}",
        show()
    );
    let json: Value =
        serde_json::from_str(&desk.run(&["throughput", "show", "shop/orders", "--json"])).expect("JSON");
    assert_eq!((&json["offer"]["kind"], &json["offer"]["throughput"]), (&json!("manual"), &json!(600)));
    assert!(desk.run(&["throughput", "show", "shop"]).contains("no throughput of its own"));
    assert!(desk.fails(&["throughput", "set", "shop", "400"]).contains("shop has no throughput of its own"));
    assert!(desk.fails(&["throughput", "set", "shop/orders", "450"]).contains("the server answered 400"));
    assert!(desk.fails(&["throughput", "set", "shop/none", "400"]).contains("no container shop/none"));
}

#[test]
fn every_list_comes_as_json_too() {
    let desk = shop();
    let list = |line: &[&str]| -> Value { serde_json::from_str(&desk.run(line)).expect("JSON") };
    let partitions = list(&["partition", "list", "--database", "shop", "--container", "orders", "--json"]);
    assert_eq!(partitions[0]["items"], 30, "{partitions}");
    assert_eq!(list(&["job", "list", "--json"]), json!([]));
    assert_eq!(list(&["list", "databases", "--json"])[0]["id"], "shop");
}

#[test]
fn the_connection_string_of_sdks_is_understood() {
    let desk = shop();
    let connection = format!("AccountEndpoint={};AccountKey={EMULATOR_KEY};", desk.endpoint());
    let mut command = bare(&["list", "databases"]);
    command.env("AZURE_COSMOS_CONNECTION_STRING", &connection);
    assert_eq!(command.output().expect("it runs").stdout, b"shop\n");
    let wrong =
        refusal(bare(&["list", "databases", "--connection-string", "AccountEndpoint=http://localhost/"]));
    assert!(wrong.contains("AccountKey"), "{wrong}");
}

#[test]
fn shells_and_manuals_know_all_commands() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = desk.run(&["completions", shell]);
        assert!(text.contains("throughput") && text.contains("connection-string"), "{shell}");
    }
    assert!(desk.run(&["man"]).contains(".TH orrery 1"));
    desk.run(&["man", "--out", "pages"]);
    let page =
        std::fs::read_to_string(desk.folder.path().join("pages/orrery-throughput-set.1")).expect("a page");
    assert!(page.contains("autoscale ends"), "{page}");
}
