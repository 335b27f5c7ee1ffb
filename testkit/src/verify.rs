//! The offline check of a data directory.

use std::path::Path;
use std::process::Command;

/// Whether sizes, counts, feed, index, unique values and ends agree with the items. That the end of the journal was being
/// written is a finding, too, and what a test does that kills servers; alone it is none here.
pub fn verify(binary: &Path, directory: &Path) -> Result<(), String> {
    let output = Command::new(binary).args(["verify", "--data-dir"]).arg(directory).output();
    let output = output.map_err(|error| error.to_string())?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let torn = text.lines().filter(|line| line.contains(": torn tail: ")).count();
    let only_torn = torn > 0 && errors.contains(&format!("orrery: {torn} findings in "));
    match output.status.success() || only_torn {
        true => Ok(()),
        false => Err(format!("verify: {text}{errors}")),
    }
}
