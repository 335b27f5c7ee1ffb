"""A container gets another partition key while clients of it go on, sync and async."""

import asyncio
import os
import threading
import time
import uuid

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient

from conftest import connect
from manage import manage

ITEMS = 150


@pytest.fixture
def orders(database):
    made = database.create_container(f"orders-{uuid.uuid4()}", PartitionKey("/pk"), offer_throughput=10000)
    for n in range(ITEMS):
        made.create_item(item(n, 0))
    return made


def item(n, version):
    return {"id": f"i{n}", "pk": f"p{n % 7}", "region": f"r{n % 11}", "version": version}


def rekey(database, container, path, completes=True):
    return manage(
        "POST",
        "jobs",
        {
            "kind": "rekey",
            "container": {"database": database.id, "container": container.id},
            "partitionKey": {"paths": [path], "kind": "Hash", "version": 2},
            "completesItself": completes,
        },
    )


def outcome(job):
    while job["state"] not in ("completed", "failed", "cancelled"):
        time.sleep(0.05)
        job = manage("GET", f"jobs/{job['id']}")
    return job


class Writers:
    """Threads that upsert through clients of their own, which know the container from before."""

    def __init__(self, database, container, count):
        self.stopped, self.versions, self.errors = threading.Event(), {}, []
        self.threads = [
            threading.Thread(target=self.write, args=(database.id, container.id, n, count)) for n in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def write(self, database, container, share, count):
        with connect() as client:
            mine = client.get_database_client(database).get_container_client(container)
            mine.read()
            version, numbers = 0, range(share, ITEMS, count)
            try:
                while not self.stopped.is_set():
                    version += 1
                    for n in numbers:
                        mine.upsert_item(item(n, version))
                        self.versions[n] = version
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(error)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors[0]
        return self.versions


def test_writers_go_on_across_a_new_key(database, orders):
    before = orders.read()
    writers = Writers(database, orders, 3)
    time.sleep(0.3)
    job = outcome(rekey(database, orders, "/region"))
    assert job["state"] == "completed", job
    time.sleep(0.5)
    versions = writers.stop()
    after = orders.read()
    assert after["partitionKey"]["paths"] == ["/region"]
    assert after["id"] == before["id"] and after["_rid"] != before["_rid"]
    stored = {found["id"]: found for found in orders.read_all_items()}
    assert len(stored) == ITEMS
    for n in range(ITEMS):
        assert stored[f"i{n}"]["version"] == versions.get(n, 0), n
    assert orders.read_item("i5", partition_key="r5")["pk"] == "p5"
    assert orders.read_offer().offer_throughput == 10000


def test_readers_and_queries_learn_of_a_new_key(database, orders):
    with connect() as client:
        mine = client.get_database_client(database.id).get_container_client(orders.id)
        assert mine.read_item("i3", partition_key="p3")["id"] == "i3"
        assert outcome(rekey(database, orders, "/id"))["state"] == "completed"
        assert mine.read_item("i3", partition_key="i3")["pk"] == "p3"
        rows = list(mine.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True))
        assert sum(rows) == ITEMS
        mine.delete_item("i3", partition_key="i3")
        assert len(list(mine.read_all_items())) == ITEMS - 1


def test_async_clients_go_on(database, orders):
    async def scenario():
        async with AsyncClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"]) as client:
            mine = client.get_database_client(database.id).get_container_client(orders.id)
            await mine.read()
            await mine.upsert_item(item(0, 1))
            job = await asyncio.to_thread(lambda: outcome(rekey(database, orders, "/region")))
            assert job["state"] == "completed", job
            await mine.upsert_item(item(0, 2))
            found = await mine.read_item("i0", partition_key="r0")
            assert found["version"] == 2

    asyncio.run(scenario())


def test_collisions_are_reported_and_change_nothing(database, orders):
    for pk in ("x", "y"):
        orders.create_item({"id": "same", "pk": pk, "region": "r0"})
    job = outcome(rekey(database, orders, "/region"))
    assert job["state"] == "failed" and job["collisions"]["count"] == 1, job
    assert job["collisions"]["examples"][0]["id"] == "same"
    assert orders.read()["partitionKey"]["paths"] == ["/pk"]
    assert orders.read_item("same", partition_key="x")["pk"] == "x"
