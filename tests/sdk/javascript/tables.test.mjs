// The Table API with @azure/data-tables: what it writes it reads, and so does @azure/cosmos.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  RestError,
  TableClient,
  TableServiceClient,
  TableTransaction,
  generateTableSas,
  odata,
} from "@azure/data-tables";
import { connect } from "./client.mjs";

const endpoint = process.env.ORRERY_TABLES;
const credential = new AzureNamedKeyCredential("orrery", process.env.ORRERY_KEY);
const name = `js${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
const service = new TableServiceClient(endpoint, credential);
const table = new TableClient(endpoint, name, credential);
let partition = 0;
let key;

before(() => table.createTable());
after(() => table.deleteTable());
// Each test has a partition of its own.
beforeEach(() => {
  partition += 1;
  key = `p${partition}`;
});

const entity = (rowKey, properties = {}) => ({ partitionKey: key, rowKey, ...properties });

/** What the SDK adds to an entity. */
function own({ etag, timestamp, "odata.metadata": metadata, ...properties }) {
  assert.ok(etag && timestamp, "the answer has its version");
  return properties;
}

async function refused(status, code, promise) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof RestError, String(error));
    assert.deepEqual([error.statusCode, error.details?.odataError?.code ?? error.code], [status, code], error.message);
    return true;
  });
}

async function rows(options) {
  const found = [];
  for await (const row of table.listEntities({ queryOptions: options })) found.push(row.rowKey);
  return found;
}

test("tables are made, listed by pages and deleted", async () => {
  const names = ["a", "b", "c"].map((letter) => `${name}${letter}`);
  for (const other of names) await service.createTable(other);
  // It answers calmly if there is one already.
  await service.createTable(names[0]);
  const found = [];
  for await (const page of service.listTables().byPage({ maxPageSize: 2 })) {
    assert.ok(page.length <= 2);
    found.push(...page.map((each) => each.name));
  }
  assert.deepEqual(found.filter((each) => names.includes(each)), names);
  for (const other of names) await service.deleteTable(other);
  for await (const each of service.listTables({ queryOptions: { filter: odata`TableName eq ${names[1]}` } })) {
    assert.fail(`${each.name} is still there`);
  }
});

test("values of all types come back as they went", async () => {
  const properties = {
    text: "it's \"ü\"",
    number: 5,
    fraction: 5.5,
    flag: false,
    long: -(2n ** 40n),
    when: new Date("2024-02-29T12:34:56.789Z"),
    bytes: new Uint8Array([0, 255]),
    guid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    id: "mine",
    ttl: 5,
  };
  await table.createEntity(entity("it's", properties));
  await refused(409, "EntityAlreadyExists", table.createEntity(entity("it's")));
  const read = own(await table.getEntity(key, "it's"));
  assert.deepEqual({ ...read, bytes: new Uint8Array(read.bytes) }, entity("it's", properties));
});

test("changes merge or replace and insist on versions", async () => {
  const first = await table.createEntity(entity("r", { a: 1, b: 2 }));
  await table.updateEntity(entity("r", { b: 3, c: 4 }), "Merge");
  assert.deepEqual(own(await table.getEntity(key, "r")), entity("r", { a: 1, b: 3, c: 4 }));
  await table.updateEntity(entity("r", { d: 5 }), "Replace");
  assert.deepEqual(own(await table.getEntity(key, "r")), entity("r", { d: 5 }));
  const old = { etag: first.etag };
  await refused(412, "UpdateConditionNotSatisfied", table.updateEntity(entity("r", { e: 6 }), "Merge", old));
  await refused(412, "UpdateConditionNotSatisfied", table.deleteEntity(key, "r", old));
  const current = await table.getEntity(key, "r");
  const written = await table.updateEntity(entity("r", { e: 6 }), "Replace", { etag: current.etag });
  assert.notEqual(written.etag, current.etag);
  await refused(404, "ResourceNotFound", table.updateEntity(entity("none"), "Merge"));
  await table.upsertEntity(entity("new", { a: 1 }), "Merge");
  await table.upsertEntity(entity("new", { b: 2 }), "Merge");
  assert.deepEqual(own(await table.getEntity(key, "new")), entity("new", { a: 1, b: 2 }));
  await table.deleteEntity(key, "new");
  await refused(404, "ResourceNotFound", table.getEntity(key, "new"));
});

test("queries filter, select and go on where a page ends", async () => {
  for (const row of ["3", "1", "2"]) {
    await table.createEntity(entity(row, { n: Number(row), long: BigInt(row) * 2n ** 40n }));
  }
  const inPartition = odata`PartitionKey eq ${key}`;
  assert.deepEqual(await rows({ filter: inPartition }), ["1", "2", "3"]);
  assert.deepEqual(await rows({ filter: `${inPartition} and (n lt 2 or n gt 2)` }), ["1", "3"]);
  assert.deepEqual(await rows({ filter: `${inPartition} and not (long ge ${2 * 2 ** 40})` }), ["1"]);
  assert.deepEqual(await rows({ filter: odata`PartitionKey eq ${key} and long eq ${2n ** 41n}` }), ["2"]);
  const recent = odata`PartitionKey eq ${key} and Timestamp gt ${new Date("2024-01-01T00:00:00Z")}`;
  assert.deepEqual(await rows({ filter: recent }), ["1", "2", "3"]);
  const [row] = (await table.listEntities({ queryOptions: { filter: inPartition, select: ["n"] } }).byPage().next()).value;
  assert.deepEqual([row.n, row.rowKey], [1, undefined]);
  let token;
  const found = [];
  do {
    const pages = table.listEntities({ queryOptions: { filter: inPartition } });
    const { value: page } = await pages.byPage({ maxPageSize: 2, continuationToken: token }).next();
    assert.ok(page.length <= 2);
    found.push(...page.map((each) => each.rowKey));
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(found, ["1", "2", "3"]);
  await refused(400, "InvalidInput", rows({ filter: "aaa bbb ccc" }));
});

test("batches happen whole or not at all", async () => {
  await table.createEntity(entity("old", { a: 1 }));
  await table.createEntity(entity("gone"));
  const batch = new TableTransaction();
  batch.createEntity(entity("new", { a: 1 }));
  batch.updateEntity(entity("old", { b: 2 }), "Merge");
  batch.upsertEntity(entity("other", { c: 3 }), "Replace");
  batch.deleteEntity(key, "gone");
  const answer = await table.submitTransaction(batch.actions);
  assert.deepEqual(answer.subResponses.map((each) => each.status), [204, 204, 204, 204]);
  assert.ok(answer.getResponseForEntity("new").etag);
  assert.deepEqual(own(await table.getEntity(key, "old")), entity("old", { a: 1, b: 2 }));
  assert.deepEqual(await rows({ filter: odata`PartitionKey eq ${key}` }), ["new", "old", "other"]);
  const wrong = table.submitTransaction([
    ["create", entity("never")],
    ["create", entity("new")],
  ]);
  await refused(409, "EntityAlreadyExists", wrong);
  await refused(404, "ResourceNotFound", table.getEntity(key, "never"));
});

test("signatures open what they should", async () => {
  await table.createEntity(entity("r", { a: 1 }));
  const expiresOn = new Date(Date.now() + 3_600_000);
  const token = generateTableSas(name, credential, { permissions: { query: true }, expiresOn });
  const reader = new TableClient(endpoint, name, new AzureSASCredential(token));
  assert.equal((await reader.getEntity(key, "r")).a, 1);
  await refused(403, "AuthorizationPermissionMismatch", reader.createEntity(entity("s")));
  const stranger = new TableClient(endpoint, name, new AzureNamedKeyCredential("orrery", "AAECAwQFBgcICQoLDA0ODw=="));
  await refused(401, "Unauthorized", stranger.getEntity(key, "r"));
});

test("one table through both SDKs", async () => {
  const container = connect().database("TablesDB").container(name);
  await table.createEntity(entity("r", { name: "x", long: 5n }));
  const { resource: item } = await container.item("r", key).read();
  assert.deepEqual([item.name, item.long], [{ $t: 2, $v: "x" }, { $t: 18, $v: "00000000000000000005" }]);
  await container.items.create({ id: "s", $id: "s", $pk: key, n: { $t: 16, $v: 7 } });
  assert.deepEqual(own(await table.getEntity(key, "s")), entity("s", { n: 7 }));
});
