//! What is known of a job: what was asked for, how far it has come, how it ended. All of it is one record of the catalog.

use orrery_doc::{Epk, EpkRange};
use orrery_store::{FeedCursor, ItemId, ItemKey, Lsn};
use serde::{Deserialize, Serialize};

use crate::catalog::rid_text;
use crate::error::{Error, Result};
use crate::rid::Rid;

/// Collisions that a report shows; the rest is counted.
const COLLISIONS_SHOWN: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JobKind {
    /// From one container into another.
    Copy,
    /// Into a new container that takes the name of the old one.
    Rekey,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JobMode {
    /// What is there when the job comes by; nobody should write meanwhile.
    Offline,
    /// With every change until the cut-over.
    #[default]
    Online,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JobState {
    Running,
    Paused,
    /// The cut-over was asked for, or comes by itself, and happens as soon as the copy has caught up.
    Completing,
    Completed,
    Failed,
    Cancelled,
}

impl JobState {
    pub fn is_over(self) -> bool {
        matches!(self, JobState::Completed | JobState::Failed | JobState::Cancelled)
    }
}

/// A container as the job's owner named it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerName {
    pub database: String,
    pub container: String,
}

/// A job as it is stored. What its owner may change is the state; the rest belongs to the task that does the work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    pub id: String,
    /// All records of the catalog have a kind, so this is stored under another name.
    #[serde(rename = "job")]
    pub kind: JobKind,
    pub mode: JobMode,
    pub state: JobState,
    #[serde(with = "rid_text")]
    pub source: Rid,
    #[serde(with = "rid_text")]
    pub target: Rid,
    pub source_name: ContainerName,
    pub target_name: ContainerName,
    /// What the definition of a re-keyed container had as its key. For as long as the job is remembered, clients may
    /// name this key in writes that bring the item along.
    pub previous_key: Option<serde_json::Value>,
    /// Items and changes that are copied in a second at most.
    pub rate: u32,
    /// Whether the cut-over comes by itself.
    pub completes_itself: bool,
    /// Seconds since 1970.
    pub created: u64,
    pub ended: Option<u64>,
    pub progress: JobProgress,
    pub failure: Option<String>,
    pub cut_over: Option<CutOver>,
}

/// How far the work has come. What was copied after it was stored is copied again after a crash, to the same end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobProgress {
    pub intervals: Vec<Interval>,
    pub items_copied: u64,
    pub changes_applied: u64,
    pub collisions: Collisions,
    /// Items that met a unique key of another item, which may be about to go.
    pub parked: Vec<Place>,
}

/// A part of the source's key space: how far it was walked, and up to which write its changes were followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    #[serde(with = "epk_text")]
    pub min: Epk,
    #[serde(with = "epk_text")]
    pub max: Epk,
    pub lsn: u64,
    pub place: u16,
    /// The last item that the walk has passed.
    pub after: Option<Place>,
    pub is_walked: bool,
}

/// Where an item lies in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    #[serde(with = "epk_text")]
    pub epk: Epk,
    #[serde(with = "id_text")]
    pub id: ItemId,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Collisions {
    pub count: u64,
    pub examples: Vec<Collision>,
}

/// An item that has no place in the target, because another has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Collision {
    pub cause: CollisionCause,
    pub id: String,
    /// Keys as request headers show them.
    pub source_key: String,
    pub target_key: String,
    /// The key of the item that has the place.
    pub other_source_key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CollisionCause {
    /// Another item has the same id under the same key.
    SameId,
    /// Another item has the same values at a unique key.
    UniqueKey,
    /// The value at the key is longer than the target allows.
    KeyTooLong,
}

/// The moment from which the target has everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CutOver {
    /// For how long writes to the source waited.
    pub held_ms: u64,
    /// The last write of each physical partition of the source that is in the target.
    pub lsns: Vec<RangeLsn>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RangeLsn {
    pub partition: String,
    pub lsn: u64,
}

impl JobRecord {
    /// Whether its source must record all changes, for now.
    pub fn follows(&self) -> bool {
        self.mode == JobMode::Online && !self.state.is_over()
    }
}

impl Interval {
    pub fn new(epk: &EpkRange, lsn: Lsn) -> Interval {
        let cursor = FeedCursor::after(lsn);
        Interval {
            min: epk.min.clone(),
            max: epk.max.clone(),
            lsn: cursor.lsn.0,
            place: cursor.place,
            after: None,
            is_walked: false,
        }
    }

    pub fn epk(&self) -> EpkRange {
        EpkRange::new(self.min.clone(), self.max.clone())
    }

