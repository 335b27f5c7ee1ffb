// Queries: what one partition answers, and what the SDK merges from four.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect, databaseName, statusOf } from "./client.mjs";

const client = connect();
const COUNT = 60;
let database;
const containers = {};

function made(n) {
  const item = { id: String(n).padStart(3, "0"), pk: `k${n % 7}`, n, third: n % 3, name: `Name ${String(n).padStart(2, "0")}` };
  item.tags = [`t${n % 5}`, `t${(n + 1) % 5}`];
  item.parts = [{ kind: "a", size: n }, { kind: "b", size: n + 1 }];
  if (n % 10 === 0) item.rare = n;
  return item;
}

const items = Array.from({ length: COUNT }, (_, n) => made(n));

before(async () => {
  ({ database } = await client.databases.create({ id: databaseName("queries") }));
  for (const [name, throughput] of [["one", 10000], ["four", 24000]]) {
    const created = await database.containers.create({ id: name, partitionKey: { paths: ["/pk"] }, throughput });
    containers[name] = created.container;
    for (const item of items) await created.container.items.create(item);
  }
});

after(() => database.delete());

for (const name of ["one", "four"]) {
  describe(`queries over ${name} physical partition(s)`, () => {
    const all = async (query, options) => (await containers[name].items.query(query, options).fetchAll()).resources;

    test("conditions find what they name", async () => {
      for (const [condition, wanted] of [
        ["c.n >= 10 AND c.n < 20", (item) => item.n >= 10 && item.n < 20],
        ["c.n IN (1, 2, 59) OR c.third = 2", (item) => [1, 2, 59].includes(item.n) || item.third === 2],
        ["STARTSWITH(c.name, 'Name 3')", (item) => item.n >= 30 && item.n < 40],
        ["ARRAY_CONTAINS(c.tags, 't3')", (item) => item.tags.includes("t3")],
        ["NOT IS_DEFINED(c.rare)", (item) => item.rare === undefined],
        ["EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.size = 31)", (item) => item.n === 30 || item.n === 31],
      ]) {
        const found = await all(`SELECT VALUE c.id FROM c WHERE ${condition}`);
        assert.deepEqual(found.sort(), items.filter(wanted).map((item) => item.id), condition);
      }
      const named = { query: "SELECT VALUE c.n FROM c WHERE c.name = @name", parameters: [{ name: "@name", value: "Name 17" }] };
      assert.deepEqual(await all(named), [17]);
    });

    test("order, TOP, OFFSET and LIMIT hold over all partitions", async () => {
      const numbers = items.map((item) => item.n);
      assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n", { maxItemCount: 7 }), numbers);
      assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n DESC"), [...numbers].reverse());
      assert.deepEqual(await all("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), [59, 58, 57]);
      assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 55 LIMIT 10"), [55, 56, 57, 58, 59]);
      assert.equal((await all("SELECT TOP 11 * FROM c")).length, 11);
      assert.equal((await all("SELECT * FROM c OFFSET 50 LIMIT 100")).length, 10);
    });

    test("DISTINCT and aggregates", async () => {
      assert.deepEqual((await all("SELECT DISTINCT VALUE c.tags[0] FROM c")).sort(), ["t0", "t1", "t2", "t3", "t4"]);
      assert.deepEqual(await all("SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk"), ["k0", "k1", "k2", "k3", "k4", "k5", "k6"]);
      for (const [call, wanted] of [
        ["COUNT(1)", COUNT],
        ["COUNT(c.rare)", 6],
        ["SUM(c.n)", 1770],
        ["MIN(c.n)", 0],
        ["MAX(c.name)", "Name 59"],
        ["AVG(c.n)", 29.5],
      ]) {
        assert.deepEqual(await all(`SELECT VALUE ${call} FROM c`), [wanted], call);
      }
      assert.deepEqual(await all("SELECT COUNT(1) AS count, MAX(c.n) AS last FROM c"), [{ count: COUNT, last: 59 }]);
    });

    test("GROUP BY", async () => {
      const rows = await all("SELECT c.third, COUNT(1) AS count, SUM(c.n) AS sum, AVG(c.n) AS mean FROM c GROUP BY c.third");
      rows.sort((a, b) => a.third - b.third);
      assert.deepEqual(rows, [
        { third: 0, count: 20, sum: 570, mean: 28.5 },
        { third: 1, count: 20, sum: 590, mean: 29.5 },
        { third: 2, count: 20, sum: 610, mean: 30.5 },
      ]);
      const values = await all("SELECT VALUE c.pk FROM c GROUP BY c.pk");
      assert.deepEqual(values.sort(), ["k0", "k1", "k2", "k3", "k4", "k5", "k6"]);
    });

    test("JOIN", async () => {
      const rows = await all("SELECT c.n, p.size FROM c JOIN p IN c.parts WHERE p.kind = 'b' AND p.size > 55");
      assert.deepEqual(rows.map((row) => row.size).sort(), [56, 57, 58, 59, 60]);
      assert.equal((await all("SELECT VALUE t FROM t IN c.tags WHERE t = 't4'")).length, 24);
    });

    test("pages go on from their token", async () => {
      for (const [query, options] of [
        ["SELECT VALUE c.n FROM c WHERE c.n >= 10", {}],
        ["SELECT VALUE c.n FROM c WHERE c.n >= 10", { partitionKey: "k1" }],
        ["SELECT VALUE c.n FROM c WHERE c.n >= 10 ORDER BY c.n DESC", { partitionKey: "k1" }],
      ]) {
        const whole = await all(query, options);
        const seen = [];
        let token;
        for (const size of [1, 2, 7, 11, 5, 3, ...Array(20).fill(50)]) {
          const page = await containers[name].items
            .query(query, { ...options, maxItemCount: size, continuationToken: token })
            .fetchNext();
          seen.push(...(page.resources ?? []));
          token = page.continuationToken;
          if (!token) break;
        }
        assert.deepEqual(seen.sort((a, b) => a - b), whole.sort((a, b) => a - b), query);
      }
    });

    test("metrics tell what a query did", async () => {
      const options = { partitionKey: "k1", populateQueryMetrics: true, populateIndexMetrics: true };
      const page = await containers[name].items.query("SELECT * FROM c WHERE c.n = 8", options).fetchNext();
      assert.deepEqual(page.resources.map((item) => item.n), [8]);
      const index = JSON.parse(page.indexMetrics);
      assert.deepEqual(index.UtilizedIndexes.SingleIndexes.map((used) => used.IndexSpec).includes("/n/?"), true, page.indexMetrics);
      assert.ok(JSON.stringify(page.queryMetrics).includes("retrievedDocumentCount"));
    });

    test("wrong queries are refused", async () => {
      assert.equal(await statusOf(all("SELECT * FROM c ORDER BY c.n, c.name")), 400);
      assert.equal(await statusOf(all("SELECT nonsense( FROM c")), 400);
    });
  });
}

test("a composite index orders by several keys", async () => {
  const compositeIndexes = [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]];
  const { container } = await database.containers.create({
    id: "ordered",
    partitionKey: { paths: ["/pk"] },
    indexingPolicy: { compositeIndexes },
    throughput: 24000,
  });
  const numbers = Array.from({ length: 24 }, (_, n) => n);
  for (const n of numbers) await container.items.create({ id: String(n), pk: n % 5, a: n % 4, b: n });
  numbers.sort((x, y) => (x % 4) - (y % 4) || y - x);
  const { resources } = await container.items.query("SELECT VALUE c.b FROM c ORDER BY c.a, c.b DESC").fetchAll();
  assert.deepEqual(resources, numbers);
});
