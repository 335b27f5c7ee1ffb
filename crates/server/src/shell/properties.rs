//! The properties that items of a container have, as far as some of them show it.

use serde_json::Value;

/// Enough to know the usual ones, and cheap.
pub const SAMPLE: &str = "SELECT TOP 50 * FROM c";
/// Bounds for containers whose items have names of their own.
const NAMES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 8;

/// Paths of names, in the order in which items have them.
#[derive(Default)]
pub struct Properties(Vec<Vec<String>>);

impl Properties {
    pub fn of_page(items: &Value) -> Properties {
        let mut found = Properties::default();
        items.as_array().into_iter().flatten().for_each(|item| found.add(&mut Vec::new(), item));
        found
    }

    fn add(&mut self, path: &mut Vec<String>, value: &Value) {
        if path.len() >= DEPTH_MAX {
            return;
        }
        // In an array the first element stands for all: `JOIN` gives it a name that is not known here.
        let members = value.as_object().into_iter().flatten();
        for (name, value) in members {
            if self.0.len() >= NAMES_MAX {
                return;
            }
            path.push(name.clone());
            if is_plain(name) && !self.0.contains(path) {
                self.0.push(path.clone());
            }
            self.add(path, value);
            path.pop();
        }
    }

    /// The names right below a path. Those that the server adds come last.
    pub fn below(&self, path: &[&str]) -> Vec<&str> {
        let is_below = |known: &&Vec<String>| {
            known.len() == path.len() + 1 && known.iter().zip(path).all(|(known, wanted)| known == wanted)
        };
        let mut names: Vec<&str> =
            self.0.iter().filter(is_below).filter_map(|known| known.last()).map(String::as_str).collect();
        names.sort_by_key(|name| name.starts_with('_'));
        names
    }
}

/// Whether it can stand behind a dot.
fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_found_by_their_path() {
        let items = json!([{"_rid": "x", "id": "1", "a": {"b": 1, "not-plain": {"z": 1}}}, {"a": {"c": {"d": 1}}, "last": 1}]);
        let found = Properties::of_page(&items);
        assert_eq!(found.below(&[]), ["id", "a", "last", "_rid"]);
        assert_eq!(found.below(&["a"]), ["b", "c"]);
        assert_eq!(found.below(&["a", "c"]), ["d"]);
        assert_eq!(found.below(&["none"]), Vec::<&str>::new());
    }

    #[test]
    fn items_with_names_of_their_own_are_bounded() {
        let many: serde_json::Map<String, Value> = (0..5_000).map(|n| (format!("p{n}"), json!(n))).collect();
        assert_eq!(Properties::of_page(&json!([many])).below(&[]).len(), NAMES_MAX);
    }
}
