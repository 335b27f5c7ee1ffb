"""How the scenarios reach the server: one endpoint and key from the environment."""

import contextlib
import os
import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey, exceptions


def connect(**options):
    return CosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"], **options)


@contextlib.contextmanager
def refused(status, sub_status=None):
    """The block must fail with this status (and sub-status, when it matters)."""
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        yield caught
    assert caught.value.status_code == status, caught.value
    if sub_status is not None:
        assert caught.value.sub_status == sub_status, caught.value


@pytest.fixture(scope="module")
def client():
    with connect() as opened:
        yield opened


@pytest.fixture(scope="module")
def database(client):
    made = client.create_database(f"py-{uuid.uuid4()}")
    yield made
    client.delete_database(made)
    with refused(404):
        made.read()


@pytest.fixture(scope="module", params=[(10000, 1), (24000, 4)], ids=["one-partition", "four-partitions"])
def container(request, database):
    throughput, partitions = request.param
    made = database.create_container(
        f"items-{partitions}", PartitionKey("/pk"), offer_throughput=throughput
    )
    assert len(list(made.read_feed_ranges())) == partitions
    return made
