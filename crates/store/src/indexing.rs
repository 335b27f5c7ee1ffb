//! Which values of an item go into the index, and under which path.
//!
//! A container's policy is a list of included and a list of excluded paths; the more specific one decides.
//! It is compiled into a trie once, and a write walks its document along the trie: each step down either
//! meets a rule or keeps the answer of the step before, and a part of the document that nothing can
//! include any more is not entered at all.
//!
//! A term is found by the hash of its path, in which every element of an array counts as `[]`. The hash
//! is part of the keys on disk, so it must never change.

mod composite;
mod computed;
mod rule;
mod spatial;
mod tuple;

use orrery_doc::{Doc, DocRef, MAX_DEPTH, TermOrder, Value, encode_term};

pub use self::composite::{Composite, term_len};
pub use self::computed::{ComputedValue, Computer};
use self::rule::{Parsed, Rule, RuleStep, parse_rule};
use self::spatial::Spatial;
pub use self::tuple::Tuple;
use crate::limits::INDEX_PATHS_MAX;

/// The policy of a container whose creator gave none, as clients read it.
pub const DEFAULT_POLICY_JSON: &str = concat!(
    r#"{"indexingMode":"consistent","automatic":true,"#,
    r#""includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}"#
);

/// Fields of the item itself that are not its owner's data. Two of them are indexed from the item's
/// header, always and under every policy; the others never.
const SYSTEM_PROPERTIES: [&str; 6] = ["id", "_rid", "_self", "_etag", "_attachments", "_ts"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingMode {
    Consistent,
    /// An old mode that the service still names; here it is kept up as consistently as the other.
    Lazy,
    None,
}

/// A compiled indexing policy.
#[derive(Clone, Debug)]
pub struct IndexingPolicy {
    pub mode: IndexingMode,
    /// Whether items are indexed when the request does not say.
    pub automatic: bool,
    /// The trie; its root is the first node.
    nodes: Vec<Node>,
    composites: Vec<Composite>,
    tuples: Vec<Tuple>,
    spatials: Vec<Spatial>,
    /// The computed values that it names, sorted by name.
    computed: Vec<ComputedValue>,
}

/// What is to be known of a term besides its path and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermMark {
    /// Terms that clients did not ask for are kept for queries but never charged.
    pub charged: bool,
    /// The path leads through no array, so an item has at most one term there and items with one can be counted.
    pub counted: bool,
}

/// Why a policy is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexingPolicyError {
    #[error("The indexing policy is not valid: {0}")]
    Shape(&'static str),
    #[error(
        "The indexing path '{path}' could not be accepted, failed near position '{position}'. Please ensure \
         that the path is a valid path. Common errors include invalid characters or absence of quotes \
         around labels."
    )]
    Path { path: String, position: usize },
    #[error(
        "The special mandatory indexing path \"/\" is not provided in any of the path type sets. \
         Please provide this path in one of the sets."
    )]
    NoRoot,
    #[error("The indexing path '{0}' is both included and excluded.")]
    Contradiction(String),
    #[error("The indexing policy has more than {INDEX_PATHS_MAX} paths.")]
    TooManyPaths,
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Name(&'a str),
    /// Into any element of an array.
    Elements,
    /// At the start: to a value that is computed from the item.
    Computed(&'a str),
}

/// The hash of a path, made step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHash(u64);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// Sorted by name.
    names: Vec<(Box<str>, usize)>,
    elements: Option<usize>,
    /// The rule for a scalar right here: `/?`.
    scalar: Option<bool>,
    /// The rule for everything from here on: `/*`.
    subtree: Option<bool>,
}

/// Visits the index terms of a document: the hash of a path and the term of the value found there. Values of
/// an array come one by one and may repeat. An array or object has a term of its own besides those of what it
/// holds, so that an item has a term at a path exactly if it has a value there.
pub fn for_each_term(policy: &IndexingPolicy, doc: DocRef<'_>, visit: &mut impl FnMut(u64, &[u8], TermMark)) {
    if policy.mode == IndexingMode::None {
        return;
    }
    let mut walk = Walk { nodes: &policy.nodes, term: Vec::with_capacity(64), visit };
    walk.descend(doc.root(), Place::root(&policy.nodes), 0);
}

