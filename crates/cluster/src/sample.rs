//! Items of a container that were chosen at random, each of them as likely as any other, and a look at all of them.
//!
//! A partition has as large a share of the sample as it has of the items. Within one, neither the order of keys nor that of
//! writes will do: neighbours are alike in both, since they share a key or were loaded together. So the keys of all
//! items are walked and some are kept by chance. Where there are too many keys for that, transactions are tried by chance:
//! each item has one entry in the feed, under its last write, so none is more likely to be met than another. Items that were
//! written together are met together, so twice as many transactions are met as items are wanted, and some of theirs kept.
//!
//! All of this reads for as long as it takes, on the thread of its caller, which must not be one that serves requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use orrery_store::index::key_at;
use orrery_store::limits::{SAMPLE_TRIES_PER_ITEM, SAMPLE_WALKED_ITEMS_MAX};
use orrery_store::{Fault, Item, ItemId, ItemKey, Lsn, Scan, Target, View};

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::range::Range;

/// Items that are passed between two looks at the clock.
const ITEMS_PER_CLOCK_CHECK: u64 = 256;

/// Draws a number below another one. The same draws give the same sample of the same items.
pub type Below<'a> = dyn FnMut(u64) -> u64 + 'a;

impl Db {
    /// Items chosen at random, at most so many and of so many bytes.
    pub fn sample(
        &self,
        container: &Arc<Container>,
        items_max: usize,
        bytes_max: usize,
        below: &mut Below<'_>,
    ) -> Result<Vec<Item>> {
        self.where_it_is(container, |container| self.sample_of(container, items_max, bytes_max, below))
    }

    fn sample_of(
        &self,
        container: &Container,
        items_max: usize,
        bytes_max: usize,
        below: &mut Below<'_>,
    ) -> Result<Vec<Item>> {
        let ranges = &container.ranges;
        let counts: Vec<u64> = ranges.iter().map(|range| range.replica.partition.state().items).collect();
        let mut chosen: Vec<(&Range, ItemKey)> = Vec::new();
        for (range, share) in ranges.iter().zip(shares(&counts, items_max)) {
            range.replica.check_there()?;
            let keys = self.look_into(range, |view| choose(view, share, below))?;
            chosen.extend(keys.into_iter().map(|key| (&**range, key)));
        }
        // What is left out for its bytes is left out by chance, too.
        shuffle(&mut chosen, below);
        let (mut items, mut bytes) = (Vec::new(), 0);
        for (range, ItemKey { epk, id }) in chosen {
            let found = self.look_into(range, |view| view.item(&epk, &Target::Id(id)))?;
            let Some(item) = found else { continue };
            bytes += item.header.json_bytes as usize;
            if bytes > bytes_max {
                break;
            }
            items.push(item);
        }
        Ok(items)
    }

    /// Shows the ids of all items, each as often as there are items that have it. Says whether all were seen in time.
    pub fn visit_ids(
        &self,
        container: &Container,
        until: Instant,
        mut visit: impl FnMut(&ItemId),
    ) -> Result<bool> {
        self.visit(container, until, |view, clock| {
            let mut failure = None;
            view.scan_keys(view.range(), |place| match key_at(place) {
                Some(key) => {
                    visit(&key.id);
                    clock.tick()
                }
                None => {
                    failure = Some(Fault::Damaged("an item key".into()));
                    Scan::Stop
                }
            })?;
            failure.map_or(Ok(()), Err)
        })
    }

    /// Shows all items. Says whether all were seen in time.
    pub fn visit_items(
        &self,
        container: &Container,
        until: Instant,
        mut visit: impl FnMut(&ItemId, &Item),
    ) -> Result<bool> {
        self.visit(container, until, |view, clock| {
            view.scan(view.range(), None, |key, item| {
                visit(&key.id, &item);
                clock.tick()
            })
        })
    }

