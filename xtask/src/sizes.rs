//! `cargo xtask sizes`: how large each room is, as a table. It judges nothing; reviews and notes quote it.

use std::collections::BTreeMap;
use std::fmt::Write;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::tidy::size::is_for_tests;
use crate::tidy::sources::{Source, Sources};

/// What is counted of a room. Functions, assertions and names are those of the product, sleeps those of its tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sizes {
    files: usize,
    lines: usize,
    functions: usize,
    comments: usize,
    assertions: usize,
    public_names: usize,
    db_methods: usize,
    sleeps_in_tests: usize,
}

const HEADER: [&str; 9] = [
    "room",
    "files",
    "lines",
    "functions",
    "comments",
    "assertions",
    "public names",
    "impl Db methods",
    "sleeps in tests",
];

/// The table, with a line for each room and one for all.
pub fn table(sources: &Sources) -> String {
    let mut rooms: BTreeMap<String, Sizes> = BTreeMap::new();
    for source in sources.rust() {
        rooms.entry(room_of(source).to_owned()).or_default().add(measure(source));
    }
    let mut all = Sizes::default();
    rooms.values().for_each(|room| all.add(*room));
    let mut out = String::new();
    let mut line = |cells: [String; 9]| {
        let [name, numbers @ ..] = cells;
        let _ = write!(out, "{name:<10}");
        for (number, title) in numbers.iter().zip(&HEADER[1..]) {
            let _ = write!(out, "  {number:>width$}", width = title.len().max(7));
        }
        out.push('\n');
    };
    line(HEADER.map(str::to_owned));
    rooms.iter().for_each(|(name, sizes)| line(sizes.cells(name)));
    line(all.cells("all"));
    out
}

fn room_of(source: &Source) -> &str {
    source.room().or_else(|| source.path.split('/').next()).unwrap_or_default()
}

impl Sizes {
    fn cells(&self, name: &str) -> [String; 9] {
        let Sizes {
            files,
            lines,
            functions,
            comments,
            assertions,
            public_names,
            db_methods,
            sleeps_in_tests,
        } = *self;
        let numbers =
            [files, lines, functions, comments, assertions, public_names, db_methods, sleeps_in_tests];
        let mut cells = [const { String::new() }; 9];
        cells[0] = name.to_owned();
        for (cell, number) in cells[1..].iter_mut().zip(numbers) {
            *cell = number.to_string();
        }
        cells
    }

    fn add(&mut self, other: Sizes) {
        self.files += other.files;
        self.lines += other.lines;
        self.functions += other.functions;
        self.comments += other.comments;
        self.assertions += other.assertions;
        self.public_names += other.public_names;
        self.db_methods += other.db_methods;
        self.sleeps_in_tests += other.sleeps_in_tests;
    }
}

fn measure(source: &Source) -> Sizes {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut sizes = Sizes { files: 1, lines: lines.len(), ..Sizes::default() };
    sizes.comments = lines.iter().filter(|line| line.trim_start().starts_with("//")).count();
    if source.is_test() {
        sizes.sleeps_in_tests = sleeps(&lines);
        return sizes;
    }
    // A file that does not parse is a complaint of `tidy`.
    if let Ok(file) = syn::parse_file(&source.text) {
        Count { lines: &lines, sizes: &mut sizes }.visit_file(&file);
    }
    sizes
}

fn sleeps(lines: &[&str]) -> usize {
    let code = lines.iter().map(|line| line.split("//").next().unwrap_or_default());
    code.map(|line| line.matches("sleep(").count()).sum()
}

struct Count<'a> {
    lines: &'a [&'a str],
    sizes: &'a mut Sizes,
}

impl Count<'_> {
    fn name(&mut self, visibility: &syn::Visibility) {
        self.sizes.public_names += usize::from(matches!(visibility, syn::Visibility::Public(_)));
    }
}

impl<'ast> Visit<'ast> for Count<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(item) {
            let span = item.span();
            self.sizes.sleeps_in_tests += sleeps(&self.lines[span.start().line - 1..span.end().line]);
            return;
        }
        match item {
            syn::Item::Const(item) => self.name(&item.vis),
            syn::Item::Enum(item) => self.name(&item.vis),
            syn::Item::Fn(item) => self.name(&item.vis),
            syn::Item::Static(item) => self.name(&item.vis),
            syn::Item::Struct(item) => self.name(&item.vis),
            syn::Item::Trait(item) => self.name(&item.vis),
            syn::Item::Type(item) => self.name(&item.vis),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let is_db = matches!(&*block.self_ty, syn::Type::Path(path) if path.path.is_ident("Db"));
        if is_db && block.trait_.is_none() {
            let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(_));
            self.sizes.db_methods += block.items.iter().filter(is_method).count();
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.sizes.functions += 1;
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.sizes.functions += 1;
        self.name(&function.vis);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let name = called.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        self.sizes.assertions += usize::from(name.starts_with("assert") || name.starts_with("debug_assert"));
        visit::visit_macro(self, called);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! A room.
pub struct Db;
impl Db {
    /// Why.
    pub fn a(&self) { assert!(true); }
    fn b(&self) { debug_assert_eq!(1, 1); }
}
impl Drop for Db { fn drop(&mut self) {} }
pub(crate) const C: u8 = 1;
#[cfg(test)]
mod tests {
    fn t() { sleep(1); assert!(true); } // sleep(2) does not count
}
";

    #[test]
    fn product_and_tests_are_told_apart() {
        let wanted = Sizes {
            files: 1,
            lines: 13,
            functions: 3,
            comments: 2,
            assertions: 2,
            public_names: 2,
            db_methods: 2,
            sleeps_in_tests: 1,
        };
        assert_eq!(measure(&Source::new("crates/cluster/src/x.rs", TEXT)), wanted);
        let test = measure(&Source::new("crates/cluster/tests/x.rs", TEXT));
        assert_eq!(test, Sizes { files: 1, lines: 13, comments: 2, sleeps_in_tests: 1, ..Sizes::default() });
    }

    #[test]
    fn rooms_have_lines_and_there_is_one_for_all() {
        let files = [("crates/doc/src/x.rs", TEXT), ("xtask/src/x.rs", TEXT), ("notes.md", "sleep(1)")];
        let sources = Sources { files: files.map(|(path, text)| Source::new(path, text)).into() };
        let table = table(&sources);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["doc", "1", "13", "3", "2", "2", "2", "2", "1"]);
        assert_eq!(
            (lines[2][0], lines[3].as_slice()),
            ("xtask", &["all", "2", "26", "6", "4", "4", "4", "4", "2"][..])
        );
    }
}
