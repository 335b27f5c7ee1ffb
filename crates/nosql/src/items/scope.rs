//! Which part of a container a feed or query runs over.
//!
//! Clients name a partition key or the first levels of one, a physical partition by the id of its range,
//! a part of the key space by its two ends, or a part of a physical partition by both.

use orrery_cluster::Scope;
use orrery_doc::{Epk, EpkRange, PartitionKeyDef};

use crate::errors::Refusal;
use crate::headers::RequestHeaders;
use crate::items::key;

/// Reads the scope from headers. A key says more than a range, so it is looked at first.
pub(crate) fn of_request(def: &PartitionKeyDef, headers: &RequestHeaders<'_>) -> Result<Scope, Refusal> {
    let epk = epk_range(headers)?;
    let range_id = headers.range_id.map(range_id).transpose()?;
    if let Some(key) = key::of_scope(def, headers.partition_key)? {
        return Ok(Scope::Key(key));
    }
    Ok(match (range_id, epk) {
        (Some(range_id), epk) => Scope::Range { range_id, epk },
        (None, Some(epk)) => Scope::Epk(epk),
        (None, None) => Scope::Container,
    })
}

/// The id of a range, alone or behind the container's RID: `0` or `ehszALxRRgA=,0`.
pub(crate) fn range_id(text: &str) -> Result<u32, Refusal> {
    let id = text.rsplit(',').next().unwrap_or(text).trim();
    id.parse().map_err(|_| {
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
    use orrery_doc::{PartitionKeyKind, PartitionKeyVersion, Path};
    use proptest::prelude::*;

    use super::*;

    fn def() -> PartitionKeyDef {
        let paths = ["/a", "/b"].map(|path| Path::parse_property(path).expect("a path")).to_vec();
        PartitionKeyDef { kind: PartitionKeyKind::MultiHash, version: PartitionKeyVersion::V2, paths }
    }

    fn show(headers: RequestHeaders<'_>) -> String {
        match of_request(&def(), &headers) {
            Ok(Scope::Container) => "container".to_owned(),
            Ok(Scope::Key(key)) => format!("key {}", key.to_json()),
            Ok(Scope::Epk(epk)) => format!("epk {}..{}", epk.min.to_hex(), epk.max.to_hex()),
            Ok(Scope::Range { range_id, epk: None }) => format!("range {range_id}"),
            Ok(Scope::Range { range_id, epk: Some(epk) }) => {
                format!("range {range_id} {}..{}", epk.min.to_hex(), epk.max.to_hex())
            }
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
            (RequestHeaders { range_id: Some("3"), ..none() }, "range 3"),
            (RequestHeaders { range_id: Some("ehszALxRRgA=,3"), ..none() }, "range 3"),
            (RequestHeaders { range_id: Some("x"), ..none() }, "400"),
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

    proptest! {
        #[test]
        fn no_header_panics(range in "\\PC{0,20}", min in "\\PC{0,20}", max in "[0-9A-Fa-f]{0,20}") {
            let headers = RequestHeaders {
                range_id: Some(&range),
                start_epk: Some(&min),
                end_epk: Some(&max),
                ..Default::default()
            };
            let _ = of_request(&def(), &headers);
        }
    }
}
