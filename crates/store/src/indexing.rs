//! Which values of an item go into the index, and under which path.
//!
//! A container's policy is a list of included and a list of excluded paths; the more specific one decides.
//! It is compiled into a trie once, and a write walks its document along the trie: each step down either
//! meets a rule or keeps the answer of the step before, and a part of the document that nothing can
//! include any more is not entered at all.
//!
//! A term is found by the hash of its path, in which every element of an array counts as `[]`. The hash
//! is part of the keys on disk, so it must never change.

use orrery_doc::{DocRef, MAX_DEPTH, TermOrder, Value, encode_term};

use crate::limits::INDEX_PATHS_MAX;

/// The policy of a container whose creator gave none, as clients read it.
pub const DEFAULT_POLICY_JSON: &str = concat!(
    r#"{"indexingMode":"consistent","automatic":true,"#,
    r#""includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}"#
);

/// The most parts of one path; documents nest no deeper.
const MAX_STEPS: usize = 128;

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
}

/// The hash of a path, made step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHash(u64);

#[derive(Clone, Debug, Default)]
struct Node {
    /// Sorted by name.
    names: Vec<(Box<str>, usize)>,
    elements: Option<usize>,
    /// The rule for a scalar right here: `/?`.
    scalar: Option<bool>,
    /// The rule for everything from here on: `/*`.
    subtree: Option<bool>,
}

/// Visits the index terms of a document: the hash of a path and the term of a scalar found there. Values of
/// an array come one by one and may repeat.
pub fn for_each_term(policy: &IndexingPolicy, doc: DocRef<'_>, visit: &mut impl FnMut(u64, &[u8])) {
    if policy.mode == IndexingMode::None {
        return;
    }
    let mut walk = Walk { nodes: &policy.nodes, term: Vec::with_capacity(64), visit };
    let place = Place { node: Some(0), included: false, hash: PathHash::ROOT }.resolved(&policy.nodes);
    walk.enter(doc.root(), place, 0);
}

/// The hash of a path of names.
pub fn path_hash(names: &[&str]) -> u64 {
    names.iter().fold(PathHash::ROOT, |hash, name| hash.name(name)).value()
}

