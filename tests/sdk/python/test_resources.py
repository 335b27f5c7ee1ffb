"""Databases, containers, partitions and throughput."""

import uuid

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties

from conftest import refused


def test_a_database_can_be_read_listed_queried_and_not_made_twice(client, database):
    properties = database.read()
    assert properties["id"] == database.id
    assert properties["_self"].startswith("dbs/") and properties["_self"].endswith("/")
    assert database.id in [entry["id"] for entry in client.list_databases()]
    found = client.query_databases(
        "SELECT * FROM root r WHERE r.id=@id", [{"name": "@id", "value": database.id}]
    )
    assert [entry["id"] for entry in found] == [database.id]
    with refused(409):
        client.create_database(database.id)
    assert client.create_database_if_not_exists(database.id).read()["_rid"] == properties["_rid"]


@pytest.mark.parametrize("throughput, partitions", [(400, 1), (24000, 4)])
def test_throughput_decides_the_number_of_physical_partitions(database, throughput, partitions):
    made = database.create_container(
        f"partitions-{partitions}", PartitionKey("/pk"), offer_throughput=throughput
    )
    ranges = list(made.read_feed_ranges())
    assert len(ranges) == partitions
    for index in range(20):
        made.create_item({"id": str(index), "pk": f"key-{index}"})
    seen = []
    for feed_range in ranges:
        page = [item["id"] for item in made.query_items("SELECT * FROM c", feed_range=feed_range)]
        assert partitions == 1 or len(page) < 20
        seen += page
    assert sorted(seen, key=int) == [str(index) for index in range(20)]


def test_a_container_keeps_its_definition(database):
    made = database.create_container(
        "definition",
        PartitionKey(["/tenant", "/user"], kind="MultiHash"),
        default_ttl=3600,
        indexing_policy={"excludedPaths": [{"path": "/secret/*"}]},
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]},
        conflict_resolution_policy={"mode": "LastWriterWins", "conflictResolutionPath": "/n"},
    )
    properties = made.read()
    assert properties["partitionKey"] == {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2}
    assert properties["defaultTtl"] == 3600
    assert properties["uniqueKeyPolicy"]["uniqueKeys"] == [{"paths": ["/email"]}]
    assert "/secret/*" in [path["path"] for path in properties["indexingPolicy"]["excludedPaths"]]
    replaced = database.replace_container(
        made, PartitionKey(["/tenant", "/user"], kind="MultiHash"), default_ttl=60
    )
    assert replaced.read()["defaultTtl"] == 60
    names = [entry["id"] for entry in database.list_containers()]
    assert "definition" in names
    database.delete_container("definition")
    with refused(404):
        made.read()
    with refused(409):
        database.create_container(names[0] if names[0] != "definition" else names[1], PartitionKey("/x"))


def test_bad_definitions_are_refused(database):
    with refused(400):
        database.create_container("low", PartitionKey("/pk"), offer_throughput=100)
    with refused(400):
        paths = ["/a", "/b", "/c", "/d"]
        database.create_container("deep", PartitionKey(paths, kind="MultiHash"))
    with refused(404):
        database.client_connection.CreateContainer("dbs/absent", {"id": "x", "partitionKey": {"paths": ["/x"]}})


def test_manual_and_autoscale_throughput_is_read_and_changed(database):
    manual = database.create_container("manual", PartitionKey("/pk"), offer_throughput=500)
    assert manual.get_throughput().offer_throughput == 500
    assert manual.replace_throughput(900).offer_throughput == 900
    assert manual.get_throughput().offer_throughput == 900
    scaled = database.create_container(
        "scaled",
        PartitionKey("/pk"),
        offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=5),
    )
    assert scaled.get_throughput().auto_scale_max_throughput == 4000
    scaled.replace_throughput(ThroughputProperties(auto_scale_max_throughput=6000))
    after = scaled.get_throughput()
    assert after.auto_scale_max_throughput == 6000
    assert after.auto_scale_increment_percent == 5


def test_throughput_of_a_database_is_shared(client):
    shared = client.create_database(f"py-shared-{uuid.uuid4()}", offer_throughput=1000)
    try:
        inside = shared.create_container("inside", PartitionKey("/pk"))
        # No throughput of its own: asking for it is not possible, since this SDK fails on an empty list.
        assert inside.create_item({"id": "1", "pk": "a"})["id"] == "1"
        assert shared.get_throughput().offer_throughput == 1000
        assert shared.replace_throughput(1200).offer_throughput == 1200
    finally:
        client.delete_database(shared)
