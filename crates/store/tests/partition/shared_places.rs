//! Several keys in one place: nothing that is done under one of them concerns the items of another.

use orrery_doc::{
    Doc, DocBuilder, Epk, EpkRange, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion,
    Value, epk,
};
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, FeedCursor, Group, ItemId, Lifetimes, Lsn, Op, OpError, Outcome, Partition, Scan, Schema,
    TICKS_PER_SECOND, Target, Txn, View, WholeKey,
};

use super::ground::{self, key_def, op, refused};

/// A definition and two keys that have one place under it.
struct Case {
    def: PartitionKeyDef,
    keys: [String; 2],
}

/// Keys of version 1 that begin alike; for a key of ordinary length, and for a short one, a string with the same hash of 128
/// bits. Such a string is computed backwards from the hash: its second block of 16 bytes follows from the first, and millions
/// of first blocks are tried until the second is text.
fn cases() -> Vec<Case> {
    let case = |kind, version, a: &str, b: &str| Case {
        def: PartitionKeyDef { kind, version, ..key_def() },
        keys: [a.to_owned(), b.to_owned()],
    };
    let begin = "x".repeat(100);
    use PartitionKeyKind::{Exact, Hash, MultiHash};
    use PartitionKeyVersion::{V1, V2};
    let (ordinary, planted) = ("victim-user-name-0123456789abcd", r#"toh6nzmhqhx83gozLB"t@}IQFbb^3/M"#);
    vec![
        case(Hash, V1, &format!("{begin}a"), &format!("{begin}b")),
        case(Hash, V2, ordinary, planted),
        case(Hash, V2, "a", "YM73YNh4yoWSgYf|p9^;g>k0>]_'K>1"),
        case(MultiHash, V2, ordinary, planted),
        case(MultiHash, V2, "a", "YM73YNh4yoWSgYf|p9^;g>k0>]_'K>1"),
        case(Exact, V2, ordinary, "0520lmASucLm{NEb5^J+U&D1R)"),
        case(Exact, V2, "a", "3sF3hS4dHOs]_[qTn+~S;q?Qwc"),
    ]
}

/// Both ways round, each in a world of its own.
fn worlds() -> impl Iterator<Item = World> {
    cases().into_iter().flat_map(|Case { def, keys: [a, b] }| {
        [World::new(&def, [a.clone(), b.clone()]), World::new(&def, [b, a])]
    })
}

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
    keys: [String; 2],
}

/// Which of the two keys of a world.
const A: usize = 0;
const B: usize = 1;

impl World {
    fn new(def: &PartitionKeyDef, keys: [String; 2]) -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let schema = Schema::new(def.clone(), 9, IndexingPolicy::default());
        let world = World { engine, partition, schema, keys };
        assert_eq!(world.scope(A), world.scope(B), "the keys share a place: {:?}", world.keys);
        world
    }

    fn key(&self, which: usize) -> PartitionKey {
        let key = PartitionKey::of_values(&self.schema.key, [Value::Str(&self.keys[which])].into_iter());
        assert!(self.schema.key.may_share_place(&key), "{key:?}");
        key
    }

    fn scope(&self, which: usize) -> Epk {
        epk(&self.schema.key, &self.key(which))
    }

    fn doc(&self, id: &str, which: usize, n: i64) -> Doc {
        let mut doc = DocBuilder::new();
        doc.begin_object();
        doc.name("id").str(id).name("pk").str(&self.keys[which]).name("n").int(n).end_object();
        doc.finish()
    }

    fn run(&self, which: usize, ops: Vec<Op>) -> Result<Vec<Outcome>, OpError> {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let key = Some(self.key(which));
        let txn = Txn { scope: self.scope(which), key, ops, now: 100 * TICKS_PER_SECOND };
        let done = group.run(&txn).map(|done| done.outcomes).map_err(refused);
        ground::commit(&self.engine, &self.partition, group);
        done
    }

    /// Whether a reader of a key must look at each item to know whose it is.
    fn must_look(&self, which: usize) -> bool {
        let key = self.key(which);
        let snapshot = self.engine.snapshot();
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        view.only(WholeKey::of(&self.schema.key, &key)).may_hold_expired().expect("the size decodes")
    }

    /// The number of items that a scan, a count and the feed show under a key, which must be the same.
    fn count(&self, which: usize) -> usize {
        let (scope, key) = (self.scope(which), self.key(which));
        let snapshot = self.engine.snapshot();
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        let view = view.only(WholeKey::of(&self.schema.key, &key));
        let range = EpkRange { max: scope.next().expect("not the last"), min: scope };
        let (mut scanned, mut fed) = (0, 0);
        view.scan(&range, None, |_, _| {
            scanned += 1;
            Scan::Continue
        })
        .expect("items decode");
        view.changes(&range, FeedCursor::after(Lsn(0)), |_, item| {
            fed += usize::from(item.is_some());
            Scan::Continue
        })
        .expect("items decode");
        assert_eq!((scanned, view.count_items(&range).expect("items decode")), (fed, fed as u64));
        fed
    }
}

