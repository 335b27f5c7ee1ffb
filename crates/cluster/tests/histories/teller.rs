//! Who works in the bank, and what they were told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orrery_cluster::store::{Action, Edit, EditRefusal, Edited, Effect, Item, OpError};
use orrery_cluster::{ErrorKind, ScriptError, TriggerNames};
use orrery_testkit::Random;
use serde_json::{Value, json};

use crate::bank::{ACCOUNTS, Bank, KEYS, create, from_item, key, op, to_doc};

/// Adds one to the value of an item.
#[derive(Debug)]
struct OneMore;

impl Edit for OneMore {
    fn edit(&self, stored: Option<&Item>, _now: u64) -> Result<Edited, EditRefusal> {
        let mut item = from_item(stored.expect("an edit that may not create is given an item"));
        item["value"] = json!(item["value"].as_i64().expect("a number") + 1);
        Ok(Edited::To(to_doc(&item)))
    }

    fn value_bytes(&self) -> usize {
        0
    }

    fn properties(&self) -> u32 {
        1
    }
}

pub struct Teller {
    pub bank: Arc<Bank>,
    pub told: Told,
    random: Random,
    number: usize,
    made: usize,
}

/// What was acknowledged, by logical partition, and what was wrong with it.
#[derive(Default)]
pub struct Told {
    pub operations: usize,
    pub entries: [BTreeSet<String>; KEYS],
    pub made: [BTreeSet<String>; KEYS],
    counts: [Vec<i64>; KEYS],
    kinds: BTreeMap<&'static str, usize>,
    pub wrong: Vec<String>,
}

impl Told {
    pub fn add(&mut self, other: Told) {
        self.operations += other.operations;
        for number in 0..KEYS {
            self.entries[number].extend(other.entries[number].iter().cloned());
            self.made[number].extend(other.made[number].iter().cloned());
            self.counts[number].extend(&other.counts[number]);
        }
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, usize)> {
        const EXPECTED: [&str; 10] = [
            "transfer",
            "transfer that fails",
            "count by procedure",
            "count by trigger",
            "trigger that fails",
            "count by patch",
            "count by batch",
            "leave duty",
            "audit by procedure",
            "audit by batch",
        ];
        EXPECTED.into_iter().map(|kind| (kind, self.kinds.get(kind).copied().unwrap_or(0)))
    }

    pub fn summary(&self) -> String {
        format!("{} operations: {:?}", self.operations, self.kinds)
    }

    /// No number was told twice, and the last one is how many there are.
    pub fn check_counts(&self, number: usize, items: &[Value]) -> Option<String> {
        let mut told = self.counts[number].clone();
        told.sort_unstable();
        let value = items.iter().find(|item| item["id"] == "counter")?["value"].as_i64()?;
        let expected: Vec<i64> = (1..=told.len() as i64).collect();
        let first = told.iter().zip(&expected).find(|(told, expected)| told != expected);
        (told != expected || value != told.len() as i64).then(|| {
            format!(
                "key {number}: the counter is {value} after {} counts, first wrong: {first:?}",
                told.len()
            )
        })
    }
}

impl Teller {
    pub fn new(bank: Arc<Bank>, random: Random, number: usize) -> Teller {
        Teller { bank, told: Told::default(), random, number, made: 0 }
    }

    /// One request.
    pub async fn work(&mut self) {
        let place = self.random.below(KEYS);
        match self.random.below(20) {
            0..=4 => self.transfer(place).await,
            5 | 6 => self.count(place).await,
            7 | 8 => self.create_and_count(place).await,
            9 | 10 => self.patch(place).await,
            11..=13 => self.batch(place).await,
            14 => self.leave(place).await,
            15 => self.audit(place).await,
            _ => self.audit_by_batch(place).await,
        }
    }

    fn did(&mut self, kind: &'static str, operations: usize) {
        *self.told.kinds.entry(kind).or_default() += 1;
        self.told.operations += operations;
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-{}-{}", self.number, self.made)
    }

    /// A script may be told to come again; whatever else it is told must be expected.
    fn refused(&mut self, what: &str, error: &ErrorKind) {
        match error {
            ErrorKind::RetryWith | ErrorKind::ScriptsBusy => self.did("told to come again", 0),
            // On a busy machine a script may run out of time; then nothing of it happened.
            ErrorKind::Script(ScriptError::TimedOut { .. }) => self.did("out of time", 0),
            ErrorKind::Script(ScriptError::Threw { message, .. }) if message == "Error: on purpose" => {}
            ErrorKind::Script(ScriptError::Threw { message, .. }) if message == "Error: not accepted" => {
                self.did("out of time", 0);
            }
            error => self.told.wrong.push(format!("{what}: {error}")),
        }
    }

    async fn transfer(&mut self, place: usize) {
        let id = self.new_id("entry");
        let (from, to) = (self.random.below(ACCOUNTS), self.random.below(ACCOUNTS - 1));
        let to = if to >= from { to + 1 } else { to };
        let amount = 1 + self.random.below(60);
        let fails = if self.random.one_in(5) { 1 + self.random.below(2) } else { 0 };
        let entry = json!({
            "id": id, "pk": format!("key{place}"), "kind": "entry",
            "from": format!("a{from}"), "to": format!("a{to}"), "amount": amount,
        });
        let answer = self.bank.execute("transfer", place, json!([entry, fails])).await;
        self.did(if fails == 0 { "transfer" } else { "transfer that fails" }, 5);
        match answer {
            Ok(body) => {
                if body["sum"] != Bank::expected_sum() {
                    self.told.wrong.push(format!("key {place}: a transfer saw {} in all", body["sum"]));
                }
                if body["moved"] == true {
                    self.told.entries[place].insert(id);
                }
            }
            Err(error) => self.refused("transfer", &error),
        }
    }

