"""The program of the Python SDK; see main.py."""

import os
import sys
import uuid

from azure.cosmos import CosmosClient, PartitionKey

client = CosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"])
database = client.create_database(f"py-{uuid.uuid4()}")
container = database.create_container("items", PartitionKey("/pk"), offer_throughput=24000)
container.create_item({"id": "first", "pk": "a"})
container.read_item("first", "a")
print("ready", flush=True)
for line in sys.stdin:
    for number in range(100):
        if line.strip() == "reads":
            container.read_item("first", "a")
        else:
            container.create_item({"id": f"i{number}", "pk": f"p{number % 10}"})
    print("done", flush=True)
