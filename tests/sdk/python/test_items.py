"""All item operations; every test runs with one and with four physical partitions."""

import concurrent.futures
import re

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from conftest import refused


def test_create_read_replace_upsert_delete(container):
    item = {"id": "life", "pk": "a", "n": 1, "nested": {"list": [1, "two", None, True]}, "text": "é\u2028 😀"}
    created = container.create_item(item)
    assert float(created.get_response_headers()["x-ms-request-charge"]) > 0
    assert created.get_response_headers()["etag"] == created["_etag"]
    assert {"_rid", "_self", "_etag", "_ts", "_attachments"} <= set(created)
    with refused(409):
        container.create_item(item)
    read = container.read_item("life", "a")
    assert read["nested"] == item["nested"] and read["text"] == item["text"]
    with refused(404):
        container.read_item("life", "b")
    replaced = container.replace_item("life", {**item, "n": 2})
    assert replaced["n"] == 2 and replaced["_etag"] != created["_etag"]
    assert replaced["_rid"] == created["_rid"]
    assert container.upsert_item({**item, "n": 3})["n"] == 3
    assert container.create_item({"id": "quiet", "pk": "a"}, no_response=True) == {}
    container.delete_item("life", "a")
    with refused(404):
        container.delete_item("life", "a")
    with refused(404):
        container.replace_item("life", item)


@pytest.mark.parametrize("key", ["text", "", "é😀", 42, -1.5, 10**15, True, False])
def test_keys_of_every_scalar_type(container, key):
    container.create_item({"id": f"typed-{key}", "pk": key})
    assert container.read_item(f"typed-{key}", key)["pk"] == key


def test_null_and_missing_keys_are_different_places(container):
    container.create_item({"id": "hole", "pk": None})
    container.create_item({"id": "hole"})
    assert "pk" in container.read_item("hole", NullPartitionKeyValue)
    assert "pk" not in container.read_item("hole", NonePartitionKeyValue)


def test_an_etag_decides_between_writers(container):
    first = container.create_item({"id": "etag", "pk": "e", "n": 0})
    condition = {"etag": first["_etag"], "match_condition": MatchConditions.IfNotModified}
    container.replace_item("etag", {"id": "etag", "pk": "e", "n": 1}, **condition)
    with refused(412):
        container.replace_item("etag", {"id": "etag", "pk": "e", "n": 2}, **condition)
    with refused(412):
        container.upsert_item({"id": "etag", "pk": "e", "n": 2}, **condition)
    with refused(412):
        container.delete_item("etag", "e", **condition)
    now = container.read_item("etag", "e")
    assert now["n"] == 1


def test_an_unchanged_item_is_not_sent_again(container):
    made = container.create_item({"id": "same", "pk": "e"})
    statuses = []
    condition = {"etag": made["_etag"], "match_condition": MatchConditions.IfModified}
    watch = {"raw_response_hook": lambda answer: statuses.append(answer.http_response.status_code)}
    assert container.read_item("same", "e", **condition, **watch) == {}
    container.replace_item("same", {"id": "same", "pk": "e", "n": 1})
    assert container.read_item("same", "e", **condition, **watch)["n"] == 1
    assert statuses == [304, 200]


def test_patch_applies_all_operations(container):
    container.create_item(
        {"id": "patch", "pk": "p", "n": 5, "old": 1, "gone": True, "from": "here", "list": [1, 3]}
    )
    patched = container.patch_item(
        "patch",
        "p",
        [
            {"op": "add", "path": "/list/1", "value": 2},
            {"op": "add", "path": "/added", "value": {"a": 1}},
            {"op": "set", "path": "/old", "value": "new"},
            {"op": "replace", "path": "/added/a", "value": 2},
            {"op": "remove", "path": "/gone"},
            {"op": "incr", "path": "/n", "value": 2.5},
            {"op": "move", "from": "/from", "path": "/to"},
        ],
    )
    assert patched["list"] == [1, 2, 3] and patched["added"] == {"a": 2}
    assert patched["old"] == "new" and patched["n"] == 7.5 and patched["to"] == "here"
    assert "gone" not in patched and "from" not in patched
    assert container.read_item("patch", "p")["_etag"] == patched["_etag"]


def test_patch_conditions_and_errors(container):
    container.create_item({"id": "cond", "pk": "p", "n": 7, "word": "x"})
    seen = [{"op": "set", "path": "/seen", "value": True}]
    with refused(412):
        container.patch_item("cond", "p", seen, filter_predicate="from c where c.n = 1")
    met = container.patch_item("cond", "p", seen, filter_predicate="from c where c.n = 7")
    assert met["seen"] is True
    bad = [
        [{"op": "replace", "path": "/none", "value": 1}],
        [{"op": "remove", "path": "/none"}],
        [{"op": "incr", "path": "/word", "value": 1}],
        [{"op": "set", "path": "/pk", "value": "q"}],
        [{"op": "set", "path": "/id", "value": "q"}],
        [{"op": "set", "path": f"/f{n}", "value": n} for n in range(11)],
    ]
    for operations in bad:
        with refused(400):
            container.patch_item("cond", "p", operations)
    with refused(404):
        container.patch_item("absent", "p", seen)


