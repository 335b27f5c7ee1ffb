//! A sample of the items in a file, and a look at all of them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use orrery_advisor::limits::{SAMPLE_BYTES_MAX, SAMPLE_ITEMS_MAX, SEED};
use orrery_advisor::{Census, Chance};
use orrery_cluster::limits::JSON_DEPTH_MAX;
use orrery_doc::{Doc, Path as Property, Value as Stored};
use serde_json::Value;

/// Bytes of one line.
const LINE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// One JSON object on each line.
pub struct ItemFile {
    path: PathBuf,
    pub items: u64,
    bytes: u64,
}

impl ItemFile {
    pub fn open(path: &Path) -> anyhow::Result<ItemFile> {
        let mut file = ItemFile { path: path.to_owned(), items: 0, bytes: 0 };
        let (mut items, mut bytes) = (0, 0);
        file.each_line(|_, line| {
            items += 1;
            bytes += line.len() as u64;
            Ok(())
        })?;
        if items == 0 {
            bail!("{} has no items", path.display());
        }
        (file.items, file.bytes) = (items, bytes);
        Ok(file)
    }

    /// Some of the items, each as likely as any other; all of them where they are few.
    pub fn sample(&self) -> anyhow::Result<Vec<Value>> {
        let mean = (self.bytes / self.items).max(1);
        let mut wanted = (SAMPLE_ITEMS_MAX as u64).min(SAMPLE_BYTES_MAX as u64 / mean).clamp(1, self.items);
        let mut left = self.items;
        let mut chance = Chance::new(SEED);
        let mut sample = Vec::new();
        self.each_line(|number, line| {
            if chance.below(left) < wanted {
                wanted -= 1;
                let item = serde_json::from_slice(line);
                sample.push(item.with_context(|| self.place(number))?);
            }
            left = left.saturating_sub(1);
            Ok(())
        })?;
        Ok(sample)
    }

    /// Shows all items to a census.
    pub fn count(&self, census: &mut Census) -> anyhow::Result<()> {
        let id = Property::parse_property("/id").context("a path")?;
        self.each_item(|_, doc| {
            if let Stored::Str(id) = doc.get(&id) {
                census.note_id(id.as_bytes());
            }
        })?;
        census.end_of_ids(true);
        self.each_item(|number, doc| match doc.get(&id) {
            Stored::Str(id) => census.look_at(id.as_bytes(), doc.as_ref()),
            // What has no id yet will get one of its own.
            _ => census.look_at(format!("line {number}").as_bytes(), doc.as_ref()),
        })?;
        census.end_of_items(true);
        Ok(())
    }

    fn each_item(&self, mut visit: impl FnMut(u64, &Doc)) -> anyhow::Result<()> {
        self.each_line(|number, line| {
            let doc = orrery_doc::json::parse(line, JSON_DEPTH_MAX);
            visit(number, &doc.with_context(|| self.place(number))?);
            Ok(())
        })
    }

    fn place(&self, line: u64) -> String {
        format!("{}, line {line}", self.path.display())
    }

    /// Shows each line that is not empty, and its number.
    fn each_line(&self, mut visit: impl FnMut(u64, &[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let place = || format!("cannot read {}", self.path.display());
        let mut reader = BufReader::new(std::fs::File::open(&self.path).with_context(place)?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let mut rest = std::io::Read::take(&mut reader, LINE_BYTES_MAX);
            if rest.read_until(b'\n', &mut line).with_context(place)? == 0 {
                break;
            }
            let text = line.trim_ascii();
            if !text.is_empty() {
                visit(number, text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir, text: &str) -> PathBuf {
        let path = folder.path().join("items.jsonl");
        std::fs::write(&path, text).expect("the file is written");
        path
    }

    #[test]
    fn lines_are_items_and_a_bad_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let items = ItemFile::open(&file(&folder, "{\"id\":\"1\"}\n\n  {\"id\":\"2\"}")).expect("two items");
        assert_eq!((items.items, items.sample().expect("both").len()), (2, 2));
        let items = ItemFile::open(&file(&folder, "{\"id\":\"1\"}\nnonsense\n")).expect("two lines");
        let error = format!("{:#}", items.sample().expect_err("a bad line"));
        assert!(error.contains("line 2"), "{error}");
        assert!(ItemFile::open(&file(&folder, "\n \n")).is_err(), "no items");
    }

    #[test]
    fn a_long_file_is_sampled_from_its_beginning_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let count = 3 * SAMPLE_ITEMS_MAX;
        let lines: String = (0..count).map(|n| format!("{{\"id\":\"{n}\",\"n\":{n}}}\n")).collect();
        let items = ItemFile::open(&file(&folder, &lines)).expect("many items");
        let sample = items.sample().expect("some of them");
        assert_eq!((items.items, sample.len()), (count as u64, SAMPLE_ITEMS_MAX));
        let mean = sample.iter().filter_map(|item| item["n"].as_f64()).sum::<f64>() / sample.len() as f64;
        assert!((mean / count as f64 - 0.5).abs() < 0.02, "the mean is {mean}");
    }
}
