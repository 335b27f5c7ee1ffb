//! Programs that are asked for again and again.
//!
//! Clients send the same few texts with other parameters, and a text costs more to compile than its page does to run. So
//! what a text was compiled to is kept, for all containers together: besides the text it depends on nothing but the
//! container's vocabulary, which belongs to one version of its definition.
//!
//! Clients that never send a text twice must not push out what others use, and must not pay for being kept. So a text
//! is kept from its second time on; when there is no room, one that was not used since it was last looked at goes first.
//! Nothing is compiled while a lock is held.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::compile::{Prepared, Program, Vocabulary, compile_with};
use crate::error::Result;
use crate::limits;
use crate::parameters::Parameters;

/// Compiled queries, bounded in number and bytes.
#[derive(Debug)]
pub struct ProgramCache {
    shards: Vec<Mutex<Shard>>,
    /// With a secret, so that nobody can choose texts that meet in one place.
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    kept: HashMap<u64, Kept>,
    /// In the order in which they are looked at when there is no room.
    line: VecDeque<u64>,
    bytes: usize,
    /// Texts that were seen once, each in the place that its hash gives it.
    seen: Vec<u64>,
}

#[derive(Debug)]
struct Kept {
    prepared: Arc<Prepared>,
    is_used: bool,
}

enum Known {
    Kept(Arc<Prepared>),
    Seen,
    New,
}

impl Default for ProgramCache {
    fn default() -> Self {
        let shards = (0..limits::CACHE_SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::new() }
    }
}

impl ProgramCache {
    /// The program of a text, as [`compile_with`] gives it.
    pub fn compile(
        &self,
        text: &str,
        parameters: &Parameters,
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<Program> {
        if text.len() > limits::CACHED_TEXT_BYTES {
            return compile_with(text, parameters, vocabulary);
        }
        let hash = self.hasher.hash_one((text, identity(vocabulary)));
        let known = self.shard(hash).look_up(hash, text, vocabulary);
        match known {
            Known::Kept(prepared) => prepared.bind(parameters),
            Known::New => compile_with(text, parameters, vocabulary),
            Known::Seen => {
                let prepared = Arc::new(Prepared::new(text, vocabulary.clone())?);
                let program = prepared.bind(parameters)?;
                self.shard(hash).keep(hash, prepared);
                Ok(program)
            }
        }
    }

    /// How many texts are kept, and about how many bytes they take.
    pub fn size(&self) -> (usize, usize) {
        let shards = self.shards.iter().map(lock);
        shards.fold((0, 0), |(texts, bytes), shard| (texts + shard.kept.len(), bytes + shard.bytes))
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[hash as usize % self.shards.len()])
    }
}

/// A thread that panicked left nothing half done that matters: at worst something is compiled again.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Vocabularies are the same if they are those of one version of a definition; an empty one is always the same.
fn identity(vocabulary: &Arc<Vocabulary>) -> usize {
    if vocabulary.is_empty() { 0 } else { Arc::as_ptr(vocabulary).addr() }
}

impl Shard {
    fn look_up(&mut self, hash: u64, text: &str, vocabulary: &Arc<Vocabulary>) -> Known {
        if let Some(kept) = self.kept.get_mut(&hash) {
            let Kept { prepared, is_used } = kept;
            // Two texts with one hash are as good as never seen, but the first stays.
            if prepared.text() != text || identity(prepared.vocabulary()) != identity(vocabulary) {
                return Known::New;
            }
            *is_used = true;
            return Known::Kept(prepared.clone());
        }
        self.seen.resize(limits::CACHE_SEEN_TEXTS, 0);
        let place = (hash >> 32) as usize % limits::CACHE_SEEN_TEXTS;
        match std::mem::replace(&mut self.seen[place], hash) == hash {
            true => Known::Seen,
            false => Known::New,
        }
    }

    fn keep(&mut self, hash: u64, prepared: Arc<Prepared>) {
        if self.kept.contains_key(&hash) {
            return;
        }
        self.bytes += bytes_of(&prepared);
        self.kept.insert(hash, Kept { prepared, is_used: false });
        self.line.push_back(hash);
        while self.kept.len() > limits::CACHE_SHARD_TEXTS || self.bytes > limits::CACHE_SHARD_BYTES {
            let Some(oldest) = self.line.pop_front() else { break };
            let was_used = self.kept.get_mut(&oldest).is_some_and(|kept| std::mem::take(&mut kept.is_used));
            if was_used {
                self.line.push_back(oldest);
            } else {
                self.forget(oldest);
            }
        }
        debug_assert_eq!(self.line.len(), self.kept.len(), "every text that is kept stands in line once");
    }

