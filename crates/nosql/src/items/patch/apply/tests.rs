use orrery_doc::json;
use proptest::prelude::*;

use super::super::spec::PatchSpec;
use super::*;

const ITEM: &str = r#"{"id":"1","n":5,"f":1.5,"s":"x","o":{"a":1,"b":{"c":2}},"l":[1,{"x":2},3],"e":[]}"#;

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Applies operations to [`ITEM`], giving the text of the result or of the error.
fn patch(ops: &str) -> String {
    let spec = PatchSpec::from_value(doc(ops).root(), &[]).unwrap();
    match apply(doc(ITEM).as_ref(), &spec.ops) {
        Ok(doc) => format!("{:?}", doc.root()),
        Err(error) => error.to_string(),
    }
}

/// Checks which part of the item's text turns into what.
fn check(op: &str, old: &str, new: &str) {
    assert!(ITEM.contains(old), "{old}");
    assert_eq!(patch(&format!("[{op}]")), ITEM.replacen(old, new, 1), "{op}");
}

fn check_error(op: &str, expected: &str) {
    assert_eq!(patch(&format!("[{op}]")), format!("For Operation(1): {expected}"), "{op}");
}

#[test]
fn add_makes_fields_and_inserts_elements() {
    check(r#"{"op":"add","path":"/new","value":{"k":1}}"#, r#""e":[]"#, r#""e":[],"new":{"k":1}"#);
    check(r#"{"op":"add","path":"/n","value":null}"#, r#""n":5"#, r#""n":null"#);
    check(r#"{"op":"add","path":"/l/0","value":0}"#, "[1,", "[0,1,");
    check(r#"{"op":"add","path":"/l/3","value":4}"#, "3]", "3,4]");
    check(r#"{"op":"add","path":"/l/-","value":4}"#, "3]", "3,4]");
    check(r#"{"op":"add","path":"/e/0","value":4}"#, "[]", "[4]");
    check(r#"{"op":"ADD","path":"/o/b/d","value":3}"#, r#""c":2"#, r#""c":2,"d":3"#);
}

#[test]
fn set_replaces_elements() {
    check(r#"{"op":"set","path":"/l/0","value":0}"#, "[1,", "[0,");
    check(r#"{"op":"set","path":"/l/1/x","value":0}"#, r#"{"x":2}"#, r#"{"x":0}"#);
    check(r#"{"op":"set","path":"/l/-","value":4}"#, "3]", "3,4]");
    check(r#"{"op":"set","path":"/a~1b~0","value":4}"#, r#""e":[]"#, r#""e":[],"a/b~":4"#);
    check(r#"{"op":"set","path":"/l/3","value":4}"#, "3]", "3,4]");
    check(r#"{"op":"set","path":"/e/0","value":4}"#, "[]", "[4]");
    check_error(r#"{"op":"set","path":"/l/4","value":4}"#, "Index(4) to operate on is out of array bounds");
    check_error(r#"{"op":"set","path":"/l/3/x","value":4}"#, "Index(3) to operate on is out of array bounds");
    check_error(
        r#"{"op":"replace","path":"/l/3","value":4}"#,
        "Index(3) to operate on is out of array bounds",
    );
}

#[test]
fn replace_and_remove_need_what_they_change() {
    check(r#"{"op":"replace","path":"/o","value":[]}"#, r#"{"a":1,"b":{"c":2}}"#, "[]");
    check(r#"{"op":"remove","path":"/o/a"}"#, r#""a":1,"#, "");
    check(r#"{"op":"remove","path":"/l/1"}"#, r#"{"x":2},"#, "");
    check_error(r#"{"op":"replace","path":"/zz","value":1}"#, "Node(/zz) to be replaced is absent.");
    check_error(
        r#"{"op":"remove","path":"/o/zz"}"#,
        "Node(/o/zz) to be removed is absent. Note: it may also have been removed earlier in the transaction.",
    );
    for index in ["3", "-", "01", "x", "-1", "", "99999999999999999999"] {
        check_error(
            &format!(r#"{{"op":"remove","path":"/l/{index}"}}"#),
            &format!("Index({index}) to operate on is out of array bounds"),
        );
    }
}

#[test]
fn increment_adds_or_makes() {
    check(r#"{"op":"incr","path":"/n","value":-7}"#, r#""n":5"#, r#""n":-2"#);
    check(r#"{"op":"increment","path":"/f","value":1}"#, r#""f":1.5"#, r#""f":2.5"#);
    check(r#"{"op":"incr","path":"/n","value":0.5}"#, r#""n":5"#, r#""n":5.5"#);
    check(r#"{"op":"incr","path":"/new","value":7}"#, r#""e":[]"#, r#""e":[],"new":7"#);
    check(r#"{"op":"incr","path":"/l/2","value":1}"#, "3]", "4]");
    check(r#"{"op":"incr","path":"/n","value":9223372036854775807}"#, ":5", ":9223372036854776000");
    check_error(r#"{"op":"incr","path":"/s","value":1}"#, "Node(/s) is not a number.");
    let twice = r#"[{"op":"set","path":"/n","value":1.7e308},{"op":"incr","path":"/n","value":1.7e308}]"#;
    assert_eq!(patch(twice), "For Operation(2): Node(/n) would no longer be a finite number.");
}

#[test]
fn move_takes_a_value_elsewhere() {
    check(r#"{"op":"move","from":"/o/a","path":"/o/z"}"#, r#""a":1,"b":{"c":2}"#, r#""b":{"c":2},"z":1"#);
    check(r#"{"op":"move","from":"/l/0","path":"/l/2"}"#, r#"[1,{"x":2},3]"#, r#"[{"x":2},3,1]"#);
    check(r#"{"op":"move","from":"/n","path":"/n"}"#, r#""n""#, r#""n""#);
    check_error(r#"{"op":"move","from":"/zz","path":"/a"}"#, "Node(/zz) to be moved is absent.");
    check_error(r#"{"op":"move","from":"/o","path":"/o/b"}"#, "Node(/o) cannot be moved into itself.");
}

#[test]
fn no_operation_makes_a_path_of_several_parts() {
    for (op, name) in [("add", "Add"), ("set", "Given"), ("replace", "Given"), ("incr", "Given")] {
        check_error(
            &format!(r#"{{"op":"{op}","path":"/o/zz/y/x","value":1}}"#),
            &format!(
                "{name} Operation can only create a child object of an existing node(array or object) and \
                 cannot create path recursively, no path found beyond: 'zz'."
            ),
        );
    }
    assert!(patch(r#"[{"op":"add","path":"/n/x","value":1}]"#).ends_with("no path found beyond: 'n'."));
}

#[test]
fn later_operations_see_earlier_ones() {
    let ops = r#"{"operations":[{"op":"set","path":"/o","value":{}},{"op":"add","path":"/o/k","value":1},
        {"op":"remove","path":"/n"},{"op":"incr","path":"/n","value":2}]}"#;
    let expected = r#"{"id":"1","f":1.5,"s":"x","o":{"k":1},"l":[1,{"x":2},3],"e":[],"n":2}"#;
    assert_eq!(patch(ops), expected);
}

#[test]
fn a_failed_operation_tells_its_number() {
    let ops = r#"[{"op":"set","path":"/a","value":1},{"op":"remove","path":"/zz"}]"#;
    assert!(patch(ops).starts_with("For Operation(2): Node(/zz)"));
}

#[test]
fn specifications_are_checked() {
    let read = |text: &str| PatchSpec::from_value(doc(text).root(), &[]).map(|spec| spec.condition);
    let set = r#"{"op":"set","path":"/a","value":1}"#;
    assert_eq!(read(&format!("[{set}]")), Ok(None));
    let conditional = format!(r#"{{"condition":"from c where c.n = 3","operations":[{set}]}}"#);
    assert_eq!(read(&conditional), Ok(Some("from c where c.n = 3".to_owned())));
    assert_eq!(read("[]"), Err(PatchError::NoOperations));
    assert_eq!(read(&format!("[{set}{}]", format!(",{set}").repeat(9))), Ok(None));
    assert_eq!(read(&format!("[{set}{}]", format!(",{set}").repeat(10))), Err(PatchError::TooManyOperations));
    for bad in ["1", "{}", r#"{"operations":{}}"#, r#"{"condition":1,"operations":[]}"#] {
        assert_eq!(read(bad), Err(PatchError::Syntax), "{bad}");
    }
    for bad in [
        r#"{"op":"copy","path":"/a","from":"/b"}"#,
        r#"{"op":"set","path":"/a"}"#,
        r#"{"op":"set","value":1}"#,
        r#"{"path":"/a","value":1}"#,
        r#"{"op":"incr","path":"/a","value":"1"}"#,
        r#"{"op":"move","path":"/a"}"#,
        r#"{"op":"set","path":"a","value":1}"#,
        r#"{"op":"set","path":"","value":1}"#,
        "1",
    ] {
        let error = read(&format!("[{bad}]")).unwrap_err();
        assert!(error.to_string().starts_with("Invalid patch request: check syntax"), "{bad}");
    }
}

#[test]
fn what_the_item_depends_on_cannot_be_patched() {
    let protected = [Path::parse_property("/pk").unwrap(), Path::parse_property("/a/b").unwrap()];
    let read = |op: &str| {
        PatchSpec::from_value(doc(&format!("[{op}]")).root(), &protected).map(drop).map_err(|e| e.to_string())
    };
    for property in ["id", "_ts", "_etag", "_rid", "_self"] {
        let expected = format!("Invalid patch request: Cannot patch system property {property}.");
        assert_eq!(read(&format!(r#"{{"op":"set","path":"/{property}","value":1}}"#)), Err(expected.clone()));
        assert_eq!(read(&format!(r#"{{"op":"move","path":"/x","from":"/{property}"}}"#)), Err(expected));
    }
    for path in ["/pk", "/pk/x", "/a", "/a/b", "/a/b/c"] {
        let refused = read(&format!(r#"{{"op":"remove","path":"{path}"}}"#)).unwrap_err();
        assert!(refused.contains("partition key"), "{path}: {refused}");
    }
    for path in ["/ttl", "/a/c", "/pkx", "/x/id"] {
        assert_eq!(read(&format!(r#"{{"op":"remove","path":"{path}"}}"#)), Ok(()), "{path}");
    }
}

#[test]
fn patches_do_not_nest_beyond_the_limit() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    // The operations stand two levels deep in their own text.
    let set = |levels: usize| format!(r#"[{{"op":"set","path":"/o/b","value":{}}}]"#, deep(levels));
    assert!(!patch(&set(126)).contains("Operation"));
    let text = set(127);
    let spec = PatchSpec::from_value(json::parse(text.as_bytes(), 200).unwrap().root(), &[]).unwrap();
    assert_eq!(apply(doc(ITEM).as_ref(), &spec.ops), Err(PatchError::TooDeep { op: 1 }));
}

proptest! {
    #[test]
    fn any_operation_is_applied_or_refused(
        op in "(add|set|replace|remove|incr|move)",
        path in "(/[a-z0-2~-]{0,2}){0,3}",
        from in "(/[a-z0-2-]{0,1}){0,3}",
        value in prop_oneof![Just("1"), Just("{}"), Just("[1,2]"), Just("\"x\"")],
    ) {
        let text = format!(r#"[{{"op":"{op}","path":"{path}","from":"{from}","value":{value}}}]"#);
        if let Ok(spec) = PatchSpec::from_value(doc(&text).root(), &[])
            && let Ok(patched) = apply(doc(ITEM).as_ref(), &spec.ops)
        {
            prop_assert!(Doc::from_bytes(patched.into_bytes()).is_ok());
        }
    }
}
