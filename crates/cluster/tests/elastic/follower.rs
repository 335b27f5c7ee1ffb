//! A reader of the change feed, who follows splits and merges as an SDK does: by parts of the key space.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_cluster::store::FeedCursor;
use orrery_cluster::{ChangesFrom, ErrorKind, Scope};
use orrery_doc::EpkRange;

use crate::world::{World, page};

pub struct Follower {
    world: Arc<World>,
    /// How far each part of the key space has been read.
    parts: Vec<(EpkRange, Option<FeedCursor>)>,
    versions: HashMap<(String, String), u64>,
    pub seen: usize,
}

impl Follower {
    pub fn new(world: Arc<World>) -> Follower {
        Follower { world, parts: vec![(EpkRange::full(), None)], versions: HashMap::new(), seen: 0 }
    }

    pub fn version(&self, pk: &str, id: &str) -> Option<u64> {
        self.versions.get(&(pk.to_owned(), id.to_owned())).copied()
    }

    pub async fn read_to_the_end(&mut self) {
        while !self.read().await {}
    }

    /// One page of each part; true when there was nothing more.
    pub async fn read(&mut self) -> bool {
        let mut is_end = true;
        for (part, cursor) in std::mem::take(&mut self.parts) {
            let from = cursor.map_or(ChangesFrom::Beginning, ChangesFrom::After);
            let container = self.world.now();
            match self.world.db.changes(&container, &Scope::Epk(part.clone()), from, &page()).await {
                Ok(page) => {
                    is_end &= page.is_last;
                    page.changes.iter().for_each(|item| self.take(item));
                    self.parts.push((part, Some(page.seen)));
                }
                Err(error) if matches!(error.kind, ErrorKind::RangeGone) => {
                    is_end = false;
                    let ranges = self.world.ranges();
                    let pieces = ranges.iter().map(|range| range.range.intersection(&part));
                    self.parts.extend(pieces.filter(|piece| !piece.is_empty()).map(|piece| (piece, cursor)));
                }
                Err(error) => panic!("the feed could not be read: {}", error.kind),
            }
        }
        is_end
    }

    fn take(&mut self, item: &orrery_cluster::store::Item) {
        let root = item.doc.root();
        let text = |name: &str| root.get(name).as_str().unwrap_or_default().to_owned();
        let version = root.get("n").as_i64().unwrap_or_default() as u64;
        self.seen += 1;
        let last = self.versions.insert((text("pk"), text("id")), version);
        assert!(last.is_none_or(|last| last < version), "{last:?} came before {version}, or twice");
    }
}
