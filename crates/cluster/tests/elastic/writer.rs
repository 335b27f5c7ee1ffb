//! A client that writes to its own items and knows what must be there.

use std::collections::BTreeMap;
use std::sync::Arc;

use orrery_cluster::store::{Action, ItemId, OpError, Precondition, Target};
use orrery_cluster::{Consistency, ErrorKind, RangeToken, ReadOptions, SessionToken, WriteOptions};
use orrery_testkit::Random;
use serde_json::json;

use crate::follower::Follower;
use crate::world::{World, key, op, to_doc};

const KEYS: usize = 40;
const IDS: usize = 8;

pub struct Writer {
    world: Arc<World>,
    random: Random,
    number: usize,
    /// The version of each live item.
    items: BTreeMap<(usize, usize), u64>,
    /// How often each was ever written.
    versions: BTreeMap<(usize, usize), u64>,
    session: SessionToken,
    pub writes: usize,
}

impl Writer {
    pub fn new(world: Arc<World>, random: Random, number: usize) -> Writer {
        let (items, versions, session) = Default::default();
        Writer { world, random, number, items, versions, session, writes: 0 }
    }

    fn pk(&self, place: usize) -> String {
        format!("w{}-{place}", self.number)
    }

    pub async fn work(&mut self) {
        let place = (self.random.below(KEYS), self.random.below(IDS));
        match self.random.below(8) {
            0 => self.delete(place).await,
            1 | 2 => self.read(place).await,
            3 => self.conflict(place).await,
            _ => self.put(place).await,
        }
    }

    async fn put(&mut self, place: (usize, usize)) {
        let version = self.versions.get(&place).copied().unwrap_or(0) + 1;
        let (pk, id) = (self.pk(place.0), format!("i{}", place.1));
        let text = "x".repeat(self.random.below(300));
        // A value of a unique key that the same item gives up and takes again with every other write.
        let unique = place.1 * 2 + (version % 2) as usize;
        let item = json!({"id": id, "pk": pk, "n": version, "text": text, "unique": unique, "ttl": 100_000});
        let ops = vec![op(&id, Action::Upsert(to_doc(&item)))];
        self.write(&pk, ops).await.expect("acknowledged");
        self.versions.insert(place, version);
        self.items.insert(place, version);
    }

    async fn delete(&mut self, place: (usize, usize)) {
        let (pk, id) = (self.pk(place.0), format!("i{}", place.1));
        let answer = self.write(&pk, vec![op(&id, Action::Delete)]).await;
        match self.items.remove(&place) {
            Some(_) => answer.expect("it was there"),
            None => assert!(matches!(answer, Err(OpError::NotFound)), "{answer:?}"),
        }
    }

    /// Another item with the values of this one at the unique key is refused.
    async fn conflict(&mut self, place: (usize, usize)) {
        let Some(version) = self.items.get(&place) else { return };
        let (pk, unique) = (self.pk(place.0), place.1 * 2 + (version % 2) as usize);
        let item = json!({"id": "other", "pk": pk, "n": 1, "unique": unique});
        let answer = self.write(&pk, vec![op("other", Action::Create(to_doc(&item)))]).await;
        assert!(matches!(answer, Err(OpError::UniqueConflict)), "{answer:?}");
    }

    async fn write(&mut self, pk: &str, ops: Vec<orrery_cluster::store::Op>) -> Result<(), OpError> {
        let world = &self.world;
        match world.db.write(&world.container, &key(pk), ops, &WriteOptions::default()).await {
            Ok(reply) => {
                self.writes += 1;
                let served = reply.receipt.served.expect("a partition has served it");
                let (range, lsn) = (served.range_id, served.lsn);
                self.session.ranges.retain(|token| token.range != range);
                self.session.ranges.push(RangeToken { range, version: Some(-1), lsn, regions: vec![] });
                Ok(())
            }
            Err(error) => match error.kind {
                ErrorKind::Op { error, .. } => Err(error),
                other => panic!("a client was told of a split: {other}"),
            },
        }
    }

    /// What was acknowledged is there, for a client that names what it has seen.
    async fn read(&mut self, place: (usize, usize)) {
        let options = ReadOptions {
            consistency: Consistency::Session,
            session: Some(self.session.clone()),
            precondition: Precondition::None,
        };
        let (pk, target) =
            (self.pk(place.0), Target::Id(ItemId::new(format!("i{}", place.1)).expect("a short id")));
        let container = self.world.now();
        let found = match self.world.db.read(&container, &key(&pk), &target, &options).await {
            Ok(reply) => reply.item.doc.root().get("n").as_i64(),
            Err(error) => match error.kind {
                ErrorKind::Op { error: OpError::NotFound, .. } => None,
                other => panic!("a client was told of a split: {other}"),
            },
        };
        assert_eq!(found, self.items.get(&place).map(|version| *version as i64));
    }

    /// Compares all items with the database and with what a reader of the feed has seen; returns how many there are.
    pub async fn check(mut self, follower: &Follower) -> usize {
        for place in (0..KEYS).flat_map(|pk| (0..IDS).map(move |id| (pk, id))) {
            self.read(place).await;
            if let Some(version) = self.items.get(&place) {
                let seen = follower.version(&self.pk(place.0), &format!("i{}", place.1));
                assert_eq!(seen, Some(*version), "the feed ends with the last version");
            }
        }
        self.items.len()
    }
}
