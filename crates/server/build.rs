//! Embeds the explorer: what `explorer/build.mjs` has put into `explorer/dist` becomes a table in the binary.
//!
//! Without Node nothing is there; the table is then empty and the server says how to get the page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Kinds of files that the page is made of.
const KINDS: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
];

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo tells where the package is"));
    let dist = manifest.join("../../explorer/dist");
    // The folder is part of the project, so that watching it does not mean building every time.
    println!("cargo::rerun-if-changed={}", dist.display());
    println!("cargo::rerun-if-changed=build.rs");
    let table = format!("pub const ASSETS: &[Asset] = &[\n{}];\n", entries(&dist));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo tells where to write")).join("explorer.rs");
    fs::write(out, table).expect("the output folder can be written to");
}

fn entries(dist: &Path) -> String {
    let mut files: Vec<PathBuf> = match fs::read_dir(dist) {
        Ok(folder) => folder.flatten().map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    files.sort();
    let mut table = String::new();
    for path in files {
        let Some(kind) = kind_of(&path) else { continue };
        let (gzip, brotli) = (beside(&path, "gz"), beside(&path, "br"));
        if !gzip.exists() || !brotli.exists() {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are ours");
        let bytes = fs::read(&path).expect("a file that was listed can be read");
        writeln!(
            table,
            "    Asset {{ name: {name:?}, kind: {kind:?}, tag: \"{:016x}\", plain: include_bytes!({path:?}), \
             gzip: include_bytes!({gzip:?}), brotli: include_bytes!({brotli:?}) }},",
            fnv1a(&bytes)
        )
        .expect("writing to a string");
    }
    table
}

fn kind_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    KINDS.iter().find(|(known, _)| *known == extension).map(|(_, kind)| *kind)
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Tells versions of a file apart; nobody gains by making two alike.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
