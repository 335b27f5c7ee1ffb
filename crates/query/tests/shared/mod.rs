//! Finds and reads the outside vectors, which live beside the project and not in it.

use std::path::PathBuf;

/// The text of a vector file, or `None` (with a line saying so) when the vectors are not there.
pub fn vector(name: &str) -> Option<String> {
    let path = vectors().join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(_) => {
            println!("not run: {name} is not on this machine");
            None
        }
    }
}

/// All files of a vector folder whose name contains `part`, with their text.
#[allow(dead_code)]
pub fn vector_files(folder: &str, part: &str) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(vectors().join(folder)) else {
        println!("not run: {folder} is not on this machine");
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.contains(part).then_some(name)
        })
        .collect();
    files.sort();
    files.into_iter().filter_map(|name| Some((name.clone(), vector(&format!("{folder}/{name}"))?))).collect()
}

/// The text between `<tag><![CDATA[` and `]]></tag>`, if the element is there.
#[allow(dead_code)]
pub fn cdata<'x>(xml: &'x str, tag: &str) -> Option<&'x str> {
    let (open, close) = (format!("<{tag}><![CDATA["), format!("]]></{tag}>"));
    let start = xml.find(&open)? + open.len();
    let end = xml[start..].find(&close)? + start;
    Some(&xml[start..end])
}

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors")
}
