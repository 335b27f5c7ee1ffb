//! A query as clients send it: `{"query":"SELECT ...","parameters":[{"name":"@a","value":1}]}`.
//!
//! A client that goes on with an ORDER BY over many partitions adds a `resumeFilter`: which rows it has already. The
//! JavaScript SDK sends the object that its user gave it as it is, often with options in it that the SDK takes elsewhere;
//! these mean nothing to the service. What else a body may say is not known, and could be about the rows: it is refused,
//! by its name.

use orrery_cluster::Rid;
use orrery_cluster::limits::JSON_DEPTH_MAX;
use orrery_doc::{Doc, Value, json};
use orrery_query::{Parameters, ResumePoint};

use crate::errors::Refusal;

pub(crate) struct QuerySpec {
    pub text: String,
    pub parameters: Parameters,
    pub resume: Option<ResumeFilter>,
}

/// `{"value": [...], "rid": "...", "exclude": false}`
pub(crate) struct ResumeFilter {
    body: Doc,
}

/// What a query body may have. How .NET's LINQ writes its queries says nothing to us.
const MEMBERS: [&str; 4] = ["query", "parameters", RESUME, "clientQLCompatibilityLevel"];
/// Options of queries that clients send as headers, or carry out themselves, and that users put beside the text by mistake.
/// Those which say what rows are wanted are not among them: where the service passes over them, its user gets other rows
/// than they ask for, and better knows.
const OPTIONS: [&str; 23] = [
    "abortSignal",
    "allowUnboundedNonStreamingQueries",
    "bufferItems",
    "bypassIntegratedCache",
    "consistencyLevel",
    "continuationTokenLimitInKB",
    "disableHybridSearchQueryPlanOptimization",
    "disableNonStreamingOrderByQuery",
    "disableRUPerMinuteUsage",
    "enableCrossPartitionQuery",
    "enableQueryControl",
    "enableScanInQuery",
    "excludedLocations",
    "forceQueryPlan",
    "initialHeaders",
    "maxDegreeOfParallelism",
    "maxIntegratedCacheStalenessInMs",
    "maxItemCount",
    "populateIndexMetrics",
    "populateQueryMetrics",
    "priorityLevel",
    "throughputBucket",
    "vectorSearchBufferSize",
];
const RESUME: &str = "resumeFilter";
const ON_PREVIOUS: &str = "enableQueryOnPreviousImage";
const RESUME_MEMBERS: [&str; 3] = ["value", "rid", "exclude"];

impl QuerySpec {
    pub fn parse(body: &[u8]) -> Result<QuerySpec, Refusal> {
        QuerySpec::read(parse_json(body)?, &[])
    }

    /// The query of a reader of changes, and whether it is asked about what was deleted as well.
    pub fn parse_of_changes(body: &[u8]) -> Result<(QuerySpec, bool), Refusal> {
        let doc = parse_json(body)?;
        let on_previous_image = match doc.root().get(ON_PREVIOUS) {
            Value::Undefined | Value::Null => false,
            Value::Bool(is_asked) => is_asked,
            _ => return Err(Refusal::bad_request(format!("'{ON_PREVIOUS}' must be true or false."))),
        };
        Ok((QuerySpec::read(doc, &[ON_PREVIOUS])?, on_previous_image))
    }

    /// Old clients send the text alone, as one JSON string.
    fn read(doc: Doc, more: &[&str]) -> Result<QuerySpec, Refusal> {
        let text = match doc.root() {
            Value::Str(text) => text,
            root => root.get("query").as_str().unwrap_or_default(),
        };
        check_members(doc.root(), &[&MEMBERS, &OPTIONS, more], "the query request")?;
        if text.trim().is_empty() {
            return Err(Refusal::bad_request("The query request has no query text."));
        }
        let parameters = Parameters::from_value(doc.root().get("parameters"))?;
        let text = text.to_owned();
        let resume = match doc.root().get(RESUME) {
            Value::Undefined | Value::Null => None,
            _ => Some(ResumeFilter { body: doc }),
        };
        Ok(QuerySpec { text, parameters, resume })
    }
}

fn parse_json(body: &[u8]) -> Result<Doc, Refusal> {
    json::parse(body, JSON_DEPTH_MAX)
        .map_err(|error| Refusal::bad_request(format!("The query request is not valid JSON: {error}.")))
}

impl ResumeFilter {
    /// The point of the order that the filter names, in a container that has this RID.
    pub fn point(&self, container: Rid) -> Result<ResumePoint, Refusal> {
        let filter = self.body.root().get(RESUME);
        let wrong = |reason: &str| {
            Refusal::bad_request(format!("The resume filter of the query is invalid: {reason}."))
        };
        if filter.as_object().is_none() {
            return Err(wrong("it must be an object"));
        }
        check_members(filter, &[&RESUME_MEMBERS], "the resume filter of the query")?;
        let exclude = match filter.get("exclude") {
            Value::Undefined | Value::Null => false,
            Value::Bool(exclude) => exclude,
            _ => return Err(wrong("'exclude' must be true or false")),
        };
        let place = match filter.get("rid") {
            Value::Undefined | Value::Null => None,
            Value::Str(text) => {
                let rid = Rid::parse(text).filter(|rid| rid.container_part() == Some(container));
                let number = rid.and_then(|rid| rid.child_number());
                Some(number.ok_or_else(|| wrong("'rid' must be that of an item of the container"))?)
            }
            _ => return Err(wrong("'rid' must be a text")),
        };
        let place = place.map(|number| number.to_be_bytes().to_vec());
        Ok(ResumePoint::new(filter.get("value"), place, exclude)?)
    }
}

/// What is not understood must not be passed over: it could be about which rows are wanted.
fn check_members(value: Value<'_>, known: &[&[&str]], what: &str) -> Result<(), Refusal> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let is_known = |name: &str| known.iter().any(|names| names.contains(&name));
    match object.iter().find(|(name, _)| !is_known(name)) {
        Some((name, _)) => {
            let shown: String = name.chars().take(64).collect();
            Err(Refusal::bad_request(format!("The member '{shown}' of {what} is not supported.")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcome(body: &str) -> Result<String, u16> {
        QuerySpec::parse(body.as_bytes())
            .map(|spec| spec.text)
            .map_err(|refusal| refusal.wire().status.as_u16())
    }

    #[test]
    fn bodies_hold_text_and_parameters() {
        for (body, wanted) in [
            (r#"{"query":"SELECT 1"}"#, Ok("SELECT 1")),
            (r#""SELECT 1""#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":null}"#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":[{"name":"@a","value":[1]}]}"#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":[{"name":"a"}]}"#, Err(400)),
            (r#"{"query":"SELECT 1","parameters":{}}"#, Err(400)),
            (r#"{"query":" "}"#, Err(400)),
            (r#"{"query":1}"#, Err(400)),
            ("{}", Err(400)),
            ("", Err(400)),
            ("SELECT 1", Err(400)),
        ] {
            assert_eq!(outcome(body).as_deref(), wanted.as_ref().map(|text| *text), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = QuerySpec::parse(&body);
        }
    }
}
