"""Queries: what one partition answers, and what the SDK merges from four."""

import base64
import json
import time

import pytest
from azure.cosmos import PartitionKey

from conftest import connect, refused

COUNT = 60
KEYS = 7


def made(n):
    item = {"id": f"{n:03}", "pk": f"k{n % KEYS}", "n": n, "third": n % 3, "name": f"Name {n:02}", "deep": {"half": n / 2}}
    item["tags"] = [f"t{n % 5}", f"t{(n + 1) % 5}"]
    item["parts"] = [{"kind": "a", "size": n}, {"kind": "b", "size": n + 1}]
    if n % 10 == 0:
        item["rare"] = n
    item["mixed"] = [None, n % 8 < 4, n, f"s{n}"][n % 4]
    return item


@pytest.fixture(scope="module")
def stock(container):
    for n in range(COUNT):
        container.create_item(made(n))
    return container


def across(stock, query, **options):
    return list(stock.query_items(query, enable_cross_partition_query=True, **options))


def inside(stock, query, key="k1", **options):
    return list(stock.query_items(query, partition_key=key, **options))


ITEMS = [made(n) for n in range(COUNT)]
OF_K1 = [item for item in ITEMS if item["pk"] == "k1"]


def test_parameters_of_every_type(stock):
    by_type = {"n": 17, "name": "Name 17", "mixed": True, "tags": ["t2", "t3"]}
    for name, value in by_type.items():
        found = across(stock, f"SELECT VALUE c.id FROM c WHERE c.{name} = @value", parameters=[{"name": "@value", "value": value}])
        assert sorted(found) == [item["id"] for item in ITEMS if item[name] == value], name
    found = across(stock, "SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@set, c.n)", parameters=[{"name": "@set", "value": [3, 5, 99]}])
    assert sorted(found) == [3, 5]


@pytest.mark.parametrize(
    "condition, wanted",
    [
        ("c.n >= 10 AND c.n < 20", lambda i: 10 <= i["n"] < 20),
        ("c.n BETWEEN 10 AND 12 OR c.third = 2", lambda i: 10 <= i["n"] <= 12 or i["third"] == 2),
        ("c.n IN (1, 2, 'x', 59)", lambda i: i["n"] in (1, 2, 59)),
        ("c.deep.half = 7.5", lambda i: i["n"] == 15),
        ("STARTSWITH(c.name, 'Name 3')", lambda i: 30 <= i["n"] < 40),
        ("c.name LIKE '%7'", lambda i: i["n"] % 10 == 7),
        ("CONTAINS(c.name, 'name 4', true)", lambda i: 40 <= i["n"] < 50),
        ("ARRAY_CONTAINS(c.tags, 't3')", lambda i: "t3" in i["tags"]),
        ("ARRAY_CONTAINS(c.parts, {'kind': 'b', 'size': 8}, true)", lambda i: i["n"] == 7),
        ("IS_DEFINED(c.rare)", lambda i: "rare" in i),
        ("NOT IS_DEFINED(c.rare)", lambda i: "rare" not in i),
        ("IS_NULL(c.mixed)", lambda i: i["mixed"] is None),
        ("IS_STRING(c.mixed) AND c.mixed > 's5'", lambda i: isinstance(i["mixed"], str) and i["mixed"] > "s5"),
        ("EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.size = 31)", lambda i: i["n"] in (30, 31)),
        ("NOT (c.n != 5)", lambda i: i["n"] == 5),
        ("c.missing = 1", lambda _i: False),
    ],
)
def test_conditions(stock, condition, wanted):
    expected = [item["id"] for item in ITEMS if wanted(item)]
    assert sorted(across(stock, f"SELECT VALUE c.id FROM c WHERE {condition}")) == expected
    expected = [item["id"] for item in OF_K1 if wanted(item)]
    assert sorted(inside(stock, f"SELECT VALUE c.id FROM c WHERE {condition}")) == expected


def test_order_is_merged_from_all_partitions(stock):
    assert across(stock, "SELECT VALUE c.n FROM c ORDER BY c.n", max_item_count=7) == list(range(COUNT))
    backwards = across(stock, "SELECT VALUE c.name FROM c WHERE c.n >= 20 ORDER BY c.name DESC", max_item_count=4)
    assert backwards == [f"Name {n}" for n in range(59, 19, -1)]
    ties = across(stock, "SELECT VALUE c.third FROM c ORDER BY c.third DESC")
    assert ties == [2] * 20 + [1] * 20 + [0] * 20
    with_holes = inside(stock, "SELECT c.rare FROM c ORDER BY c.rare")
    assert with_holes == [{}] * (len(OF_K1) - 1) + [{"rare": 50}]
    mixed = inside(stock, "SELECT VALUE c.mixed FROM c ORDER BY c.mixed")
    kinds = [0 if value is None else 1 if isinstance(value, bool) else 2 if isinstance(value, int) else 3 for value in mixed]
    assert kinds == sorted(kinds) and len(mixed) == len(OF_K1)


