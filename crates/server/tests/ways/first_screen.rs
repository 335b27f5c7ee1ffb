//! What `orrery serve` shows, where it puts data, and where a browser is led.

use std::path::Path;
use std::process::{Command, Stdio};

use orrery_testkit::{Client, EMULATOR_KEY, Server};
use portable_pty::CommandBuilder;
use tempfile::TempDir;

use crate::binary;
use crate::terminal::Terminal;

/// A server in a terminal, in a folder of its own that is also the user's home.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().expect("a temporary folder"))
    }

    fn serve(&self, args: &[&str]) -> Terminal {
        let mut command = CommandBuilder::new(binary());
        command.args([&["serve", "--nosql-port", "0"], args].concat());
        command.cwd(self.0.path());
        command.env("HOME", self.0.path());
        for name in ["XDG_DATA_HOME", "ORRERY_DATA_DIR", "NO_COLOR"] {
            command.env_remove(name);
        }
        Terminal::run_command(command, 200, 40)
    }
}

#[test]
fn a_terminal_gets_a_screen_for_people_and_no_line_for_programs() {
    let home = Home::new();
    let mut terminal = home.serve(&["--table-port", "0"]);
    let screen = terminal.wait_for("the screen", |screen| screen.contains("stops the server"));
    for wanted in [
        "Orrery 0.",
        "Explorer           http://localhost:",
        "/_explorer",
        "Connection string  AccountEndpoint=http://localhost:",
        EMULATOR_KEY,
        "Tables             DefaultEndpointsProtocol=http;AccountName=orrery;",
        "/_explorer/emulator.pem",
        "Keys               the well-known one of emulators",
        "Ctrl+C stops the server",
    ] {
        assert!(screen.contains(wanted), "`{wanted}` is missing on\n{screen}");
    }
    assert!(screen.contains("/.local/share/orrery"), "the default place of data is told:\n{screen}");
    assert!(!screen.contains("ORRERY READY") && !screen.contains("ready_after_ms"), "{screen}");
    assert!(home.0.path().join(".local/share/orrery").is_dir());
    terminal.press("\u{3}");
    assert!(terminal.ends_well());
}

#[test]
fn the_line_for_programs_comes_on_a_terminal_where_it_is_asked_for() {
    let mut terminal = Home::new().serve(&["--in-memory", "--ready-line", "--table-port", "none"]);
    let screen = terminal.wait_for("the line", |screen| screen.contains("ORRERY READY"));
    assert!(!screen.contains("Connection string"), "{screen}");
}

#[test]
fn own_keys_are_not_shown() {
    let home = Home::new();
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    std::fs::write(home.0.path().join("keys.toml"), format!("primary = \"{key}\"\n")).expect("written");
    let mut terminal = home.serve(&["--in-memory", "--table-port", "0", "--key-file", "keys.toml"]);
    let screen = terminal.wait_for("the screen", |screen| screen.contains("stops the server"));
    assert!(screen.contains("Keys               those of keys.toml"), "{screen}");
    assert!(screen.contains("AccountKey=<primary>;"), "{screen}");
    assert!(!screen.contains(key) && !screen.contains(EMULATOR_KEY), "{screen}");
}

/// Starts a server without `--data-dir` and returns where its data is.
fn default_place(home: &Path, data_home: Option<&Path>) -> String {
    let mut command = Command::new(binary());
    command.current_dir(home).env("HOME", home).env_remove("XDG_DATA_HOME").env_remove("ORRERY_DATA_DIR");
    if let Some(folder) = data_home {
        command.env("XDG_DATA_HOME", folder);
    }
    command.args(["serve", "--nosql-port", "0", "--table-port", "none"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("text");
    child.kill().and_then(|()| child.wait()).expect("the server is ours");
    line.trim_end().split(" data=").nth(1).expect("the line says where").to_owned()
}

#[test]
fn data_lies_in_the_users_folder_or_where_it_already_is() {
    let home = Home::new();
    let home = home.0.path();
    let of_user = home.join(".local/share/orrery");
    assert_eq!(default_place(home, None), of_user.display().to_string());
    assert!(of_user.join("lock").exists(), "the data is there");
    let data_home = home.join("data home");
    assert_eq!(default_place(home, Some(&data_home)), data_home.join("orrery").display().to_string());
    std::fs::create_dir(home.join("orrery-data")).expect("made");
    assert_eq!(default_place(home, Some(&data_home)), "./orrery-data");
    assert!(home.join("orrery-data/lock").exists(), "the data is there");
}

#[test]
fn a_browser_at_the_root_is_led_to_the_explorer_and_clients_get_the_account() {
    let server = Server::start(binary(), &["--in-memory"]);
    let mut client = Client::new(server.port());
    let page = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for verb in ["GET", "HEAD"] {
        let reply = client.send_raw(verb, "/", &[page], b"").expect("an answer");
        assert_eq!((reply.status, reply.header("location")), (302, Some("/_explorer")), "{verb}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{verb}");
    }
    let shown = client.send_raw("GET", "/_explorer", &[page], b"").expect("an answer");
    assert_eq!(shown.header("content-type"), Some("text/html; charset=utf-8"));
    for (accept, status) in [("application/json", 401), ("*/*", 401), ("text/htmlx", 401)] {
        let reply = client.send_raw("GET", "/", &[("accept", accept)], b"").expect("an answer");
        assert_eq!(reply.status, status, "{accept}");
    }
    assert_eq!(client.send_raw("POST", "/", &[page], b"").expect("an answer").header("location"), None);
    // Who signs is a client, whatever it accepts.
    let account = client.send("GET", "/", &[page], b"").expect("an answer");
    assert_eq!((account.status, account.json()["id"].as_str()), (200, Some("orrery")));
}
