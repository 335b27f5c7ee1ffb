// Stored procedures, triggers and user-defined functions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, databaseName, statusOf } from "./client.mjs";

const client = connect();
let database;
let container;
let scripts;

before(async () => {
  ({ database } = await client.databases.create({ id: databaseName("scripts") }));
  ({ container } = await database.containers.create({ id: "scripts", partitionKey: { paths: ["/pk"] } }));
  ({ scripts } = container);
});

after(async () => {
  await database.delete();
});

test("procedures are made, read, replaced, listed, queried and deleted", async () => {
  const definition = { id: "sample", body: "function () { const x = 10; }" };
  const { resource } = await scripts.storedProcedures.create(definition);
  assert.equal(resource.id, definition.id);
  assert.equal(resource.body, definition.body);
  assert.equal(await statusOf(scripts.storedProcedures.create(definition)), 409);
  const { resources: all } = await scripts.storedProcedures.readAll().fetchAll();
  assert.deepEqual(all.map((entry) => entry.id), ["sample"]);
  const query = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: "sample" }] };
  const { resources: found } = await scripts.storedProcedures.query(query).fetchAll();
  assert.deepEqual(found.map((entry) => entry._rid), [resource._rid]);
  const procedure = scripts.storedProcedure("sample");
  const { resource: replaced } = await procedure.replace({ id: "sample", body: "function () { getContext().getResponse().setBody(20); }" });
  assert.equal(replaced._rid, resource._rid);
  assert.equal((await procedure.execute("a")).resource, 20);
  await procedure.delete();
  assert.equal(await statusOf(procedure.read()), 404);
  assert.equal(await statusOf(procedure.execute("a")), 404);
});

test("a bulk import creates its items in one transaction", async () => {
  const bulkImport = function (items) {
    const collection = getContext().getCollection();
    let count = 0;
    next();
    function next(error) {
      if (error) throw error;
      if (count === items.length) return getContext().getResponse().setBody(count);
      const accepted = collection.createDocument(collection.getSelfLink(), items[count], next);
      if (!accepted) return getContext().getResponse().setBody(count);
      count += 1;
    }
  };
  const { resource } = await scripts.storedProcedures.create({ id: "bulkImport", body: bulkImport.toString() });
  const procedure = scripts.storedProcedure(resource.id);
  const items = (first, count) => Array.from({ length: count }, (_, n) => ({ id: `${first + n}`, pk: "bulk", n: first + n }));
  assert.equal((await procedure.execute("bulk", [items(0, 50)])).resource, 50);
  const { resources } = await container.items.query("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'bulk'").fetchAll();
  assert.deepEqual(resources, [50]);
  // The last one exists already, so none of the new ones is there.
  assert.equal(await statusOf(procedure.execute("bulk", [[...items(100, 10), ...items(0, 1)]])), 400);
  assert.equal((await container.item("100", "bulk").read()).statusCode, 404);
});

test("a procedure works in its own logical partition only", async () => {
  const body = `async function (id) {
    const found = await new Promise((resolve, reject) =>
      __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', (error, items) => (error ? reject(error) : resolve(items))));
    getContext().getResponse().setBody(found.map((item) => item.id));
  }`;
  await scripts.storedProcedures.create({ id: "here", body });
  await container.items.create({ id: "one", pk: "left" });
  await container.items.create({ id: "two", pk: "right" });
  assert.deepEqual((await scripts.storedProcedure("here").execute("left")).resource, ["one"]);
  assert.deepEqual((await scripts.storedProcedure("here").execute("right")).resource, ["two"]);
});

test("what a script logs comes back when it is asked for", async () => {
  await scripts.storedProcedures.create({ id: "talks", body: "function (x) { console.log('x is ' + x); getContext().getResponse().setBody(x); }" });
  const procedure = scripts.storedProcedure("talks");
  const loud = await procedure.execute("a", [7], { enableScriptLogging: true });
  assert.equal(decodeURIComponent(loud.headers["x-ms-documentdb-script-log-results"]), "x is 7");
  const quiet = await procedure.execute("a", [7]);
  assert.equal(quiet.headers["x-ms-documentdb-script-log-results"], undefined);
});

test("a script that throws tells why", async () => {
  await scripts.storedProcedures.create({ id: "throws", body: "function () { throw new Error('no such luck'); }" });
  await assert.rejects(scripts.storedProcedure("throws").execute("a"), (error) => {
    assert.equal(error.code, 400);
    assert.match(error.message, /no such luck/);
    return true;
  });
});

test("triggers run before and after the writes that name them", async () => {
  await scripts.triggers.create({
    id: "before",
    body: "function () { const request = getContext().getRequest(); const item = request.getBody(); item.checked = true; request.setBody(item); }",
    triggerType: "Pre",
    triggerOperation: "All",
  });
  await scripts.triggers.create({
    id: "after",
    body: `function () {
      const item = getContext().getResponse().getBody();
      const collection = getContext().getCollection();
      const accepted = collection.createDocument(collection.getSelfLink(), { id: 'note-' + item.id, pk: item.pk, of: item._rid });
      if (!accepted) throw new Error('not accepted');
    }`,
    triggerType: "Post",
    triggerOperation: "Create",
  });
  const { resources: all } = await scripts.triggers.readAll().fetchAll();
  assert.deepEqual(all.map((entry) => entry.id).sort(), ["after", "before"]);
  const { resource } = await container.items.create({ id: "watched", pk: "t" }, { preTriggerInclude: "before", postTriggerInclude: "after" });
  assert.equal(resource.checked, true);
  const { resource: note } = await container.item("note-watched", "t").read();
  assert.equal(note.of, resource._rid);
  const { resource: upserted } = await container.items.upsert({ id: "watched", pk: "t" }, { preTriggerInclude: "before" });
  assert.equal(upserted.checked, true);
  assert.equal(await statusOf(container.items.upsert({ id: "watched", pk: "t" }, { postTriggerInclude: "after" })), 400);
  assert.equal(await statusOf(container.items.create({ id: "x", pk: "t" }, { preTriggerInclude: "none" })), 400);
  const { resource: unwatched } = await container.items.create({ id: "unwatched", pk: "t" });
  assert.equal(unwatched.checked, undefined);
});

test("functions are resources and work in queries", async () => {
  const body = "function (price, rate) { return price > 10 ? price * rate : 0; }";
  const { resource } = await scripts.userDefinedFunctions.create({ id: "tax", body });
  assert.equal(resource.body, body);
  for (let price = 5; price <= 20; price += 5) {
    await container.items.create({ id: `price-${price}`, pk: "prices", price });
  }
  const query = {
    query: "SELECT VALUE udf.tax(c.price, @rate) FROM c WHERE udf.tax(c.price, @rate) > 0",
    parameters: [{ name: "@rate", value: 2 }],
  };
  const { resources: taxes } = await container.items.query(query, { partitionKey: "prices" }).fetchAll();
  assert.deepEqual(taxes.sort((a, b) => a - b), [30, 40]);
  const { resources: everywhere } = await container.items.query({ ...query, query: `${query.query} AND c.pk = 'prices'` }).fetchAll();
  assert.deepEqual(everywhere.sort((a, b) => a - b), [30, 40]);
  await scripts.userDefinedFunction("tax").delete();
  assert.equal(await statusOf(container.items.query(query, { partitionKey: "prices" }).fetchAll()), 400);
});