/// The same for what was computed from the item; see [`IndexingPolicy::compute`].
pub(crate) fn for_each_computed_term(
    policy: &IndexingPolicy,
    values: &[(&str, Doc)],
    visit: &mut impl FnMut(u64, &[u8], TermMark),
) {
    let mut walk = Walk { nodes: &policy.nodes, term: Vec::new(), visit };
    for (name, value) in values {
        let place = Place::root(&policy.nodes).step(Step::Computed(name), &policy.nodes);
        walk.enter(value.root(), place, 1);
    }
}

/// The hash of a path of names.
pub fn path_hash(names: &[&str]) -> u64 {
    names.iter().fold(PathHash::ROOT, |hash, name| hash.name(name)).value()
}

impl IndexingPolicy {
    /// A policy that indexes nothing.
    pub fn none() -> IndexingPolicy {
        IndexingPolicy {
            mode: IndexingMode::None,
            automatic: false,
            nodes: vec![Node::default()],
            composites: Vec::new(),
            tuples: Vec::new(),
            spatials: Vec::new(),
            computed: Vec::new(),
        }
    }

    /// Reads and checks a container's `indexingPolicy`. Parts that only queries use are left alone.
    pub fn from_value(value: Value<'_>) -> Result<IndexingPolicy, IndexingPolicyError> {
        let shape = IndexingPolicyError::Shape;
        if matches!(value, Value::Undefined | Value::Null) {
            return Ok(IndexingPolicy::default());
        }
        let object = value.as_object().ok_or(shape("it must be an object"))?;
        let mode = match object.get("indexingMode") {
            Value::Undefined | Value::Null => IndexingMode::Consistent,
            Value::Str(name) => match name.to_ascii_lowercase().as_str() {
                "consistent" => IndexingMode::Consistent,
                "lazy" => IndexingMode::Lazy,
                "none" => IndexingMode::None,
                _ => return Err(shape("'indexingMode' must be consistent, lazy or none")),
            },
            _ => return Err(shape("'indexingMode' must be a string")),
        };
        let automatic = match object.get("automatic") {
            Value::Undefined | Value::Null => true,
            Value::Bool(automatic) => automatic,
            _ => return Err(shape("'automatic' must be a boolean")),
        };
        let mut policy = IndexingPolicy {
            mode,
            automatic: automatic && mode != IndexingMode::None,
            nodes: vec![Node::default()],
            composites: composite::read_composites(object.get("compositeIndexes"))?,
            tuples: Vec::new(),
            spatials: spatial::read_spatials(object.get("spatialIndexes"))?,
            computed: Vec::new(),
        };
        let included = read_paths(object.get("includedPaths"))?;
        let excluded = read_paths(object.get("excludedPaths"))?;
        policy.add_tuples(&included);
        policy.add_rules(&included, &excluded)?;
        if policy.nodes[0].subtree.is_none() {
            // A list of included paths must say what becomes of the rest; no list includes everything.
            if !included.is_empty() && mode != IndexingMode::None {
                return Err(IndexingPolicyError::NoRoot);
            }
            policy.nodes[0].subtree = Some(true);
        }
        Ok(policy)
    }

