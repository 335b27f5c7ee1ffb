//! Request headers, read once into one struct, and the names of all headers that answers carry.
//!
//! Values are borrowed from the request. Booleans are compared without case, because clients write
//! `True`, `true` and `TRUE`. A value that is malformed is refused with its header's name, and a value
//! that is empty counts as absent.

use http::{HeaderMap, Method};
use orrery_cluster::{AccessChoice, Consistency, Lane, Priority};

use crate::errors::Refusal;

/// Everything a client may say in headers.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestHeaders<'a> {
    pub authorization: Option<&'a str>,
    pub x_ms_date: Option<&'a str>,
    pub date: Option<&'a str>,
    pub version: Option<&'a str>,
    pub host: Option<&'a str>,
    pub content_length: Option<u64>,
    pub content_type: Option<&'a str>,
    pub activity_id: Option<&'a str>,
    /// The same for all requests of one query.
    pub correlated_activity_id: Option<&'a str>,
    pub user_agent: Option<&'a str>,

    /// The JSON array of the partition key.
    pub partition_key: Option<&'a str>,
    /// `0` or `rid,0`.
    pub range_id: Option<&'a str>,
    pub start_epk: Option<&'a str>,
    pub end_epk: Option<&'a str>,
    pub read_key_type: Option<&'a str>,

    pub is_query: bool,
    pub is_query_plan: bool,
    pub enable_cross_partition: bool,
    pub enable_scan: bool,
    pub supported_query_features: Option<&'a str>,
    pub query_version: Option<&'a str>,
    pub populate_query_metrics: bool,
    pub index_metrics: IndexMetrics,
    pub populate_query_advice: bool,
    /// Our own: tell how the query was run.
    pub explain: bool,
    /// Our own: which way of finding items a query may take.
    pub query_access: AccessChoice,
    /// Our own: merge the answers of all partitions here and not in the client.
    pub merge_here: bool,

    pub max_item_count: MaxItemCount,
    pub continuation: Option<&'a str>,
    pub continuation_limit_kb: Option<u32>,

    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub if_modified_since: Option<&'a str>,
    /// `A-IM`: which feed of changes is asked for.
    pub a_im: Option<&'a str>,
    /// The form of its entries; without it they are bare items.
    pub change_feed_format: Option<&'a str>,

    pub consistency: Option<Consistency>,
    pub read_strategy: Option<ReadStrategy>,
    pub session_token: Option<&'a str>,

    pub is_upsert: bool,
    /// `Prefer: return=minimal`, or the newer header that says the same.
    pub minimal_response: bool,
    pub indexing_directive: IndexingDirective,
    pub pre_triggers: Option<&'a str>,
    pub post_triggers: Option<&'a str>,
    pub script_logging: bool,

    pub is_batch: bool,
    pub batch_atomic: bool,
    pub batch_ordered: bool,
    pub batch_continue_on_error: bool,

    /// Kept as text: the message about a wrong value quotes it.
    pub offer_throughput: Option<&'a str>,
    pub offer_autopilot: Option<&'a str>,
    pub migrate_to_autopilot: bool,
    pub migrate_to_manual: bool,

    /// How long the tokens of permissions in the answer shall be good for.
    pub expiry_seconds: Option<u64>,
    pub populate_quota: bool,
    pub populate_statistics: bool,
    pub intended_collection_rid: Option<&'a str>,
    /// Whether the client encrypts the item itself, if it says so.
    pub is_client_encrypted: Option<bool>,
    /// Who is refused first when throughput is short.
    pub lane: Lane,
    /// Whether single items are shown without their links.
    pub exclude_system_properties: bool,
    pub accepts_binary: bool,
    /// The form of answers with several items, if the client names it.
    pub content_format: Option<ContentFormat>,
    /// Our own: explain the charge line by line.
    pub explain_charge: bool,
}

/// `x-ms-max-item-count`: -1, 0 or none leaves the choice to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MaxItemCount {
    #[default]
    Server,
    AtMost(u32),
}

/// The only form of the change feed's entries besides bare items.
const CHANGE_FEED_FORMAT: &str = "2021-09-15";

