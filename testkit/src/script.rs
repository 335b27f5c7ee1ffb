//! Golden scripts: what is done, and what it comes to after each step, in a text that is reviewed as code is.
//!
//! A script is a file of steps with an empty line between them. A step is a sentence that says what it shows, one line or
//! more that a room's runner understands, and below a line of dashes what the runner says:
//!
//! ````text
//! # A second write of the same item costs one entry.
//! put a {"n":1}
//! put a {"n":2}
//! ---
//! + item 0003/a
//! ````
//!
//! A runner is given the steps of a script one by one and keeps state from one to the next. What it says is compared with what
//! the script says; with `ORRERY_REWRITE=1` the script is written anew instead, and the difference is for the reviewer.

use std::path::{Path, PathBuf};

/// Set to rewrite scripts instead of comparing them.
const REWRITE: &str = "ORRERY_REWRITE";
const DASHES: &str = "---";

/// Answers one step of a script.
pub type Runner = Box<dyn FnMut(&str) -> String>;

/// Runs all scripts of a folder, each with a runner of its own, and tells how many there are.
pub fn run(folder: &Path, begin: impl Fn() -> Runner) -> usize {
    let rewrites = std::env::var(REWRITE).is_ok_and(|value| value == "1");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
    let mut differences = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("scripts are text");
        let answered = answer(&text, &mut *begin());
        if rewrites {
            std::fs::write(file, answered).expect("the script can be written");
        } else if text != answered {
            differences.push(format!("{}:\n{}", file.display(), difference(&text, &answered)));
        }
    }
    let count = differences.len();
    assert!(count == 0, "{count} scripts differ; {REWRITE}=1 rewrites them:\n\n{}", differences.join("\n"));
    files.len()
}

/// The script with the answers that the runner gives.
fn answer(text: &str, runner: &mut dyn FnMut(&str) -> String) -> String {
    let steps = text.split("\n\n").map(|step| step.trim_matches('\n')).filter(|step| !step.is_empty());
    let answered = steps.map(|step| {
        let asked = step.split(&format!("\n{DASHES}")).next().unwrap_or_default().trim_end_matches(DASHES);
        let lines: Vec<&str> = asked.lines().filter(|line| !line.starts_with('#')).collect();
        let said = runner(&lines.join("\n"));
        // An empty line would end the step.
        let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        format!("{}\n{DASHES}\n{}\n", asked.trim_end(), said.join("\n"))
    });
    answered.collect::<Vec<_>>().join("\n")
}

/// The first lines that are not the same.
fn difference(old: &str, new: &str) -> String {
    let (mut old, mut new) = (old.lines(), new.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (old.next(), new.next()) {
            (None, None) => return "only the end of the file differs".to_owned(),
            (old, new) if old == new => {}
            (old, new) => {
                let shown = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
                return format!("  line {number} says  {}\n  and it is   {}\n", shown(old), shown(new));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# Two are added.\nadd 1\nadd 2\n---\n3\n\n# And one more.\nadd 4\n---\n7\n";

    fn adding() -> Runner {
        let mut sum = 0;
        Box::new(move |step| {
            sum +=
                step.lines().filter_map(|line| line.strip_prefix("add ")?.parse::<u32>().ok()).sum::<u32>();
            sum.to_string()
        })
    }

    #[test]
    fn a_script_that_is_true_stays_as_it_is() {
        assert_eq!(answer(SCRIPT, &mut *adding()), SCRIPT);
    }

    #[test]
    fn steps_without_an_answer_get_one_and_wrong_answers_are_replaced() {
        let bare = "# Two are added.\nadd 1\nadd 2\n\n\n# And one more.\nadd 4\n---\n9\n9\n";
        assert_eq!(answer(bare, &mut *adding()), SCRIPT);
        assert!(
            difference(bare, SCRIPT).contains("line 4 says  \n  and it is   ---"),
            "{}",
            difference(bare, SCRIPT)
        );
    }
}