    fn visit(
        &self,
        container: &Container,
        until: Instant,
        mut walk: impl FnMut(&View<'_>, &mut Clock<'_>) -> std::result::Result<(), Fault>,
    ) -> Result<bool> {
        let mut clock = Clock { db: self, until, passed: 0, is_over: false };
        for range in &container.ranges {
            self.look_into(range, |view| walk(view, &mut clock))?;
            if clock.is_over {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The item with this rid, wherever in the container it lies by now.
    pub fn item_of_rid(&self, container: &Container, rid: u64) -> Result<Option<Item>> {
        // All partitions share the entries of rids.
        let Some(any) = container.ranges.first() else { return Ok(None) };
        let Some(key) = self.look_into(any, |view| view.key_of_rid(rid))? else { return Ok(None) };
        let range = container.range_of(&key.epk);
        self.look_into(range, |view| view.item(&key.epk, &Target::Id(key.id.clone())))
    }

    /// Asks what readers see of a partition now. Items of one that was split stay where they are.
    fn look_into<T>(
        &self,
        range: &Range,
        look: impl FnOnce(&View<'_>) -> std::result::Result<T, Fault>,
    ) -> Result<T> {
        let lsn = range.replica.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        range.replica.check_kept()?;
        look(&range.replica.view(&snapshot, lsn)).map_err(Error::from)
    }
}

struct Clock<'a> {
    db: &'a Db,
    until: Instant,
    passed: u64,
    is_over: bool,
}

impl Clock<'_> {
    fn tick(&mut self) -> Scan {
        self.passed += 1;
        if self.passed.is_multiple_of(ITEMS_PER_CLOCK_CHECK) {
            self.is_over = self.db.world().is_past(self.until);
        }
        if self.is_over { Scan::Stop } else { Scan::Continue }
    }
}

/// Divides what is wanted of a container among its partitions, in proportion to what they hold.
pub fn shares(counts: &[u64], wanted: usize) -> Vec<usize> {
    let all = counts.iter().sum::<u64>().max(1);
    let upto = |sum: u64| (u128::from(sum) * wanted as u128 / u128::from(all)) as usize;
    let mut before = 0;
    let share = |count: &u64| {
        let from = upto(before);
        before += count;
        upto(before) - from
    };
    counts.iter().map(share).collect()
}

/// The places of some items of a partition.
fn choose(view: &View<'_>, wanted: usize, below: &mut Below<'_>) -> std::result::Result<Vec<ItemKey>, Fault> {
    match view.state()?.items {
        _ if wanted == 0 => Ok(Vec::new()),
        items if items <= SAMPLE_WALKED_ITEMS_MAX => by_walking(view, wanted, below),
        _ => by_trying(view, wanted, below),
    }
}

fn by_walking(
    view: &View<'_>,
    wanted: usize,
    below: &mut Below<'_>,
) -> std::result::Result<Vec<ItemKey>, Fault> {
    let mut kept = Kept::new(wanted);
    let mut is_damaged = false;
    view.scan_keys(view.range(), |place| {
        kept.offer(below, || {
            let key = key_at(place);
            is_damaged |= key.is_none();
            key
        });
        if is_damaged { Scan::Stop } else { Scan::Continue }
    })?;
    if is_damaged { Err(Fault::Damaged("an item key".into())) } else { Ok(kept.keys) }
}

fn by_trying(
    view: &View<'_>,
    wanted: usize,
    below: &mut Below<'_>,
) -> std::result::Result<Vec<ItemKey>, Fault> {
    let mut kept = Kept::new(wanted);
    let (mut tried, mut met) = (HashSet::new(), 0);
    for _ in 0..wanted.saturating_mul(SAMPLE_TRIES_PER_ITEM) {
        let lsn = 1 + below(view.lsn().0);
        if !tried.insert(lsn) {
            continue;
        }
        let keys = view.last_written_by(Lsn(lsn))?;
        met += usize::from(!keys.is_empty());
        keys.into_iter().for_each(|key| kept.offer(below, || Some(key)));
        if met >= 2 * wanted {
            break;
        }
    }
    Ok(kept.keys)
}

/// Keeps some of what it is offered, all of it as likely.
struct Kept {
    keys: Vec<ItemKey>,
    wanted: usize,
    offered: u64,
}

impl Kept {
    fn new(wanted: usize) -> Kept {
        Kept { keys: Vec::new(), wanted, offered: 0 }
    }

    /// The key is made only if it is kept.
    fn offer(&mut self, below: &mut Below<'_>, key: impl FnOnce() -> Option<ItemKey>) {
        self.offered += 1;
        if self.keys.len() < self.wanted {
            self.keys.extend(key());
        } else if let Some(place) = self.keys.get_mut(below(self.offered) as usize)
            && let Some(key) = key()
        {
            *place = key;
        }
    }
}

fn shuffle<T>(list: &mut [T], below: &mut Below<'_>) {
    for at in (1..list.len()).rev() {
        list.swap(at, below(at as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::{Doc, KeyComponent, PartitionKey, Path, Value, json as text};
    use orrery_store::{Action, Op, Precondition};
    use serde_json::json;

    use super::*;
    use crate::catalog::ContainerDefinition;
    use crate::options::{DbOptions, Durability};
    use crate::request::{Throughput, WriteOptions};

    fn doc(value: &serde_json::Value) -> Doc {
        text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
    }

    /// Numbers that look random.
    fn drawing() -> impl FnMut(u64) -> u64 {
        let mut state = 1u64;
        move |n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((u128::from(state >> 32) * u128::from(n)) >> 32) as u64
        }
    }

    /// A container of groups that were written one after the other, many items at a time.
    async fn container_of(groups: u32, items: u32) -> (Db, Arc<Container>) {
        let options = DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("sample", "here") };
        let db = Db::open(options).expect("an empty database opens");
        let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
        let definition =
            json!({"id": "c", "partitionKey": {"paths": ["/group"], "kind": "Hash", "version": 2}});
        let definition = ContainerDefinition::parse(&doc(&definition)).expect("a definition");
        let throughput = Some(Throughput::Manual(24_000));
        let container = db.create_container(database.resource.rid, definition, throughput).await;
        let container = container.expect("a new container");
        for group in 0..groups {
            let key = PartitionKey(vec![KeyComponent::Number(f64::from(group))]);
            let op = |n: u32| Op {
                target: Target::Id(ItemId::new(format!("{n}")).expect("a short id")),
                action: Action::Create(doc(&json!({"id": format!("{n}"), "group": group}))),
                precondition: Precondition::None,
                indexed: true,
                unlinked: false,
            };
            let ops = (0..items).map(op).collect();
            db.write(&container, &key, ops, &WriteOptions::default()).await.expect("new items");
        }
        (db, container)
    }

    fn groups_of(items: &[Item]) -> Vec<i64> {
        let path = Path::parse_property("/group").expect("a path");
        let group = |item: &Item| match item.doc.get(&path) {
            Value::Int(group) => group,
            other => panic!("{other:?} is no group"),
        };
        items.iter().map(group).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn items_that_were_written_together_are_chosen_one_by_one() {
        let (db, container) = container_of(100, 50).await;
        for choose in [by_walking, by_trying] {
            let mut chosen = 0;
            let mut met = HashSet::new();
            for range in &container.ranges {
                let keys = db.look_into(range, |view| choose(view, 50, &mut drawing())).expect("keys");
                chosen += keys.len();
                met.extend(keys.into_iter().map(|key| key.epk));
            }
            // Two hundred draws meet about 86 of a hundred groups; pages of 50 that stand together would meet 4.
            assert!(
                (150..=200).contains(&chosen) && met.len() > 60,
                "{chosen} items of {} groups",
                met.len()
            );
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn partitions_are_asked_in_proportion_to_what_they_hold() {
        let (db, container) = container_of(7, 50).await;
        let mut below = drawing();
        let all = db.sample(&container, 1_000, usize::MAX, &mut below).expect("all items");
        assert_eq!(all.len(), 350, "there are no more");
        let some = db.sample(&container, 140, usize::MAX, &mut below).expect("some items");
        assert_eq!(some.len(), 140);
        for group in 0..7 {
            let count = groups_of(&some).iter().filter(|found| **found == group).count();
            assert!((8..=34).contains(&count), "of group {group} there are {count}");
        }
        let few = db.sample(&container, 140, 1_000, &mut below).expect("few items");
        assert!((10..60).contains(&few.len()), "{} items of 1,000 bytes", few.len());
        assert_eq!(shares(&[70, 10, 10, 10], 100), [70, 10, 10, 10]);
        assert_eq!((shares(&[1, 1, 1], 100).iter().sum::<usize>(), shares(&[0, 0], 5)), (100, vec![0, 0]));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_items_are_seen_unless_time_is_over() {
        let (db, container) = container_of(20, 50).await;
        let later = db.world().monotonic() + std::time::Duration::from_secs(3_600);
        let (mut ids, mut items) = (0, 0);
        assert!(db.visit_ids(&container, later, |_| ids += 1).expect("they can be read"));
        assert!(db.visit_items(&container, later, |_, _| items += 1).expect("they can be read"));
        assert_eq!((ids, items), (1_000, 1_000));
        let is_whole = db.visit_items(&container, db.world().monotonic(), |_, _| items += 1);
        assert!(!is_whole.expect("they can be read") && items < 2_000, "{items}");
    }
}
