//! Property paths and JSON pointers.

use orrery_doc::{Path, PathError, Segment, json};
use proptest::prelude::*;

fn names(path: &Path) -> Vec<&str> {
    let name = |segment: &'_ Segment| match segment {
        Segment::Name(name) => name.as_str().to_owned().leak() as &str,
        Segment::Index(_) => panic!("no index expected"),
    };
    path.segments().iter().map(name).collect()
}

#[test]
fn property_paths() {
    for (text, expected) in [
        ("/a", vec!["a"]),
        ("/a/b c", vec!["a", "b c"]),
        (r#"/"a/b"/c"#, vec!["a/b", "c"]),
        (r#"/"say \"x\"""#, vec![r#"say "x""#]),
        (r#"/'level" 1*()'/'le/vel2'"#, vec![r#"level" 1*()"#, "le/vel2"]),
    ] {
        assert_eq!(names(&Path::parse_property(text).unwrap()), expected, "{text}");
    }
    for (text, expected) in [
        ("a", PathError::NoLeadingSlash),
        ("", PathError::NoLeadingSlash),
        ("/", PathError::EmptySegment),
        ("/a//b", PathError::EmptySegment),
        ("/a/", PathError::EmptySegment),
        (r#"/"a"#, PathError::BadQuote),
        (r#"/"a"b"#, PathError::BadQuote),
        (r#"/"a\x""#, PathError::BadQuote),
    ] {
        assert_eq!(Path::parse_property(text), Err(expected), "{text}");
    }
    assert_eq!(Path::parse_property(&"/a".repeat(200)), Err(PathError::TooLong));
    assert_eq!(Path::parse_property(&format!("/{}", "a".repeat(5000))), Err(PathError::TooLong));
}

#[test]
fn pointers() {
    let path = Path::parse_pointer("/a/0/~1b~0//-").unwrap();
    assert_eq!(names(&path), ["a", "0", "/b~", "", "-"]);
    assert_eq!(path.to_pointer(), "/a/0/~1b~0//-");
    for bad in ["/~", "/~2", "/a~"] {
        assert_eq!(Path::parse_pointer(bad), Err(PathError::BadTilde), "{bad}");
    }
}

#[test]
fn a_path_leads_into_a_document() {
    let doc = json::parse(br#"{"a":[{"b":1},[2]],"c":3}"#, 128).unwrap();
    let name = |name: &str| Segment::Name(name.to_owned());
    for (segments, expected) in [
        (vec![name("c")], "3"),
        (vec![name("a"), Segment::Index(0), name("b")], "1"),
        (vec![name("a"), Segment::Index(1), Segment::Index(0)], "2"),
        (vec![name("a"), Segment::Index(2)], "undefined"),
        (vec![name("c"), name("x")], "undefined"),
        (vec![], r#"{"a":[{"b":1},[2]],"c":3}"#),
    ] {
        assert_eq!(format!("{:?}", doc.get(&Path::new(segments))), expected);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in ".*") {
        let _ = Path::parse_pointer(&text);
        let _ = Path::parse_property(&text);
    }

    #[test]
    fn paths_show_themselves(names in prop::collection::vec("[a/\"\\\\ ~é]{1,5}", 1..5)) {
        let path = Path::new(names.into_iter().map(Segment::Name).collect());
        prop_assert_eq!(Path::parse_property(&path.to_string()), Ok(path.clone()));
        prop_assert_eq!(Path::parse_pointer(&path.to_pointer()), Ok(path));
    }
}
