"""How the scenarios of tables reach the server."""

import os
import uuid

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.cosmos import CosmosClient
from azure.data.tables import TableServiceClient

ACCOUNT = "orrery"


def credential():
    return AzureNamedKeyCredential(ACCOUNT, os.environ["ORRERY_KEY"])


def service(host="localhost"):
    """The SDK takes `localhost` for Cosmos DB and sends MERGE as POST; to an address it sends PATCH."""
    return TableServiceClient(f"http://{host}:{os.environ['ORRERY_TABLE_PORT']}", credential=credential())


@pytest.fixture(params=["localhost", "127.0.0.1"])
def table(request):
    with service(request.param) as opened:
        made = opened.create_table(f"t{uuid.uuid4().hex}")
        yield made
        opened.delete_table(made.table_name)


@pytest.fixture(scope="module")
def nosql():
    with CosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"]) as opened:
        yield opened
