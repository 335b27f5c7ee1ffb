"""A logical partition as a circular buffer: when it is full, the oldest items make room."""

from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from common import database, is_full

READINGS = 120
DROPPED_AT_ONCE = 10


def make_room(container, device, count):
    oldest = container.query_items(
        "SELECT TOP @count VALUE c.id FROM c ORDER BY c.number",
        parameters=[{"name": "@count", "value": count}],
        partition_key=device,
    )
    deletes = [("delete", (item,)) for item in oldest]
    try:
        container.execute_item_batch(deletes, partition_key=device)
    except CosmosBatchOperationError as error:
        # Another writer has made room in the meantime.
        if error.status_code != 404:
            raise


def append(container, item):
    """Writes an item. Answers how often room had to be made for it."""
    rooms = 0
    while True:
        try:
            container.create_item(item)
            return rooms
        except CosmosHttpResponseError as error:
            if not is_full(error):
                raise
            make_room(container, item["deviceId"], DROPPED_AT_ONCE)
            rooms += 1


def main():
    with database("circular-buffer") as made:
        container = made.create_container("readings", PartitionKey("/deviceId"), offer_throughput=10000)
        rooms = 0
        for number in range(READINGS):
            reading = {"id": f"{number:06}", "number": number, "deviceId": "car-17", "payload": "x" * 1500}
            rooms += append(container, reading)
        kept = list(container.query_items("SELECT VALUE c.number FROM c ORDER BY c.number", partition_key="car-17"))
        print(f"wrote {READINGS} readings, made room {rooms} times, kept the newest {len(kept)}")
        assert rooms > 0, "the limit was never met: start the server with --logical-partition-bytes 64KiB"
        assert kept == list(range(READINGS - len(kept), READINGS)), "exactly the newest are kept"


if __name__ == "__main__":
    main()
