//! The stored form of catalog entries: items of partition 0, one JSON document each.

use std::fmt;

use orrery_doc::{Doc, Epk, EpkRange, TermOrder, json};
use orrery_store::limits::RESOURCE_DEPTH_MAX;
use orrery_store::{Lsn, PartitionSpec, Source};
use serde::{Deserialize, Serialize};

use super::GoneRange;
use super::account::AccountRecord;
use super::children::ChildKind;
use super::spec::{Api, OrderName};
use crate::copy::JobRecord;
use crate::error::Error;
use crate::range::Range;
use crate::request::Throughput;
use crate::rid::Rid;
use crate::throughput::{Hour, Settings};

/// What this build writes. It changes when the meaning of stored keys or values does; `docs/format.md` tells them all.
pub const FORMAT: u32 = 5;
/// What this build can read; see `upgrade`.
pub const FORMAT_OLDEST: u32 = 4;

/// Wrapping a body adds two levels to its depth.
const RECORD_DEPTH_MAX: usize = RESOURCE_DEPTH_MAX + 4;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Record {
    Counters(Counters),
    Account(AccountRecord),
    Database(DatabaseRecord),
    Container(ContainerRecord),
    Ranges(RangesRecord),
    Index(IndexRecord),
    Retired(RetiredRecord),
    Offer(OfferRecord),
    Throughput(ThroughputRecord),
    Hours(HoursRecord),
    Child(ChildRecord),
    Job(Box<JobRecord>),
    Dropped(DroppedRecord),
}

/// The next free number of each sort; numbers are never given twice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counters {
    pub database: u32,
    pub container: u32,
    pub offer: u32,
    pub partition: u32,
    pub generation: u32,
    /// The last number given to a child; stored formats before children existed leave it out.
    #[serde(default)]
    pub child: u32,
    /// The format of everything that the node stores; zero before formats had a number.
    #[serde(default)]
    pub format: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DatabaseRecord {
    #[serde(with = "rid_text")]
    pub rid: Rid,
    pub body: serde_json::Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecord {
    #[serde(with = "rid_text")]
    pub rid: Rid,
    /// Prefix of its items' keys.
    pub number: u32,
    #[serde(default)]
    pub api: Api,
    #[serde(default = "order_of_sql", with = "OrderName")]
    pub order: TermOrder,
    pub body: serde_json::Value,
    /// The generation of its rid terms.
    pub rids: u32,
}

/// All containers had this order before they had a choice.
fn order_of_sql() -> TermOrder {
    TermOrder::Sql
}

/// The physical partitions of a container. They change without the container changing, so they have a record of
/// their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RangesRecord {
    /// Of the container.
    #[serde(with = "rid_text")]
    pub rid: Rid,
    pub ranges: Vec<RangeRecord>,
    /// The next free id for a range.
    pub next_range: u32,
    /// Ranges that clients may still name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<GoneRecord>,
}

/// A range that others have succeeded, and what it held.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GoneRecord {
    pub id: u32,
    pub min: String,
    pub max: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RangeRecord {
    pub id: u32,
    pub partition: u32,
    /// EPKs in hexadecimal.
    pub min: String,
    pub max: String,
    /// Ranges that this one comes from.
    pub parents: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceRecord>,
}

/// A partition that is no more, and of which a range still reads a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceRecord {
    pub partition: u32,
    pub min: String,
    pub max: String,
    pub after: u64,
    pub to: u64,
}

/// The indexes of a container, which change without it too.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexRecord {
    /// Of the container.
    #[serde(with = "rid_text")]
    pub rid: Rid,
    pub ranges: Vec<RangeIndexRecord>,
    /// What of the definition the active indexes were made by, when the container's is another now.
    pub made_by: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeIndexRecord {
    /// Of the range.
    pub id: u32,
    pub active: u32,
    pub building: Option<u32>,
    /// The active index is that of a range that was split; others use it too.
    #[serde(default)]
    pub borrowed: bool,
    /// What is being built is to be the index of the range that this one and a neighbour become.
    #[serde(default)]
    pub merging: bool,
}

