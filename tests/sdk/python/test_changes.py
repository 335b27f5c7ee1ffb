"""The change feed in both modes; every test runs with one and with four physical partitions."""

import asyncio
import datetime
import os
import time

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from conftest import refused

ALL = "AllVersionsAndDeletes"


@pytest.fixture(params=[(10000, 1), (24000, 4)], ids=["one-partition", "four-partitions"])
def source(request, database):
    throughput, partitions = request.param
    name = f"changes-{partitions}-{time.time_ns()}"
    made = database.create_container(
        name,
        PartitionKey("/pk"),
        offer_throughput=throughput,
        change_feed_policy={"retentionDuration": 10},
    )
    yield made
    database.delete_container(made)


def read(container, **options):
    """Everything that is there, and the continuation behind it."""
    changes = list(container.query_items_change_feed(**options))
    return changes, container.client_connection.last_response_headers["etag"]


def ids(changes):
    return sorted(change["id"] for change in changes)


def test_latest_versions_from_every_start(source):
    for n in range(20):
        source.create_item({"id": f"old-{n}", "pk": f"p{n % 7}"})
    changes, behind = read(source, start_time="Beginning", max_item_count=3)
    assert len(changes) == 20 and all(change["_lsn"] > 0 for change in changes)
    none, now = read(source, start_time="Now")
    assert none == []
    time.sleep(1.5)
    moment = datetime.datetime.now(datetime.timezone.utc)
    time.sleep(1.5)
    source.replace_item("old-3", {"id": "old-3", "pk": "p3", "n": 1})
    source.create_item({"id": "new", "pk": "p1"})
    source.delete_item("old-4", "p4")
    for start in [{"continuation": behind}, {"continuation": now}, {"start_time": moment}]:
        assert ids(read(source, max_item_count=1, **start)[0]) == ["new", "old-3"], start
    assert len(read(source, start_time="Beginning")[0]) == 20


def test_scopes(source):
    for n in range(24):
        source.create_item({"id": f"i{n:02}", "pk": f"p{n % 5}"})
    by_range = []
    for feed_range in source.read_feed_ranges():
        by_range += read(source, start_time="Beginning", feed_range=feed_range)[0]
    assert ids(by_range) == [f"i{n:02}" for n in range(24)]
    of_key = read(source, start_time="Beginning", partition_key="p2")[0]
    assert [change["id"] for change in of_key] == ["i02", "i07", "i12", "i17", "i22"]
    of_key_range = source.feed_range_from_partition_key("p2")
    assert ids(read(source, start_time="Beginning", feed_range=of_key_range)[0]) == ids(of_key)


def test_hierarchical_prefixes(database):
    container = database.create_container(
        f"levels-{time.time_ns()}", PartitionKey(["/tenant", "/user"], kind="MultiHash"), offer_throughput=24000
    )
    for tenant in "ab":
        for user in "xy":
            container.create_item({"id": tenant + user, "tenant": tenant, "user": user})
    assert ids(read(container, start_time="Beginning", partition_key=["a"])[0]) == ["ax", "ay"]
    assert ids(read(container, start_time="Beginning", partition_key=["b", "y"])[0]) == ["by"]


def test_all_versions_and_deletes(source):
    _, start = read(source, mode=ALL)
    source.create_item({"id": "1", "pk": "a", "n": 1})
    source.upsert_item({"id": "1", "pk": "a", "n": 2})
    operations = [("create", ({"id": "2", "pk": "a", "n": 3},)), ("delete", ("1",))]
    source.execute_item_batch(operations, partition_key="a")
    changes, behind = read(source, mode=ALL, continuation=start, max_item_count=1)
    shown = [(change["metadata"]["operationType"], change["current"].get("n")) for change in changes]
    assert shown == [("create", 1), ("replace", 2), ("create", 3), ("delete", None)]
    created, replaced, second, deleted = changes
    assert "previousImageLSN" not in created["metadata"]
    assert replaced["metadata"]["previousImageLSN"] == created["metadata"]["lsn"]
    assert deleted["metadata"]["lsn"] == second["metadata"]["lsn"], "one batch, one LSN"
    assert deleted["previous"]["n"] == 2
    assert (deleted["metadata"]["id"], deleted["metadata"]["partitionKey"]) == ("1", {"pk": "a"})
    assert deleted["metadata"]["timeToLiveExpired"] is False
    assert read(source, mode=ALL, continuation=behind)[0] == []


def test_all_versions_need_a_policy(container):
    with refused(400) as caught:
        list(container.query_items_change_feed(mode=ALL))
    assert "All Versions and Deletes" in str(caught.value)


def test_asynchronous_reading(source):
    for n in range(10):
        source.create_item({"id": f"{n}", "pk": f"p{n}"})

    async def drain():
        async with AsyncCosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"]) as client:
            database = client.get_database_client(source.container_link.split("/")[1])
            container = database.get_container_client(source.id)
            pages = container.query_items_change_feed(start_time="Beginning", max_item_count=2)
            return [change["id"] async for change in pages]

    assert sorted(asyncio.run(drain())) == [f"{n}" for n in range(10)]
