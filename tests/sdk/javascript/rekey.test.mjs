// A container gets another partition key under clients that know the old one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect, databaseName, manage } from "./client.mjs";

const ITEMS = 60;
const client = connect();
let database;

const item = (n, version) => ({ id: `i${n}`, pk: `p${n % 7}`, region: `r${n % 11}`, version });

before(async () => {
  ({ database } = await client.databases.create({ id: databaseName("rekey") }));
});

after(async () => {
  await database.delete();
});

test("writers go on across a new key", async () => {
  const { container } = await database.containers.create({ id: "orders", partitionKey: "/pk" }, { offerThroughput: 10000 });
  for (let n = 0; n < ITEMS; n++) await container.items.create(item(n, 0));
  let version = 0;
  let stopped = false;
  const writer = (async () => {
    while (!stopped) {
      version += 1;
      for (let n = 0; n < ITEMS; n++) await container.items.upsert(item(n, version));
    }
  })();
  let job = await manage("POST", "jobs", {
    kind: "rekey",
    container: { database: database.id, container: "orders" },
    partitionKey: { paths: ["/region"], kind: "Hash", version: 2 },
  });
  while (job.phase !== "over") {
    await pause(20);
    job = await manage("GET", `jobs/${job.id}`);
  }
  assert.equal(job.state, "completed", JSON.stringify(job));
  await pause(200);
  stopped = true;
  await writer;
  const fresh = connect().database(database.id).container("orders");
  const { resource } = await fresh.read();
  assert.deepEqual(resource.partitionKey.paths, ["/region"]);
  const { resources } = await fresh.items.readAll().fetchAll();
  assert.equal(resources.length, ITEMS);
  for (const found of resources) assert.equal(found.version, version, found.id);
  const { resource: one } = await fresh.item("i5", "r5").read();
  assert.equal(one.pk, "p5");
});
