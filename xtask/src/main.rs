//! House-keeping that `cargo` does not do: `cargo xtask tidy`, and `cargo xtask advisories CLONE`.

use std::path::Path;
use std::process::ExitCode;

mod tidy;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["tidy"] => tidy::run(),
        ["advisories", clone] => {
            tidy::workspace_root().and_then(|root| tidy::advisories::refresh(&root, Path::new(clone)))
        }
        _ => {
            eprintln!("usage: cargo xtask tidy");
            eprintln!("       cargo xtask advisories CLONE    (of https://github.com/rustsec/advisory-db)");
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(complaints) if complaints.is_empty() => {
            println!("tidy: nothing to complain about");
            ExitCode::SUCCESS
        }
        Ok(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("tidy: {complaint}"));
            eprintln!("tidy: {} complaints", complaints.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error:#}");
            ExitCode::FAILURE
        }
    }
}
