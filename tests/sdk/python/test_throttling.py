"""Real throttling: the server answers 429 with a time to wait, and the SDK waits and retries."""

import concurrent.futures
import time

import pytest
from azure.cosmos import PartitionKey

from conftest import connect

# Every property is an index term to write, so these small items are expensive ones.
PROPERTIES = {f"p{index}": index for index in range(500)}
WRITES = 40
# Few at once: a server may admit what arrives together.
WRITERS = 8


def test_429_is_seen_and_retried_by_the_sdk(database):
    database.create_container("slow", PartitionKey("/pk"), offer_throughput=400)
    refusals = []

    def watch(answer):
        if answer.http_response.status_code == 429:
            refusals.append(answer.http_response.headers)

    def write(container, index):
        body = {"id": f"item-{index}", "pk": str(index), **PROPERTIES}
        container.upsert_item(body, raw_response_hook=watch)

    with connect(retry_throttle_total=100, retry_throttle_backoff_max=120) as client:
        container = client.get_database_client(database.id).get_container_client("slow")
        container.read()
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda index: write(container, index), range(WRITES)))
        # Every write is in, though some were refused: so the SDK tried those again.
        stored = container.query_items("SELECT c.id FROM c", enable_cross_partition_query=True)
        assert len(list(stored)) == WRITES
    assert refusals, "no request was throttled"
    for headers in refusals:
        assert headers["x-ms-substatus"] == "3200"
        assert int(headers["x-ms-retry-after-ms"]) > 0


@pytest.mark.parametrize("writers", [5, 50])
def test_defaults_bring_every_write_through(database, writers):
    """Nine retries and thirty seconds are the SDK's own; the budget could serve all of this in twelve."""
    name = f"patient-{writers}"
    database.create_container(name, PartitionKey("/pk"), offer_throughput=400)
    charges, refusals = [], []

    def watch(answer):
        status, headers = answer.http_response.status_code, answer.http_response.headers
        (refusals if status == 429 else charges).append(float(headers["x-ms-request-charge"]))

    with connect() as client:
        container = client.get_database_client(database.id).get_container_client(name)
        container.read()
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(writers) as pool:
            bodies = [{"id": f"item-{index}", "pk": str(index % 50), "n": index} for index in range(600)]
            list(pool.map(lambda body: container.create_item(body, raw_response_hook=watch), bodies))
        seconds = time.monotonic() - began
        stored = list(container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True))
    assert stored == [600]
    assert refusals, "no request was throttled"
    ideal = sum(charges) / 400
    print(f"{writers} writers: {len(refusals)} refusals, {seconds:.1f} s for {sum(charges):.0f} RU")
    # The budget decides how long it takes, not the client, which has a second for its connections and first steps.
    assert seconds < 1.3 * ideal + 1, f"{seconds:.1f} s for {sum(charges):.0f} RU, which are {ideal:.1f} s"
