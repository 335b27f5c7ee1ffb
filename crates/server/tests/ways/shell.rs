//! `orrery shell`, as a person types into it and as a program writes to it.

use std::io::Write;
use std::process::{Output, Stdio};

use portable_pty::CommandBuilder;
use serde_json::json;

use crate::terminal::Terminal;
use crate::{Desk, binary, said};

fn shop() -> Desk {
    let desk = Desk::new();
    desk.run(&["create", "database", "shop"]);
    desk.run(&["create", "container", "shop/orders", "--key-path", "/customer"]);
    desk.run(&["create", "container", "shop/returns", "--key-path", "/customer"]);
    let items: String = (0..6)
        .map(|n| {
            let place = json!({"city": "Turin", "street": "Via Po"});
            json!({"id": n.to_string(), "customer": format!("c{}", n % 3), "total": n, "address": place})
                .to_string()
                + "\n"
        })
        .collect();
    desk.file("orders.jsonl", &items);
    desk.run(&["import", "--database", "shop", "--container", "orders", "orders.jsonl"]);
    desk
}

fn at_terminal(desk: &Desk, further: &[&str]) -> Terminal {
    let mut command = CommandBuilder::new(binary());
    command.args(["shell", "--endpoint", &desk.endpoint(), "--history"]);
    command.arg(desk.folder.path().join("kept/lines"));
    command.args(further);
    let mut terminal = Terminal::run_command(command, 100, 40);
    terminal.wait_for("the prompt", |screen| screen.trim_end().ends_with('>'));
    terminal
}

/// Types a line that is a statement, and waits until it is done: what is typed meanwhile may be lost.
fn enter(terminal: &mut Terminal, line: &str) {
    terminal.press(&format!("{line}\r"));
    let is_done = |screen: &str| {
        screen.rsplit_once(&format!("> {line}\n")).is_some_and(|(_, rest)| rest.trim_end().ends_with('>'))
    };
    terminal.wait_for("the next prompt", is_done);
}

/// Leaves as a person does, once the shell waits for a line.
fn leave(mut terminal: Terminal) {
    terminal.wait_for("the prompt", |screen| screen.trim_end().ends_with('>'));
    terminal.press("\x04");
    assert!(terminal.ends_well());
}

