"""Items that expire, and values that only one item may have."""

import time

import pytest
from azure.cosmos import PartitionKey, exceptions

from conftest import refused

# The shortest life is a second.
A_LIFE = 1.2


def expiring(database, name, **options):
    return database.create_container(name, PartitionKey("/pk"), **options)


def ids(container):
    found = container.query_items("SELECT VALUE c.id FROM c", enable_cross_partition_query=True)
    return sorted(found)


def count(container):
    text = "SELECT VALUE COUNT(1) FROM c"
    return sum(container.query_items(text, enable_cross_partition_query=True))


@pytest.mark.parametrize("throughput", [400, 24000])
def test_items_vanish_when_their_time_is_over(database, throughput):
    container = expiring(database, f"expiring-{throughput}", default_ttl=1, offer_throughput=throughput)
    for index in range(8):
        container.create_item({"id": f"default-{index}", "pk": f"key-{index}"})
    container.create_item({"id": "never", "pk": "key-0", "ttl": -1})
    container.create_item({"id": "later", "pk": "key-1", "ttl": 1000})
    assert container.read_item("never", "key-0")["ttl"] == -1
    time.sleep(A_LIFE)
    with refused(404):
        container.read_item("default-0", "key-0")
    with refused(404):
        container.delete_item("default-0", "key-0")
    with refused(404):
        container.replace_item("default-0", {"id": "default-0", "pk": "key-0"})
    assert ids(container) == ["later", "never"]
    assert count(container) == 2
    assert sorted(item["id"] for item in container.read_all_items()) == ["later", "never"]
    assert sorted(item["id"] for item in container.query_items_change_feed(start_time="Beginning")) == [
        "later",
        "never",
    ]
    again = container.create_item({"id": "default-0", "pk": "key-0", "ttl": 1000})
    assert again["id"] == "default-0"


def test_a_write_gives_a_new_life(database):
    container = expiring(database, "renewed", default_ttl=2)
    container.create_item({"id": "kept", "pk": "a"})
    container.create_item({"id": "left", "pk": "a"})
    for _ in range(3):
        time.sleep(0.9)
        container.upsert_item({"id": "kept", "pk": "a"})
    assert ids(container) == ["kept"]


def test_the_default_can_be_changed_and_switched_off(database):
    container = expiring(database, "changed")
    container.create_item({"id": "plain", "pk": "a"})
    container.create_item({"id": "short", "pk": "a", "ttl": 1})
    time.sleep(A_LIFE)
    assert ids(container) == ["plain", "short"]
    database.replace_container(container, PartitionKey("/pk"), default_ttl=-1)
    assert ids(container) == ["plain"]
    database.replace_container(container, PartitionKey("/pk"), default_ttl=1000)
    assert ids(container) == ["plain"]


@pytest.mark.parametrize("ttl", [0, None, -10, "soon", 2147483648])
def test_a_time_to_live_must_be_positive_or_never(database, ttl):
    container = database.create_container_if_not_exists("illegal", PartitionKey("/pk"), default_ttl=10)
    with refused(400) as refusal:
        container.create_item({"id": "1", "pk": "a", "ttl": ttl})
    assert "The input ttl '" in refusal.value.message


def test_only_one_item_of_a_logical_partition_has_a_unique_value(database):
    container = database.create_container(
        "unique",
        PartitionKey("/pk"),
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/first", "/last"]}]},
    )
    container.create_item({"id": "1", "pk": "a", "email": "x", "first": "A", "last": "B"})
    with refused(409, 3301) as refusal:
        container.create_item({"id": "2", "pk": "a", "email": "x"})
    assert "Unique index constraint violation." in refusal.value.message
    with refused(409, 3301):
        container.upsert_item({"id": "2", "pk": "a", "email": "y", "first": "A", "last": "B"})
    container.create_item({"id": "1", "pk": "b", "email": "x", "first": "A", "last": "B"})
    container.create_item({"id": "2", "pk": "a", "email": "y", "first": "A"})
    with refused(409, 3301):
        container.patch_item("2", "a", [{"op": "set", "path": "/email", "value": "x"}])
    container.delete_item("1", "a")
    container.patch_item("2", "a", [{"op": "set", "path": "/email", "value": "x"}])
    container.create_item({"id": "4", "pk": "a", "first": "D"})
    with refused(409, 3301):
        container.create_item({"id": "5", "pk": "a", "first": "E"})


def test_a_batch_is_refused_as_a_whole_by_a_unique_value(database):
    container = database.create_container(
        "unique-batch", PartitionKey("/pk"), unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]}
    )
    container.create_item({"id": "1", "pk": "a", "email": "x"})
    swap = [("delete", ("1",)), ("create", ({"id": "2", "pk": "a", "email": "x"},))]
    with pytest.raises(Exception) as caught:
        container.execute_item_batch(swap + [("create", ({"id": "3", "pk": "a", "email": "x"},))], "a")
    assert caught.value.status_code == 409
    assert ids(container) == ["1"]
    container.execute_item_batch(swap, "a")
    assert ids(container) == ["2"]


def value_that_a_living_item_holds(container):
    """A value that was refused to a second item while the first one lived.

    A life is a second. Where the second item came later than that, nothing is said, and another value is tried.
    """
    for attempt in range(20):
        value = {"pk": "a", "email": f"x{attempt}"}
        started = time.monotonic()
        container.create_item({"id": f"first-{attempt}", **value})
        try:
            container.create_item({"id": f"second-{attempt}", **value})
        except exceptions.CosmosHttpResponseError as refusal:
            assert (refusal.status_code, refusal.sub_status) == (409, 3301), refusal
            return value
        assert time.monotonic() - started > 0.8, "two living items have one value"
    raise AssertionError("two writes always took longer than an item lives")


def test_an_expired_item_holds_no_unique_value(database):
    container = database.create_container(
        "unique-expiring",
        PartitionKey("/pk"),
        default_ttl=1,
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]},
    )
    held = value_that_a_living_item_holds(container)
    time.sleep(A_LIFE)
    container.create_item({"id": "next", "ttl": -1, **held})
    assert ids(container) == ["next"]