#[test]
fn no_action_reaches_an_item_of_another_key_in_its_place() {
    for world in worlds() {
        let created = world.run(A, vec![op("1", Action::Create(world.doc("1", A, 1)))]).expect("a new item");
        let rid = created[0].item.header.rid;
        let missing = [
            Action::Read,
            Action::Delete,
            Action::Replace(world.doc("1", B, 2)),
            Action::Rename { id: ItemId::from("2"), doc: world.doc("2", B, 2) },
            Action::Wrong { needs_item: true },
        ];
        for action in missing {
            let by_rid = Op { target: Target::Rid(rid), ..op("1", action.clone()) };
            for op in [op("1", action.clone()), by_rid] {
                let answer = world.run(B, vec![op]);
                assert!(matches!(answer, Err(OpError::NotFound)), "{:?} {action:?}: {answer:?}", world.keys);
            }
        }
        for action in [Action::Create(world.doc("1", B, 2)), Action::Upsert(world.doc("1", B, 2))] {
            let answer = world.run(B, vec![op("1", action.clone())]);
            assert!(matches!(answer, Err(OpError::KeyCollision)), "{:?} {action:?}: {answer:?}", world.keys);
        }
        assert_eq!((world.count(A), world.count(B)), (1, 0), "{:?}", world.keys);
        let read = world.run(A, vec![op("1", Action::Read)]).expect("nothing happened to it");
        assert_eq!(read[0].item.doc.bytes(), world.doc("1", A, 1).bytes());
        world.run(B, vec![op("2", Action::Create(world.doc("2", B, 2)))]).expect("a new item");
        assert_eq!((world.count(A), world.count(B)), (1, 1), "{:?}", world.keys);
    }
}

#[test]
fn an_item_is_not_renamed_onto_one_of_another_key() {
    for world in worlds() {
        world.run(A, vec![op("1", Action::Create(world.doc("1", A, 1)))]).expect("a new item");
        world.run(B, vec![op("2", Action::Create(world.doc("2", B, 2)))]).expect("a new item");
        let rename = Action::Rename { id: ItemId::from("1"), doc: world.doc("1", B, 3) };
        assert!(matches!(world.run(B, vec![op("2", rename)]), Err(OpError::KeyCollision)));
        // A batch that has written under the id sees what it has written, and the other key still does not.
        let batch = vec![op("3", Action::Create(world.doc("3", A, 4))), op("2", Action::Delete)];
        assert!(matches!(world.run(A, batch), Err(OpError::NotFound)));
        assert_eq!((world.count(A), world.count(B)), (1, 1), "{:?}", world.keys);
    }
}

/// Counting without a look at the items is for those who have the place for themselves, which its size says.
#[test]
fn a_key_that_is_alone_in_its_place_is_counted_without_its_items() {
    for world in worlds() {
        let create =
            |which, id| world.run(which, vec![op(id, Action::Create(world.doc(id, which, 1)))]).map(drop);
        let delete = |which, id| world.run(which, vec![op(id, Action::Delete)]).map(drop);
        let looks = || (world.must_look(A), world.must_look(B));
        assert_eq!(looks(), (false, false), "there is nothing: {:?}", world.keys);
        create(A, "1").expect("a new item");
        create(A, "2").expect("a new item");
        assert_eq!(looks(), (false, true), "{:?}", world.keys);
        create(B, "3").expect("a new item");
        assert_eq!(looks(), (true, true), "{:?}", world.keys);
        delete(B, "3").expect("it is there");
        assert_eq!(looks(), (true, true), "it is not known that the last of them has gone: {:?}", world.keys);
        delete(A, "1").and_then(|()| delete(A, "2")).expect("they are there");
        create(B, "4").expect("a new item");
        assert_eq!(looks(), (true, false), "{:?}", world.keys);
        let report = world.partition.verify(&world.engine.snapshot(), &world.schema).expect("items decode");
        assert_eq!(report.findings, Vec::<String>::new());
    }
}
