//! Trees of values for property tests.

use orrery_doc::{Doc, DocBuilder};
use proptest::prelude::*;

#[derive(Debug, Clone)]
pub enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub fn build(&self) -> Doc {
        let mut builder = DocBuilder::new();
        self.put(&mut builder);
        builder.finish()
    }

    fn put(&self, builder: &mut DocBuilder) {
        match self {
            Tree::Null => builder.null(),
            Tree::Bool(value) => builder.bool(*value),
            Tree::Int(value) => builder.int(*value),
            Tree::Double(value) => builder.double(*value),
            Tree::Str(value) => builder.str(value),
            Tree::Array(elements) => {
                builder.begin_array();
                elements.iter().for_each(|element| element.put(builder));
                builder.end_array()
            }
            Tree::Object(fields) => {
                builder.begin_object();
                for (name, value) in fields {
                    builder.name(name);
                    value.put(builder);
                }
                builder.end_object()
            }
        };
    }
}

/// Numbers that lie close together around the places where integers and doubles part.
fn number() -> impl Strategy<Value = Tree> {
    let near = prop_oneof![
        Just(0i64),
        Just(1 << 53),
        Just(-(1 << 53)),
        Just(1 << 62),
        Just(i64::MAX),
        Just(i64::MIN)
    ];
    prop_oneof![
        (near, -2000i64..2000).prop_map(|(base, step)| Tree::Int(base.saturating_add(step))),
        any::<i64>().prop_map(Tree::Int),
        any::<i64>().prop_map(|number| Tree::Double(number as f64)),
        (-5i32..5).prop_map(|number| Tree::Double(f64::from(number) / 2.0)),
        any::<f64>().prop_filter("JSON has no NaN", |n| n.is_finite()).prop_map(Tree::Double),
        Just(Tree::Double(-0.0)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,3}", "[\u{0}a\u{1}\"\\\\é😀]{0,4}", "a{126,130}[ab\u{0}]{0,3}"]
}

pub fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        number(),
        text().prop_map(Tree::Str),
    ];
    leaf.prop_recursive(4, 60, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Array),
            prop::collection::vec((text(), inner.clone()), 0..4).prop_map(Tree::Object),
            prop::collection::vec(("[a-z]{1,2}", inner), 15..20).prop_map(Tree::Object),
        ]
    })
}
