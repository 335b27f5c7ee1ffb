//! Which part of a container a feed or query runs over.
//!
//! Clients name a partition key or the first levels of one, a physical partition by the id of its range,
//! a part of the key space by its two ends, or a part of a physical partition by both.

use orrery_cluster::{Container, ContainerDefinition, Rid, Scope};
use orrery_doc::{Epk, EpkRange, PartitionKey, PartitionKeyDef, epk};

use crate::errors::Refusal;
use crate::headers::RequestHeaders;
use crate::items::key;

/// Reads the scope from headers.
pub(crate) fn of_request(container: &Container, headers: &RequestHeaders<'_>) -> Result<Scope, Refusal> {
    let definition: &ContainerDefinition = &container.definition;
    let key = key::of_scope(&definition.key, definition.has_system_key(), key::named(definition, headers))?;
    let scope = of_parts(&definition.key, key, headers)?;
    Ok(match (&scope, headers.range_id) {
        (Scope::Key(key), Some(id)) => elsewhere(container, key, range_id(id)?).unwrap_or(scope),
        _ => scope,
    })
}

/// Nothing of a range, where a client asks one range after the other for a key that lies in only one of them. A range
/// that is gone is not looked up: the key has all that is meant.
fn elsewhere(container: &Container, key: &PartitionKey, range_id: u32) -> Option<Scope> {
    let named = container.epk_of(range_id)?;
    let nothing = EpkRange::new(named.min.clone(), named.min.clone());
    let is_elsewhere = !named.contains(&epk(&container.definition.key, key));
    is_elsewhere.then_some(Scope::Range { range_id, epk: Some(nothing) })
}

/// A whole key says more than a range. Of the first levels of a key, which may lie in many ranges, only what is in the
/// named one is meant.
fn of_parts(
    def: &PartitionKeyDef,
    key: Option<PartitionKey>,
    headers: &RequestHeaders<'_>,
) -> Result<Scope, Refusal> {
    let epk = epk_range(headers)?;
    let range_id = headers.range_id.map(range_id).transpose()?;
    if let Some(key) = key {
        if key.is_full(def) || (range_id.is_none() && epk.is_none()) {
            return Ok(Scope::Key(key));
        }
        return Ok(Scope::Below { key, range_id, epk });
    }
    Ok(match (range_id, epk) {
        (Some(range_id), epk) => Scope::Range { range_id, epk },
        (None, Some(epk)) => Scope::Epk(epk),
        (None, None) => Scope::Container,
    })
}

/// The id of a range, alone or behind the container's RID: `0` or `ehszALxRRgA=,0`. A list of ranges is neither.
pub(crate) fn range_id(text: &str) -> Result<u32, Refusal> {
    let (rid, id) = text.rsplit_once(',').map_or((None, text), |(rid, id)| (Some(rid.trim()), id));
    let id = Some(id.trim()).filter(|_| rid.is_none_or(|rid| rid.is_empty() || Rid::parse(rid).is_some()));
    id.and_then(|id| id.parse().ok()).ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        Refusal::bad_request(format!("The partition key range id '{shown}' is invalid."))
    })
}

/// The two ends count only together with the header that says what they are.
fn epk_range(headers: &RequestHeaders<'_>) -> Result<Option<EpkRange>, Refusal> {
    let is_epk = |kind: &str| kind.trim().eq_ignore_ascii_case("EffectivePartitionKeyRange");
    if headers.read_key_type.is_some_and(|kind| !is_epk(kind)) {
        return Err(Refusal::unsupported("A read key type other than EffectivePartitionKeyRange"));
    }
    let (min, max) = match (headers.start_epk, headers.end_epk) {
        (None, None) => return Ok(None),
        // An empty header counts as absent, and the key space starts with the empty text.
        (min, max) => (min.unwrap_or(""), max.unwrap_or("FF")),
    };
    let bound = |text: &str| {
        Epk::from_hex(text.trim()).ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            Refusal::bad_request(format!("The effective partition key '{shown}' is invalid."))
        })
    };
    Ok(Some(EpkRange::new(bound(min)?, bound(max)?)))
}

#[cfg(test)]
mod tests {
    use orrery_doc::{PartitionKeyKind, PartitionKeyVersion, Path, prefix_range};
    use proptest::prelude::*;

    use super::*;