/// In which form index metrics are wanted: the first is JSON in base64, the second plain JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IndexMetrics {
    #[default]
    None,
    V1,
    V2,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IndexingDirective {
    #[default]
    Default,
    Include,
    Exclude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStrategy {
    Eventual,
    Session,
    LatestCommitted,
    GlobalStrong,
}

impl MaxItemCount {
    pub fn of(count: i64) -> Option<MaxItemCount> {
        match count {
            // No page can be empty and be followed by others, so nothing is asked for.
            -1 | 0 => Some(MaxItemCount::Server),
            count @ 1.. => Some(MaxItemCount::AtMost(u32::try_from(count).unwrap_or(u32::MAX))),
            _ => None,
        }
    }

    /// The count to use, never above `most`.
    pub fn or(self, default: usize, most: usize) -> usize {
        match self {
            MaxItemCount::Server => default,
            MaxItemCount::AtMost(count) => (count as usize).min(most),
        }
    }
}

/// A form of answers with several items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFormat {
    Text,
    Binary,
    /// Of batches only; other answers are text.
    HybridRow,
}

const CONTENT_FORMATS: [(&str, ContentFormat); 3] = [
    ("JsonText", ContentFormat::Text),
    ("CosmosBinary", ContentFormat::Binary),
    ("HybridRow", ContentFormat::HybridRow),
];

impl<'a> RequestHeaders<'a> {
    /// Whether the rows of a query are wanted in the binary form: by name, or because nothing is named and the client
    /// understands it.
    pub fn wants_binary_rows(&self) -> bool {
        self.content_format.map_or(self.accepts_binary, |format| format == ContentFormat::Binary)
    }

    /// Whether the items of a feed are: only by name, as the service does it.
    pub fn wants_binary_feed(&self) -> bool {
        self.content_format == Some(ContentFormat::Binary)
    }

