//! Session tokens and ids, held against `docs/format.md`: what the page says reads back to the same text.

use orrery_cluster::store::{Etag, ItemRid, Lsn};
use orrery_cluster::{RangeToken, ResourceKind, Rid};
use orrery_testkit::golden;

use crate::items::session;

#[test]
fn the_format_page_tells_tokens_and_ids() {
    let token = |range, version, lsn, regions: &[(u64, i64)]| {
        let mut text = String::new();
        session::write(&RangeToken { range, version, lsn: Lsn(lsn), regions: regions.to_vec() }, &mut text);
        text
    };
    let database = Rid::database(1);
    let container = Rid::container(database, 1);
    let item = ItemRid { partition: 2, region: 0, count: 0x0304 }.encode();
    let wanted: Vec<(String, String)> = [
        ("token", token(0, Some(-1), 12, &[])),
        ("token.regions", token(3, Some(1), 12, &[(2, 5), (4, -1)])),
        ("token.old", token(0, None, 12, &[])),
        ("etag.header", Etag::of(0x0102, 3, 0x66B3_F4D1).to_header()),
        ("rid.database", database.to_string()),
        ("rid.container", container.to_string()),
        ("rid.document", Rid::child(container, ResourceKind::Item, item).to_string()),
        ("rid.user", Rid::user(database, 1).to_string()),
        ("rid.offer", Rid::offer(1).to_string()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec();
    assert_eq!(golden::texts_of_formats("tokens and ids"), wanted);
    let rids = wanted.iter().filter(|(name, _)| name.starts_with("rid."));
    for (name, text) in rids {
        assert_eq!(Rid::parse(text).map(|rid| rid.to_string()).as_ref(), Some(text), "{name}");
    }
}
