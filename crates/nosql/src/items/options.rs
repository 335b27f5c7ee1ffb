//! What headers ask of reads, writes and pages, in the terms of the database.

use std::time::Duration;

use orrery_cluster::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use orrery_cluster::store::{Etag, Precondition};
use orrery_cluster::{Consistency, Cursor, PageOptions, ReadOptions, SessionToken, WriteOptions};

use crate::errors::Refusal;
use crate::headers::{IndexingDirective, ReadStrategy, RequestHeaders};
use crate::items::version::Version;
use crate::items::{PROPERTIES, continuation, session};

/// How long one page may take; the client comes back for the rest.
const PAGE_TIME_MAX: Duration = Duration::from_secs(5);

pub(crate) fn read(headers: &RequestHeaders<'_>, account: Consistency) -> Result<ReadOptions, Refusal> {
    let consistency = consistency(headers, account)?;
    Ok(ReadOptions {
        consistency,
        session: session(headers, consistency)?,
        // A read changes nothing, so there is no version that it would have to find.
        precondition: precondition(None, headers.if_none_match),
    })
}

/// Writes go to the one place that has everything, so their session token is only checked for its form.
pub(crate) fn write(headers: &RequestHeaders<'_>, account: Consistency) -> Result<WriteOptions, Refusal> {
    Ok(WriteOptions { session: session(headers, account)? })
}

pub(crate) fn page(
    headers: &RequestHeaders<'_>,
    account: Consistency,
    bytes_max: usize,
) -> Result<PageOptions, Refusal> {
    let consistency = consistency(headers, account)?;
    Ok(PageOptions {
        items_max: headers.max_item_count.or(PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX),
        bytes_max,
        time_max: PAGE_TIME_MAX,
        continuation: None,
        consistency,
        session: session(headers, consistency)?,
        access: headers.query_access,
        properties: Some(PROPERTIES),
        order: Default::default(),
    })
}

/// Where to go on. A token that the service wrote (`-RID:~<rid>#RT:1#TRC:2...`) names an item of the service's
/// own and says nothing about ours: its holder starts from the beginning, which repeats rows but loses none.
pub(crate) fn cursor(headers: &RequestHeaders<'_>) -> Result<Option<Cursor>, Refusal> {
    let Some(token) = headers.continuation.map_or(Ok(None), continuation::unwrap)? else { return Ok(None) };
    let is_the_service_s = ["+RID:~", "-RID:~"]
        .into_iter()
        .filter_map(|sign| token.strip_prefix(sign))
        .filter_map(|rest| rest.split_once('#'))
        .any(|(_, state)| state.starts_with("RT:"));
    if is_the_service_s { Ok(None) } else { continuation::read(&token).map(Some) }
}

/// The condition of one operation. A malformed version is one that no item has.
pub(crate) fn precondition(if_match: Option<&str>, if_none_match: Option<&str>) -> Precondition {
    match (if_match.map(str::trim), if_none_match.map(str::trim)) {
        (Some("*"), _) => Precondition::IfMatchAny,
        (Some(etag), _) => Version::condition(etag).unwrap_or(Precondition::IfMatch(None)),
        (None, Some("*")) => Precondition::IfNoneMatchAny,
        (None, Some(etag)) => Precondition::IfNoneMatch(Etag::parse(etag)),
        (None, None) => Precondition::None,
    }
}

/// Whether an item is indexed: containers that do not index by themselves index what clients ask them to.
pub(crate) fn is_indexed(directive: IndexingDirective, automatic: bool) -> bool {
    match directive {
        IndexingDirective::Include => true,
        IndexingDirective::Exclude => false,
        IndexingDirective::Default => automatic,
    }
}

/// The level that a read is served at. Requests may weaken the account's level and never raise it.
pub(crate) fn consistency(
    headers: &RequestHeaders<'_>,
    account: Consistency,
) -> Result<Consistency, Refusal> {
    // The strategy is the newer of the two, and clients that send both mean it.
    let asked = match (headers.read_strategy, headers.consistency) {
        (None, None) => return Ok(account),
        (None, Some(level)) => level,
        (Some(ReadStrategy::Eventual), _) => Consistency::Eventual,
        (Some(ReadStrategy::Session), _) => return Ok(Consistency::Session),
        // Any account may ask for what a majority has; it is read, and paid for, as bounded staleness is.
        (Some(ReadStrategy::LatestCommitted), _) => return Ok(Consistency::BoundedStaleness),
        (Some(ReadStrategy::GlobalStrong), _) => Consistency::Strong,
    };
    if asked > account {
        return Err(Refusal::bad_request(format!(
            "ConsistencyLevel {asked:?} specified in the request is invalid when service is configured with \
             consistency level {account:?}. Ensure the request consistency level is not stronger than the \
             service consistency level."
        )));
    }
    Ok(asked)
}