    /// Whether a scalar at this path is in the index, so that a query may rely on finding it there.
    pub fn covers(&self, path: &[Step<'_>]) -> bool {
        if self.mode == IndexingMode::None {
            return false;
        }
        match path {
            // The document as a whole is no value of the index.
            [] => return false,
            [Step::Name(name), rest @ ..] if SYSTEM_PROPERTIES.contains(name) => {
                return rest.is_empty() && matches!(*name, "id" | "_ts");
            }
            [Step::Computed(name), ..] if self.computed(name).is_none() => return false,
            _ => {}
        }
        let root = Place::root(&self.nodes);
        path.iter().fold(root, |place, step| place.step(*step, &self.nodes)).includes_scalar(&self.nodes)
    }

    /// The composite indexes, which are there whatever the included and excluded paths say.
    pub fn composites(&self) -> &[Composite] {
        if self.mode == IndexingMode::None { &[] } else { &self.composites }
    }

    /// The tuple indexes, which need no other path to be included.
    pub fn tuples(&self) -> &[Tuple] {
        if self.mode == IndexingMode::None { &[] } else { &self.tuples }
    }

    /// Whether the cells of every shape at this path are in the index.
    pub fn is_spatial(&self, path: &[Step<'_>]) -> bool {
        self.mode != IndexingMode::None && self.spatials.iter().any(|spatial| spatial.covers(path))
    }

    /// The policy of a container that has computed values. Those that it does not name are no part of it.
    pub fn with_computed(mut self, values: Vec<ComputedValue>) -> IndexingPolicy {
        for composite in &mut self.composites {
            composite.name_computed(&values);
        }
        self.composites.sort_by_key(|composite| composite.hash);
        let is_named = |value: &ComputedValue| {
            self.nodes[0].find(&value.name).is_ok()
                || self.composites.iter().any(|composite| composite.has_computed(&value.name))
        };
        self.computed = values.into_iter().filter(is_named).collect();
        self.computed.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }

    /// A computed value that the policy names.
    pub fn computed(&self, name: &str) -> Option<&ComputedValue> {
        self.computed.iter().find(|value| value.name == name)
    }

    /// Computes the values that the policy names.
    pub(crate) fn compute(&self, item: DocRef<'_>) -> Vec<(&str, Doc)> {
        self.computed.iter().filter_map(|it| Some((it.name.as_str(), it.computer.value(item)?))).collect()
    }

    /// The policy of a container whose shapes lie on a plane, where the cells of the globe mean nothing.
    pub fn without_spatial(self) -> IndexingPolicy {
        IndexingPolicy { spatials: Vec::new(), ..self }
    }

    /// Visits the cells of the shapes that spatial indexes are about: the hash of a path and the term of a cell.
    pub(crate) fn for_each_cell(&self, root: Value<'_>, visit: &mut impl FnMut(u64, &[u8])) {
        self.spatials.iter().for_each(|spatial| spatial.for_each_cell(root, visit));
    }

    /// Whether two policies give every item the same terms, so that an index made by one serves the other.
    pub fn gives_same_terms(&self, other: &IndexingPolicy) -> bool {
        let (none, other_none) = (self.mode == IndexingMode::None, other.mode == IndexingMode::None);
        let same_paths = self.nodes == other.nodes;
        let same_indexes = self.composites == other.composites
            && self.tuples == other.tuples
            && self.spatials == other.spatials
            && self.computed == other.computed;
        none == other_none && (none || same_paths && same_indexes)
    }

    fn add_tuples(&mut self, included: &[(Parsed, &str)]) {
        for (path, _) in included {
            if let Parsed::Tuple(tuple) = path
                && !self.tuples.contains(tuple)
            {
                self.tuples.push(tuple.clone());
            }
        }
        self.tuples.sort_by_key(|tuple| tuple.hash);
    }

    fn add_rules(
        &mut self,
        included: &[(Parsed, &str)],
        excluded: &[(Parsed, &str)],
    ) -> Result<(), IndexingPolicyError> {
        let included = included.iter().map(|path| (path, true));
        let mut rules = Vec::new();
        for ((path, text), include) in included.chain(excluded.iter().map(|path| (path, false))) {
            if let Parsed::Rule(rule) = path {
                rules.push((rule, include, text));
            }
        }
        // The order of paths means nothing, and two policies should compare equal when they say the same.
        rules.sort_by_key(|(rule, ..)| *rule);
        rules.into_iter().try_for_each(|(rule, include, text)| self.add_rule(rule, include, text))
    }

    fn add_rule(&mut self, rule: &Rule, include: bool, text: &str) -> Result<(), IndexingPolicyError> {
        let mut at = 0;
        for step in &rule.steps {
            at = self.child(at, step);
        }
        let node = &mut self.nodes[at];
        let slot = if rule.whole_subtree { &mut node.subtree } else { &mut node.scalar };
        if slot.is_some_and(|other| other != include) {
            return Err(IndexingPolicyError::Contradiction(text.to_owned()));
        }
        *slot = Some(include);
        Ok(())
    }

    /// The node one step further, made if it is not there.
    fn child(&mut self, at: usize, step: &RuleStep) -> usize {
        let next = self.nodes.len();
        let node = &mut self.nodes[at];
        let found = match step {
            RuleStep::Elements => *node.elements.get_or_insert(next),
            RuleStep::Name(name) => match node.find(name) {
                Ok(i) => node.names[i].1,
                Err(i) => {
                    node.names.insert(i, (name.as_str().into(), next));
                    next
                }
            },
        };
        if found == next {
            self.nodes.push(Node::default());
        }
        found
    }
}

/// Reads a list of paths, each with the text it came from.
fn read_paths<'a>(list: Value<'a>) -> Result<Vec<(Parsed, &'a str)>, IndexingPolicyError> {
    let list = match list {
        Value::Undefined | Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => return Err(IndexingPolicyError::Shape("paths must be in an array")),
    };
    if list.len() > INDEX_PATHS_MAX {
        return Err(IndexingPolicyError::TooManyPaths);
    }
    let read = |entry: Value<'a>| {
        let text = entry.get("path").as_str();
        let text = text.ok_or(IndexingPolicyError::Shape("each path must be an object with a 'path'"))?;
        Ok((parse_rule(text)?, text))
    };
    list.iter().map(read).collect()
}