    pub fn cursor(&self) -> FeedCursor {
        FeedCursor { lsn: Lsn(self.lsn), place: self.place }
    }

    pub fn set_cursor(&mut self, cursor: FeedCursor) {
        (self.lsn, self.place) = (cursor.lsn.0, cursor.place);
    }

    /// Cuts the interval in two where a partition of the source ends. What was seen of the whole was seen of both.
    pub fn cut(&mut self, at: &Epk) -> Interval {
        let right = Interval { min: at.clone(), ..self.clone() };
        self.max = at.clone();
        let is_beyond = |after: &Place| after.epk >= *at;
        if self.after.as_ref().is_some_and(is_beyond) {
            self.is_walked = true;
            return right;
        }
        // The walk has not come so far.
        Interval { after: None, is_walked: right.is_walked, ..right }
    }
}

impl Place {
    pub fn key(&self) -> ItemKey {
        ItemKey { epk: self.epk.clone(), id: self.id.clone() }
    }
}

impl From<ItemKey> for Place {
    fn from(key: ItemKey) -> Place {
        Place { epk: key.epk, id: key.id }
    }
}

impl Collisions {
    pub fn add(&mut self, collision: Collision) {
        self.count += 1;
        if self.examples.len() < COLLISIONS_SHOWN {
            self.examples.push(collision);
        }
    }
}

impl ContainerName {
    pub fn check(&self) -> Result<()> {
        match self.database.is_empty() || self.container.is_empty() {
            true => Err(Error::invalid("A job names databases and containers by their ids.")),
            false => Ok(()),
        }
    }
}

mod epk_text {
    use orrery_doc::Epk;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(epk: &Epk, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&epk.to_hex())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Epk, D::Error> {
        let text = String::deserialize(deserializer)?;
        Epk::from_hex(&text).ok_or_else(|| D::Error::custom("not an effective partition key"))
    }
}

/// Ids that are text as text, all others by their bytes.
mod id_text {
    use orrery_store::ItemId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes { bytes: Vec<u8> },
    }

    pub fn serialize<S: Serializer>(id: &ItemId, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match id.as_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes { bytes: id.as_bytes().to_vec() },
        };
        form.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ItemId, D::Error> {
        let bytes = match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into_bytes(),
            Form::Bytes { bytes } => bytes,
        };
        ItemId::new(bytes).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epk(text: &str) -> Epk {
        Epk::from_hex(text).expect("hexadecimal")
    }

    #[test]
    fn places_keep_ids_of_any_bytes_and_read_the_texts_of_before() {
        let old: Place = serde_json::from_str(r#"{"epk":"05","id":"é"}"#).expect("a place of an older build");
        assert_eq!(old, Place { epk: epk("05"), id: "é".into() });
        for id in [ItemId::default(), "é".into(), ItemId::new([0xFF, 0]).expect("a short id")] {
            let place = Place { epk: epk("05"), id };
            let text = serde_json::to_string(&place).expect("plain data");
            assert_eq!(serde_json::from_str::<Place>(&text).expect("its own text"), place);
        }
    }

    #[test]
    fn a_cut_keeps_what_was_seen_of_both_parts() {
        let whole = EpkRange::new(epk("10"), epk("90"));
        let at = |after: Option<&str>, is_walked| Interval {
            after: after.map(|text| Place { epk: epk(text), id: "x".into() }),
            is_walked,
            ..Interval::new(&whole, Lsn(7))
        };
        let seen = |interval: &Interval| {
            (interval.after.as_ref().map(|place| place.epk.to_hex()), interval.is_walked, interval.lsn)
        };
        let mut fresh = at(None, false);
        let right = fresh.cut(&epk("50"));
        assert_eq!((seen(&fresh), seen(&right)), ((None, false, 7), (None, false, 7)));
        assert_eq!(
            (fresh.max.to_hex(), right.min.to_hex(), right.max.to_hex()),
            ("50".into(), "50".into(), "90".into())
        );
        let mut early = at(Some("20"), false);
        let right = early.cut(&epk("50"));
        assert_eq!((seen(&early), seen(&right)), ((Some("20".into()), false, 7), (None, false, 7)));
        let mut late = at(Some("60"), false);
        let right = late.cut(&epk("50"));
        assert_eq!((late.is_walked, seen(&right)), (true, (Some("60".into()), false, 7)));
        let mut walked = at(None, true);
        let right = walked.cut(&epk("50"));
        assert!(walked.is_walked && right.is_walked);
    }
}