    pub fn parse(map: &'a HeaderMap) -> Result<RequestHeaders<'a>, Refusal> {
        let mut headers = RequestHeaders::default();
        headers.read(map)?;
        Ok(headers)
    }

    /// Reads all headers in place, for this is a large thing to move. After a refusal nothing counts as said.
    pub fn read(&mut self, map: &'a HeaderMap) -> Result<(), Refusal> {
        let read = self.take_all(map);
        if read.is_err() {
            *self = RequestHeaders::default();
        }
        read
    }

    /// Takes all headers in one pass. The first of a repeated header counts.
    fn take_all(&mut self, map: &'a HeaderMap) -> Result<(), Refusal> {
        for (name, value) in map.iter() {
            let name = name.as_str();
            let raw = value.as_bytes();
            if raw.is_empty() {
                continue;
            }
            // The class is found by prefix first, so that no header is compared with all names.
            if let Some(rest) = name.strip_prefix("x-ms-documentdb-") {
                self.take_documentdb(rest, name, raw)?;
            } else if let Some(rest) = name.strip_prefix("x-ms-cosmos-") {
                self.take_cosmos(rest, name, raw)?;
            } else if let Some(rest) = name.strip_prefix("x-ms-") {
                self.take_ms(rest, name, raw)?;
            } else {
                self.take_http(name, raw)?;
            }
        }
        Ok(())
    }

    /// Whether a request on items is for changes: a GET, or a POST of a query that says which of them are wanted.
    pub fn asks_for_changes(&self, method: &Method) -> bool {
        let may_ask =
            *method == Method::GET || *method == Method::POST && self.is_query && !self.is_query_plan;
        self.a_im.is_some() && may_ask
    }

    /// Whether the client is one that never ends a query which is told that its range is gone: @azure/cosmos 4 keeps
    /// the error for later and asks again, whatever the service answers.
    pub fn asks_gone_ranges_for_ever(&self) -> bool {
        self.user_agent.is_some_and(|agent| agent.contains("azure-cosmos-js/"))
    }

    fn take_http(&mut self, name: &str, raw: &'a [u8]) -> Result<(), Refusal> {
        match name {
            "authorization" => keep(&mut self.authorization, name, raw),
            "date" => keep(&mut self.date, name, raw),
            "host" => keep(&mut self.host, name, raw),
            "user-agent" => {
                // It decides little, so a strange one is no reason to refuse.
                self.user_agent = std::str::from_utf8(raw).ok();
                Ok(())
            }
            "content-type" => {
                keep(&mut self.content_type, name, raw)?;
                // Some clients rely on the type alone to say that what they post is a query. This is the only place that
                // looks at it: who may do what and what is done must not differ about it.
                self.is_query |= is_query_type(raw);
                Ok(())
            }
            "content-length" => keep_number(&mut self.content_length, name, raw),
            "if-match" => keep(&mut self.if_match, name, raw),
            "if-none-match" => keep(&mut self.if_none_match, name, raw),
            "if-modified-since" => keep(&mut self.if_modified_since, name, raw),
            "a-im" => keep(&mut self.a_im, name, raw),
            "prefer" => {
                self.minimal_response |= text(name, raw)?.split([',', ';']).any(is_minimal);
                Ok(())
            }
            "x-orrery-explain-charge" => flag(&mut self.explain_charge, name, raw),
            "x-orrery-explain" => flag(&mut self.explain, name, raw),
            "x-orrery-query-merge" => flag(&mut self.merge_here, name, raw),
            "x-orrery-query-access" => {
                let known = [
                    ("auto", AccessChoice::Auto),
                    ("scan", AccessChoice::ScanOnly),
                    ("index", AccessChoice::IndexAlways),
                ];
                self.query_access = one_of(name, text(name, raw)?, &known)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_documentdb(&mut self, rest: &str, name: &str, raw: &'a [u8]) -> Result<(), Refusal> {
        match rest {
            "partitionkey" => keep(&mut self.partition_key, name, raw),
            "partitionkeyrangeid" => keep(&mut self.range_id, name, raw),
            "isquery" | "query" => {
                let mut is_query = false;
                flag(&mut is_query, name, raw)?;
                self.is_query |= is_query;
                Ok(())
            }
            "is-upsert" => flag(&mut self.is_upsert, name, raw),
            "query-enablecrosspartition" => flag(&mut self.enable_cross_partition, name, raw),
            "query-enable-scan" => flag(&mut self.enable_scan, name, raw),
            "populatequerymetrics" => flag(&mut self.populate_query_metrics, name, raw),
            "responsecontinuationtokenlimitinkb" => {
                self.limit_continuation(number::<i64>(name, raw).unwrap_or(-1))
            }
            "content-serialization-format" => {
                let format = one_of(name, text(name, raw)?, &CONTENT_FORMATS)?;
                self.content_format = Some(format);
                Ok(())
            }
            "expiry-seconds" => keep_number(&mut self.expiry_seconds, name, raw),
            "populatequotainfo" => flag(&mut self.populate_quota, name, raw),
            "populatepartitionstatistics" => flag(&mut self.populate_statistics, name, raw),
            "pre-trigger-include" => keep(&mut self.pre_triggers, name, raw),
            "post-trigger-include" => keep(&mut self.post_triggers, name, raw),
            "script-enable-logging" => flag(&mut self.script_logging, name, raw),
            "filterby-schema-rid" => Err(changes_rows(name)),
            _ => Ok(()),
        }
    }

    fn take_cosmos(&mut self, rest: &str, name: &str, raw: &'a [u8]) -> Result<(), Refusal> {
        match rest {
            "is-query-plan-request" => flag(&mut self.is_query_plan, name, raw),
            "supported-query-features" => keep(&mut self.supported_query_features, name, raw),
            "query-version" => keep(&mut self.query_version, name, raw),
            "populateindexmetrics" => self.ask_index_metrics(IndexMetrics::V1, name, raw),
            "populateindexmetrics-v2" => self.ask_index_metrics(IndexMetrics::V2, name, raw),
            "populatequeryadvice" => flag(&mut self.populate_query_advice, name, raw),
            "correlated-activityid" => keep(&mut self.correlated_activity_id, name, raw),
            "is-batch-request" => flag(&mut self.is_batch, name, raw),
            "batch-atomic" => flag(&mut self.batch_atomic, name, raw),
            "changefeed-wire-format-version" => self.form_changes(text(name, raw)?),
            "batch-ordered" => flag(&mut self.batch_ordered, name, raw),
            "batch-continue-on-error" => flag(&mut self.batch_continue_on_error, name, raw),
            "offer-autopilot-settings" => keep(&mut self.offer_autopilot, name, raw),
            "migrate-offer-to-autopilot" => flag(&mut self.migrate_to_autopilot, name, raw),
            "migrate-offer-to-manual-throughput" => flag(&mut self.migrate_to_manual, name, raw),
            "intended-collection-rid" => keep(&mut self.intended_collection_rid, name, raw),
            "is-client-encrypted" => {
                let mut is_encrypted = false;
                flag(&mut is_encrypted, name, raw)?;
                self.is_client_encrypted = Some(is_encrypted);
                Ok(())
            }
            "supported-serialization-formats" => {
                let formats = text(name, raw)?;
                self.accepts_binary =
                    formats.split(',').any(|format| format.trim().eq_ignore_ascii_case("CosmosBinary"));
                Ok(())
            }
            "populate-content-response-on-write" => {
                let mut wanted = true;
                flag(&mut wanted, name, raw)?;
                self.minimal_response |= !wanted;
                Ok(())
            }
            "read-consistency-strategy" => {
                self.read_strategy = read_strategy(name, text(name, raw)?)?;
                Ok(())
            }
            "priority-level" => {
                let level = text(name, raw)?;
                self.lane.priority =
                    Some(one_of(name, level, &[("Low", Priority::Low), ("High", Priority::High)])?);
                Ok(())
            }
            "throughput-bucket" => self.take_bucket(number::<u8>(name, raw)?),
            _ => Ok(()),
        }
    }

    fn ask_index_metrics(&mut self, form: IndexMetrics, name: &str, raw: &[u8]) -> Result<(), Refusal> {
        let mut wanted = false;
        flag(&mut wanted, name, raw)?;
        self.want_index_metrics(form, wanted);
        Ok(())
    }

    fn take_ms(&mut self, rest: &str, name: &str, raw: &'a [u8]) -> Result<(), Refusal> {
        match rest {
            "date" => keep(&mut self.x_ms_date, name, raw),
            "version" => {
                check_version(text(name, raw)?)?;
                keep(&mut self.version, name, raw)
            }
            "activity-id" => keep(&mut self.activity_id, name, raw),
            "continuation" => keep(&mut self.continuation, name, raw),
            "session-token" => keep(&mut self.session_token, name, raw),
            "exclude-system-properties" => flag(&mut self.exclude_system_properties, name, raw),
            "start-epk" => keep(&mut self.start_epk, name, raw),
            "end-epk" => keep(&mut self.end_epk, name, raw),
            "read-key-type" => keep(&mut self.read_key_type, name, raw),
            "offer-throughput" => keep(&mut self.offer_throughput, name, raw),
            "start-id" | "end-id" => Err(changes_rows(name)),
            "enumeration-direction" => one_of(name, text(name, raw)?, &[("Forward", ())]),
            "max-item-count" => {
                let count = number::<i64>(name, raw)?;
                self.max_item_count =
                    MaxItemCount::of(count).ok_or_else(|| invalid(name, &count.to_string()))?;
                Ok(())
            }
            "consistency-level" => {
                self.consistency = Some(consistency(name, text(name, raw)?)?);
                Ok(())
            }
            "indexing-directive" => {
                // Numbers come from the Python SDK alone, so they mean what its names for them say.
                let known = [
                    ("Include", IndexingDirective::Include),
                    ("Exclude", IndexingDirective::Exclude),
                    ("Default", IndexingDirective::Default),
                    ("0", IndexingDirective::Default),
                    ("1", IndexingDirective::Exclude),
                    ("2", IndexingDirective::Include),
                ];
                self.indexing_directive = one_of(name, text(name, raw)?, &known)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The versions of the API: those that the service's reference lists, and those that its SDKs send. The newest is the last.
const VERSIONS: [&str; 19] = [
    "2014-08-21",
    "2015-04-08",
    "2015-06-03",
    "2015-08-06",
    "2015-12-16",
    "2016-05-30",
    "2016-07-11",
    "2016-11-14",
    "2017-01-19",
    "2017-02-22",
    "2017-05-03",
    "2017-11-15",
    "2018-06-18",
    "2018-08-31",
    "2018-09-17",
    "2018-12-31",
    "2019-10-14",
    "2020-07-15",
    "2020-11-05",
];

/// The newest version that we know.
pub(crate) const NEWEST_VERSION: &str = VERSIONS[VERSIONS.len() - 1];

/// Refuses what was never a version. A later one may be: clients are newer than servers at times.
pub(crate) fn check_version(version: &str) -> Result<(), Refusal> {
    let version = version.trim();
    // Nearly all clients send the same one, which is found before anything is compared with the others.
    let is_known = VERSIONS.iter().rev().any(|known| *known == version);
    if is_known || is_date(version) && VERSIONS.iter().all(|known| version > *known) {
        return Ok(());
    }
    Err(Refusal::bad_request(
        "Invalid API version. Ensure a valid x-ms-version header value is passed. Please update to the latest version of \
         Azure Cosmos DB SDK.",
    ))
}

/// A date as `2020-07-15`.
fn is_date(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        digits.and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0)
    };
    let bytes = text.as_bytes();
    let days = match number(5..7) {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && number(0..4) > 0
        && (1..=days).contains(&number(8..10))
}

/// What clients may say in any front end, and what of it is refused.
impl<'a> RequestHeaders<'a> {
    /// How long a continuation may be, in kibibytes. None at all is not long enough for any.
    pub fn limit_continuation(&mut self, kilobytes: i64) -> Result<(), Refusal> {
        match kilobytes {
            0 => Err(Refusal::bad_request(
                "The continuation token limit specified is not large enough. Please increase the limit, or leave it out.",
            )),
            limit @ 1.. => {
                self.continuation_limit_kb = Some(u32::try_from(limit).unwrap_or(u32::MAX));
                Ok(())
            }
            _ => Err(Refusal::bad_request(
                "Please pass in a valid continuation token size limit which must be a positive integer.",
            )),
        }
    }

    /// The form of the change feed's entries, of which there is one besides bare items.
    pub fn form_changes(&mut self, version: &'a str) -> Result<(), Refusal> {
        if version.trim() != CHANGE_FEED_FORMAT {
            return Err(invalid("x-ms-cosmos-changefeed-wire-format-version", version.trim()));
        }
        self.change_feed_format.get_or_insert(version);
        Ok(())
    }

    pub fn take_bucket(&mut self, bucket: u8) -> Result<(), Refusal> {
        if !(1..=5).contains(&bucket) {
            return Err(invalid("x-ms-cosmos-throughput-bucket", &bucket.to_string()));
        }
        self.lane.bucket = Some(bucket);
        Ok(())
    }

    /// A client that asks for both forms reads the newer one.
    pub fn want_index_metrics(&mut self, form: IndexMetrics, wanted: bool) {
        if wanted && self.index_metrics != IndexMetrics::V2 {
            self.index_metrics = form;
        }
    }
}

/// Types are compared without case, and without the parameters that may follow them.
fn is_query_type(content_type: &[u8]) -> bool {
    let kind = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/query+json")
}

fn is_minimal(preference: &str) -> bool {
    let Some((key, value)) = preference.split_once('=') else { return false };
    key.trim().eq_ignore_ascii_case("return") && value.trim().eq_ignore_ascii_case("minimal")
}

fn consistency(name: &str, value: &str) -> Result<Consistency, Refusal> {
    let known = [
        ("Strong", Consistency::Strong),
        ("BoundedStaleness", Consistency::BoundedStaleness),
        ("Session", Consistency::Session),
        ("ConsistentPrefix", Consistency::ConsistentPrefix),
        ("Eventual", Consistency::Eventual),
    ];
    one_of(name, value, &known)
}

/// `Default` is a strategy that clients name and that asks for nothing.
fn read_strategy(name: &str, value: &str) -> Result<Option<ReadStrategy>, Refusal> {
    let known = [
        ("Default", None),
        ("Eventual", Some(ReadStrategy::Eventual)),
        ("Session", Some(ReadStrategy::Session)),
        ("LatestCommitted", Some(ReadStrategy::LatestCommitted)),
        ("GlobalStrong", Some(ReadStrategy::GlobalStrong)),
    ];
    one_of(name, value, &known)
}

fn one_of<T: Copy>(name: &str, value: &str, known: &[(&str, T)]) -> Result<T, Refusal> {
    let value = value.trim();
    known
        .iter()
        .find(|(spelling, _)| spelling.eq_ignore_ascii_case(value))
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| invalid(name, value))
}

fn keep<'a>(slot: &mut Option<&'a str>, name: &str, raw: &'a [u8]) -> Result<(), Refusal> {
    let value = text(name, raw)?;
    slot.get_or_insert(value);
    Ok(())
}

fn keep_number<T: std::str::FromStr>(slot: &mut Option<T>, name: &str, raw: &[u8]) -> Result<(), Refusal> {
    let value = number(name, raw)?;
    slot.get_or_insert(value);
    Ok(())
}

fn number<T: std::str::FromStr>(name: &str, raw: &[u8]) -> Result<T, Refusal> {
    let text = text(name, raw)?;
    text.trim().parse().map_err(|_| invalid(name, text))
}

fn flag(slot: &mut bool, name: &str, raw: &[u8]) -> Result<(), Refusal> {
    *slot = match raw.trim_ascii() {
        value if value.eq_ignore_ascii_case(b"true") || value == b"1" => true,
        value if value.eq_ignore_ascii_case(b"false") || value == b"0" => false,
        _ => return Err(invalid(name, text(name, raw)?)),
    };
    Ok(())
}

fn text<'a>(name: &str, raw: &'a [u8]) -> Result<&'a str, Refusal> {
    std::str::from_utf8(raw)
        .map_err(|_| Refusal::bad_request(format!("The value of the header '{name}' is not valid UTF-8.")))
}

/// A header that other servers know and that says which rows are wanted, or in which order: without it the answer would
/// be another one.
pub(crate) fn changes_rows(name: &str) -> Refusal {
    Refusal::bad_request(format!("The header '{name}' is not supported."))
}

pub(crate) fn invalid(name: &str, value: &str) -> Refusal {
    // A header may be large; the message shows enough of it to recognise it.
    let shown: String = value.chars().take(128).collect();
    Refusal::bad_request(format!("The value '{shown}' specified for the header '{name}' is invalid."))
}

/// Names of response headers, made once.
pub(crate) mod names {
    use http::HeaderName;

    macro_rules! header_names {
        ($($constant:ident = $name:literal;)*) => {
            $(pub const $constant: HeaderName = HeaderName::from_static($name);)*

            #[cfg(test)]
            pub const ALL: &[&str] = &[$($name),*];
        };
    }

    header_names! {
        ACTIVITY_ID = "x-ms-activity-id";
        ALT_CONTENT_PATH = "x-ms-alt-content-path";
        COLLECTION_PARTITION_INDEX = "collection-partition-index";
        COLLECTION_SERVICE_INDEX = "collection-service-index";
        CONTENT_PATH = "x-ms-content-path";
        CONTINUATION = "x-ms-continuation";
        CURRENT_REPLICA_SET_SIZE = "x-ms-current-replica-set-size";
        CURRENT_WRITE_QUORUM = "x-ms-current-write-quorum";
        EXPLAIN = "x-orrery-charge";
        GATEWAY_VERSION = "x-ms-gatewayversion";
        GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
        INDEX_METRICS = "x-ms-cosmos-index-utilization";
        INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
        ITEM_COUNT = "x-ms-item-count";
        ITEM_LLSN = "x-ms-cosmos-item-llsn";
        ITEM_LSN = "x-ms-item-lsn";
        KEY_DELETE_PENDING = "x-ms-cosmos-is-partition-key-delete-pending";
        LAST_STATE_CHANGE = "x-ms-last-state-change-utc";
        LLSN = "x-ms-cosmos-llsn";
        LSN = "lsn";
        MAX_MEDIA_STORAGE = "x-ms-max-media-storage-usage-mb";
        MEDIA_STORAGE = "x-ms-media-storage-usage-mb";
        MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
        NUMBER_OF_READ_REGIONS = "x-ms-number-of-read-regions";
        OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
        QUERY_ACCESS = "x-orrery-query-access";
        QUERY_ADVICE = "x-ms-cosmos-query-advice";
        QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
        QUERY_METRICS = "x-ms-documentdb-query-metrics";
        QUORUM_ACKED_LLSN = "x-ms-cosmos-quorum-acked-llsn";
        QUORUM_ACKED_LSN = "x-ms-quorum-acked-lsn";
        RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
        REQUEST_CHARGE = "x-ms-request-charge";
        REQUEST_DURATION = "x-ms-request-duration-ms";
        RESOURCE_QUOTA = "x-ms-resource-quota";
        RESOURCE_USAGE = "x-ms-resource-usage";
        RETRY_AFTER_MS = "x-ms-retry-after-ms";
        SCHEMA_VERSION = "x-ms-schemaversion";
        SCRIPT_LOG_RESULTS = "x-ms-documentdb-script-log-results";
        SHARE_THROUGHPUT = "x-ms-share-throughput";
        SERVICE_VERSION = "x-ms-serviceversion";
        SESSION_TOKEN = "x-ms-session-token";
        SUBSTATUS = "x-ms-substatus";
        TRANSPORT_REQUEST_ID = "x-ms-transport-request-id";
        XP_ROLE = "x-ms-xp-role";
    }
}

#[cfg(test)]
mod tests;