/// An index that nobody uses any more and whose keys are still to be erased.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetiredRecord {
    /// Those that counted paths for it.
    pub partitions: Vec<u32>,
    pub generation: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfferRecord {
    #[serde(with = "rid_text")]
    pub rid: Rid,
    #[serde(with = "rid_text")]
    pub target: Rid,
    pub autoscale: bool,
    pub throughput: u32,
    pub increment_percent: Option<u32>,
    /// The most that was ever provisioned; it limits how low one may go.
    pub highest: u32,
}

/// What an operator has set for a container besides its offer; there is none while all is as it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThroughputRecord {
    /// Of the container.
    #[serde(with = "rid_text")]
    pub rid: Rid,
    pub settings: Settings,
}

/// The highest use of the last hours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoursRecord {
    /// Of the database or container that has an offer.
    #[serde(with = "rid_text")]
    pub rid: Rid,
    pub hours: Vec<Hour>,
}

/// A user, a permission, a script: anything below an owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildRecord {
    #[serde(with = "rid_text")]
    pub rid: Rid,
    pub child: ChildKind,
    #[serde(with = "rid_text")]
    pub owner: Rid,
    pub number: u32,
    pub body: serde_json::Value,
}

/// A container whose keys are still to be erased.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DroppedRecord {
    pub number: u32,
    pub partitions: Vec<u32>,
    pub generations: Vec<u32>,
}

/// Which record it is. Shown as the id of the item under which partition 0 keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordId {
    Counters,
    Account,
    Database(Rid),
    Container(Rid),
    Ranges(Rid),
    Index(Rid),
    Retired(u32),
    Offer(Rid),
    Throughput(Rid),
    Hours(Rid),
    Child(Rid),
    Job(String),
    Dropped(u32),
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordId::Counters => f.write_str("counters"),
            RecordId::Account => f.write_str("account"),
            RecordId::Database(rid) => write!(f, "database:{rid}"),
            RecordId::Container(rid) => write!(f, "container:{rid}"),
            RecordId::Ranges(rid) => write!(f, "ranges:{rid}"),
            RecordId::Index(rid) => write!(f, "index:{rid}"),
            RecordId::Retired(generation) => write!(f, "retired:{generation}"),
            RecordId::Offer(rid) => write!(f, "offer:{rid}"),
            RecordId::Throughput(rid) => write!(f, "throughput:{rid}"),
            RecordId::Hours(rid) => write!(f, "hours:{rid}"),
            RecordId::Child(rid) => write!(f, "child:{rid}"),
            RecordId::Job(id) => write!(f, "job:{id}"),
            RecordId::Dropped(number) => write!(f, "dropped:{number}"),
        }
    }
}

impl Record {
    pub fn id(&self) -> RecordId {
        match self {
            Record::Counters(_) => RecordId::Counters,
            Record::Account(_) => RecordId::Account,
            Record::Database(record) => RecordId::Database(record.rid),
            Record::Container(record) => RecordId::Container(record.rid),
            Record::Ranges(record) => RecordId::Ranges(record.rid),
            Record::Index(record) => RecordId::Index(record.rid),
            Record::Retired(record) => RecordId::Retired(record.generation),
            Record::Offer(record) => RecordId::Offer(record.rid),
            Record::Throughput(record) => RecordId::Throughput(record.rid),
            Record::Hours(record) => RecordId::Hours(record.rid),
            Record::Child(record) => RecordId::Child(record.rid),
            Record::Job(record) => RecordId::Job(record.id.clone()),
            Record::Dropped(record) => RecordId::Dropped(record.number),
        }
    }

    pub fn to_doc(&self) -> Doc {
        let text = serde_json::to_vec(self).expect("a record is plain data");
        json::parse(&text, RECORD_DEPTH_MAX).expect("serialised records are JSON of bounded depth")
    }

    pub fn from_doc(doc: &Doc) -> Result<Record, String> {
        let mut text = Vec::new();
        json::write(doc.root(), &mut text);
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }
}

