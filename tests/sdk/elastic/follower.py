"""Reads the change feed with the official Python SDK while partitions split and merge.

Versions of an item must come in order and none twice. There is one thing that this SDK does by itself: when a partition
that was merged splits at another place, it goes on with whole partitions, so that its parts of the key space overlap
(handle_feed_range_gone); what it then reads twice is counted and not held against the server. Ends when its input does
and the feed is empty, and prints the last version that it has seen of each item.
"""

import base64
import json
import os
import sys
import threading
import time

from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError
from azure.cosmos import CosmosClient

name, database, container, kills = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "kills"
client = CosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"])
items = client.get_database_client(database).get_container_client(container)
print("ready", flush=True)
stopped = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stopped.set()), daemon=True).start()
seen, changes, continuation, twice = {}, 0, None, 0


def fail(text):
    print(json.dumps({"worker": name, "wrong": text}), flush=True)
    os._exit(1)


def is_outage(error):
    """The same as in worker.py: an answer that breaks off in the middle knows no status."""
    broken_off = isinstance(error, HttpResponseError) and error.status_code is None
    return kills and (broken_off or isinstance(error, (ServiceRequestError, ServiceResponseError)))


def parts_of(token):
    """The parts of the key space that the SDK reads, each with how far it is."""
    return json.loads(base64.b64decode(token))["continuation"]["continuation"]


def overlaps():
    """Whether the SDK reads some part of the key space more than once."""
    if continuation is None:
        return False
    ranges = sorted((part["range"]["min"], part["range"]["max"]) for part in parts_of(continuation))
    return any(left[1] > right[0] for left, right in zip(ranges, ranges[1:]))


def read():
    """Everything that is there now, from where the last call ended."""
    global continuation, changes, twice
    start = {"continuation": continuation} if continuation else {"start_time": "Beginning"}
    found = 0
    pages = items.query_items_change_feed(max_item_count=50, **start).by_page()
    for page in pages:
        rows = list(page)
        continuation = items.client_connection.last_response_headers["etag"]
        for item in rows:
            place = f"{item['pk']}|{item['id']}"
            if seen.get(place, 0) >= item["n"]:
                if not overlaps():
                    fail(f"version {item['n']} of {place} came after version {seen[place]}")
                twice += 1
                continue
            seen[place] = item["n"]
            found += 1
    # Without a page the SDK has still moved on to other parts of the key space. What it has not begun with has no
    # token yet, and the SDK does not read that back.
    moved = items.client_connection.last_response_headers.get("etag", continuation)
    if moved is not None and all(part["token"] for part in parts_of(moved)):
        continuation = moved
    changes += found
    return found


# One empty answer is not the end: the SDK stops at the first part of the key space that it comes to a second time.
EMPTY_ANSWERS = 200
empty = 0
while empty < EMPTY_ANSWERS:
    ending = stopped.is_set()
    try:
        found = read()
    except Exception as error:  # noqa: BLE001
        if not is_outage(error):
            fail(f"{type(error).__name__}: {error}")
        time.sleep(0.05)
        continue
    empty = empty + 1 if ending and found == 0 else 0
    if not ending:
        time.sleep(0.02)
print(json.dumps({"worker": name, "ops": changes, "reread": twice, "seen": seen}), flush=True)