fn piped(desk: &Desk, args: &[&str], text: &str) -> Output {
    let mut command = desk.command(&[&["shell"], args].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut input = child.stdin.take().expect("piped");
    // A shell that has ended reads no more.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    child.wait_with_output().expect("it ends")
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_query_over_lines_is_shown_as_a_table_with_what_it_cost() {
    let desk = shop();
    let mut terminal = at_terminal(&desk, &[]);
    enter(&mut terminal, "use shop");
    enter(&mut terminal, "use orders");
    terminal.press("SELECT c.id, c.total\rFROM c WHERE c.total > @least\rORDER BY c.total\r\r");
    // What nobody has given is not there, and compares with nothing.
    terminal.wait_for("an empty answer", |screen| {
        screen.contains("0 rows, ") && screen.trim_end().ends_with("shop/orders>")
    });
    enter(&mut terminal, "set @least = 3");
    // The statement is kept as one.
    terminal.press("\x1b[A\x1b[A");
    terminal.wait_for("the statement again", |screen| screen.matches("ORDER BY c.total").count() == 2);
    terminal.press("\r");
    let screen = terminal.wait_for("the table", |screen| screen.contains("2 rows, "));
    let table: Vec<&str> = screen.lines().skip_while(|line| !line.starts_with("id  total")).take(4).collect();
    assert_eq!(table, ["id  total", "──  ─────", "4       4", "5       5"], "{screen}");
    assert!(screen.contains(" RU, ") && screen.contains(" ms"), "{screen}");
    enter(&mut terminal, "format pretty");
    enter(&mut terminal, "SELECT VALUE c.address FROM c WHERE c.id = '1';");
    terminal.wait_for("JSON with indentation", |screen| screen.contains("\n  \"city\": \"Turin\","));
    enter(&mut terminal, "limit 2");
    enter(&mut terminal, "SELECT VALUE c.total FROM c;");
    terminal.wait_for("that there is more", |screen| screen.contains("there are more"));
    terminal.press("exit\r");
    assert!(terminal.ends_well());
}

#[test]
fn what_is_wrong_is_marked_in_its_line() {
    let desk = shop();
    let mut terminal = at_terminal(&desk, &["shop/orders"]);
    terminal.press("SELECT *\rFORM c;\r");
    let screen = terminal.wait_for("the fault", |screen| {
        screen.contains("^^^^") && screen.trim_end().ends_with("shop/orders>")
    });
    let lines: Vec<&str> = screen.lines().collect();
    let mark = lines.iter().position(|line| line.contains("^^^^")).expect("it is there");
    let at = lines[mark].find('^').expect("it is there");
    assert_eq!(&lines[mark - 1][at..at + 4], "FORM", "{screen}");
    assert!(lines[mark + 1].starts_with("line 2: "), "{screen}");
    // Something wrong ends nothing.
    enter(&mut terminal, "SELECT VALUE 1 + 1 FROM c WHERE c.id = '1';");
    terminal.wait_for("the next answer", |screen| screen.contains("1 row, "));
    leave(terminal);
}

#[test]
fn tab_completes_commands_names_words_and_properties() {
    let desk = shop();
    let mut terminal = at_terminal(&desk, &[]);
    terminal.press("us\t sh\tret\t\r");
    terminal.wait_for("the container that was completed", |screen| screen.contains("shop/returns>"));
    terminal.press("use or\t\r");
    terminal.wait_for("a container of the database in use", |screen| screen.contains("shop/orders>"));
    terminal.press("SEL\t * fr\t c whe\t c.addr\t.ci\t = 'Turin' AND start\t");
    let screen = terminal.wait_for("all of it", |screen| screen.contains("STARTSWITH("));
    assert!(screen.contains("SELECT * from c where c.address.city = 'Turin' AND STARTSWITH("), "{screen}");
    // Ctrl-C takes the line away and not the shell.
    terminal.press("\x03");
    terminal.wait_for("an empty line", |screen| screen.trim_end().ends_with("shop/orders>"));
    terminal.press("containers\r");
    terminal
        .wait_for("both containers", |screen| screen.contains("\norders ") && screen.contains("\nreturns "));
    leave(terminal);
}

#[test]
fn lines_are_there_the_next_time_and_for_nobody_else() {
    use std::os::unix::fs::PermissionsExt;
    let desk = shop();
    let mut terminal = at_terminal(&desk, &["shop/orders"]);
    terminal.press("SELECT VALUE COUNT(1)\rFROM c;\r");
    terminal.wait_for("the answer", |screen| screen.contains("1 row, "));
    leave(terminal);
    let file = desk.folder.path().join("kept/lines");
    let mode = std::fs::metadata(&file).expect("lines are kept").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    let mut terminal = at_terminal(&desk, &["shop/orders"]);
    terminal.press("\x1b[A");
    terminal.wait_for("the statement of the last time", |screen| {
        screen.contains("COUNT(1)") && screen.contains("FROM c;")
    });
    terminal.press("\r");
    terminal.wait_for("its answer", |screen| screen.contains("1 row, "));
    leave(terminal);
}

#[test]
fn programs_write_to_it_and_read_lines() {
    let desk = shop();
    let text = "use shop/orders\nSELECT VALUE c.total FROM c WHERE c.total > 3 ORDER BY c.total; SELECT VALUE ';';\n\n\
                key c1\nSELECT VALUE COUNT(1)\nFROM c\n\nformat table\nSELECT c.id FROM c WHERE c.id = '4'";
    let output = piped(&desk, &[], text);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(shown(&output), "4\n5\n\";\"\n2\nid\n──\n4\n", "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 4, "a line on what each query cost: {}", said(&output));

    let output = piped(
        &desk,
        &["shop/orders", "-p", "@id=2", "--format", "array"],
        "SELECT VALUE c.total FROM c WHERE c.id = '2' OR c.total = @id;",
    );
    assert_eq!(shown(&output), "[\n2\n]\n", "{}", said(&output));
    let output = piped(&desk, &[], "databases\ncontainers shop\nquit\nnever\n");
    assert!(output.status.success());
    let lines = shown(&output);
    let first: Vec<&str> = lines.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first, ["shop", "orders", "returns"]);
}

#[test]
fn a_program_is_told_which_line_was_wrong_and_nothing_behind_it_is_done() {
    let desk = shop();
    let output = piped(&desk, &["shop/orders"], "SELECT VALUE 1;\n\nSELECT *\nFORM c;\nSELECT VALUE 2;\n");
    assert!(!output.status.success());
    assert_eq!(shown(&output), "1\n");
    let said = said(&output);
    assert!(said.contains("line 3") && said.contains("FORM c\n") && said.contains("^^^^"), "{said}");
    for (text, wanted) in [
        ("SELECT 1;", "use DATABASE/CONTAINER"),
        ("use none", "there is no database none"),
        ("use shop/none", "there is no container shop/none"),
        ("format xml", "no format xml"),
        ("containers", "containers DATABASE"),
    ] {
        let output = piped(&desk, &[], text);
        assert!(
            !output.status.success() && crate::said(&output).contains(wanted),
            "{text}: {}",
            crate::said(&output)
        );
    }
    let refused = desk.fails(&["shell", "none/none"]);
    assert!(refused.contains("none"), "{refused}");
    let away = desk.fails(&["shell", "--endpoint", "http://127.0.0.1:1/"]);
    assert!(away.contains("cannot connect"), "{away}");
}

#[test]
fn one_query_marks_its_fault_too() {
    let desk = shop();
    let wrong = desk.fails(&["query", "shop/orders", "SELECT *\nFORM c"]);
    assert!(wrong.contains("  FORM c\n  ^^^^\nline 2: "), "{wrong}");
    let table = desk.run(&[
        "query",
        "shop/orders",
        "SELECT c.id, c.customer FROM c WHERE c.id = '1'",
        "--format",
        "table",
    ]);
    assert_eq!(table, "id  customer\n──  ────────\n1   c1\n");
}

#[test]
fn lists_are_coloured_on_a_terminal_only() {
    let desk = shop();
    let list = ["partition", "list", "--database", "shop", "--container", "orders"];
    assert!(!desk.run(&list).contains('\x1b'));
    let coloured = |no_color: &str| {
        let mut command = CommandBuilder::new(binary());
        command.args(list);
        command.args(["--endpoint", &desk.endpoint()]);
        command.env("NO_COLOR", no_color);
        let mut terminal = Terminal::run_command(command, 160, 10);
        assert!(terminal.ends_well());
        terminal.wait_for("the list", |screen| screen.contains("429/s"));
        terminal.is_bold(0, 0)
    };
    assert!(coloured(""));
    assert!(!coloured("1"));
}