impl Counters {
    /// Partition, container and generation 0 belong to the catalog itself.
    pub fn first() -> Counters {
        Counters {
            database: 1,
            container: 1,
            offer: 1,
            partition: 1,
            generation: 1,
            child: 0,
            format: FORMAT,
        }
    }

    pub fn take_partition(&mut self) -> u32 {
        self.partition += 1;
        self.partition - 1
    }

    pub fn take_generation(&mut self) -> u32 {
        self.generation += 1;
        self.generation - 1
    }
}

impl RangeRecord {
    pub fn of(range: &Range) -> RangeRecord {
        RangeRecord::new(range.descriptor.id, &range.replica.partition.spec, range.descriptor.parents.clone())
    }

    pub fn new(id: u32, spec: &PartitionSpec, parents: Vec<u32>) -> RangeRecord {
        let source = |source: &Source| SourceRecord {
            partition: source.number,
            min: source.range.min.to_hex(),
            max: source.range.max.to_hex(),
            after: source.after.0,
            to: source.to.0,
        };
        RangeRecord {
            id,
            partition: spec.number,
            min: spec.range.min.to_hex(),
            max: spec.range.max.to_hex(),
            parents,
            sources: spec.sources.iter().map(source).collect(),
        }
    }

    pub fn spec(&self, container: u32, rid_generation: u32) -> Result<PartitionSpec, String> {
        let source = |source: &SourceRecord| {
            Ok(Source {
                number: source.partition,
                range: epk_range(&source.min, &source.max)?,
                after: Lsn(source.after),
                to: Lsn(source.to),
            })
        };
        Ok(PartitionSpec {
            number: self.partition,
            container,
            rid_generation,
            range: epk_range(&self.min, &self.max)?,
            rid_prefix: self.id,
            sources: self.sources.iter().map(source).collect::<Result<_, String>>()?,
        })
    }
}

impl GoneRecord {
    pub fn of(gone: &GoneRange) -> GoneRecord {
        GoneRecord { id: gone.id, min: gone.range.min.to_hex(), max: gone.range.max.to_hex() }
    }

    pub fn range(&self) -> Result<GoneRange, String> {
        Ok(GoneRange { id: self.id, range: epk_range(&self.min, &self.max)? })
    }
}

fn epk_range(min: &str, max: &str) -> Result<EpkRange, String> {
    let bound = |text: &str| Epk::from_hex(text).ok_or_else(|| format!("{text} is no EPK"));
    Ok(EpkRange { min: bound(min)?, max: bound(max)? })
}

impl OfferRecord {
    pub fn throughput(&self) -> Throughput {
        match self.autoscale {
            true => Throughput::Autoscale { max: self.throughput, increment_percent: self.increment_percent },
            false => Throughput::Manual(self.throughput),
        }
    }

    pub fn set(&mut self, throughput: Throughput) {
        self.autoscale = matches!(throughput, Throughput::Autoscale { .. });
        self.increment_percent = match throughput {
            Throughput::Autoscale { increment_percent, .. } => increment_percent,
            Throughput::Manual(_) => None,
        };
        self.throughput = throughput.ceiling();
        self.highest = self.highest.max(self.throughput);
    }
}

/// Refuses what is nested so deeply that its record could not be read back at the next start.
pub fn to_json(doc: &Doc) -> Result<serde_json::Value, Error> {
    let mut text = Vec::new();
    json::write(doc.root(), &mut text);
    let too_deep = || Error::invalid("The definition of the resource is nested too deeply.");
    json::parse(&text, RESOURCE_DEPTH_MAX).map_err(|_| too_deep())?;
    serde_json::from_slice(&text).map_err(|_| too_deep())
}

pub fn to_doc(body: &serde_json::Value) -> Result<Doc, String> {
    let text = serde_json::to_vec(body).expect("a JSON value is plain data");
    json::parse(&text, RECORD_DEPTH_MAX).map_err(|error| error.to_string())
}

pub(crate) mod rid_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::rid::Rid;

    pub fn serialize<S: Serializer>(rid: &Rid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(rid)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rid, D::Error> {
        let text = String::deserialize(deserializer)?;
        Rid::parse(&text).ok_or_else(|| D::Error::custom("not a resource id"))
    }
}
