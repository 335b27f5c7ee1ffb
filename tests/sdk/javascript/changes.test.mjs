// The change feed: both modes, every start and scope, and a processor that keeps leases in a container.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
  StatusCodes,
} from "@azure/cosmos";
import { connect, databaseName, statusOf } from "./client.mjs";
import { Processor } from "./processor.mjs";

const client = connect();
let database;

before(async () => {
  ({ database } = await client.databases.create({ id: databaseName("changes") }));
});

after(() => database.delete());

async function createContainer(id, options = {}) {
  const definition = { id, partitionKey: { paths: ["/pk"] }, throughput: 24000, ...options };
  return (await database.containers.create(definition)).container;
}

const keeping = { changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10)) };

/** Reads until nothing is left and hands back the changes and the continuation. */
async function drain(container, options) {
  const iterator = container.items.getChangeFeedIterator(options);
  const changes = [];
  for (;;) {
    const page = await iterator.readNext();
    changes.push(...page.result);
    if (page.statusCode === StatusCodes.NotModified) return { changes, continuation: page.continuationToken };
  }
}

const ids = (changes) => changes.map((change) => change.id).sort();

describe("latest versions", () => {
  test("from the beginning, from now, from a time and from a continuation", async () => {
    const container = await createContainer("starts");
    for (let n = 0; n < 20; n++) await container.items.create({ id: `old-${n}`, pk: `p${n % 7}` });
    const begun = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(), maxItemCount: 3 });
    assert.equal(begun.changes.length, 20);
    assert.ok(begun.changes.every((change) => change._lsn > 0));
    const now = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    assert.deepEqual(now.changes, []);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const time = new Date();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await container.item("old-3", "p3").replace({ id: "old-3", pk: "p3", n: 1 });
    await container.items.create({ id: "new", pk: "p1" });
    await container.item("old-4", "p4").delete();
    for (const changeFeedStartFrom of [
      ChangeFeedStartFrom.Continuation(begun.continuation),
      ChangeFeedStartFrom.Continuation(now.continuation),
      ChangeFeedStartFrom.Time(time),
    ]) {
      const { changes } = await drain(container, { changeFeedStartFrom, maxItemCount: 1 });
      assert.deepEqual(ids(changes), ["new", "old-3"]);
    }
    const again = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    assert.equal(again.changes.length, 20, "each live item once");
  });

  test("by feed range and by partition key", async () => {
    const container = await createContainer("scopes");
    const wanted = [];
    for (let n = 0; n < 24; n++) {
      await container.items.create({ id: `i${n}`, pk: `p${n % 5}` });
      wanted.push(`i${n}`);
    }
    const ranges = await container.getFeedRanges();
    assert.equal(ranges.length, 4);
    const found = [];
    for (const range of ranges) {
      found.push(...(await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range) })).changes);
    }
    assert.deepEqual(ids(found), wanted.sort());
    const one = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning("p2") });
    assert.deepEqual(one.changes.map((change) => change.id), ["i2", "i7", "i12", "i17", "i22"], "in order");
  });

  test("by a prefix of a hierarchical key", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    const container = await createContainer("levels", { partitionKey });
    for (const tenant of ["a", "b"]) {
      for (const user of ["x", "y"]) await container.items.create({ id: `${tenant}${user}`, tenant, user });
    }
    const prefix = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(["a"]) });
    assert.deepEqual(ids(prefix.changes), ["ax", "ay"]);
    const full = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(["b", "y"]) });
    assert.deepEqual(ids(full.changes), ["by"]);
  });

  test("the older iterator", async () => {
    const container = await createContainer("older");
    await container.items.create({ id: "1", pk: "a" });
    const iterator = container.items.changeFeed("a", { startFromBeginning: true });
    const first = await iterator.fetchNext();
    assert.deepEqual(first.result.map((change) => change.id), ["1"]);
    assert.ok(iterator.hasMoreResults);
    const none = await iterator.fetchNext();
    assert.equal(none.count, 0);
    assert.ok(none.etag, "a continuation comes also when there is nothing");
    assert.ok(!iterator.hasMoreResults);
  });
});

