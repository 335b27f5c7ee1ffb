// All item operations, on one and on four physical partitions and with hierarchical keys.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect, databaseName, statusOf } from "./client.mjs";

const client = connect();
let database;
const containers = {};

before(async () => {
  ({ database } = await client.databases.create({ id: databaseName("items") }));
  for (const [name, throughput] of [["one", 10000], ["four", 24000]]) {
    const created = await database.containers.create({ id: name, partitionKey: { paths: ["/pk"] }, throughput });
    containers[name] = created.container;
  }
  const created = await database.containers.create({
    id: "levels",
    partitionKey: { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 },
    throughput: 24000,
  });
  containers.levels = created.container;
});

after(() => database.delete());

for (const name of ["one", "four"]) {
  describe(`with ${name} physical partition(s)`, () => {
    test("create, read, replace, upsert and delete", async () => {
      const container = containers[name];
      const item = { id: "life", pk: "a", count: 1, nested: { list: [1, "two", null, true] }, text: "é\u2028 😀" };
      const created = await container.items.create(item);
      assert.equal(created.statusCode, 201);
      assert.ok(created.requestCharge > 0);
      assert.equal(created.resource._etag, created.etag);
      assert.equal(await statusOf(container.items.create(item)), 409);
      const read = await container.item("life", "a").read();
      assert.equal(read.statusCode, 200);
      assert.deepEqual(read.resource.nested, item.nested);
      assert.equal(read.resource.text, item.text);
      assert.equal((await container.item("life", "b").read()).statusCode, 404);
      const replaced = await container.item("life", "a").replace({ ...item, count: 2 });
      assert.equal(replaced.statusCode, 200);
      assert.notEqual(replaced.etag, created.etag);
      assert.equal((await container.items.upsert({ ...item, count: 3 })).statusCode, 200);
      assert.equal((await container.items.upsert({ id: "fresh", pk: "a" })).statusCode, 201);
      assert.equal((await container.item("life", "a").delete()).statusCode, 204);
      assert.equal(await statusOf(container.item("life", "a").delete()), 404);
      assert.equal(await statusOf(container.item("life", "a").replace(item)), 404);
    });

    test("keys of every JSON type", async () => {
      const container = containers[name];
      for (const pk of ["text", "", 42, -1.5, true, false, null, undefined]) {
        const id = `typed-${typeof pk}-${pk}`;
        const body = pk === undefined ? { id } : { id, pk };
        await container.items.create(body);
        const { resource } = await container.item(id, pk).read();
        assert.equal(resource?.id, id, `key ${pk}`);
      }
    });

    test("an ETag decides between writers", async () => {
      const container = containers[name];
      const { resource } = await container.items.create({ id: "etag", pk: "e", n: 0 });
      const condition = { accessCondition: { type: "IfMatch", condition: resource._etag } };
      await container.item("etag", "e").replace({ id: "etag", pk: "e", n: 1 }, condition);
      assert.equal(await statusOf(container.item("etag", "e").replace({ id: "etag", pk: "e", n: 2 }, condition)), 412);
      assert.equal(await statusOf(container.item("etag", "e").delete(condition)), 412);
      const { resource: now } = await container.item("etag", "e").read();
      assert.equal(now.n, 1);
      const unchanged = { accessCondition: { type: "IfNoneMatch", condition: now._etag } };
      assert.equal((await container.item("etag", "e").read(unchanged)).statusCode, 304);
      const stale = { accessCondition: { type: "IfNoneMatch", condition: resource._etag } };
      assert.equal((await container.item("etag", "e").read(stale)).statusCode, 200);
    });

    test("patch applies all operations, conditionally too", async () => {
      const container = containers[name];
      await container.items.create({ id: "patch", pk: "p", n: 5, old: 1, gone: true, from: "here", list: [1, 3] });
      const target = container.item("patch", "p");
      const { resource } = await target.patch([
        { op: "add", path: "/list/1", value: 2 },
        { op: "add", path: "/added", value: { a: 1 } },
        { op: "set", path: "/old", value: "new" },
        { op: "replace", path: "/added/a", value: 2 },
        { op: "remove", path: "/gone" },
        { op: "incr", path: "/n", value: 2.5 },
        { op: "move", from: "/from", path: "/to" },
      ]);
      assert.deepEqual(resource.list, [1, 2, 3]);
      assert.deepEqual(resource.added, { a: 2 });
      assert.equal(resource.old, "new");
      assert.equal(resource.n, 7.5);
      assert.equal(resource.to, "here");
      assert.ok(!("gone" in resource) && !("from" in resource));
      const operations = [{ op: "set", path: "/seen", value: true }];
      assert.equal(await statusOf(target.patch({ operations, condition: "from c where c.n = 1" })), 412);
      const met = await target.patch({ operations, condition: "from c where c.n > 7" });
      assert.equal(met.resource.seen, true);
      assert.equal(await statusOf(target.patch([{ op: "replace", path: "/none", value: 1 }])), 400);
      assert.equal(await statusOf(target.patch([{ op: "incr", path: "/to", value: 1 }])), 400);
      assert.equal(await statusOf(target.patch([{ op: "set", path: "/pk", value: "q" }])), 400);
    });

    test("a transactional batch is all or nothing", async () => {
      const container = containers[name];
      const good = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "b1", pk: "batch", n: 1 } },
          { operationType: "Upsert", resourceBody: { id: "b2", pk: "batch", n: 1 } },
          { operationType: "Replace", id: "b1", resourceBody: { id: "b1", pk: "batch", n: 2 } },
          { operationType: "Patch", id: "b2", resourceBody: { operations: [{ op: "incr", path: "/n", value: 9 }] } },
          { operationType: "Read", id: "b2" },
          { operationType: "Delete", id: "b1" },
        ],
        "batch",
      );
      assert.equal(good.code, 200);
      assert.deepEqual(good.result.map((entry) => entry.statusCode), [201, 201, 200, 200, 200, 204]);
      assert.equal(good.result[4].resourceBody.n, 10);
      const bad = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "b3", pk: "batch" } },
          { operationType: "Create", resourceBody: { id: "b2", pk: "batch" } },
          { operationType: "Create", resourceBody: { id: "b4", pk: "batch" } },
        ],
        "batch",
      );
      assert.equal(bad.code, 207);
      assert.deepEqual(bad.result.map((entry) => entry.statusCode), [424, 409, 424]);
      assert.equal((await container.item("b3", "batch").read()).statusCode, 404);
    });

    test("bulk spreads operations over the partitions", async () => {
      const container = containers[name];
      const keys = Array.from({ length: 50 }, (_, index) => `bulk-${index}`);
      const created = await container.items.executeBulkOperations(
        keys.map((pk) => ({ operationType: "Create", partitionKey: pk, resourceBody: { id: "bulk", pk } })),
      );
      assert.deepEqual([...new Set(created.map((entry) => entry.response.statusCode))], [201]);
      const mixed = await container.items.executeBulkOperations([
        { operationType: "Create", partitionKey: "bulk-0", resourceBody: { id: "bulk", pk: "bulk-0" } },
        { operationType: "Read", partitionKey: "bulk-1", id: "bulk" },
        { operationType: "Delete", partitionKey: "bulk-2", id: "bulk" },
        { operationType: "Delete", partitionKey: "bulk-3", id: "absent" },
      ]);
      const codes = mixed.map((entry) => entry.response?.statusCode ?? entry.error?.code);
      assert.deepEqual(codes, [409, 200, 204, 404]);
    });

    test("a read feed pages through everything once", async () => {
      const container = containers[name];
      for (let index = 0; index < 30; index += 1) {
        await container.items.create({ id: `feed-${index}`, pk: `feed-${index % 7}` });
      }
      const seen = new Set();
      let pages = 0;
      const iterator = container.items.readAll({ maxItemCount: 5 });
      while (iterator.hasMoreResults()) {
        const { resources } = await iterator.fetchNext();
        pages += 1;
        for (const resource of resources ?? []) {
          const key = `${JSON.stringify(resource.pk)}/${resource.id}`;
          assert.ok(!seen.has(key), `${key} came twice`);
          seen.add(key);
        }
      }
      assert.ok(pages >= 6);
      assert.equal([...seen].filter((key) => key.includes("feed-")).length, 30);
    });

    test("queries in one logical partition and across all", async () => {
      const container = containers[name];
      for (let index = 0; index < 12; index += 1) {
        await container.items.create({ id: `q-${index}`, pk: `query-${index % 3}`, n: index });
      }
      const inOne = await container.items
        .query({ query: "SELECT * FROM c WHERE c.pk = @pk", parameters: [{ name: "@pk", value: "query-1" }] }, { partitionKey: "query-1" })
        .fetchAll();
      assert.deepEqual(inOne.resources.map((item) => item.n).sort((a, b) => a - b), [1, 4, 7, 10]);
      const byFilter = await container.items.query("SELECT * FROM c WHERE c.pk = 'query-2'").fetchAll();
      assert.equal(byFilter.resources.length, 4);
      const across = await container.items
        .query("SELECT c.id, c.n FROM c WHERE STARTSWITH(c.pk, 'query-') AND c.n >= 3", { maxItemCount: 4 })
        .fetchAll();
      assert.equal(across.resources.length, 9);
      assert.equal(await statusOf(container.items.query("SELEC nonsense").fetchAll()), 400);
    });

    test("session tokens move forward and a token from the future is refused", async () => {
      const container = containers[name];
      const first = await container.items.create({ id: "s1", pk: "session" });
      const second = await container.items.create({ id: "s2", pk: "session" });
      const [range, lsn] = parseToken(first.headers["x-ms-session-token"]);
      const [sameRange, later] = parseToken(second.headers["x-ms-session-token"]);
      assert.equal(sameRange, range);
      assert.ok(later > lsn);
      const own = await container.item("s1", "session").read({ sessionToken: second.headers["x-ms-session-token"] });
      assert.equal(own.statusCode, 200);
      // The SDK answers 404/1002 by forgetting the token and asking again, and tells so.
      const future = second.headers["x-ms-session-token"].replace(/#\d+/, `#${later + 1000000}`);
      const ahead = await container.item("s1", "session").read({ sessionToken: future });
      const attempts = ahead.diagnostics.clientSideRequestStatistics.retryDiagnostics.failedAttempts;
      assert.deepEqual(attempts.map((attempt) => attempt.statusCode), [404]);
    });
  });
}

