//! Throughput as an operator changes it: up and down, divided over partitions, in buckets, by the hour.

use orrery_testkit::{Reply, Server, wait_for};
use serde_json::{Value, json};

use crate::world::{World, binary};

const PATH: &str = "/_orrery/dbs/db/colls/c/throughput";

impl World {
    fn throughput(&mut self) -> Value {
        let reply = self.send("GET", PATH, &[], b"");
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        reply.json()
    }

    fn set_throughput(&mut self, change: Value) -> Reply {
        self.send("POST", PATH, &[], change.to_string().as_bytes())
    }

    fn offer(&mut self) -> Value {
        self.send("GET", "/offers", &[], b"").json()["Offers"][0].clone()
    }

    fn replace_offer(&mut self, units: u32) -> Reply {
        let mut offer = self.offer();
        offer["content"]["offerThroughput"] = json!(units);
        let path = format!("/offers/{}", offer["id"].as_str().expect("an id"));
        self.send("PUT", &path, &[], offer.to_string().as_bytes())
    }
}

fn rates(shown: &Value) -> Vec<f64> {
    let partitions = shown["physicalPartitionThroughputInfo"].as_array().expect("a list");
    partitions.iter().map(|partition| partition["throughput"].as_f64().expect("a number")).collect()
}

#[test]
fn an_offer_above_what_the_partitions_give_is_pending_until_there_are_enough() {
    let mut world = World::start(&["--partition-throughput", "1000"]);
    world.container("c", 400);
    let raised = world.replace_offer(3_500);
    assert!([200, 202].contains(&raised.status), "{}", raised.status);
    wait_for(|| {
        let offer = world.offer();
        let is_pending = offer["content"]["isOfferReplacePending"] == true;
        if is_pending { Err(format!("the offer stays pending: {offer}")) } else { Ok(()) }
    });
    assert!(world.ranges("c").len() >= 4);
    let shown = world.throughput();
    assert_eq!((&shown["offer"]["throughput"], &shown["offer"]["pending"]), (&json!(3_500), &json!(false)));
    assert!((rates(&shown).iter().sum::<f64>() - 3_500.0).abs() < 1.0, "{shown}");
    let lowered = world.replace_offer(400);
    assert_eq!((lowered.status, lowered.header("x-ms-offer-replace-pending")), (200, Some("false")));
    assert!((rates(&world.throughput()).iter().sum::<f64>() - 400.0).abs() < 1.0);
}

#[test]
fn a_division_by_hand_outlasts_a_kill_and_ends_on_request() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut world = World::on(Server::start_on(binary(), directory.path(), &[]));
    world.container("c", 24_000);
    assert_eq!(rates(&world.throughput()), [6_000.0; 4]);
    let target = |id: &str, units: u32| json!([{"id": id, "throughput": units}]);
    for (change, why) in [
        (json!({"targetPhysicalPartitionThroughputInfo": target("9", 100)}), "no physical partition"),
        (json!({"targetPhysicalPartitionThroughputInfo": target("x", 100)}), "not the id"),
        (json!({"targetPhysicalPartitionThroughputInfo": target("0", 10_100)}), "10000"),
        (json!({"targetPhysicalPartitionThroughputInfo": [{"id": "0"}]}), "needs a throughput"),
        (json!({"throughputPolicy": "Custom"}), "must name a partition"),
        (json!({"throughputPolicy": "Half"}), "not what it must be"),
        (json!({"throughputBuckets": [{"id": 7, "maxThroughputPercentage": 10}]}), "from 1 to 5"),
    ] {
        let refused = world.set_throughput(change);
        let text = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(refused.status == 400 && text.contains(why), "{} {text}", refused.status);
    }
    let change = json!({
        "throughputPolicy": "Custom",
        "targetPhysicalPartitionThroughputInfo": target("1", 9_000),
        "sourcePhysicalPartitionThroughputInfo": [{"id": "0"}, {"id": "2"}],
        "throughputBuckets": [{"id": 4, "maxThroughputPercentage": 25}],
        "defaultPriorityLevel": "Low",
    });
    let divided = [4_500.0, 9_000.0, 4_500.0, 6_000.0];
    assert_eq!(rates(&world.set_throughput(change).json()), divided);
    let fraction = |range: &Value| (range["throughputFraction"].as_f64().expect("a part") * 1e4).round();
    let fractions: Vec<f64> = world.ranges("c").iter().map(fraction).collect();
    assert_eq!(fractions, [1_875.0, 3_750.0, 1_875.0, 2_500.0]);
    world.server.kill();
    let mut world = World::on(Server::start_on(binary(), directory.path(), &[]));
    let shown = world.throughput();
    assert_eq!(rates(&shown), divided, "what was divided stays divided");
    assert_eq!(shown["throughputPolicy"], "Custom");
    assert_eq!(shown["defaultPriorityLevel"], "Low");
    assert_eq!(shown["throughputBuckets"][0]["maxThroughputPercentage"], 25);
    let blocked = world.replace_offer(20_000);
    assert_eq!(blocked.status, 400, "changing the whole would undo the division");
    let equal = json!({"throughputPolicy": "Equal", "throughputBuckets": [], "defaultPriorityLevel": "High"});
    assert_eq!(rates(&world.set_throughput(equal).json()), [6_000.0; 4]);
    assert_eq!(world.replace_offer(20_000).status, 200);
    assert_eq!(rates(&world.throughput()), [5_000.0; 4]);
    assert_eq!(world.send("DELETE", "/dbs/db/colls/c", &[], b"").status, 204);
    assert_eq!(world.send("GET", PATH, &[], b"").status, 404);
}

#[test]
fn the_highest_use_of_the_hour_is_told_and_outlasts_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut world = World::on(Server::start_on(binary(), directory.path(), &[]));
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let body = json!({"id": "c", "partitionKey": key}).to_string();
    let headers = [("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":4000}"#)];
    assert_eq!(world.send("POST", "/dbs/db/colls", &headers, body.as_bytes()).status, 201);
    assert_eq!(world.throughput()["hours"][0]["billed"], 400, "an idle hour costs a tenth");
    assert_eq!(world.create("c", "k", "large", 1_500_000).status, 201);
    let last = |shown: &Value| {
        let hour = shown["hours"].as_array().and_then(|hours| hours.last()).expect("an hour").clone();
        (hour["highest"].as_u64().expect("a number"), hour["billed"].as_u64().expect("a number"))
    };
    let before = last(&world.throughput());
    assert!((850..1_000).contains(&before.0) && before.0 == before.1, "{before:?}");
    world.server.stop();
    let mut world = World::on(Server::start_on(binary(), directory.path(), &[]));
    let hours = world.throughput()["hours"].as_array().expect("a list").clone();
    // The clock may have passed a full hour in between.
    assert!(hours.iter().any(|hour| hour["billed"].as_u64() == Some(before.1)), "{hours:?} {before:?}");
}
