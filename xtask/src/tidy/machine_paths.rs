//! Nothing in the project may name a folder of the machine that it was written on.

use super::sources::{Source, Sources};

/// In two halves, so that this file does not contain what it looks for.
const FOLDERS: &[(&str, &str)] =
    &[("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/"), ("/Use", "rs/"), ("/tmp/", "ref")];

pub fn check(sources: &Sources) -> Vec<String> {
    sources.files.iter().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for (first, second) in FOLDERS {
            let folder = [*first, *second].concat();
            if line.match_indices(&folder).any(|(at, _)| starts_a_path(&line[..at])) {
                complaints.push(format!("{}:{}: names {folder}", source.path, index + 1));
            }
        }
    }
    complaints
}

/// A path starts here unless it goes on from something: `a/home/` is a folder of the project.
fn starts_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '$' | '>' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_machine_are_found_and_relative_ones_are_not() {
        let found = |line: String| check_file(&Source::new("README.md", &line)).len();
        assert_eq!(found(["cd /ho", "me/me/project"].concat()), 1);
        assert_eq!(found(["\"/ro", "ot/x\""].concat()), 1);
        assert_eq!(found(["https://example.com/ho", "me/"].concat()), 0);
        assert_eq!(found(["../wo", "rk/x"].concat()), 0);
    }
}
