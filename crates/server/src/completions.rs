//! `orrery completions` and `orrery man`: what shells and manuals know about this command.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Args)]
pub struct Completions {
    /// The shell; what is printed goes where it keeps completions, such as
    /// `~/.local/share/bash-completion/completions/orrery`.
    shell: Shell,
}

#[derive(Args)]
pub struct Man {
    /// A folder for the pages of all subcommands; without it the page of `orrery` is printed.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub fn run(completions: Completions, mut command: Command) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "orrery", &mut text);
    print(&text);
    Ok(())
}

pub fn man(man: Man, command: Command) -> anyhow::Result<()> {
    let Some(folder) = man.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        print(&page);
        return Ok(());
    };
    write_pages(&command, &folder).with_context(|| format!("cannot write to {}", folder.display()))
}

/// A page for the command and one for each below it: `orrery-partition-split.1`.
fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command.clone(), folder)
}

fn print(text: &[u8]) {
    // A caller that has closed our standard output has read enough.
    let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), text);
}
