// Throughput as operators change it: up and down, by itself, and who has to wait when it is short.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, connectWithoutRetry, databaseName, manage } from "./client.mjs";

const id = databaseName("throughput");
const client = connect();
const impatient = connectWithoutRetry();
let database;

before(async () => {
  ({ database } = await client.databases.create({ id }));
});

after(() => client.database(id).delete());

async function create(name, throughput) {
  const { container } = await database.containers.create({ id: name, partitionKey: { paths: ["/pk"] }, ...throughput });
  return container;
}

/** Replaces the content of a container's offer and waits until it is carried out. */
async function scale(container, content) {
  const { resource, offer } = await container.readOffer();
  let answer = await offer.replace({ ...resource, content: { ...resource.content, ...content } });
  const first = answer.statusCode;
  for (let round = 0; answer.headers["x-ms-offer-replace-pending"] === "true"; round += 1) {
    assert.ok(round < 300, "the offer stays pending");
    await sleep(100);
    answer = await offer.read();
  }
  return { first, resource: answer.resource, headers: answer.headers };
}

/** How a read is refused after a write that leaves a debt of some seconds; it is served where it comes later than that. */
async function refusedAfter(write, read) {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    await write();
    try {
      await read();
    } catch (error) {
      return error;
    }
  }
  throw new Error("no read was refused");
}

test("throughput goes up with splits and down again", async () => {
  const container = await create("elastic", { throughput: 400 });
  await Promise.all(Array.from({ length: 20 }, (_, index) => container.items.create({ id: `${index}`, pk: `${index}` })));
  const up = await scale(container, { offerThroughput: 11000 });
  assert.ok([200, 202].includes(up.first));
  assert.equal(up.resource.content.offerThroughput, 11000);
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.ok(ranges.length >= 2);
  const { resources: items } = await container.items.readAll().fetchAll();
  assert.equal(items.length, 20);
  const down = await scale(container, { offerThroughput: 500 });
  assert.equal(down.resource.content.offerThroughput, 500);
});

test("throughput cannot go below what it must have", async () => {
  const container = await create("once-large", { throughput: 50000 });
  await assert.rejects(scale(container, { offerThroughput: 400 }), (error) => {
    assert.equal(error.code, 400);
    assert.match(error.body.message, /less than required minimum throughput 500/);
    return true;
  });
  const { headers } = await scale(container, { offerThroughput: 500 });
  assert.equal(headers["x-ms-cosmos-min-throughput"], "500");
});

test("autoscale is raised and lowered", async () => {
  const container = await create("autoscale", { maxThroughput: 4000 });
  for (const maxThroughput of [10000, 1000]) {
    const { resource } = await scale(container, { offerAutopilotSettings: { maxThroughput } });
    assert.equal(resource.content.offerAutopilotSettings.maxThroughput, maxThroughput);
    assert.equal(resource.content.offerThroughput, maxThroughput / 10);
  }
});

test("requests of both priorities are served while there is enough", async () => {
  const container = await create("priorities", { throughput: 4000 });
  for (const priorityLevel of ["Low", "High"]) {
    const { statusCode } = await container.items.create({ id: priorityLevel, pk: "k" }, { priorityLevel });
    assert.equal(statusCode, 201);
  }
});

test("a throughput bucket keeps to its part", async () => {
  const patient = await create("buckets", { throughput: 4000 });
  const path = `dbs/${id}/colls/buckets/throughput`;
  await manage("POST", path, { throughputBuckets: [{ id: 1, maxThroughputPercentage: 1 }] });
  const container = impatient.database(id).container("buckets");
  const fill = "x".repeat(500_000);
  const refusal = await refusedAfter(
    () => patient.items.upsert({ id: "1", pk: "k", fill }, { throughputBucket: 1 }),
    () => container.item("1", "k").read({ throughputBucket: 1 }),
  );
  assert.equal(refusal.code, 429);
  assert.equal(Number(refusal.substatus ?? refusal.headers["x-ms-substatus"]), 3212);
  assert.equal((await container.item("1", "k").read({ throughputBucket: 2 })).statusCode, 200);
  assert.equal((await container.item("1", "k").read()).statusCode, 200);
});