def test_a_transactional_batch_is_all_or_nothing(container):
    results = container.execute_item_batch(
        [
            ("create", ({"id": "b1", "pk": "batch", "n": 1},)),
            ("upsert", ({"id": "b2", "pk": "batch", "n": 1},)),
            ("replace", ("b1", {"id": "b1", "pk": "batch", "n": 2})),
            ("patch", ("b2", [{"op": "incr", "path": "/n", "value": 9}])),
            ("read", ("b2",)),
            ("delete", ("b1",)),
        ],
        "batch",
    )
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 200, 204]
    assert results[4]["resourceBody"]["n"] == 10
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        container.execute_item_batch(
            [
                ("create", ({"id": "b3", "pk": "batch"},)),
                ("create", ({"id": "b2", "pk": "batch"},)),
                ("create", ({"id": "b4", "pk": "batch"},)),
            ],
            "batch",
        )
    assert caught.value.status_code == 409 and caught.value.error_index == 1
    assert [result["statusCode"] for result in caught.value.operation_responses] == [424, 409, 424]
    with refused(404):
        container.read_item("b3", "batch")


def test_many_writers_at_once(container):
    """The Python SDK has no bulk mode; concurrent point writes are how it loads data."""
    keys = [f"load-{index}" for index in range(60)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pk: container.create_item({"id": "load", "pk": pk}), keys))
    many = container.read_items([("load", pk) for pk in keys])
    assert sorted(item["pk"] for item in many) == sorted(keys)


def test_a_read_feed_pages_through_everything_once(container):
    for index in range(30):
        container.create_item({"id": f"feed-{index}", "pk": f"feed-{index % 7}"})
    pages = [list(page) for page in container.read_all_items(max_item_count=5).by_page()]
    assert len(pages) >= 6 and all(len(page) <= 5 for page in pages)
    seen = [item["id"] for page in pages for item in page if item["id"].startswith("feed-")]
    assert sorted(seen) == sorted(f"feed-{index}" for index in range(30))


def test_queries_in_one_logical_partition_and_across_all(container):
    for index in range(12):
        container.create_item({"id": f"q-{index}", "pk": f"query-{index % 3}", "n": index})
    parameters = [{"name": "@pk", "value": "query-1"}]
    inside = container.query_items("SELECT * FROM c WHERE c.pk = @pk", parameters, "query-1")
    assert sorted(item["n"] for item in inside) == [1, 4, 7, 10]
    by_filter = container.query_items("SELECT * FROM c WHERE c.pk = @pk", parameters)
    assert len(list(by_filter)) == 4
    across = container.query_items(
        "SELECT c.id, c.n FROM c WHERE c.n >= 3 AND STARTSWITH(c.pk, 'query-')",
        enable_cross_partition_query=True,
        max_item_count=2,
    )
    assert sorted(item["n"] for item in across) == list(range(3, 12))
    with refused(400):
        list(container.query_items("SELECT * FROM c WHERE c.n = 3"))
    with refused(400):
        list(container.query_items("SELEC nonsense", partition_key="query-1"))


def test_session_tokens(container):
    first = container.create_item({"id": "s1", "pk": "session"}).get_response_headers()
    second = container.create_item({"id": "s2", "pk": "session"}).get_response_headers()
    form = re.compile(r"^(\d+):(-?\d+)#(\d+)")
    before, after = form.match(first["x-ms-session-token"]), form.match(second["x-ms-session-token"])
    assert before[1] == after[1] == second["x-ms-documentdb-partitionkeyrangeid"]
    assert int(after[3]) > int(before[3])
    assert container.read_item("s1", "session", session_token=second["x-ms-session-token"])
    future = f"{after[1]}:{after[2]}#{int(after[3]) + 1_000_000}"
    with refused(404, 1002):
        container.read_item("s1", "session", session_token=future)


def test_bad_items_are_refused(container):
    with refused(400):
        container.create_item({"id": "i" * 1024, "pk": "x"})
    with refused(413):
        container.create_item({"id": "big", "pk": "x", "data": "x" * 2_200_000})
    with refused(400):
        container.create_item({"id": "key", "pk": "k" * 2049})
    with refused(400):
        container.create_item({"pk": "no id"})


@pytest.mark.parametrize("paths", [["/tenant", "/user"], ["/tenant", "/user", "/session"]], ids=["two", "three"])
def test_hierarchical_keys(database, paths):
    levels = database.create_container(
        f"levels-{len(paths)}", PartitionKey(paths, kind="MultiHash"), offer_throughput=24000
    )
    rows = [["t1", "u1", "s1"], ["t1", "u1", "s2"], ["t1", "u2", "s1"], ["t2", "u1", "s1"]]
    names = [path.lstrip("/") for path in paths]
    for number, row in enumerate(rows):
        levels.create_item({"id": str(number), **dict(zip(names, row))})
    key = rows[2][: len(paths)]
    assert levels.read_item("2", key)["user"] == "u2"
    levels.patch_item("2", key, [{"op": "set", "path": "/n", "value": 1}])
    count = lambda prefix: len(list(levels.query_items("SELECT * FROM c", partition_key=prefix)))
    assert count(["t1"]) == 3 and count(["t2"]) == 1 and count(["t3"]) == 0
    assert count(["t1", "u1"]) == 2
    with refused(400, 1001):
        levels.read_item("2", ["t1"])
    levels.delete_item("2", key)
    assert count(["t1"]) == 2
