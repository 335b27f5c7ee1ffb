"""Users, permissions, resource tokens, and tokens of Entra ID in development mode."""

import base64
import json
import os
import time

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import CosmosClient, PartitionKey

from conftest import refused


@pytest.fixture(scope="module")
def things(database):
    made = database.create_container("things", PartitionKey("/pk"))
    for name, key in [("1", "mine"), ("2", "mine"), ("3", "theirs")]:
        made.create_item({"id": name, "pk": key})
    return made


@pytest.fixture(scope="module")
def user(database):
    return database.create_user({"id": "someone"})


def bearer(database, user, definition, **options):
    """The container as a client sees it that holds one permission and nothing else."""
    permission = user.upsert_permission(definition, **options)
    token = permission.properties["_token"]
    client = CosmosClient(os.environ["ORRERY_ENDPOINT"], {definition["resource"]: token})
    return client.get_database_client(database.id).get_container_client("things")


def test_users_live_as_other_resources_do(database):
    database.create_user({"id": "short-lived"})
    with refused(409):
        database.create_user({"id": "short-lived"})
    found = list(database.query_users("SELECT * FROM u WHERE u.id=@id", [{"name": "@id", "value": "short-lived"}]))
    assert [entry["_permissions"] for entry in found] == ["permissions/"]
    database.replace_user("short-lived", {"id": "renamed"})
    database.delete_user("renamed")
    with refused(404):
        database.get_user_client("renamed").read()


def test_a_token_to_read_reads_and_does_not_write(database, user, things):
    held = bearer(database, user, {"id": "read", "permissionMode": "Read", "resource": things.container_link})
    assert len(list(held.read_all_items())) == 3
    assert held.read_item("1", "mine")["id"] == "1"
    with refused(403):
        held.create_item({"id": "4", "pk": "mine"})


def test_a_token_of_a_partition_key_opens_that_key_alone(database, user, things):
    definition = {
        "id": "key",
        "permissionMode": "All",
        "resource": things.container_link,
        "resourcePartitionKey": ["mine"],
    }
    held = bearer(database, user, definition)
    rows = held.query_items("SELECT VALUE c.id FROM c ORDER BY c.id", partition_key="mine")
    assert list(rows) == ["1", "2"]
    held.upsert_item({"id": "5", "pk": "mine"})
    held.delete_item("5", "mine")
    with refused(403):
        held.read_item("3", "theirs")


def test_a_withdrawn_permission_ends_its_tokens(database, user, things):
    held = bearer(database, user, {"id": "short", "permissionMode": "Read", "resource": things.container_link})
    held.read_item("1", "mine")
    user.delete_permission("short")
    with refused(403):
        held.read_item("1", "mine")


class Application:
    """Tokens as an issuer would make them, but for the signature, which development mode does not look at."""

    def get_token(self, *_scopes, **_options):
        expires = int(time.time()) + 600
        parts = [{"alg": "RS256", "typ": "JWT"}, {"oid": "an-application", "exp": expires}]
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return AccessToken(".".join([*encoded, "c2lnbmF0dXJl"]), expires)


def test_an_application_reads_and_writes_items_and_makes_no_containers(database, things):
    own = CosmosClient(os.environ["ORRERY_ENDPOINT"], Application()).get_database_client(database.id)
    held = own.get_container_client(things.id)
    held.upsert_item({"id": "7", "pk": "mine"})
    held.delete_item("7", "mine")
    with refused(403, 5300):
        own.create_container("new", PartitionKey("/pk"))