/// Session tokens only matter to reads at session level; others ignore even malformed ones.
fn session(headers: &RequestHeaders<'_>, level: Consistency) -> Result<Option<SessionToken>, Refusal> {
    match headers.session_token {
        Some(text) if level == Consistency::Session => {
            session::parse(text).map(Some).map_err(|error| Refusal::bad_request(error.to_string()))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_weaken_and_never_strengthen() {
        use Consistency::*;
        for (asked, strategy, account, wanted) in [
            (None, None, Session, Some(Session)),
            (Some(Eventual), None, Session, Some(Eventual)),
            (Some(Session), None, Session, Some(Session)),
            (Some(Strong), None, Session, None),
            (Some(BoundedStaleness), None, Session, None),
            (Some(BoundedStaleness), None, Strong, Some(BoundedStaleness)),
            (None, Some(ReadStrategy::Eventual), Session, Some(Eventual)),
            (Some(Session), Some(ReadStrategy::Eventual), Session, Some(Eventual)),
            (Some(Eventual), Some(ReadStrategy::Session), Session, Some(Session)),
            (None, Some(ReadStrategy::Session), Eventual, Some(Session)),
            (None, Some(ReadStrategy::LatestCommitted), Session, Some(BoundedStaleness)),
            (None, Some(ReadStrategy::GlobalStrong), Session, None),
            (None, Some(ReadStrategy::GlobalStrong), Strong, Some(Strong)),
        ] {
            let headers =
                RequestHeaders { consistency: asked, read_strategy: strategy, ..Default::default() };
            assert_eq!(consistency(&headers, account).ok(), wanted, "{asked:?} {strategy:?} {account:?}");
        }
    }

    #[test]
    fn session_tokens_matter_at_session_level_only() {
        let headers = |consistency| RequestHeaders {
            session_token: Some("nonsense"),
            consistency,
            ..Default::default()
        };
        assert!(read(&headers(None), Consistency::Session).is_err());
        assert!(page(&headers(None), Consistency::Session, 1).is_err());
        assert!(read(&headers(Some(Consistency::Eventual)), Consistency::Session).is_ok());
        assert!(read(&headers(None), Consistency::Strong).is_ok());
    }

    #[test]
    fn conditions_name_versions_or_any() {
        let etag = Etag(0x0000_d1a2_66b3_f4d1);
        let text = etag.to_header();
        for (if_match, if_none_match, wanted) in [
            (None, None, Precondition::None),
            (Some("*"), None, Precondition::IfMatchAny),
            (Some(text.as_str()), None, Precondition::IfMatch(Some(etag))),
            (Some("other"), None, Precondition::IfMatch(None)),
            (None, Some("*"), Precondition::IfNoneMatchAny),
            (None, Some(text.as_str()), Precondition::IfNoneMatch(Some(etag))),
            (Some("*"), Some("*"), Precondition::IfMatchAny),
        ] {
            assert_eq!(precondition(if_match, if_none_match), wanted, "{if_match:?} {if_none_match:?}");
        }
    }

    #[test]
    fn tokens_of_the_service_start_from_the_beginning() {
        for (token, is_kept) in [
            ("-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8", false),
            ("+RID:~a0NPAOszCpOChB4AAAAAAA==#RT:2#TRC:10", false),
            ("+RID:~05C1DFFFFFFFFC#6964", true),
            ("+RID:~05C1#6964#QS:0207", true),
            ("#QS:0207", true),
        ] {
            let headers = RequestHeaders { continuation: Some(token), ..Default::default() };
            let read = cursor(&headers).expect("well formed").as_ref().map(continuation::write);
            assert_eq!(read.as_deref(), is_kept.then_some(token));
        }
        let headers =
            RequestHeaders { continuation: Some("-RID:~a0NPAOszCpOChB4AAAAAAA=="), ..Default::default() };
        assert!(cursor(&headers).is_err());
    }

    #[test]
    fn directives_override_the_policy() {
        use IndexingDirective::*;
        let table =
            [(Default, true, true), (Default, false, false), (Include, false, true), (Exclude, true, false)];
        for (directive, automatic, wanted) in table {
            assert_eq!(is_indexed(directive, automatic), wanted, "{directive:?} {automatic}");
        }
    }
}
