// Databases, containers, partitions and throughput.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, databaseName, statusOf } from "./client.mjs";

const client = connect();
const id = databaseName("resources");
let database;

before(async () => {
  ({ database } = await client.databases.create({ id }));
});

after(async () => {
  await database.delete();
  assert.equal(await statusOf(database.read()), 404);
});

test("a database can be read, listed, queried and not made twice", async () => {
  const { resource } = await database.read();
  assert.equal(resource.id, id);
  assert.match(resource._self, /^dbs\/.+\/$/);
  const { resources: all } = await client.databases.readAll().fetchAll();
  assert.ok(all.some((entry) => entry.id === id));
  const query = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] };
  const { resources: found } = await client.databases.query(query).fetchAll();
  assert.deepEqual(found.map((entry) => entry.id), [id]);
  assert.equal(await statusOf(client.databases.create({ id })), 409);
  const { resource: same } = await client.databases.createIfNotExists({ id });
  assert.equal(same._rid, resource._rid);
});

test("400 RU/s give one physical partition and 24,000 RU/s give four", async () => {
  for (const [throughput, partitions] of [[400, 1], [24000, 4]]) {
    const { container } = await database.containers.create({
      id: `partitions-${partitions}`,
      partitionKey: { paths: ["/pk"] },
      throughput,
    });
    const ranges = await container.getFeedRanges();
    assert.equal(ranges.length, partitions);
    const { resources: raw } = await container.readPartitionKeyRanges().fetchAll();
    raw.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
    assert.equal(raw.length, partitions);
    assert.equal(raw[0].minInclusive, "");
    assert.equal(raw.at(-1).maxExclusive, "FF");
    for (let index = 1; index < raw.length; index += 1) {
      assert.equal(raw[index].minInclusive, raw[index - 1].maxExclusive);
    }
  }
});

test("a container keeps its definition through read, replace and delete", async () => {
  const { container } = await database.containers.create({
    id: "definition",
    partitionKey: { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 },
    indexingPolicy: { indexingMode: "consistent", excludedPaths: [{ path: "/secret/*" }], includedPaths: [{ path: "/*" }] },
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] },
  });
  const { resource } = await container.read();
  assert.deepEqual(resource.partitionKey.paths, ["/tenant", "/user", "/session"]);
  assert.equal(resource.partitionKey.kind, "MultiHash");
  assert.ok(resource.indexingPolicy.excludedPaths.some((path) => path.path === "/secret/*"));
  assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys, [{ paths: ["/email"] }]);
  const { resource: changed } = await container.replace({ ...resource, defaultTtl: -1 });
  assert.equal(changed.defaultTtl, -1);
  assert.equal(await statusOf(container.replace({ ...resource, partitionKey: { paths: ["/other"], kind: "Hash" } })), 400);
  await container.delete();
  assert.equal(await statusOf(container.read()), 404);
  assert.equal(await statusOf(container.items.create({ id: "x" })), 404);
});

test("bad definitions are refused with 400", async () => {
  const refused = [
    { id: "too-many", partitionKey: { paths: ["/a", "/b", "/c", "/d"], kind: "MultiHash", version: 2 } },
    { id: "low", partitionKey: { paths: ["/pk"] }, throughput: 100 },
    { id: "odd", partitionKey: { paths: ["/pk"] }, throughput: 450 },
  ];
  for (const definition of refused) {
    assert.equal(await statusOf(database.containers.create(definition)), 400, definition.id);
  }
});

test("manual throughput is read and changed", async () => {
  const { container } = await database.containers.create({ id: "manual", partitionKey: { paths: ["/pk"] }, throughput: 500 });
  const { resource: offer, offer: handle } = await container.readOffer();
  assert.equal(offer.content.offerThroughput, 500);
  const { resource: replaced } = await handle.replace({ ...offer, content: { ...offer.content, offerThroughput: 900 } });
  assert.equal(replaced.content.offerThroughput, 900);
  const { resource: again } = await container.readOffer();
  assert.equal(again.content.offerThroughput, 900);
});

test("autoscale throughput is read and changed", async () => {
  const { container } = await database.containers.create({ id: "autoscale", partitionKey: { paths: ["/pk"] }, maxThroughput: 4000 });
  const { resource: offer, offer: handle } = await container.readOffer();
  assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 4000);
  offer.content.offerAutopilotSettings.maxThroughput = 6000;
  const { resource: replaced } = await handle.replace(offer);
  assert.equal(replaced.content.offerAutopilotSettings.maxThroughput, 6000);
});

test("containers of a database with throughput share it", async () => {
  const name = databaseName("shared");
  const { database: shared } = await client.databases.create({ id: name, throughput: 1000 });
  try {
    const { container } = await shared.containers.create({ id: "inside", partitionKey: { paths: ["/pk"] } });
    assert.equal((await container.readOffer()).resource, undefined);
    assert.equal((await shared.readOffer()).resource.content.offerThroughput, 1000);
  } finally {
    await shared.delete();
  }
});