impl IndexingPolicy {
    /// A policy that indexes nothing.
    pub fn none() -> IndexingPolicy {
        IndexingPolicy { mode: IndexingMode::None, automatic: false, nodes: vec![Node::default()] }
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
        };
        let included = policy.read_paths(object.get("includedPaths"), true)?;
        policy.read_paths(object.get("excludedPaths"), false)?;
        if policy.nodes[0].subtree.is_none() {
            // A list of included paths must say what becomes of the rest; no list includes everything.
            if included > 0 && mode != IndexingMode::None {
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
        if let [Step::Name(name)] = path
            && SYSTEM_PROPERTIES.contains(name)
        {
            return matches!(*name, "id" | "_ts");
        }
        let root = Place { node: Some(0), included: false, hash: PathHash::ROOT }.resolved(&self.nodes);
        path.iter().fold(root, |place, step| place.step(*step, &self.nodes)).includes_scalar(&self.nodes)
    }

    /// Adds the rules of a list and returns how many there were.
    fn read_paths(&mut self, list: Value<'_>, include: bool) -> Result<usize, IndexingPolicyError> {
        let list = match list {
            Value::Undefined | Value::Null => return Ok(0),
            Value::Array(list) => list,
            _ => return Err(IndexingPolicyError::Shape("paths must be in an array")),
        };
        if list.len() > INDEX_PATHS_MAX {
            return Err(IndexingPolicyError::TooManyPaths);
        }
        for entry in list.iter() {
            let text = entry.get("path").as_str();
            let text = text.ok_or(IndexingPolicyError::Shape("each path must be an object with a 'path'"))?;
            self.add_rule(text, include)?;
        }
        Ok(list.len())
    }

    fn add_rule(&mut self, text: &str, include: bool) -> Result<(), IndexingPolicyError> {
        let Some(rule) = parse_rule(text)? else { return Ok(()) };
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

/// Everything but the etag, as [`DEFAULT_POLICY_JSON`] says.
impl Default for IndexingPolicy {
    fn default() -> IndexingPolicy {
        let etag = Node { scalar: Some(false), ..Node::default() };
        let root = Node { names: vec![("_etag".into(), 1)], subtree: Some(true), ..Node::default() };
        IndexingPolicy { mode: IndexingMode::Consistent, automatic: true, nodes: vec![root, etag] }
    }
}

impl Node {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.names.binary_search_by(|(other, _)| other.as_ref().cmp(name))
    }
}

impl PathHash {
    pub const ROOT: PathHash = PathHash(0x9ae1_6a3b_2f90_404f);

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

    pub fn step(self, step: Step<'_>) -> PathHash {
        match step {
            Step::Name(name) => self.name(name),
            Step::Elements => self.elements(),
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
}

impl Place {
    fn step(self, step: Step<'_>, nodes: &[Node]) -> Place {
        let node = self.node.map(|node| &nodes[node]).and_then(|node| match step {
            Step::Name(name) => node.find(name).ok().map(|i| node.names[i].1),
            Step::Elements => node.elements,
        });
        Place { node, included: self.included, hash: self.hash.step(step) }.resolved(nodes)
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

impl<V: FnMut(u64, &[u8])> Walk<'_, V> {
    fn enter(&mut self, value: Value<'_>, place: Place, depth: usize) {
        match value {
            Value::Object(object) if depth < MAX_DEPTH => {
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
            Value::Array(array) if depth < MAX_DEPTH => {
                let next = place.step(Step::Elements, self.nodes);
                if next.is_alive() {
                    array.iter().for_each(|element| self.enter(element, next, depth + 1));
                }
            }
            Value::Object(_) | Value::Array(_) | Value::Undefined => {}
            scalar => {
                if place.includes_scalar(self.nodes) {
                    self.term.clear();
                    encode_term(scalar, TermOrder::Sql, &mut self.term);
                    (self.visit)(place.hash.value(), &self.term);
                }
            }
        }
    }
}

/// A path of a policy.
struct Rule {
    steps: Vec<RuleStep>,
    /// Ends in `*`, not in `?`.
    whole_subtree: bool,
}

enum RuleStep {
    Name(String),
    Elements,
}

/// Reads a path of a policy. None for a tuple of paths, `/a/[]/{b,c}/?`, whose terms belong to a query
/// feature of its own.
fn parse_rule(text: &str) -> Result<Option<Rule>, IndexingPolicyError> {
    let refused =
        |rest: &str| IndexingPolicyError::Path { path: text.to_owned(), position: text.len() - rest.len() };
    // The root alone is an old way to write everything.
    if text == "/" {
        return Ok(Some(Rule { steps: Vec::new(), whole_subtree: true }));
    }
    let mut rest = text;
    let mut steps = Vec::new();
    loop {
        let part = rest.strip_prefix('/').ok_or_else(|| refused(rest))?;
        match part {
            "*" => return Ok(Some(Rule { steps, whole_subtree: true })),
            "?" => return Ok(Some(Rule { steps, whole_subtree: false })),
            _ if steps.len() == MAX_STEPS => return Err(refused(part)),
            _ if part.starts_with('{') => return Ok(None),
            _ => {}
        }
        if let Some(quoted) = part.strip_prefix('"') {
            let (name, after) = read_quoted(quoted).ok_or_else(|| refused(part))?;
            steps.push(RuleStep::Name(name));
            rest = after;
            continue;
        }
        let end = part.find('/').ok_or_else(|| refused(""))?;
        let (name, after) = part.split_at(end);
        if name == "[]" {
            steps.push(RuleStep::Elements);
        } else if name.is_empty() || name.contains(['*', '?', '[', ']', '{', '}', '"', '\\']) {
            return Err(refused(part));
        } else {
            steps.push(RuleStep::Name(name.to_owned()));
        }
        rest = after;
    }
}

/// Reads a quoted name whose opening quote is already taken, and gives what follows.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((name, &text[at + 1..])),
            '\\' => name.push(characters.next()?.1),
            character => name.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests;