/// Everything but the etag, as [`DEFAULT_POLICY_JSON`] says.
impl Default for IndexingPolicy {
    fn default() -> IndexingPolicy {
        let etag = Node { scalar: Some(false), ..Node::default() };
        let root = Node { names: vec![("_etag".into(), 1)], subtree: Some(true), ..Node::default() };
        let nodes = vec![root, etag];
        IndexingPolicy { mode: IndexingMode::Consistent, automatic: true, nodes, ..IndexingPolicy::none() }
    }
}

impl Node {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.names.binary_search_by(|(other, _)| other.as_ref().cmp(name))
    }
}

impl PathHash {
    pub const ROOT: PathHash = PathHash(0x9ae1_6a3b_2f90_404f);
    /// Where paths to computed values start: an item may have a property of the same name.
    const COMPUTED: PathHash = PathHash(0x452e_f6a9_3c81_d07b);

    pub fn name(self, name: &str) -> PathHash {
        let mut hash = self.0 ^ (name.len() as u64).wrapping_mul(0x9fb2_1c65_1e98_df25);
        let (chunks, tail) = name.as_bytes().as_chunks::<8>();
        for chunk in chunks {
            hash = fold(hash ^ u64::from_le_bytes(*chunk), 0xa076_1d64_78bd_642f);
        }
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = fold(hash ^ u64::from_le_bytes(last), 0xe703_7ed1_a0b4_28db);
        PathHash(fold(hash ^ 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3))
    }

    pub fn elements(self) -> PathHash {
        PathHash(fold(self.0 ^ 0x1d8e_4e27_c47d_124f, 0xeb44_acca_b455_d165))
    }

    /// Of the entries for the cells that shapes at this path cover.
    pub fn cells(self) -> PathHash {
        PathHash(fold(self.0 ^ 0x3f84_d5b5_b547_0917, 0x9216_d5d9_8979_fb1b))
    }

    /// Of the entries of a tuple index over the elements at this path.
    pub fn members(self, members: impl Iterator<Item = PathHash>) -> PathHash {
        let start = self.0 ^ 0x7c5b_29e0_d14f_a863;
        PathHash(members.fold(start, |hash, member| fold(hash ^ member.0, 0xc2b2_ae3d_27d4_eb4f)))
    }

