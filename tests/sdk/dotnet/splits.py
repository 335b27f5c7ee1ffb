"""Runs a command and meanwhile splits the partitions of whatever containers there are, again and again.

Usage: splits.py COMMAND..., with ORRERY_ENDPOINT and ORRERY_KEY in the environment. The command's own verdict is not
looked at: those who read its output know what to expect.
"""

import os
import pathlib
import random
import subprocess
import sys
import time

from azure.cosmos import CosmosClient, exceptions

sys.path.append(str(pathlib.Path(__file__).parent.parent / "python"))
from manage import manage  # noqa: E402

# Each split makes the next ones smaller; beyond this a container shows nothing new.
RANGES_MAX = 8
PAUSE_SECONDS = 0.1


def split_one(client, database):
    """Splits a range of each container of a database; whether it could is up to those who use and delete them."""
    done = 0
    for container in client.get_database_client(database).list_containers():
        path = f"dbs/{database}/colls/{container['id']}/partitions"
        ranges = [found["id"] for found in manage("GET", path)["partitions"]]
        if len(ranges) < RANGES_MAX:
            manage("POST", f"{path}/{random.choice(ranges)}/split", {"children": 2})
            done += 1
    return done


def main():
    client = CosmosClient(os.environ["ORRERY_ENDPOINT"], os.environ["ORRERY_KEY"])
    command = subprocess.Popen(sys.argv[1:])
    splits = 0
    while command.poll() is None:
        time.sleep(PAUSE_SECONDS)
        for database in client.list_databases():
            try:
                splits += split_one(client, database["id"])
            except (AssertionError, exceptions.CosmosHttpResponseError):
                # A scenario deleted it meanwhile, or a range is splitting already.
                continue
    print(f"{splits} splits meanwhile")
    return 0 if splits > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
