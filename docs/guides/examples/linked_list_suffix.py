"""A logical partition that goes on under the next key when it is full; nothing is thrown away."""

from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosHttpResponseError
from azure.cosmos.exceptions import CosmosResourceExistsError, CosmosResourceNotFoundError

from common import database, is_full

MESSAGES = 120


class Chain:
    """All messages of a room. Their partitions are room, room-1, room-2, ..."""

    def __init__(self, heads, items, name):
        self.heads, self.items, self.name = heads, items, name
        self.read_head()

    def read_head(self):
        try:
            self.head = self.heads.read_item(self.name, self.name)
        except CosmosResourceNotFoundError:
            try:
                self.head = self.heads.create_item({"id": self.name, "newest": 0})
            except CosmosResourceExistsError:
                self.head = self.heads.read_item(self.name, self.name)

    def key(self, link):
        return self.name if link == 0 else f"{self.name}-{link}"

    def advance(self):
        """Starts the next partition, unless another writer has done it."""
        following = {**self.head, "newest": self.head["newest"] + 1}
        try:
            self.head = self.heads.replace_item(
                self.name, following, etag=self.head["_etag"], match_condition=MatchConditions.IfNotModified
            )
        except CosmosAccessConditionFailedError:
            self.read_head()

    def append(self, item):
        while True:
            try:
                return self.items.create_item({**item, "pk": self.key(self.head["newest"])})
            except CosmosHttpResponseError as error:
                if not is_full(error):
                    raise
                self.advance()

    def newest(self, count):
        """The newest messages, from the newest partition backwards."""
        found = []
        for link in range(self.head["newest"], -1, -1):
            if len(found) >= count:
                break
            found += self.items.query_items(
                "SELECT TOP @count VALUE c.number FROM c ORDER BY c.number DESC",
                parameters=[{"name": "@count", "value": count - len(found)}],
                partition_key=self.key(link),
            )
        return found


def main():
    with database("linked-list") as made:
        heads = made.create_container("heads", PartitionKey("/id"), offer_throughput=400)
        items = made.create_container("messages", PartitionKey("/pk"), offer_throughput=10000)
        # Two writers, of which the second does not hear of new partitions until it meets a full one.
        writers = [Chain(heads, items, "room-7"), Chain(heads, items, "room-7")]
        for number in range(MESSAGES):
            writers[number % 2].append({"id": f"{number:06}", "number": number, "text": "x" * 1500})
        reader = Chain(heads, items, "room-7")
        links = reader.head["newest"] + 1
        print(f"wrote {MESSAGES} messages into {links} logical partitions")
        assert links > 1, "the limit was never met: start the server with --logical-partition-bytes 64KiB"
        assert sorted(reader.newest(MESSAGES + 1)) == list(range(MESSAGES)), "nothing is lost"


if __name__ == "__main__":
    main()