    fn def() -> PartitionKeyDef {
        let paths = ["/a", "/b"].map(|path| Path::parse_property(path).expect("a path")).to_vec();
        PartitionKeyDef { kind: PartitionKeyKind::MultiHash, version: PartitionKeyVersion::V2, paths }
    }

    fn show(headers: RequestHeaders<'_>) -> String {
        let key = key::of_scope(&def(), false, headers.partition_key);
        match key.and_then(|key| of_parts(&def(), key, &headers)) {
            Ok(Scope::Container) => "container".to_owned(),
            Ok(Scope::Key(key)) => format!("key {}", key.to_json()),
            Ok(Scope::Epk(epk)) => format!("epk {}..{}", epk.min.to_hex(), epk.max.to_hex()),
            Ok(Scope::Range { range_id, epk: None }) => format!("range {range_id}"),
            Ok(Scope::Range { range_id, epk: Some(epk) }) => {
                format!("range {range_id} {}..{}", epk.min.to_hex(), epk.max.to_hex())
            }
            Ok(Scope::Below { .. }) => "below".to_owned(),
            Err(refusal) => refusal.wire().status.as_u16().to_string(),
        }
    }

    #[test]
    fn headers_name_parts_of_a_container() {
        let none = RequestHeaders::default;
        let kind = Some("EffectivePartitionKeyRange");
        for (headers, wanted) in [
            (none(), "container"),
            (RequestHeaders { partition_key: Some("[]"), ..none() }, "container"),
            (RequestHeaders { partition_key: Some(r#"["x"]"#), ..none() }, r#"key ["x"]"#),
            (RequestHeaders { partition_key: Some("[1,2]"), range_id: Some("0"), ..none() }, "key [1,2]"),
            (RequestHeaders { partition_key: Some("[1,2,3]"), ..none() }, "400"),
            (RequestHeaders { partition_key: Some("[1]"), ..none() }, "key [1]"),
            (RequestHeaders { range_id: Some("3"), ..none() }, "range 3"),
            (RequestHeaders { range_id: Some("ehszALxRRgA=,3"), ..none() }, "range 3"),
            (RequestHeaders { range_id: Some("x"), ..none() }, "400"),
            (RequestHeaders { range_id: Some("0,1"), ..none() }, "400"),
            (RequestHeaders { range_id: Some("-1"), ..none() }, "400"),
            (RequestHeaders { start_epk: Some("0A"), end_epk: Some("1B"), ..none() }, "epk 0A..1B"),
            (RequestHeaders { end_epk: Some("1B"), read_key_type: kind, ..none() }, "epk ..1B"),
            (
                RequestHeaders { range_id: Some("1"), start_epk: Some("0A"), end_epk: Some("FF"), ..none() },
                "range 1 0A..FF",
            ),
            (RequestHeaders { start_epk: Some("xyz"), ..none() }, "400"),
            (RequestHeaders { start_epk: Some("0A"), read_key_type: Some("Other"), ..none() }, "400"),
        ] {
            assert_eq!(show(headers.clone()), wanted, "{headers:?}");
        }
    }

    #[test]
    fn a_prefix_and_a_range_mean_what_both_cover() {
        let key = Some("[1]");
        let below =
            |headers| match of_parts(&def(), key::of_scope(&def(), false, key).expect("a key"), &headers) {
                Ok(scope @ Scope::Below { .. }) => (scope.range_id(), scope.covered(&def())),
                other => panic!("{other:?}"),
            };
        let whole = prefix_range(&def(), &key::parse("[1]").expect("a key"));
        let none = RequestHeaders::default;
        assert_eq!(below(RequestHeaders { range_id: Some("3"), ..none() }), (Some(3), whole.clone()));
        let (start_epk, end_epk) = (Some(""), Some("FF"));
        assert_eq!(below(RequestHeaders { start_epk, end_epk, ..none() }), (None, whole.clone()));
        let max = whole.min.to_hex();
        let (id, empty) = below(RequestHeaders { end_epk: Some(&max), range_id: Some("3"), ..none() });
        assert!(id == Some(3) && empty.min >= empty.max, "{empty:?}");
    }

    proptest! {
        #[test]
        fn no_header_panics(range in "\\PC{0,20}", min in "\\PC{0,20}", max in "[0-9A-Fa-f]{0,20}") {
            let headers = RequestHeaders {
                range_id: Some(&range),
                start_epk: Some(&min),
                end_epk: Some(&max),
                ..Default::default()
            };
            let _ = of_parts(&def(), None, &headers);
        }
    }
}
