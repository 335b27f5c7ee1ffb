// Queries as the page keeps them, completes them and shows their rows.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { bundle } from "./bundle.mjs";

const kept = new Map();
globalThis.localStorage = {
  getItem: (name) => kept.get(name) ?? null,
  setItem: (name, text) => kept.set(name, String(text)),
  removeItem: (name) => kept.delete(name),
};
beforeEach(() => kept.clear());

const queries = await bundle("state/queries.ts");
const { aliasOf } = await bundle("parts/query-language.ts");
const { columnsOf, columnsShown } = await bundle("text/json.ts");

test("columns stand in the order of SELECT, whatever the first rows lack", () => {
  const rows = [{ n: 1 }, { zone: "a", n: 2, city: "x" }, { zone: "b", n: 1, ok: true, city: "y" }].map((row) => JSON.stringify(row));
  assert.deepEqual(columnsOf(rows), ["zone", "n", "ok", "city"]);
  assert.deepEqual(columnsShown(['{"_ts":1,"id":"a"}'], 9), ["_ts", "id"]);
  const whole = { id: "a", _rid: "", _self: "", _etag: "", _attachments: "", _ts: 1, n: 2, _mine: 3 };
  assert.deepEqual(columnsShown([JSON.stringify(whole)], 9), ["id", "n", "_mine", "_rid", "_self", "_etag", "_attachments", "_ts"]);
});

test("open queries are kept; what is not of their form is left aside", () => {
  const first = queries.openQueries("c");
  assert.deepEqual(first, { list: [{ id: 1, text: "SELECT * FROM c", name: null }], active: 1 });
  const two = queries.withNewQuery(first, "SELECT 1", "one");
  queries.keepOpenQueries("c", two);
  assert.deepEqual(queries.openQueries("c"), two);
  assert.deepEqual(queries.openQueries("d"), first);
  assert.equal(queries.withoutQuery(two, 2).active, 1);
  assert.equal(queries.withoutQuery(two, 1).active, 2);
  assert.deepEqual(queries.withoutQuery(first, 1), first);
  for (const broken of ["", "x", "[]", "5", '{"list":5}', '{"list":[null,{"id":"x"}]}']) {
    kept.set("orrery.queries.c", broken);
    assert.deepEqual(queries.openQueries("c"), first, broken);
  }
  kept.set("orrery.queries.c", '{"list":[{"id":3,"text":"x","name":7}],"active":9}');
  assert.deepEqual(queries.openQueries("c"), { list: [{ id: 3, text: "x", name: null }], active: 3 });
});

test("saved queries belong to their container, and a name stands for one", () => {
  const query = (container, name, text) => ({ container, name, text });
  for (const one of [query("c", "b", "1"), query("c", "a", "2"), query("d", "a", "3"), query("c", "b", "4")]) queries.saveQuery(one);
  assert.deepEqual(queries.savedQueries("c"), [query("c", "a", "2"), query("c", "b", "4")]);
  queries.forgetSavedQuery("c", "a");
  assert.deepEqual(queries.savedQueries("c"), [query("c", "b", "4")]);
  assert.deepEqual(queries.savedQueries("d"), [query("d", "a", "3")]);
});

test("the name of the items is what FROM says", () => {
  for (const [query, alias] of [
    ["SELECT ", "c"],
    ["SELECT * FROM c", "c"],
    ["SELECT * FROM orders o WHERE", "o"],
    ["select x from orders AS o join l in o.lines", "o"],
    ["SELECT * FROM root WHERE root.a", "root"],
    ["SELECT * FROM r ORDER BY", "r"],
    ["SELECT * FROM c JOIN x IN c.l", "c"],
  ]) {
    assert.equal(aliasOf(query), alias, query);
  }
});
