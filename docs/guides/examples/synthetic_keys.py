"""Three synthetic keys: two properties joined, a drawn suffix, and a computed one."""

import random
import zlib

from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from common import database, is_full

BUCKETS = 10
PAYLOAD = "x" * 1500


def bucket(text):
    """The same in every program; hash() of Python is not."""
    return zlib.crc32(text.encode()) % BUCKETS


def device_alone(made):
    """The device as the key: full after some readings."""
    container = made.create_container("by-device", PartitionKey("/deviceId"), offer_throughput=10000)
    for number in range(200):
        try:
            container.create_item({"id": str(number), "deviceId": "car-17", "payload": PAYLOAD})
        except CosmosHttpResponseError as error:
            if not is_full(error):
                raise
            print(f"keyed by device alone, reading {number} is refused")
            return number
    raise AssertionError("the limit was never met: start the server with --logical-partition-bytes 64KiB")


def joined(made, refused_at):
    """Device and month: each month has room of its own."""
    container = made.create_container("by-device-and-month", PartitionKey("/partitionKey"), offer_throughput=10000)
    months = [f"2026-{month:02}" for month in range(1, 7)]
    each = refused_at - 5
    for month in months:
        for number in range(each):
            container.create_item(
                {"id": f"{month}-{number}", "partitionKey": f"car-17-{month}", "month": month, "payload": PAYLOAD}
            )
    one = container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="car-17-2026-03")
    year = [
        next(iter(container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key=f"car-17-{month}")))
        for month in months
    ]
    print(f"joined with the month, {sum(year)} readings fit")
    assert next(iter(one)) == each and sum(year) == each * len(months)


def drawn_suffix(made):
    """A day's writes on ten keys; who reads the day asks all ten."""
    container = made.create_container("by-date-and-drawn-suffix", PartitionKey("/partitionKey"), offer_throughput=10000)
    day, chance = "2026-01-15", random.Random(7)
    for number in range(100):
        container.create_item({"id": str(number), "partitionKey": f"{day}-{chance.randrange(BUCKETS)}"})
    keys = [f"{day}-{suffix}" for suffix in range(BUCKETS)]
    counts = [len(list(container.query_items("SELECT c.id FROM c", partition_key=key))) for key in keys]
    print(f"a drawn suffix spreads 100 writes as {counts}")
    assert sum(counts) == 100 and min(counts) > 0


def computed_suffix(made):
    """A day's writes on ten keys; who knows the vehicle knows the key."""
    container = made.create_container("by-date-and-vehicle", PartitionKey("/partitionKey"), offer_throughput=10000)
    day = "2026-01-15"
    for number in range(100):
        vehicle = f"vehicle-{number}"
        container.create_item({"id": vehicle, "partitionKey": f"{day}-{bucket(vehicle)}"})
    read = container.read_item("vehicle-42", partition_key=f"{day}-{bucket('vehicle-42')}")
    print(f"a computed suffix finds {read['id']} with one read")


def main():
    with database("synthetic-keys") as made:
        joined(made, device_alone(made))
        drawn_suffix(made)
        computed_suffix(made)


if __name__ == "__main__":
    main()