def test_top_offset_and_limit(stock):
    assert across(stock, "SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC") == [59, 58, 57, 56, 55]
    assert across(stock, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 55 LIMIT 10") == [55, 56, 57, 58, 59]
    assert len(across(stock, "SELECT TOP 11 * FROM c")) == 11
    assert len(across(stock, "SELECT * FROM c OFFSET 50 LIMIT 100")) == 10
    top = [{"name": "@top", "value": 3}]
    assert across(stock, "SELECT TOP @top VALUE c.n FROM c ORDER BY c.n", parameters=top) == [0, 1, 2]
    assert inside(stock, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 2") == [8, 15]


def test_distinct(stock):
    assert sorted(across(stock, "SELECT DISTINCT VALUE c.third FROM c")) == [0, 1, 2]
    assert across(stock, "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk") == [f"k{n}" for n in range(KEYS)]
    assert len(across(stock, "SELECT DISTINCT c.third, c.tags FROM c")) == 15


def test_aggregates(stock):
    numbers = list(range(COUNT))
    for call, expected in [
        ("COUNT(1)", COUNT),
        ("COUNT(c.rare)", 6),
        ("SUM(c.n)", sum(numbers)),
        ("MIN(c.n)", 0),
        ("MAX(c.name)", "Name 59"),
        ("AVG(c.n)", sum(numbers) / COUNT),
    ]:
        assert across(stock, f"SELECT VALUE {call} FROM c") == [expected], call
    assert across(stock, "SELECT VALUE COUNT(1) FROM c WHERE c.third = 1 AND c.n < 30") == [10]
    assert inside(stock, "SELECT COUNT(1) AS count, MAX(c.n) AS last FROM c") == [{"count": len(OF_K1), "last": 57}]
    with refused(400):
        across(stock, "SELECT COUNT(1) AS count FROM c")


def test_groups_within_a_partition(stock):
    rows = inside(stock, "SELECT c.third, COUNT(1) AS count, SUM(c.n) AS sum FROM c GROUP BY c.third")
    expected = {}
    for item in OF_K1:
        group = expected.setdefault(item["third"], {"third": item["third"], "count": 0, "sum": 0})
        group["count"], group["sum"] = group["count"] + 1, group["sum"] + item["n"]
    assert sorted(rows, key=lambda row: row["third"]) == [expected[third] for third in sorted(expected)]


def test_joins_and_subqueries(stock):
    rows = across(stock, "SELECT c.n, p.size FROM c JOIN p IN c.parts WHERE p.kind = 'b' AND p.size > 55")
    assert sorted(row["size"] for row in rows) == [56, 57, 58, 59, 60]
    assert sorted(across(stock, "SELECT VALUE t FROM t IN c.tags WHERE t = 't4'")) == ["t4"] * 24
    sums = inside(stock, "SELECT VALUE (SELECT VALUE SUM(p.size) FROM p IN c.parts) FROM c WHERE c.n = 8")
    assert sums == [17]
    lists = inside(stock, "SELECT VALUE ARRAY(SELECT VALUE p.kind FROM p IN c.parts) FROM c WHERE c.n = 8")
    assert lists == [["a", "b"]]


def test_pages_go_on_from_their_token_with_another_client(stock):
    seen, token = [], None
    for size in [1, 2, 7, 11, 5, 3, 50, 50, 50, 50]:
        fresh = connect()
        same = fresh.get_database_client(stock.container_link.split("/")[1]).get_container_client(stock.id)
        pages = same.query_items("SELECT VALUE c.n FROM c WHERE c.n >= 10", enable_cross_partition_query=True, max_item_count=size)
        pages = pages.by_page(token)
        try:
            page = list(next(pages))
        except StopIteration:
            break
        assert len(page) <= size
        seen, token = seen + page, pages.continuation_token
        if token is None:
            break
    assert sorted(seen) == list(range(10, COUNT))


@pytest.mark.parametrize("query", ["SELECT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT DISTINCT VALUE c.n FROM c", "SELECT VALUE c.n FROM c"])
def test_pages_of_one_partition_resume(stock, query):
    whole = inside(stock, query)
    for size in [1, 2, 5]:
        seen, token = [], None
        while True:
            pages = stock.query_items(query, partition_key="k1", max_item_count=size).by_page(token)
            page = next(pages, None)
            if page is None:
                break
            seen, token = seen + list(page), pages.continuation_token
            if token is None:
                break
        assert seen == whole


def test_several_keys_of_order_need_a_composite_index(database):
    policy = {"compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]}
    ordered = database.create_container("ordered", PartitionKey("/pk"), indexing_policy=policy, offer_throughput=24000)
    for n in range(24):
        ordered.create_item({"id": str(n), "pk": n % 5, "a": n % 4, "b": n, "c": -n})
    wanted = sorted(range(24), key=lambda n: (n % 4, -n))
    assert across(ordered, "SELECT VALUE c.b FROM c ORDER BY c.a, c.b DESC") == wanted
    assert across(ordered, "SELECT VALUE c.b FROM c ORDER BY c.a DESC, c.b ASC") == wanted[::-1]
    for order in ["c.a, c.b", "c.b DESC, c.a", "c.a, c.c"]:
        with refused(400) as caught:
            across(ordered, f"SELECT VALUE c.b FROM c ORDER BY {order}")
        assert "composite index" in str(caught.value)


def test_computed_properties(database):
    computed = [{"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    container = database.create_container("computed", PartitionKey("/pk"), computed_properties=computed)
    for name in ["Ada", "ADA", "Bob"]:
        container.create_item({"id": name, "pk": 1, "name": name})
    assert sorted(inside(container, "SELECT VALUE c.id FROM c WHERE c.low = 'ada'", 1)) == ["ADA", "Ada"]
    assert inside(container, "SELECT c.low FROM c WHERE c.id = 'Bob'", 1) == [{"low": "bob"}]
    assert all("low" not in item for item in inside(container, "SELECT * FROM c", 1))


def test_a_changed_policy_is_built_behind_the_queries(database):
    nothing = {"indexingMode": "consistent", "includedPaths": [], "excludedPaths": [{"path": "/*"}]}
    container = database.create_container("policy", PartitionKey("/pk"), indexing_policy=nothing)
    for n in range(40):
        container.create_item({"id": str(n), "pk": n % 3, "n": n})
    query = "SELECT VALUE c.n FROM c WHERE c.n > 30"
    before = sorted(across(container, query))
    assert before == list(range(31, 40))
    with refused(400):
        inside(container, "SELECT VALUE c.n FROM c ORDER BY c.n", 1)
    everything = {"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": []}
    database.replace_container(container, PartitionKey("/pk"), indexing_policy=everything)
    name = "x-ms-documentdb-collection-index-transformation-progress"
    for _attempt in range(600):
        headers = {}
        container.read(populate_quota_info=True, response_hook=lambda answer, *_rest: headers.update(answer))
        assert 0 <= int(headers[name]) <= 100
        if headers[name] == "100":
            break
        time.sleep(0.1)
    assert headers[name] == "100"
    assert sorted(across(container, query)) == before
    assert inside(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", 1)[:2] == [37, 34]


def headers_of(stock, query, **options):
    found = {}
    rows = list(
        stock.query_items(query, partition_key="k1", response_hook=lambda headers, *_rest: found.update(headers), **options)
    )
    return rows, found


def test_metrics_tell_what_a_query_did(stock):
    rows, headers = headers_of(stock, "SELECT * FROM c WHERE c.n = 8", populate_query_metrics=True, populate_index_metrics=True)
    assert [row["n"] for row in rows] == [8]
    metrics = dict(pair.split("=") for pair in headers["x-ms-documentdb-query-metrics"].split(";"))
    assert metrics["outputDocumentCount"] == metrics["retrievedDocumentCount"] == "1"
    assert float(metrics["totalExecutionTimeInMs"]) > 0
    index = headers["x-ms-cosmos-index-utilization"]
    if isinstance(index, str):
        index = json.loads(base64.b64decode(index))
    assert "/n/?" in [used["IndexSpec"] for used in index["UtilizedSingleIndexes"]]

    rows, headers = headers_of(stock, "SELECT VALUE COUNT(1) FROM c", populate_query_metrics=True)
    metrics = dict(pair.split("=") for pair in headers["x-ms-documentdb-query-metrics"].split(";"))
    assert rows == [len(OF_K1)] and metrics["retrievedDocumentCount"] == "0"


def test_advice_names_what_the_index_cannot_do(stock):
    for condition, rule in [
        ("CONTAINS(c.name, 'x')", "QA1002"),
        ("STARTSWITH(c.name, 'x', true)", "QA1003"),
        ("c.n < GetCurrentTicks()", "QA1008"),
    ]:
        _rows, headers = headers_of(stock, f"SELECT * FROM c WHERE {condition}", populate_query_advice=True)
        assert rule in str(headers["x-ms-cosmos-query-advice"]), condition
    _rows, headers = headers_of(stock, "SELECT * FROM c WHERE c.n = 1")
    assert "x-ms-cosmos-query-advice" not in headers


def test_databases_containers_and_offers_answer_queries(client, database, stock):
    by_id = [{"name": "@id", "value": database.id}]
    assert [found["id"] for found in client.query_databases("SELECT * FROM root r WHERE r.id = @id", by_id)] == [database.id]
    names = [found["id"] for found in database.query_containers("SELECT r.id FROM root r WHERE STARTSWITH(r.id, 'items')")]
    assert stock.id in names
    assert stock.get_throughput().offer_throughput in (10000, 24000)