    /// Of the entries of a composite index; the flag says descending.
    pub fn composite(parts: impl Iterator<Item = (PathHash, bool)>) -> PathHash {
        PathHash(parts.fold(0x51f0_c6a1_93d2_7b45, |hash, (path, descending)| {
            fold(hash ^ path.0, 0xd6e8_feb8_6659_fd93 ^ u64::from(descending) << 32)
        }))
    }

    pub fn step(self, step: Step<'_>) -> PathHash {
        match step {
            Step::Name(name) => self.name(name),
            Step::Elements => self.elements(),
            Step::Computed(name) => PathHash::COMPUTED.name(name),
        }
    }

    pub fn value(self) -> u64 {
        self.0
    }
}

/// Multiplies to 128 bits and folds the halves together, which mixes every bit into every other.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Where a walk stands: in the trie, if rules still lie ahead, and in the path.
#[derive(Clone, Copy)]
struct Place {
    node: Option<usize>,
    /// The answer of the last `/*` on the way.
    included: bool,
    hash: PathHash,
    /// No step so far went into an array.
    single: bool,
}

impl Place {
    fn root(nodes: &[Node]) -> Place {
        Place { node: Some(0), included: false, hash: PathHash::ROOT, single: true }.resolved(nodes)
    }

    fn step(self, step: Step<'_>, nodes: &[Node]) -> Place {
        let node = self.node.map(|node| &nodes[node]).and_then(|node| match step {
            Step::Name(name) | Step::Computed(name) => node.find(name).ok().map(|i| node.names[i].1),
            Step::Elements => node.elements,
        });
        // Wildcards before it are about what is stored.
        let included = self.included && !matches!(step, Step::Computed(_));
        let single = self.single && step != Step::Elements;
        Place { node, included, hash: self.hash.step(step), single }.resolved(nodes)
    }

    fn resolved(self, nodes: &[Node]) -> Place {
        let rule = self.node.and_then(|node| nodes[node].subtree);
        Place { included: rule.unwrap_or(self.included), ..self }
    }

    fn includes_scalar(self, nodes: &[Node]) -> bool {
        self.node.and_then(|node| nodes[node].scalar).unwrap_or(self.included)
    }

    /// Whether anything from here on can be included.
    fn is_alive(self) -> bool {
        self.included || self.node.is_some()
    }
}

struct Walk<'p, V> {
    nodes: &'p [Node],
    /// Reused for each term.
    term: Vec<u8>,
    visit: &'p mut V,
}

impl<V: FnMut(u64, &[u8], TermMark)> Walk<'_, V> {
    fn enter(&mut self, value: Value<'_>, place: Place, depth: usize) {
        match value {
            Value::Undefined => {}
            Value::Object(_) | Value::Array(_) | Value::Map(_) => {
                self.emit(value, place, false);
                if depth < MAX_DEPTH {
                    self.descend(value, place, depth);
                }
            }
            scalar => self.emit(scalar, place, true),
        }
    }

    /// Goes on with what an array or object holds.
    fn descend(&mut self, value: Value<'_>, place: Place, depth: usize) {
        match value {
            Value::Object(object) => {
                for (name, field) in object.iter() {
                    if depth == 0 && SYSTEM_PROPERTIES.contains(&name) {
                        continue;
                    }
                    let next = place.step(Step::Name(name), self.nodes);
                    if next.is_alive() {
                        self.enter(field, next, depth + 1);
                    }
                }
            }
            Value::Array(array) => {
                let next = place.step(Step::Elements, self.nodes);
                if next.is_alive() {
                    array.iter().for_each(|element| self.enter(element, next, depth + 1));
                }
            }
            Value::Map(map) => {
                for (name, entry) in map.fields() {
                    let next = place.step(Step::Name(&name), self.nodes);
                    if next.is_alive() {
                        self.enter(entry, next, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn emit(&mut self, value: Value<'_>, place: Place, charged: bool) {
        if place.includes_scalar(self.nodes) {
            self.term.clear();
            encode_term(value, TermOrder::Sql, &mut self.term);
            (self.visit)(place.hash.value(), &self.term, TermMark { charged, counted: place.single });
        }
    }
}

#[cfg(test)]
mod tests;
