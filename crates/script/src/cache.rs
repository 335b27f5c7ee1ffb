//! Programs that were checked lately, by the id of their resource and its tag.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Limits, Program, ScriptError};

pub struct Programs {
    entries_max: usize,
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    bytes: usize,
    /// Grows with every use, so that the entry with the smallest value was used longest ago.
    uses: u64,
}

struct Entry {
    etag: String,
    program: Arc<Program>,
    used: u64,
}

impl Programs {
    pub fn new(entries_max: usize, bytes_max: usize) -> Programs {
        Programs { entries_max, bytes_max, inner: Mutex::default() }
    }

    /// The program of a stored script. `key` names the resource for ever (its rid), `id` is its name in stacks.
    pub fn get(
        &self,
        key: &str,
        etag: &str,
        id: &str,
        source: &str,
        limits: &Limits,
    ) -> Result<Arc<Program>, ScriptError> {
        if let Some(program) = self.find(key, etag) {
            return Ok(program);
        }
        // Two callers may check the same text at once; the later one wins, and both are right.
        let program = Arc::new(Program::compile(id, source, limits)?);
        self.keep(key, etag, &program);
        Ok(program)
    }

    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, key: &str, etag: &str) -> Option<Arc<Program>> {
        let mut inner = self.lock();
        inner.uses += 1;
        let uses = inner.uses;
        let entry = inner.entries.get_mut(key).filter(|entry| entry.etag == etag)?;
        entry.used = uses;
        Some(Arc::clone(&entry.program))
    }

    fn keep(&self, key: &str, etag: &str, program: &Arc<Program>) {
        let mut inner = self.lock();
        let used = inner.uses;
        let entry = Entry { etag: etag.to_owned(), program: Arc::clone(program), used };
        inner.bytes += program.source_bytes();
        if let Some(old) = inner.entries.insert(key.to_owned(), entry) {
            inner.bytes -= old.program.source_bytes();
        }
        while inner.entries.len() > self.entries_max || inner.bytes > self.bytes_max {
            let oldest = inner.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(entry) = oldest.and_then(|key| inner.entries.remove(&key)) else { return };
            inner.bytes -= entry.program.source_bytes();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_kept_until_they_change_or_others_need_the_room() {
        let limits = Limits::default();
        let programs = Programs::new(2, 1_000);
        let get = |key: &str, etag: &str, source: &str| {
            programs.get(key, etag, key, source, &limits).expect("the text is a program")
        };
        let first = get("a", "1", "() => 1");
        assert!(Arc::ptr_eq(&first, &get("a", "1", "() => 1")));
        let changed = get("a", "2", "() => 2");
        assert!(!Arc::ptr_eq(&first, &changed));
        get("b", "1", "() => 3");
        get("a", "2", "() => 2");
        get("c", "1", "() => 4");
        assert_eq!(programs.len(), 2);
        assert!(Arc::ptr_eq(&changed, &get("a", "2", "() => 2")), "b was used longest ago, so b made room");
        get("d", "1", &format!("() => {}", "1".repeat(990)));
        assert_eq!(programs.len(), 1);
    }
}
