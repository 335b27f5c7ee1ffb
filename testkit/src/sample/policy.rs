//! Generated indexing policies, and which queries they may refuse.

use serde_json::{Value, json};

use crate::Random;

/// An indexing policy as a client sends it.
#[derive(Clone, Debug)]
pub struct Policy {
    pub body: Value,
    /// Paths that the policy leaves out, as queries write them below the alias.
    left_out: Vec<&'static str>,
    composites: Vec<Vec<(&'static str, bool)>>,
}

/// Orders of several paths that queries ask for; the flag says descending.
pub const COMPOSITES: [&[(&str, bool)]; 6] = [
    &[(".n", false), (".s", true)],
    &[(".s", false), (".n", false)],
    &[(".b", true), (".o.x", false), (".id", false)],
    &[(".m", false), (".f", false)],
    &[(".pk", false), (".n", true)],
    &[(".cp_low", false), (".n", true)],
];

impl Policy {
    pub fn any(random: &mut Random) -> Policy {
        let composites: Vec<Vec<(&str, bool)>> =
            COMPOSITES.iter().filter(|_| !random.one_in(3)).map(|paths| paths.to_vec()).collect();
        let (mut body, left_out): (Value, &[&str]) = match random.below(6) {
            0 | 1 => (json!({"includedPaths": [{"path": "/*"}], "excludedPaths": []}), &[]),
            2 => (
                json!({
                    "includedPaths": [{"path": "/*"}],
                    "excludedPaths": [{"path": "/l/?"}, {"path": "/m/*"}, {"path": "/o/y/*"}],
                }),
                &[".l", ".m", ".o.y.z"],
            ),
            3 => (
                json!({
                    "includedPaths": [
                        {"path": "/n/?"}, {"path": "/s/?"}, {"path": "/pk/?"}, {"path": "/tags/[]/?"},
                        {"path": "/es/[]/k/?"}, {"path": "/o/*"}, {"path": "/\"a b\"/?"},
                    ],
                    "excludedPaths": [{"path": "/*"}],
                }),
                &[".f", ".l", ".m", ".b", "[\"\u{fc}\"].s", ".nope", ".tags"],
            ),
            4 => (
                json!({
                    "includedPaths": [{"path": "/*"}],
                    "excludedPaths": [{"path": "/tags/*"}, {"path": "/es/[]/v/?"}, {"path": "/f/?"}],
                }),
                &[".tags", ".f"],
            ),
            _ => return Policy::none(),
        };
        let mut left_out = left_out.to_vec();
        body["indexingMode"] = json!("consistent");
        body["automatic"] = json!(true);
        body["compositeIndexes"] = composites.iter().map(|paths| composite(paths)).collect();
        if let Some(included) = body["includedPaths"].as_array_mut() {
            let tuples = ["/es/[]/{k,v}/?", "/es/[]/{v, k}/?", "/es/[]/{k}/?"];
            included.extend(tuples.iter().filter(|_| random.one_in(2)).map(|path| json!({"path": path})));
            let computed = [(".cp_low", "/cp_low/?"), (".cp_sum", "/cp_sum/?"), (".cp_obj", "/cp_obj/*")];
            for (property, path) in computed {
                match random.one_in(2) {
                    true => included.push(json!({"path": path})),
                    false => left_out.push(property),
                }
            }
        }
        let spatials = ["/loc/?", "/loc/*", "/spots/[]/?", "/spots/*"];
        body["spatialIndexes"] = spatials
            .iter()
            .filter(|_| random.one_in(2))
            .map(|path| json!({"path": path, "types": ["Point", "LineString", "Polygon", "MultiPolygon"]}))
            .collect();
        Policy { body, left_out, composites }
    }

    /// No index at all: every query is a scan.
    pub fn none() -> Policy {
        let body = json!({"indexingMode": "none", "automatic": false});
        Policy { body, left_out: vec![""], composites: Vec::new() }
    }

    /// Whether the service may refuse to order by these paths.
    pub fn may_refuse(&self, order: &[(String, bool)]) -> bool {
        match order {
            [] => false,
            [(path, _)] => self.left_out.iter().any(|out| path.starts_with(out)),
            _ => !self.composites.iter().any(|paths| {
                let matches = |reverse: bool| {
                    paths.len() == order.len()
                        && paths.iter().zip(order).all(|(a, b)| a.0 == b.0 && (a.1 != reverse) == b.1)
                };
                matches(false) || matches(true)
            }),
        }
    }
}

fn composite(paths: &[(&str, bool)]) -> Value {
    paths
        .iter()
        .map(|(path, descending)| {
            let path = path.replace('.', "/");
            json!({"path": path, "order": if *descending { "descending" } else { "ascending" }})
        })
        .collect()
}