describe("all versions and deletes", () => {
  const mode = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };

  test("every change with what the server knows of it", async () => {
    const container = await createContainer("all", keeping);
    const start = await drain(container, { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    await container.items.create({ id: "1", pk: "a", n: 1 });
    await container.item("1", "a").replace({ id: "1", pk: "a", n: 2 });
    await container.item("1", "a").patch([{ op: "incr", path: "/n", value: 1 }]);
    await container.item("1", "a").delete();
    await container.items.create({ id: "2", pk: "b" });
    const changeFeedStartFrom = ChangeFeedStartFrom.Continuation(start.continuation);
    const { changes } = await drain(container, { ...mode, changeFeedStartFrom, maxItemCount: 1 });
    const ofOne = changes.filter((change) => (change.current.id ?? change.previous.id) === "1");
    assert.deepEqual(ofOne.map((change) => change.metadata.operationType), ["create", "replace", "replace", "delete"]);
    assert.deepEqual(ofOne.slice(0, 3).map((change) => change.current.n), [1, 2, 3]);
    const [created, replaced, , deleted] = ofOne;
    assert.equal(created.metadata.previousImageLSN, undefined);
    assert.equal(replaced.metadata.previousImageLSN, created.metadata.lsn);
    assert.equal(deleted.previous.n, 3);
    assert.deepEqual(deleted.current, {});
    assert.equal(deleted.metadata.timeToLiveExpired, false);
    assert.equal(deleted.metadata.id, "1");
    assert.deepEqual(deleted.metadata.partitionKey, { pk: "a" });
    assert.ok(Math.abs(deleted.metadata.crts - Date.now() / 1000) < 60);
    assert.equal(changes.length, 5);
  });

  test("what a procedure wrote comes as one transaction", async () => {
    const container = await createContainer("scripted", keeping);
    const start = await drain(container, { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    await container.scripts.storedProcedures.create({
      id: "fill",
      body: `function () {
        const collection = getContext().getCollection();
        for (let n = 0; n < 3; n++) collection.createDocument(collection.getSelfLink(), { id: "s" + n, pk: "a" });
      }`,
    });
    await container.scripts.storedProcedure("fill").execute("a");
    const changeFeedStartFrom = ChangeFeedStartFrom.Continuation(start.continuation);
    const { changes } = await drain(container, { ...mode, changeFeedStartFrom, maxItemCount: 1 });
    assert.deepEqual(changes.map((change) => change.current.id), ["s0", "s1", "s2"]);
    assert.equal(new Set(changes.map((change) => change.metadata.lsn)).size, 1);
  });

  test("an item whose time is over ends with a delete that says so", async () => {
    const container = await createContainer("ends", { ...keeping, defaultTtl: -1 });
    const start = await drain(container, { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    await container.items.create({ id: "short", pk: "a", ttl: 1 });
    await container.items.create({ id: "long", pk: "a" });
    let { continuation } = start;
    const changes = [];
    for (let attempt = 0; attempt < 600 && changes.length < 3; attempt++) {
      const next = await drain(container, { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Continuation(continuation) });
      changes.push(...next.changes);
      continuation = next.continuation;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { current, previous, metadata } = changes[2];
    assert.deepEqual([current, previous.id, metadata.operationType], [{}, "short", "delete"]);
    assert.equal(metadata.timeToLiveExpired, true);
    const latest = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    assert.deepEqual(ids(latest.changes), ["long"]);
  });

  test("needs a policy, and a start that it has", async () => {
    const without = await createContainer("without");
    const now = { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Now("a") };
    assert.equal(await statusOf(without.items.getChangeFeedIterator(now).readNext()), 400);
    const container = await createContainer("with", keeping);
    for (const changeFeedStartFrom of [ChangeFeedStartFrom.Beginning("a"), ChangeFeedStartFrom.Time(new Date(), "a")]) {
      assert.equal(await statusOf(container.items.getChangeFeedIterator({ ...mode, changeFeedStartFrom }).readNext()), 400);
    }
  });
});

describe("a processor with leases in a container", () => {
  async function setUp(name) {
    const source = await createContainer(name);
    const leases = await createContainer(`${name}-leases`, { partitionKey: { paths: ["/id"] }, throughput: 1000 });
    return { source, leases };
  }

  test("two hosts share the ranges, and what one leaves the other takes over", async () => {
    const { source, leases } = await setUp("hosts");
    const seen = new Map();
    const note = (host) => (changes) => changes.forEach((change) => seen.set(change.id, host));
    const first = await Processor.create({ source, leases, host: "first", handle: note("first") });
    for (let n = 0; n < 20; n++) await source.items.create({ id: `a${n}`, pk: `p${n}` });
    await first.run();
    assert.equal(first.owned, 4, "alone it owns everything");
    assert.equal(seen.size, 20);
    const second = await Processor.create({ source, leases, host: "second", handle: note("second") });
    for (let round = 0; round < 4; round++) {
      await second.run();
      await first.run();
    }
    assert.deepEqual([first.owned, second.owned], [2, 2]);
    for (let n = 0; n < 40; n++) await source.items.create({ id: `b${n}`, pk: `p${n}` });
    await first.run();
    await second.run();
    assert.equal(seen.size, 60);
    assert.deepEqual(new Set(seen.values()), new Set(["first", "second"]));
    await first.stop();
    for (let n = 0; n < 10; n++) await source.items.create({ id: `c${n}`, pk: `p${n}` });
    await second.run();
    assert.equal(second.owned, 4);
    assert.equal(seen.size, 70);
  });

  test("a handler that fails gets the same changes again", async () => {
    const { source, leases } = await setUp("failing");
    let failures = 2;
    const seen = [];
    const handle = (changes) => {
      if (failures-- > 0) throw new Error("not this time");
      seen.push(...changes);
    };
    const processor = await Processor.create({ source, leases, host: "only", handle });
    for (let n = 0; n < 6; n++) await source.items.create({ id: `${n}`, pk: "same" });
    await processor.run();
    await processor.run();
    await processor.run();
    assert.deepEqual(seen.map((change) => change.id), ["0", "1", "2", "3", "4", "5"]);
  });
});
