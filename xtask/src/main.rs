//! House-keeping that `cargo` does not do: `cargo xtask tidy`.

use std::process::ExitCode;

mod tidy;

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    if command.as_deref() != Some("tidy") {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::FAILURE;
    }
    match tidy::run() {
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
