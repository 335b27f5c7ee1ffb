//! Entities: what happens below a table.

mod body;
mod query;
mod render;
mod rows;
mod write;

use std::sync::Arc;

use http::StatusCode;
use orrery_cluster::store::{ItemId, OpError, Precondition, Target};
use orrery_cluster::{Container, ReadOptions};
use orrery_doc::{KeyComponent, PartitionKey};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::errors::{Own, Refusal};
use crate::gateway::Call;
use crate::moment;
use crate::respond::Reply;

pub(crate) use body::Body;
pub(crate) use query::run as query;
pub(crate) use render::Renderer;
pub(crate) use write::{Change, Written, change_of, commit, run as write};

/// Reads one entity.
pub(crate) async fn get(
    call: &Call<'_>,
    table: &str,
    partition_key: &str,
    row_key: &str,
) -> Result<Reply, Refusal> {
    call.grant.check_key(partition_key, row_key)?;
    let container = crate::tables::find(call.catalog, table)?;
    let selected = query::selected(call)?;
    let (item, receipt) = read(call, &container, partition_key, row_key).await?;
    // Versions that a client insists on are for writes; here it may say which one it has.
    let has = |header: &str| moment::written_of_etag(header) == Some(item.header.time);
    if call.headers.if_none_match.is_some_and(has) {
        return Err(Own::NotModified.into());
    }
    let renderer = Renderer::new(call, table, selected.as_deref());
    let mut out = Vec::with_capacity(item.header.json_bytes as usize + 256);
    renderer.single(&item.doc.root(), item.header.time, &mut out);
    Ok(Reply::new(StatusCode::OK, call.metadata.content_type(), out)
        .etag(&moment::etag_of_written(item.header.time))
        .receipt(receipt))
}

/// The item of an entity.
async fn read(
    call: &Call<'_>,
    container: &Arc<Container>,
    partition_key: &str,
    row_key: &str,
) -> Result<(orrery_cluster::store::Item, orrery_cluster::Receipt), Refusal> {
    let options = ReadOptions {
        consistency: call.db.account().consistency,
        session: None,
        precondition: Precondition::None,
    };
    let reply = call.db.read(container, &key_of(partition_key), &target_of(row_key)?, &options).await?;
    Ok((reply.item, reply.receipt))
}

/// The item of a row key. No entity has one that is longer than any id.
pub(crate) fn target_of(row_key: &str) -> Result<Target, Refusal> {
    let id = ItemId::new(row_key).map_err(|_| orrery_cluster::Error::from(OpError::NotFound))?;
    Ok(Target::Id(id))
}

/// The key of a logical partition. One that is longer than any entity may have is a key that nothing has.
pub(crate) fn key_of(partition_key: &str) -> PartitionKey {
    PartitionKey(vec![KeyComponent::Str(partition_key.to_owned())])
}

/// What is left as it is in a key of an address.
const IN_KEY: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@');

/// A key as it stands between quotes in an address.
pub(crate) fn encode_key(key: &str) -> String {
    utf8_percent_encode(&key.replace('\'', "''"), &IN_KEY).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_kind_and_length_is_a_key() {
        for text in ["", "a", "it's \"quoted\" \\ and \u{1}", &"%41".repeat(20_000)] {
            assert_eq!(key_of(text).components(), [KeyComponent::Str(text.to_owned())]);
        }
        let header = PartitionKey::from_header(r#"["it's \"quoted\" é"]"#).expect("a key");
        assert_eq!(key_of("it's \"quoted\" é"), header);
    }
}