function parseToken(token) {
  const [range, vector] = token.split(",")[0].split(":");
  return [range, Number(vector.split("#")[1])];
}

test("bad items are refused with the right code", async () => {
  const container = containers.one;
  assert.equal(await statusOf(container.items.create({ id: "i".repeat(1024), pk: "x" })), 400);
  assert.equal(await statusOf(container.items.create({ id: "big", pk: "x", data: "x".repeat(2_200_000) })), 413);
  assert.equal(await statusOf(container.items.create({ id: "key", pk: "k".repeat(2049) })), 400);
});

test("hierarchical keys: whole keys address items, prefixes address ranges", async () => {
  const container = containers.levels;
  const rows = [["t1", "u1", "s1"], ["t1", "u1", "s2"], ["t1", "u2", "s1"], ["t2", "u1", "s1"]];
  for (const [tenant, user, session] of rows) {
    await container.items.create({ id: "same", tenant, user, session });
  }
  const { resource } = await container.item("same", ["t1", "u2", "s1"]).read();
  assert.equal(resource.user, "u2");
  await container.item("same", ["t1", "u2", "s1"]).patch([{ op: "set", path: "/n", value: 1 }]);
  const count = async (partitionKey) =>
    (await container.items.query("SELECT * FROM c", { partitionKey }).fetchAll()).resources.length;
  assert.equal(await count(["t1", "u1", "s1"]), 1);
  assert.equal(await count(["t1", "u1"]), 2);
  assert.equal(await count(["t1"]), 3);
  assert.equal(await count(["t3"]), 0);
  const batch = await container.items.batch(
    [{ operationType: "Create", resourceBody: { id: "b", tenant: "t1", user: "u1", session: "s1" } }],
    ["t1", "u1", "s1"],
  );
  assert.equal(batch.code, 200);
  assert.equal((await container.item("same", ["t2", "u1", "s1"]).delete()).statusCode, 204);
});
