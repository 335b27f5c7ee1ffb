"""A client of the official Python SDK that keeps a model of its items while partitions split and merge.

Writes, reads and queries are checked at once. What is not known for certain, because the server was killed while a
write was on its way, is a set of states of which one must be found. Ends when its input does, and prints its model.
"""

import json
import os
import random
import sys
import threading
import time

from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError
from azure.cosmos import CosmosClient, exceptions

KEYS, IDS = 12, 6
name, database, container, kills = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "kills"
client = CosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"])
items = client.get_database_client(database).get_container_client(container)
print("ready", flush=True)
chance = random.Random(name)
stopped = threading.Event()
states, versions, ops = {}, {}, 0


def wait_for_input():
    sys.stdin.read()
    stopped.set()


def is_outage(error):
    """Only a killed server may be noticed, and only as a broken connection or a refused one.

    An answer that breaks off in the middle is an HttpResponseError that knows no status.
    """
    broken_off = isinstance(error, HttpResponseError) and error.status_code is None
    return kills and (broken_off or isinstance(error, (ServiceRequestError, ServiceResponseError)))


def fail(text):
    print(json.dumps({"worker": name, "wrong": text}), flush=True)
    os._exit(1)


def settle(place, found, how):
    allowed = states.get(place, {None})
    if found not in allowed:
        fail(f"{how} of {place} found {found}, and it must be one of {sorted(map(str, allowed))}")
    states[place] = {found}


def put(place):
    version = versions[place] = versions.get(place, 0) + 1
    body = {"id": place[1], "pk": place[0], "owner": name, "n": version, "text": "x" * chance.randrange(400)}
    before = states.get(place, {None})
    states[place] = before | {version}
    items.upsert_item(body)
    states[place] = {version}


def delete(place):
    before = states.get(place, {None})
    states[place] = before | {None}
    try:
        items.delete_item(place[1], partition_key=place[0])
    except exceptions.CosmosResourceNotFoundError:
        if None not in before and not kills:
            fail(f"{place} is not there to be deleted; it must be one of {before}")
    states[place] = {None}


def read(place):
    try:
        found = items.read_item(place[1], partition_key=place[0])["n"]
    except exceptions.CosmosResourceNotFoundError:
        found = None
    settle(place, found, "a read")


def query():
    text = "SELECT c.pk, c.id, c.n FROM c WHERE c.owner = @me ORDER BY c.n"
    parameters = [{"name": "@me", "value": name}]
    if chance.random() < 0.5:
        key = f"{name}-{chance.randrange(KEYS)}"
        rows = list(items.query_items(text, parameters=parameters, partition_key=key))
        judge(rows, [place for place in states if place[0] == key])
        return
    pages = items.query_items(text, parameters=parameters, enable_cross_partition_query=True, max_item_count=7)
    judge(list(pages), list(states))


def judge(rows, wanted):
    found = {(row["pk"], row["id"]): row["n"] for row in rows}
    if len(found) != len(rows):
        fail(f"a query returned {len(rows)} rows of {len(found)} items")
    if [row["n"] for row in rows] != sorted(row["n"] for row in rows):
        fail("the rows of a query are not in order")
    for place in wanted:
        if found.get(place) not in states[place]:
            fail(f"a query found {found.get(place)} at {place}, which must be one of {states[place]}")
    if found.keys() - set(wanted):
        fail(f"a query found what was never written: {found.keys() - set(wanted)}")
    for place in wanted:
        states[place] = {found.get(place)}


threading.Thread(target=wait_for_input, daemon=True).start()
# The longest time in which nothing succeeded.
longest, succeeded = 0, time.monotonic()
while not stopped.is_set():
    place = (f"{name}-{chance.randrange(KEYS)}", f"i{chance.randrange(IDS)}")
    action = chance.choice([put, put, put, read, read, delete, lambda _: query()])
    try:
        action(place)
        ops += 1
        longest = max(longest, time.monotonic() - succeeded)
        succeeded = time.monotonic()
    except Exception as error:  # noqa: BLE001, everything else is what the test looks for
        if not is_outage(error):
            fail(f"{action.__name__}: {type(error).__name__}: {error}")
        time.sleep(0.05)
model = {f"{pk}|{id}": sorted(allowed, key=str) for (pk, id), allowed in states.items()}
print(json.dumps({"worker": name, "ops": ops, "longest_ms": int(longest * 1000), "items": model}), flush=True)
