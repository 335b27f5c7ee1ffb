//! Plans and explanations of queries, as golden scripts: `scripts/*.txt`.
//!
//! A line `composite /a asc /b desc`, `without /a/b` or `computed name: SELECT …` says what indexes there are; a query is told its
//! plan for clients (what is not empty of it) and what the indexes offer.

use std::path::Path;

use orrery_doc::{PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion};
use orrery_query::ast::Direction;
use orrery_query::{
    Chosen, CompositePaths, Features, IndexPath, Indexes, Parameters, Program, QueryError, Vocabulary,
    compile_with, describe, explain, plan_access,
};
use orrery_testkit::script::{self, Runner};
use serde_json::Value;

#[derive(Default)]
struct World {
    without: Vec<IndexPath>,
    composites: Vec<CompositePaths>,
    computed: Vec<(String, String)>,
}

impl Indexes for World {
    fn covers(&self, path: &IndexPath) -> bool {
        !self.without.contains(path)
    }

    fn composites(&self) -> Vec<CompositePaths> {
        self.composites.clone()
    }
}

fn path(text: &str) -> IndexPath {
    let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty()).collect();
    IndexPath::of_names(&names)
}

impl World {
    fn step(&mut self, step: &str) -> String {
        let mut said = String::new();
        for line in step.lines() {
            match line.split_once(' ') {
                Some(("without", text)) => self.without.push(path(text)),
                Some(("composite", text)) => self.composites.push(composite(text)),
                Some(("computed", text)) => {
                    let (name, query) = text.split_once(": ").expect("a name and a query");
                    self.computed.push((name.to_owned(), query.to_owned()));
                }
                _ => said.push_str(
                    &self.query(line).unwrap_or_else(|error| format!("refused: {}\n", error.to_json())),
                ),
            }
        }
        if said.is_empty() { "noted".to_owned() } else { said }
    }

    fn query(&self, text: &str) -> Result<String, QueryError> {
        let parameters = Parameters::new();
        let names = self.computed.iter().map(|(name, query)| (name.as_str(), query.as_str()));
        let computed = Vocabulary::new(names)?;
        let mut said = String::new();
        let plan = describe(text, &parameters, &by_tenant(), &Features::all())?;
        let plan: Value = serde_json::from_str(&plan.to_json()).expect("a plan is JSON");
        let is_empty = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty() || text == "None",
            Value::Array(list) => list.is_empty(),
            Value::Object(object) => object.is_empty(),
            _ => false,
        };
        for (name, value) in plan["queryInfo"].as_object().into_iter().flatten() {
            if !is_empty(value) {
                said.push_str(&format!("{name}: {value}\n"));
            }
        }
        let ranges = plan["queryRanges"].as_array().into_iter().flatten();
        ranges.for_each(|range| said.push_str(&format!("keys: {} to {}\n", range["min"], range["max"])));
        let program: Program = compile_with(text, &parameters, &computed)?;
        let access = plan_access(&program, self);
        said.push_str(&explain(Some(&access), &Chosen { method: "-", ..Chosen::default() }).text);
        Ok(said.replace("method: -\n", ""))
    }
}

fn by_tenant() -> PartitionKeyDef {
    let paths = vec![orrery_doc::Path::parse_property("/tenant").expect("a path")];
    PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths }
}

fn composite(text: &str) -> CompositePaths {
    let words: Vec<&str> = text.split(' ').collect();
    let part = |pair: &[&str]| {
        let direction = if pair[1] == "desc" { Direction::Descending } else { Direction::Ascending };
        (path(pair[0]), direction)
    };
    words.chunks(2).map(part).collect()
}

#[test]
fn plans_and_explanations_are_those_of_the_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let begin = || -> Runner {
        let mut world = World::default();
        Box::new(move |step| world.step(step))
    };
    assert!(script::run(&folder, begin) >= 24);
}
