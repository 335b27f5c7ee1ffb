//! What made users stumble in their first hour, each with the message that helps now.

use std::net::TcpListener;

use crate::{Desk, bare, refusal};

fn desk_with_orders() -> Desk {
    let desk = Desk::new();
    desk.run(&["create", "database", "shop"]);
    desk.run(&["create", "container", "shop/orders", "--key-path", "/customer"]);
    desk
}

const ORDERS: [&str; 4] = ["--database", "shop", "--container", "orders"];

#[test]
fn splitting_an_unknown_partition_says_which_there_are() {
    let desk = desk_with_orders();
    let split = |range: &str| desk.fails(&[&["partition", "split", "--range", range][..], &ORDERS].concat());
    let said = split("99");
    assert!(said.contains("404") && said.contains("shop/orders has no partition 99; it has 0"), "{said}");
    desk.run(&[&["partition", "split", "--range", "0"][..], &ORDERS].concat());
    let said = split("0");
    assert!(said.contains("has no partition 0; it has 1, 2"), "{said}");
    let merge = desk.fails(&[&["partition", "merge", "--left", "1", "--right", "7"][..], &ORDERS].concat());
    assert!(merge.contains("has no partition 7; it has 1, 2"), "{merge}");
}

#[test]
fn an_unknown_field_of_a_workload_is_told_once() {
    let desk = Desk::new();
    desk.file("workload.json", r#"{"operation":[]}"#);
    let said = desk.fails(&["advise", "--workload", "workload.json"]);
    assert_eq!(said.matches("unknown field").count(), 1, "{said}");
}

#[test]
fn importing_a_file_that_is_cut_off_names_the_line_and_does_not_say_to_run_it_again() {
    let desk = desk_with_orders();
    for (cut, line) in [
        ("{\"id\":\"1\",\"customer\":\"a\"}\n{\"id\":\"2\",\"cust", "line 2"),
        ("{\"id\":\"1\",\"customer\":\"a\"}\n{\"id\":\"2\",}\n", "line 2"),
        ("7\n", "line 1"),
    ] {
        desk.file("orders.jsonl", cut);
        let said = desk.fails(&[&["import", "orders.jsonl"][..], &ORDERS].concat());
        assert!(said.contains("orders.jsonl") && said.contains(line), "{said}");
        assert!(!said.contains("run it again") && said.contains("Mend the file"), "{said}");
        std::fs::remove_file(desk.folder.path().join("orders.jsonl.import-state"))
            .expect("the state is there");
    }
    desk.file("orders.jsonl", "{\"id\":\"1\",\"customer\":\"a\"}\n{\"id\":");
    desk.fails(&[&["import", "orders.jsonl"][..], &ORDERS].concat());
    // Another file under the same name is not taken for its end.
    desk.file("orders.jsonl", "{}\n");
    let said = desk.fails(&[&["import", "orders.jsonl"][..], &ORDERS].concat());
    assert!(said.contains("shorter than its state says; delete orders.jsonl.import-state"), "{said}");
    // What stood in front of the fault is written, and the mended file goes on behind it.
    desk.file("orders.jsonl", "{\"id\":\"1\",\"customer\":\"a\"}\n{\"id\":\"2\",\"customer\":\"b\"}\n");
    desk.run(&[&["import", "orders.jsonl"][..], &ORDERS].concat());
    assert_eq!(desk.run(&["query", "shop/orders", "SELECT VALUE COUNT(1) FROM c"]), "2\n");
}

#[test]
fn an_import_goes_on_with_the_same_file_and_server_only() {
    let (desk, other) = (desk_with_orders(), desk_with_orders());
    let import = [&["import", "orders.jsonl"][..], &ORDERS].concat();
    let first = "{\"id\":\"1\",\"customer\":\"a\"}\n";
    desk.file("orders.jsonl", &format!("{first}{{\"id\":"));
    desk.fails(&import);
    // Another text of the same length stands in front of the place where the import would go on.
    let changed = first.replace("\"a\"", "\"b\"");
    desk.file("orders.jsonl", &format!("{changed}{{\"id\":\"2\",\"customer\":\"b\"}}\n"));
    let said = desk.fails(&import);
    assert!(said.contains("has changed since") && said.contains("orders.jsonl.import-state"), "{said}");
    // The same file, into the container of that name elsewhere, is no continuation either.
    desk.file("orders.jsonl", &format!("{first}{{\"id\":\"2\",\"customer\":\"b\"}}\n"));
    let elsewhere = format!("http://localhost:{}/", other.server.port());
    let said = desk.fails(&[&import[..], &["--endpoint", &elsewhere]].concat());
    assert!(said.contains("was imported into shop/orders at http://"), "{said}");
    desk.run(&import);
    assert_eq!(desk.run(&["query", "shop/orders", "SELECT VALUE COUNT(1) FROM c"]), "2\n");
}

#[test]
fn a_transfer_does_not_wait_for_a_server_that_never_answered() {
    let desk = Desk::new();
    desk.file("orders.jsonl", "{\"id\":\"1\"}\n");
    let secure = format!("https://localhost:{}/", desk.server.port());
    for line in [&["import", "orders.jsonl"][..], &["export", "--out", "-"]] {
        let began = std::time::Instant::now();
        let said = refusal(bare(&[line, &ORDERS, &["--endpoint", &secure]].concat()));
        assert!(said.contains("--ca-file"), "{said}");
        // It used to be silent for the minute for which a server that was there may be away.
        assert!(began.elapsed() < std::time::Duration::from_secs(50), "{:?}", began.elapsed());
    }
}

#[test]
fn an_item_that_is_refused_is_named_by_its_line_and_container() {
    let desk = desk_with_orders();
    desk.file("orders.jsonl", "{\"id\":\"1\",\"customer\":\"a\"}\n\n{\"id\":\"a/b\",\"customer\":\"a\"}\n");
    let said = desk.fails(&[&["import", "orders.jsonl"][..], &ORDERS].concat());
    assert!(said.contains("line 3, into shop/orders") && said.contains("the server answered 400"), "{said}");
    assert!(!said.contains("{\""), "no raw JSON: {said}");
}

#[test]
fn importing_into_a_missing_database_or_container_says_so_in_plain_words() {
    let desk = desk_with_orders();
    desk.file("orders.jsonl", "{\"id\":\"1\"}\n");
    for (database, container) in [("none", "orders"), ("shop", "none")] {
        let place = ["--database", database, "--container", container];
        for line in [&["import", "orders.jsonl"][..], &["export", "--out", "-"]] {
            let said = desk.fails(&[line, &place].concat());
            assert!(said.contains(&format!("there is no container {database}/{container}")), "{said}");
            assert!(!said.contains('{') && !said.contains("ActivityId"), "no raw JSON: {said}");
        }
    }
}

#[test]
fn a_file_as_data_directory_is_told() {
    let desk = Desk::new();
    let file = desk.file("data", "text").display().to_string();
    for line in [&["serve", "--nosql-port", "0", "--table-port", "none"][..], &["verify"]] {
        let said = refusal(bare(&[line, &["--data-dir", &file]].concat()));
        assert!(said.contains(&format!("{file} is a file; --data-dir names a folder")), "{said}");
    }
}

#[test]
fn one_look_at_no_server_is_an_error_and_no_picture() {
    // A port that nobody listens on.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let endpoint = format!("http://127.0.0.1:{port}/");
    let output = bare(&["top", "--once", "--endpoint", &endpoint]).output().expect("the binary runs");
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(
        crate::said(&output).contains(&format!("cannot connect to {endpoint}")),
        "{}",
        crate::said(&output)
    );
}

#[test]
fn the_help_of_verify_has_its_own_options_only() {
    let desk = Desk::new();
    let help = desk.run(&["verify", "--help"]);
    for option in ["--data-dir", "--config", "--memory-bytes", "--log"] {
        assert!(help.contains(option), "{option} is missing in\n{help}");
    }
    for option in ["--nosql-port", "--key-file", "--alert", "--seed", "--bind"] {
        assert!(!help.contains(option), "{option} is in\n{help}");
    }
    assert!(desk.run(&["serve", "--help"]).contains("--nosql-port"));
}

#[test]
fn a_second_import_of_a_file_is_refused_while_the_first_goes_on() {
    let desk = desk_with_orders();
    let path = desk.file("orders.jsonl", "{\"id\":\"1\",\"customer\":\"a\"}\n");
    let import = [&["import", "orders.jsonl"][..], &ORDERS].concat();
    // Held as an import under way holds it.
    let first = std::fs::File::open(&path).expect("the file");
    first.lock().expect("nobody else has it");
    let said = desk.fails(&import);
    assert!(said.contains("another export or import works with orders.jsonl"), "{said}");
    drop(first);
    desk.run(&import);
    let out = desk.file("out.jsonl", "");
    let held = std::fs::File::open(&out).expect("the file");
    held.lock().expect("nobody else has it");
    let said = desk.fails(&[&["export", "--out", "out.jsonl"][..], &ORDERS].concat());
    assert!(said.contains("another export or import works with out.jsonl"), "{said}");
}

#[test]
fn an_unknown_certificate_leads_to_the_option_for_it() {
    let desk = Desk::new();
    let secure = format!("https://localhost:{}/", desk.server.port());
    let said = refusal(bare(&["list", "databases", "--endpoint", &secure]));
    assert!(said.contains("--ca-file") && said.contains("/_explorer/emulator.pem"), "{said}");
    let mut client = orrery_testkit::Client::new(desk.server.port());
    let pem = client.send_raw("GET", "/_explorer/emulator.pem", &[], b"").expect("an answer").body;
    let file = desk.file("emulator.pem", &String::from_utf8_lossy(&pem)).display().to_string();
    let line = ["list", "databases", "--endpoint", &secure, "--ca-file", &file, "--json"];
    assert_eq!(bare(&line).output().expect("it runs").stdout, b"[]\n");
}
