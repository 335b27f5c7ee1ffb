//! Clients of ranges that others have succeeded.

use super::*;

/// The Java client asks for the address of a range that it has just found, and if there is none looks only once more at what it
/// has: told twice that its range is gone it says 404 for the item, although the item is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_others_have_succeeded_keeps_its_address_and_sends_its_clients_on() {
    let (gateway, rid) = world().await;
    for key in 0..8 {
        let item = json!({"id": key.to_string(), "pk": key});
        let key = json!([key]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        let (target, signed) = (("POST", "/dbs/d/colls/c/docs"), ("docs", "dbs/d/colls/c"));
        assert_eq!(http(&gateway, Scheme::Https, target, signed, &headers, item).await.0, 201);
    }
    let catalog = gateway.db().catalog();
    let container = catalog.database("d").and_then(|database| database.container("c")).expect("made before");
    assert_eq!(gateway.db().split(container, 0, 2).await.expect("it can be split"), [1, 2]);
    let address = async |range: u32| {
        let uri =
            format!("//addresses/?$resolveFor=dbs%2fd%2fcolls%2f{rid}%2fdocs&$partitionKeyRangeIds={range}");
        http(&gateway, Scheme::Https, ("GET", &uri), ("docs", &rid.to_lowercase()), &[], Json::Null).await
    };
    for range in 0..3 {
        let (status, told) = address(range).await;
        assert_eq!((status, &told["Addresss"][0]["partitionKeyRangeId"]), (200, &json!(range.to_string())));
    }
    assert_eq!(address(3).await.0, 410, "it never was");
    let read = Asking::on_items(READ, "get", Some("5"), &rid).text(Asked::PartitionKey, "[5]");
    Client::of(&gateway).await.ask(read).await.checked(410, 1007);
}
