"""A scenario with the official SDK for tables: what it writes it reads, and so do NoSQL clients."""

import datetime
import os
import uuid

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableRetentionPolicy,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from conftest import ACCOUNT, credential, service

WHEN = datetime.datetime(2024, 2, 29, 12, 34, 56, 789123, tzinfo=datetime.timezone.utc)


def entity(partition, row, **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def test_tables_are_made_listed_and_deleted():
    with service() as tables:
        name = f"t{uuid.uuid4().hex}"
        tables.create_table(name)
        with pytest.raises(ResourceExistsError):
            tables.create_table(name)
        tables.create_table_if_not_exists(name)
        assert [table.name for table in tables.query_tables(f"TableName eq '{name}'")] == [name]
        others = sorted(f"{name}{number}" for number in range(5))
        for other in others:
            tables.create_table(other)
        pages = list(tables.list_tables(results_per_page=2).by_page())
        assert max(len(list(page)) for page in pages) <= 2
        assert [table.name for table in tables.list_tables() if table.name.startswith(name)] == [name, *others]
        for other in [name, *others]:
            tables.delete_table(other)
        tables.delete_table(name)
        assert list(tables.query_tables(f"TableName eq '{name}'")) == []


def test_values_of_all_types_come_back_as_they_went(table):
    properties = {
        "text": "it's \"ü\"",
        "number": 5,
        "whole": 5.0,
        "huge": 1e300,
        "long": EntityProperty(-(2**40), EdmType.INT64),
        "flag": False,
        "bytes": b"\x00\xff",
        "when": WHEN,
        "guid": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
        "infinite": float("-inf"),
        "etag": "mine",
        "rid": "mine",
        "ResourceId": "mine",
        "ttl": 5,
        "id": "mine",
    }
    table.create_entity(entity("p", "it's", **properties, nothing=None))
    with pytest.raises(ResourceExistsError):
        table.create_entity(entity("p", "it's"))
    read = table.get_entity("p", "it's")
    assert read.metadata["timestamp"].tzinfo is not None
    assert {name: read[name] for name in properties} == properties
    assert isinstance(read["whole"], float) and isinstance(read["number"], int)
    assert "nothing" not in read


def test_updates_merge_or_replace_and_insist_on_versions(table):
    first = table.create_entity(entity("p", "r", a=1, b=2))
    table.update_entity(entity("p", "r", b=3, c=4))
    assert dict(table.get_entity("p", "r")) == entity("p", "r", a=1, b=3, c=4)
    table.update_entity(entity("p", "r", d=5), mode=UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r")) == entity("p", "r", d=5)
    insists = {"etag": first["etag"], "match_condition": MatchConditions.IfNotModified}
    with pytest.raises(ResourceModifiedError):
        table.update_entity(entity("p", "r", e=6), **insists)
    with pytest.raises(ResourceModifiedError):
        table.delete_entity("p", "r", **insists)
    current = table.get_entity("p", "r")
    insists["etag"] = current.metadata["etag"]
    written = table.update_entity(entity("p", "r", e=6), **insists)
    assert written["etag"] != current.metadata["etag"]
    for missing in (
        lambda: table.update_entity(entity("p", "other")),
        lambda: table.update_entity(entity("p", "other"), mode=UpdateMode.REPLACE),
        lambda: table.get_entity("p", "other"),
    ):
        with pytest.raises(ResourceNotFoundError):
            missing()
    table.upsert_entity(entity("p", "other", a=1))
    table.upsert_entity(entity("p", "other", b=2))
    assert dict(table.get_entity("p", "other")) == entity("p", "other", a=1, b=2)
    table.upsert_entity(entity("p", "other", c=3), mode=UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "other")) == entity("p", "other", c=3)
    table.delete_entity("p", "other")
    table.delete_entity("p", "other")


def test_queries_filter_select_and_come_in_order(table):
    for partition in "cab":
        for row in "213":
            long = EntityProperty((int(row) - 2) * 2**40, EdmType.INT64)
            table.create_entity(entity(partition, row, n=int(row), long=long, when=WHEN))
    keys = [(partition, row) for partition in "abc" for row in "123"]

    def found(query, **options):
        return [(row["PartitionKey"], row["RowKey"]) for row in table.query_entities(query, **options)]

    assert [(row["PartitionKey"], row["RowKey"]) for row in table.list_entities()] == keys
    pages = [list(page) for page in table.list_entities(results_per_page=2).by_page()]
    assert [(row["PartitionKey"], row["RowKey"]) for page in pages for row in page] == keys
    assert max(map(len, pages)) == 2
    assert found("PartitionKey eq 'b'") == [("b", row) for row in "123"]
    assert found("PartitionKey eq 'b' and RowKey ge '2'") == [("b", "2"), ("b", "3")]
    assert found("PartitionKey gt 'a' and n eq 1") == [("b", "1"), ("c", "1")]
    assert found("long lt 0") == [(partition, "1") for partition in "abc"]
    assert found("long ge @least", parameters={"least": 2**40}) == [(partition, "3") for partition in "abc"]
    assert found("when eq @when and n lt 3.0", parameters={"when": WHEN}) == [key for key in keys if key[1] < "3"]
    assert found("Timestamp gt datetime'2024-01-01T00:00:00Z'") == keys
    assert found("Timestamp lt datetime'2024-01-01T00:00:00Z'") == []
    assert found("not (n eq 1) and (PartitionKey eq 'a' or PartitionKey eq 'c')", results_per_page=1) == [
        key for key in keys if key[0] != "b" and key[1] != "1"
    ]
    row = next(iter(table.query_entities("PartitionKey eq 'a'", select=["n", "RowKey"])))
    assert dict(row) == {"n": 1, "RowKey": "1"}
    with pytest.raises(HttpResponseError) as refused:
        list(table.query_entities("aaa bbb ccc"))
    assert refused.value.status_code == 400


def test_batches_happen_whole_or_not_at_all(table):
    table.create_entity(entity("p", "old", a=1))
    table.create_entity(entity("p", "gone", a=1))
    table.submit_transaction(
        [
            ("create", entity("p", "new", a=1)),
            ("update", entity("p", "old", b=2)),
            ("upsert", entity("p", "other", c=3), {"mode": "replace"}),
            ("delete", entity("p", "gone")),
        ]
    )
    assert dict(table.get_entity("p", "old")) == entity("p", "old", a=1, b=2)
    assert [row["RowKey"] for row in table.list_entities()] == ["new", "old", "other"]
    with pytest.raises(TableTransactionError) as refused:
        table.submit_transaction(
            [("create", entity("p", "never")), ("update", entity("p", "old", c=3)), ("create", entity("p", "new"))]
        )
    assert (refused.value.index, refused.value.error_code) == (2, "EntityAlreadyExists")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "never")
    table.submit_transaction([("create", entity("many", f"{number:03}")) for number in range(100)])
    assert len(list(table.query_entities("PartitionKey eq 'many'"))) == 100


