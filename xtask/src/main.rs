//! House-keeping that `cargo` does not do: `cargo xtask tidy`, `cargo xtask sizes`, and `cargo xtask advisories CLONE`.

use std::path::Path;
use std::process::ExitCode;

mod sizes;
mod tidy;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["tidy"] => tidy::run(),
        ["sizes"] => return print_sizes(),
        ["advisories", clone] => {
            tidy::workspace_root().and_then(|root| tidy::advisories::refresh(&root, Path::new(clone)))
        }
        _ => {
            eprintln!("usage: cargo xtask tidy");
            eprintln!("       cargo xtask sizes");
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

fn print_sizes() -> ExitCode {
    match tidy::workspace_root().and_then(|root| tidy::sources::Sources::read(&root)) {
        Ok(sources) => {
            print!("{}", sizes::table(&sources));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("sizes: {error:#}");
            ExitCode::FAILURE
        }
    }
}