    async fn count(&mut self, place: usize) {
        self.did("count by procedure", 2);
        match self.bank.execute("count", place, json!([])).await {
            Ok(reached) => self.told.counts[place].push(reached.as_i64().expect("a number")),
            Err(error) => self.refused("count", &error),
        }
    }

    async fn create_and_count(&mut self, place: usize) {
        let id = self.new_id("triggered");
        let fails = self.random.one_in(4);
        let item = json!({
            "id": id, "pk": format!("key{place}"), "kind": if fails { "ghost" } else { "made" },
            "fails": fails, "triggered": true,
        });
        let names = TriggerNames { pre: vec!["markBefore".into()], post: vec!["countAfter".into()] };
        let bank = self.bank.clone();
        let op = create(&item);
        let reply =
            bank.db.write_with_triggers(&bank.container, &key(place), op, &names, &bank.options).await;
        self.did(if fails { "trigger that fails" } else { "count by trigger" }, 3);
        match reply {
            Ok(reply) => {
                let body: Value = serde_json::from_slice(&reply.body.expect("it answers")).expect("JSON");
                self.told.counts[place].push(body["reached"].as_i64().expect("a number"));
                self.told.made[place].insert(id);
            }
            Err(error) => self.refused("trigger", &error.kind),
        }
    }

    fn increment() -> Action {
        Action::Edit(Arc::new(OneMore))
    }

    async fn patch(&mut self, place: usize) {
        self.did("count by patch", 1);
        match self.bank.write(place, vec![op("counter", Self::increment())]).await {
            Ok(outcomes) => {
                let value = from_item(&outcomes[0].item)["value"].as_i64().expect("a number");
                self.told.counts[place].push(value);
            }
            Err(error) => self.told.wrong.push(format!("patch: {error}")),
        }
    }

    /// Counts, makes a few items, and calls everybody back to duty.
    async fn batch(&mut self, place: usize) {
        let pk = format!("key{place}");
        let ids: Vec<String> = (0..8).map(|_| self.new_id("made")).collect();
        let fails = self.random.one_in(4);
        let mut ops = vec![op("counter", Self::increment())];
        ops.extend(ids.iter().map(|id| create(&json!({"id": id, "pk": pk, "kind": "made"}))));
        for who in ["x", "y"] {
            let back = json!({"id": who, "pk": pk, "kind": "duty", "on": true});
            ops.push(op(who, Action::Replace(to_doc(&back))));
        }
        if fails {
            ops.push(create(&json!({"id": "ghost", "pk": pk, "kind": "ghost"})));
            ops.push(create(&json!({"id": "counter", "pk": pk, "kind": "ghost"})));
        }
        self.did("count by batch", ops.len());
        match self.bank.write(place, ops).await {
            Ok(_) if fails => self.told.wrong.push("a batch that must fail did not".into()),
            Ok(outcomes) => {
                let value = from_item(&outcomes[0].item)["value"].as_i64().expect("a number");
                self.told.counts[place].push(value);
                self.told.made[place].extend(ids);
            }
            Err(ErrorKind::Op { error: OpError::Conflict, .. }) if fails => {}
            Err(error) => self.told.wrong.push(format!("batch: {error}")),
        }
    }

    async fn leave(&mut self, place: usize) {
        let who = *self.random.pick(&["x", "y"]);
        self.did("leave duty", 2);
        match self.bank.execute("leave", place, json!([who])).await {
            Ok(body) if body["on"] == 0 => {
                self.told.wrong.push(format!("key {place}: nobody is on duty"));
            }
            Ok(_) => {}
            Err(error) => self.refused("leave", &error),
        }
    }

    async fn audit(&mut self, place: usize) {
        self.did("audit by procedure", 1);
        match self.bank.execute("audit", place, json!([])).await {
            Ok(body) => {
                let expected = Bank::expected_sum();
                if body["sum"] != expected || body["on"] == 0 || body["ghosts"] != 0 {
                    self.told.wrong.push(format!("key {place}: an audit found {body}"));
                }
            }
            Err(error) => self.refused("audit", &error),
        }
    }

    async fn audit_by_batch(&mut self, place: usize) {
        let accounts = (0..ACCOUNTS).map(|account| op(&format!("a{account}"), Action::Read));
        let duty = ["x", "y"].map(|who| op(who, Action::Read));
        let ops: Vec<_> = accounts.chain(duty).collect();
        self.did("audit by batch", ops.len());
        match self.bank.write(place, ops).await {
            Ok(outcomes) => {
                assert!(outcomes.iter().all(|outcome| outcome.effect == Effect::Read));
                let items: Vec<Value> = outcomes.iter().map(|outcome| from_item(&outcome.item)).collect();
                let sum: i64 = items.iter().filter_map(|item| item["balance"].as_i64()).sum();
                if sum != Bank::expected_sum() || items.iter().all(|item| item["on"] != true) {
                    self.told
                        .wrong
                        .push(format!("key {place}: a batch found {sum} and {:?}", &items[ACCOUNTS..]));
                }
            }
            Err(error) => self.told.wrong.push(format!("audit by batch: {error}")),
        }
    }
}