def test_keys_and_signatures_open_what_they_should(table):
    table.create_entity(entity("p", "r", a=1))
    endpoint = f"http://localhost:{os.environ['ORRERY_TABLE_PORT']}"
    wrong = AzureNamedKeyCredential(ACCOUNT, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
    with TableClient(endpoint, table.table_name, credential=wrong) as stranger:
        with pytest.raises(HttpResponseError) as refused:
            stranger.get_entity("p", "r")
        assert (refused.value.status_code, refused.value.error_code) == (401, "Unauthorized")
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    sas = generate_table_sas(
        credential(),
        table.table_name,
        permission=TableSasPermissions(read=True),
        expiry=until,
        start_pk="p",
        start_rk="a",
        end_pk="p",
        end_rk="z",
    )
    with TableClient(endpoint, table.table_name, credential=AzureSasCredential(sas)) as reader:
        assert reader.get_entity("p", "r")["a"] == 1
        assert [row["RowKey"] for row in reader.list_entities()] == ["r"]
        for refused in (lambda: reader.create_entity(entity("p", "s")), lambda: reader.get_entity("q", "r")):
            with pytest.raises(HttpResponseError) as caught:
                refused()
            assert caught.value.status_code == 403
    with TableServiceClient(endpoint, credential=AzureSasCredential(sas)) as reader:
        with pytest.raises(HttpResponseError):
            list(reader.list_tables())


def test_policies_give_rights_until_they_are_taken_back(table):
    table.create_entity(entity("p", "r", a=1))
    now = datetime.datetime.now(datetime.timezone.utc)
    policy = TableAccessPolicy(
        start=now - datetime.timedelta(hours=1), expiry=now + datetime.timedelta(hours=1), permission="r"
    )
    assert table.get_table_access_policy() == {}
    table.set_table_access_policy({"reads": policy, "nothing": None})
    told = table.get_table_access_policy()
    assert set(told) == {"reads", "nothing"} and told["reads"].permission == "r"
    endpoint = f"http://localhost:{os.environ['ORRERY_TABLE_PORT']}"
    sas = generate_table_sas(credential(), table.table_name, policy_id="reads")
    with TableClient(endpoint, table.table_name, credential=AzureSasCredential(sas)) as reader:
        assert reader.get_entity("p", "r")["a"] == 1
        with pytest.raises(HttpResponseError) as refused:
            reader.create_entity(entity("p", "s"))
        assert refused.value.status_code == 403
        table.set_table_access_policy({})
        with pytest.raises(HttpResponseError) as refused:
            reader.get_entity("p", "r")
        assert refused.value.status_code == 403


def test_properties_of_the_service_are_kept():
    rule = TableCorsRule(["http://page.example"], ["GET"], max_age_in_seconds=30, allowed_headers=["x-ms-*"])
    logging = TableAnalyticsLogging(write=True, retention_policy=TableRetentionPolicy(enabled=True, days=5))
    with service() as tables:
        tables.set_service_properties(cors=[rule], analytics_logging=logging)
        told = tables.get_service_properties()
        assert told["cors"][0].allowed_origins == ["http://page.example"]
        assert told["analytics_logging"].write and told["analytics_logging"].retention_policy.days == 5
        tables.set_service_properties(cors=[])
        told = tables.get_service_properties()
        assert told["cors"] == [] and told["analytics_logging"].write, "what was left out stays as it was"


def test_one_table_through_both_apis(table, nosql):
    container = nosql.get_database_client("TablesDB").get_container_client(table.table_name)
    table.create_entity(entity("p", "r", name="x", long=EntityProperty(5, EdmType.INT64)))
    [item] = container.query_items('SELECT * FROM c WHERE c.name["$v"] = "x"', enable_cross_partition_query=True)
    own = {name: value for name, value in item.items() if not name.startswith("_")}
    assert own == {
        "id": "r",
        "$id": "r",
        "$pk": "p",
        "name": {"$t": 2, "$v": "x"},
        "long": {"$t": 18, "$v": "00000000000000000005"},
    }
    container.create_item({"id": "s", "$id": "s", "$pk": "p", "n": {"$t": 16, "$v": 7}})
    assert dict(table.get_entity("p", "s")) == entity("p", "s", n=7)
    assert [change["id"] for change in container.query_items_change_feed(start_time="Beginning")] == ["r", "s"]
