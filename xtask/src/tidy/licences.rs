//! Every dependency must be under a licence that lets anybody use the whole freely.

use super::metadata::Metadata;

/// Permissive licences, by their SPDX names.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub fn check(metadata: &Metadata) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in metadata.packages.values() {
        let name = format!("{} {}", package.name, package.version);
        match &package.licence {
            None => complaints.push(format!("{name}: names no licence")),
            Some(licence) if !is_allowed(licence) => {
                complaints.push(format!("{name}: the licence {licence} is not on the list"));
            }
            Some(_) => {}
        }
    }
    complaints
}

/// Whether an SPDX expression can be met with allowed licences alone. `OR` binds weaker than `AND`;
/// the old `/` of crates.io means `OR`. Brackets are resolved from the inside out.
fn is_allowed(expression: &str) -> bool {
    let mut expression = expression.replace('/', " OR ");
    while let Some(close) = expression.find(')') {
        let Some(open) = expression[..close].rfind('(') else {
            return false;
        };
        // A bracket that is met becomes a licence that is on the list, and otherwise one that is not.
        let inner = if is_flat_allowed(&expression[open + 1..close]) { "MIT" } else { "refused" };
        expression.replace_range(open..=close, inner);
    }
    is_flat_allowed(&expression)
}

fn is_flat_allowed(expression: &str) -> bool {
    let all = |alternative: &str| alternative.split(" AND ").all(|licence| ALLOWED.contains(&licence.trim()));
    expression.split(" OR ").any(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_only_by_allowed_licences() {
        for (expression, allowed) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(GPL-3.0 OR MPL-2.0) AND MIT", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("MIT)", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression), allowed, "{expression}");
        }
    }
}
