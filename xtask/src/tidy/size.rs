//! Functions and files stay short enough to be read at once. Tests are not counted.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::exceptions;
use super::sources::{Source, Sources};

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 800;

pub fn check(sources: &Sources) -> Vec<String> {
    let mut complaints: Vec<String> = sources.rust().filter(|s| !s.is_test()).flat_map(check_file).collect();
    complaints.extend(exceptions::stale(|path| sources.files.iter().any(|source| source.path == path)));
    complaints
}

fn check_file(source: &Source) -> Vec<String> {
    let path = &source.path;
    let file = match syn::parse_file(&source.text) {
        Ok(file) => file,
        Err(error) => return vec![format!("{path}:{}: {error}", error.span().start().line)],
    };
    let mut measure = Measure { path, test_lines: 0, complaints: Vec::new() };
    measure.visit_file(&file);
    let lines = source.text.lines().count().saturating_sub(measure.test_lines);
    if lines > FILE_LINES && !exceptions::long_file(path) {
        measure.complaints.push(format!("{path}: {lines} lines without tests; the cap is {FILE_LINES}"));
    }
    measure.complaints
}

struct Measure<'a> {
    path: &'a str,
    test_lines: usize,
    complaints: Vec<String>,
}

impl Measure<'_> {
    fn function(&mut self, name: &syn::Ident, span: Span) {
        let lines = lines(span);
        if lines > FUNCTION_LINES && !exceptions::long_function(self.path, &name.to_string()) {
            let at = span.start().line;
            let complaint =
                format!("{}:{at}: {name} has {lines} lines; the cap is {FUNCTION_LINES}", self.path);
            self.complaints.push(complaint);
        }
    }
}

impl<'ast> Visit<'ast> for Measure<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(item) {
            self.test_lines += lines(item.span());
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }
}

pub fn is_for_tests(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(module) => &module.attrs,
        syn::Item::Fn(function) => &function.attrs,
        syn::Item::Impl(block) => &block.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let is_test = |path: &syn::Path| path.is_ident("test");
        is_test(attribute.path())
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|p| is_test(&p)))
    })
}

fn lines(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        check_file(&Source::new("crates/doc/src/x.rs", text)).len()
    }

    #[test]
    fn long_functions_are_found_wherever_they_are() {
        let long = |lines: usize| format!("{{\n{}}}", "();\n".repeat(lines - 2));
        assert_eq!(complaints(&format!("fn f() {}", long(70))), 0);
        assert_eq!(complaints(&format!("fn f() {}", long(71))), 1);
        assert_eq!(complaints(&format!("impl A {{ fn f() {} }}", long(71))), 1);
        assert_eq!(complaints(&format!("mod a {{ fn f() {} }}", long(71))), 1);
        assert_eq!(complaints(&format!("#[cfg(test)] mod tests {{ fn f() {} }}", long(71))), 0);
    }

    #[test]
    fn tests_do_not_make_a_file_long() {
        let code = "const A: u8 = 1;\n".repeat(800);
        assert_eq!(complaints(&code), 0);
        assert_eq!(complaints(&format!("{code}const B: u8 = 1;\n")), 1);
        assert_eq!(complaints(&format!("{code}#[cfg(test)]\nmod tests {{\n\n\n}}\n")), 0);
    }

    #[test]
    fn files_that_do_not_parse_are_complained_about() {
        assert_eq!(complaints("fn f( {"), 1);
    }
}
