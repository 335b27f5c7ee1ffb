"""How the examples reach a server, and the one error that they are about."""

import os
import uuid
from contextlib import contextmanager

from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

# The key that every emulator shares; it is public and opens nothing else.
EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="


@contextmanager
def database(name):
    """A database of its own for one run, removed at the end."""
    endpoint = os.environ.get("ORRERY_ENDPOINT", "http://localhost:8081/")
    with CosmosClient(endpoint, os.environ.get("ORRERY_KEY", EMULATOR_KEY)) as client:
        made = client.create_database(f"{name}-{uuid.uuid4().hex[:8]}")
        try:
            yield made
        finally:
            client.delete_database(made)


def is_full(error):
    """Whether a write was refused because its logical partition has reached its limit."""
    return isinstance(error, CosmosHttpResponseError) and error.status_code == 403 and error.sub_status == 1014