    fn forget(&mut self, hash: u64) {
        if let Some(kept) = self.kept.remove(&hash) {
            self.bytes -= bytes_of(&kept.prepared);
        }
    }
}

fn bytes_of(prepared: &Prepared) -> usize {
    (prepared.text().len() + limits::ALLOCATION_BYTES) * limits::PROGRAM_BYTES_PER_TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(cache: &ProgramCache, text: &str) -> Program {
        cache.compile(text, &Parameters::new(), &Arc::default()).expect("a test query")
    }

    fn is_kept(cache: &ProgramCache, text: &str) -> bool {
        // One that is kept has its code in common with the next.
        Arc::ptr_eq(&compile(cache, text).code, &compile(cache, text).code)
    }

    #[test]
    fn a_text_is_kept_from_its_second_time_on() {
        let cache = ProgramCache::default();
        let text = "SELECT * FROM c WHERE c.a = @a";
        compile(&cache, text);
        assert_eq!(cache.size().0, 0);
        compile(&cache, text);
        assert_eq!(cache.size().0, 1);
        assert!(is_kept(&cache, text));
        assert_eq!(cache.size().0, 1);
    }

    #[test]
    fn ever_new_texts_neither_grow_the_cache_nor_push_out_what_is_used() {
        let cache = ProgramCache::default();
        let used = "SELECT * FROM c WHERE c.used = 1";
        (0..2).for_each(|_| drop(compile(&cache, used)));
        for number in 0..20_000 {
            // Each of them twice, so that all are kept for a while.
            let text = format!("SELECT * FROM c WHERE c.a = {number}");
            (0..2).for_each(|_| drop(compile(&cache, &text)));
            if number % 16 == 0 {
                compile(&cache, used);
            }
        }
        let (texts, bytes) = cache.size();
        assert!(texts <= limits::CACHE_SHARDS * limits::CACHE_SHARD_TEXTS, "{texts} texts");
        assert!(bytes <= limits::CACHE_SHARDS * limits::CACHE_SHARD_BYTES, "{bytes} bytes");
        assert!(texts > limits::CACHE_SHARD_TEXTS, "{texts} texts");
        assert!(is_kept(&cache, used));
    }

    #[test]
    fn long_texts_are_kept_within_bytes_or_not_at_all() {
        let cache = ProgramCache::default();
        for number in 0..1_000 {
            let text = format!("SELECT * FROM c WHERE c.a = '{number:0>1900}'");
            (0..3).for_each(|_| drop(compile(&cache, &text)));
        }
        let (texts, bytes) = cache.size();
        assert!(texts > 0 && bytes <= limits::CACHE_SHARDS * limits::CACHE_SHARD_BYTES, "{texts}, {bytes}");
        let long = format!("SELECT * FROM c WHERE c.a = '{:0>9000}'", 1);
        assert!(!is_kept(&cache, &long));
    }

    #[test]
    fn what_is_wrong_is_told_each_time_and_not_kept() {
        let cache = ProgramCache::default();
        let wrong =
            ["SELECT", "SELECT * FROM c WHERE d.a = 1", "SELECT TOP @n * FROM c", "SELECT VALUE nothing(1)"];
        for text in wrong {
            let expected = compile_with(text, &Parameters::new(), &Vocabulary::default()).map(|_| ());
            assert!(expected.is_err(), "{text}");
            for _ in 0..4 {
                let found = cache.compile(text, &Parameters::new(), &Arc::default()).map(|_| ());
                assert_eq!(found, expected, "{text}");
            }
        }
        assert_eq!(cache.size().0, 0);
    }

    #[test]
    fn one_text_means_something_else_with_another_vocabulary() {
        let cache = ProgramCache::default();
        let named = |query| Arc::new(Vocabulary::new([("low", query)]).expect("a definition"));
        let definitions = [
            Arc::default(),
            named("SELECT VALUE LOWER(c.a) FROM c"),
            named("SELECT VALUE UPPER(c.a) FROM c"),
        ];
        let doc = orrery_doc::json::parse(br#"{"a":"xY","low":"stored"}"#, 8).expect("JSON");
        let rows = |vocabulary: &Arc<Vocabulary>| {
            let program = cache.compile("SELECT VALUE c.low FROM c", &Parameters::new(), vocabulary);
            let row = crate::row::Row::plain(doc.as_ref());
            let rows = program.and_then(|program| program.run_all([row], &crate::Context::at(0, 0)));
            let rows = rows.expect("it runs");
            rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect::<Vec<_>>()
        };
        for _ in 0..4 {
            let found: Vec<_> = definitions.iter().flat_map(rows).collect();
            assert_eq!(found, [r#""stored""#, r#""xy""#, r#""XY""#]);
        }
    }
}
