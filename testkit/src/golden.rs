//! The golden bytes of `docs/format.md`, so that the page and the code cannot part.
//!
//! A block of them is fenced and says what it holds; a line is a name and its bytes in hexadecimal digits:
//!
//! ````text
//! ```golden documents
//! null            = 01 01  # what follows is a remark
//! ```
//! ````
//!
//! Blocks that begin with `golden-text` hold texts instead, as they are stored or sent.
//!
//! A test asks for its own blocks, compares each line with what the code writes, and reads the bytes back.

use std::path::Path;

/// One line of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Golden {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The lines of all blocks of this title on the page of formats, in their order.
pub fn of_formats(title: &str) -> Vec<Golden> {
    let lines = read(&page_of_formats(), title).expect("the page of formats is well formed");
    assert!(!lines.is_empty(), "the page of formats has no block `golden {title}`");
    lines
}

/// Names and texts of all text blocks of this title on the page of formats, in their order.
pub fn texts_of_formats(title: &str) -> Vec<(String, String)> {
    let page = page_of_formats();
    let lines = block_lines(&page, &format!("golden-text {title}"));
    let texts: Vec<_> = lines
        .map(|(number, line)| {
            let (name, text) =
                line.split_once(" = ").unwrap_or_else(|| panic!("line {number} has no text: {line}"));
            (name.trim().to_owned(), text.to_owned())
        })
        .collect();
    assert!(!texts.is_empty(), "the page of formats has no block `golden-text {title}`");
    texts
}

fn page_of_formats() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/format.md");
    std::fs::read_to_string(&path).expect("the page of formats is there")
}

/// Compares the blocks of a title with what the code writes, names and order included.
pub fn check(title: &str, written: &[(String, Vec<u8>)]) {
    let found = of_formats(title);
    let lines = |golden: &[Golden]| golden.iter().map(line).collect::<Vec<_>>().join("\n");
    let written: Vec<Golden> =
        written.iter().map(|(name, bytes)| Golden { name: name.clone(), bytes: bytes.clone() }).collect();
    assert!(
        found == written,
        "`golden {title}` differs from the code, which writes:\n\n{}\n",
        lines(&written)
    );
}

fn line(golden: &Golden) -> String {
    let hex: Vec<String> = golden.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{:<32} = {}", golden.name, hex.join(" "))
}

fn read(page: &str, title: &str) -> Result<Vec<Golden>, String> {
    let wrong = |(number, text): (usize, &str)| format!("line {number} is not golden: {text}");
    block_lines(page, &format!("golden {title}"))
        .map(|line| read_line(line.1).ok_or_else(|| wrong(line)))
        .collect()
}

/// The lines inside all blocks that begin so, with their numbers.
fn block_lines<'a>(page: &'a str, begin: &str) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let fence = format!("```{begin}");
    let mut inside = false;
    page.lines().enumerate().filter_map(move |(place, text)| {
        let text = text.trim_end();
        let is_fence = if inside { text == "```" } else { text == fence };
        inside ^= is_fence;
        (inside && !is_fence && !text.is_empty()).then_some((place + 1, text))
    })
}

fn read_line(text: &str) -> Option<Golden> {
    // The name may have an equals sign of its own.
    let (name, hex) = text.rsplit_once(" = ").or(text.strip_suffix(" =").map(|name| (name, "")))?;
    let hex = hex.split_once(" #").map_or(hex, |(hex, _)| hex);
    let byte = |digits: &str| u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2);
    let bytes = hex.split_ascii_whitespace().map(byte).collect::<Option<_>>()?;
    Some(Golden { name: name.trim().to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_by_title() {
        let page =
            "text\n```golden a\nx = 01 0f  # a remark\ny=1  = 7F\n\n```\nz = 00\n```golden b\nw = 00\n```\n";
        let golden = |name: &str, bytes: &[u8]| Golden { name: name.into(), bytes: bytes.into() };
        assert_eq!(read(page, "a"), Ok(vec![golden("x", &[1, 15]), golden("y=1", &[0x7f])]));
        assert_eq!(read(page, "b"), Ok(vec![golden("w", &[0])]));
        assert_eq!(read(page, "c"), Ok(vec![]));
    }

    #[test]
    fn a_line_that_is_not_golden_is_found() {
        for bad in ["x", "x = 0", "x = 0g", "x = 001", "x: 00"] {
            assert!(read(&format!("```golden a\n{bad}\n```"), "a").is_err(), "{bad}");
        }
    }
}
