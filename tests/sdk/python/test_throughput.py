"""Throughput as operators change it: up and down, by hand and by itself, and who has to wait when it is short."""

import threading
import time

from azure.cosmos import PartitionKey, ThroughputProperties, exceptions

from conftest import connect, refused
from manage import manage

# Every property is an index term to write, so these small items are expensive ones.
PROPERTIES = {f"p{index}": index for index in range(500)}


def settle(container):
    """Waits as the SDK's own tests do."""
    for _ in range(300):
        offer = container.get_throughput()
        if not offer.properties["content"].get("isOfferReplacePending", False):
            return offer
        time.sleep(0.1)
    raise AssertionError("the offer stays pending")


def test_throughput_goes_up_with_splits_and_down_again(database):
    container = database.create_container("elastic", PartitionKey("/pk"), offer_throughput=400)
    for index in range(40):
        container.create_item({"id": str(index), "pk": f"key {index}"})
    assert len(list(container.read_feed_ranges())) == 1
    container.replace_throughput(11000)
    assert settle(container).offer_throughput == 11000
    assert len(list(container.read_feed_ranges(force_refresh=True))) >= 2
    assert len(list(container.read_all_items())) == 40
    assert container.replace_throughput(400).offer_throughput == 400
    assert settle(container).offer_throughput == 400


def test_throughput_cannot_go_below_a_hundredth_of_what_it_was(database):
    container = database.create_container("once-large", PartitionKey("/pk"), offer_throughput=50000)
    with refused(400) as caught:
        container.replace_throughput(400)
    assert "less than required minimum throughput 500" in caught.value.message
    headers = {}
    replaced = container.replace_throughput(500, response_hook=lambda answer, _: headers.update(answer))
    assert replaced.offer_throughput == 500
    assert headers["x-ms-cosmos-min-throughput"] == "500"


def test_autoscale_is_raised_lowered_and_recorded_by_the_hour(database):
    container = database.create_container(
        "autoscale", PartitionKey("/pk"), offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000)
    )
    for most in (10000, 2000):
        container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=most))
        assert container.get_throughput().auto_scale_max_throughput == most
    with refused(400):
        container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=2500))
    container.create_item({"id": "1", "pk": "k", **PROPERTIES})
    shown = manage("GET", f"dbs/{database.id}/colls/autoscale/throughput")
    assert shown["offer"]["kind"] == "autoscale"
    assert any(hour["highest"] >= 100 for hour in shown["hours"])
    assert all(200 <= hour["billed"] <= 10000 for hour in shown["hours"])


def test_low_priority_starves_before_high_priority(database):
    database.create_container("priorities", PartitionKey("/pk"), offer_throughput=400)
    served = {"High": 0, "Low": 0}
    # One attempt more is the least that the SDK makes.
    with connect(retry_throttle_total=1) as client:
        container = client.get_database_client(database.id).get_container_client("priorities")
        container.read()

        def write(priority, name, until):
            count = 0
            while time.monotonic() < until:
                try:
                    body = {"id": f"{name}-{count}", "pk": name, **PROPERTIES}
                    container.upsert_item(body, priority=priority)
                    served[priority] += 1
                    count += 1
                except exceptions.CosmosHttpResponseError as error:
                    assert (error.status_code, error.sub_status) == (429, 3200)
            return count

        def compete():
            # What the container has saved up is spent first.
            while write("High", "warm", time.monotonic() + 0.2) > 1:
                pass
            served.update(High=0, Low=0)
            until = time.monotonic() + 3
            writers = [
                threading.Thread(target=write, args=(priority, f"{priority}-{index}", until))
                for priority in ("High", "Low")
                for index in range(3)
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            return dict(served)

        # While all writers pause because the machine is busy, the container saves up again, and that is for everybody.
        windows = []
        while len(windows) < 5:
            windows.append(compete())
            if windows[-1]["High"] >= 3 * max(windows[-1]["Low"], 1):
                return
    raise AssertionError(f"low priority was served too often in every window: {windows}")


def test_a_throughput_bucket_keeps_to_its_part(database):
    container = database.create_container("buckets", PartitionKey("/pk"), offer_throughput=4000)
    refusals = []

    def watch(answer):
        if answer.http_response.status_code == 429:
            refusals.append(answer.http_response.headers["x-ms-substatus"])

    path = f"dbs/{database.id}/colls/buckets/throughput"
    limit = {"id": 2, "maxThroughputPercentage": 1, "isDefaultBucket": False}
    assert manage("POST", path, {"throughputBuckets": [limit]})["throughputBuckets"] == [limit]
    body = {"id": "1", "pk": "k", "fill": "x" * 500_000}
    # The write leaves a debt of some seconds. Where the reads come later than that, all of them are served.
    for _attempt in range(20):
        container.upsert_item(body, throughput_bucket=2)
        for others in ({}, {"throughput_bucket": 3}):
            container.read_item("1", "k", raw_response_hook=watch, **others)
        assert not refusals, "others notice nothing"
        # The SDK waits as long as it is told to, and then it is served.
        assert container.read_item("1", "k", raw_response_hook=watch, throughput_bucket=2)["id"] == "1"
        if refusals:
            break
    assert refusals and set(refusals) == {"3212"}
    assert manage("GET", path)["physicalPartitionThroughputInfo"][0]["throttled"]["bucket"] >= 1
    manage("POST", path, {"throughputBuckets": []})
    assert container.read_item("1", "k", throughput_bucket=2)["id"] == "1"


def test_throughput_is_divided_over_partitions_by_hand(database):
    container = database.create_container("divided", PartitionKey("/pk"), offer_throughput=24000)
    path = f"dbs/{database.id}/colls/divided/throughput"
    change = {
        "throughputPolicy": "Custom",
        "targetPhysicalPartitionThroughputInfo": [{"id": "0", "throughput": 9000}],
    }
    shown = manage("POST", path, change)
    rates = [partition["throughput"] for partition in shown["physicalPartitionThroughputInfo"]]
    assert rates == [9000, 5000, 5000, 5000]
    with refused(400):
        container.replace_throughput(20000)
    manage("POST", path, {"throughputPolicy": "Equal"})
    assert container.replace_throughput(20000).offer_throughput == 20000
