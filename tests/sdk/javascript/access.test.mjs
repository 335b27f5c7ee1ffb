// Users, permissions, resource tokens, and tokens of Entra ID in development mode.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PermissionMode } from "@azure/cosmos";
import { connect, connectWith, databaseName, statusOf } from "./client.mjs";

const client = connect();
const id = databaseName("access");
let database;
let container;
let user;

before(async () => {
  ({ database } = await client.databases.create({ id }));
  ({ container } = await database.containers.create({ id: "things", partitionKey: { paths: ["/pk"] } }));
  await database.containers.create({ id: "others", partitionKey: { paths: ["/pk"] } });
  ({ user } = await database.users.create({ id: "someone" }));
  for (const [item, pk] of [["1", "mine"], ["2", "mine"], ["3", "theirs"]]) {
    await container.items.create({ id: item, pk });
  }
});

after(() => database.delete());

/** A client that holds one permission and nothing else. */
async function bearer(permission, options) {
  const { resource } = await user.permissions.upsert(permission, options);
  return connectWith({ resourceTokens: { [resource.resource]: resource._token } }).database(id).container("things");
}

test("users and permissions live as other resources do", async () => {
  const { resource: made } = await database.users.create({ id: "short-lived" });
  assert.equal(made._permissions, "permissions/");
  assert.equal(await statusOf(database.users.create({ id: "short-lived" })), 409);
  const { resources: found } = await database.users.query("SELECT * FROM u WHERE u.id = 'short-lived'").fetchAll();
  assert.equal(found[0]._rid, made._rid);
  const renamed = await database.user("short-lived").replace({ id: "renamed" });
  assert.equal(renamed.resource._rid, made._rid);
  assert.equal(await statusOf(database.user("short-lived").read()), 404);
  await database.user("renamed").delete();
  const { resource: permission } = await user.permissions.create({
    id: "first",
    permissionMode: PermissionMode.Read,
    resource: container.url,
  });
  assert.match(permission._token, /^type=resource&ver=1/);
  const { resources: all } = await user.permissions.readAll().fetchAll();
  assert.ok(all.some((entry) => entry.id === "first" && entry._token));
  await user.permission("first").delete();
});

test("a token to read reads and does not write", async () => {
  const things = await bearer({ id: "read", permissionMode: PermissionMode.Read, resource: container.url });
  const { resources } = await things.items.query("SELECT * FROM c").fetchAll();
  assert.equal(resources.length, 3);
  assert.equal((await things.item("1", "mine").read()).resource.id, "1");
  assert.equal(await statusOf(things.items.create({ id: "4", pk: "mine" })), 403);
  assert.equal(await statusOf(things.item("1", "mine").delete()), 403);
});

test("a token for everything in a container writes there", async () => {
  const things = await bearer({ id: "all", permissionMode: PermissionMode.All, resource: container.url });
  await things.items.create({ id: "5", pk: "mine" });
  await things.item("5", "mine").delete();
});

test("a token of a partition key opens that key alone", async () => {
  const things = await bearer({
    id: "key",
    permissionMode: PermissionMode.All,
    resource: container.url,
    resourcePartitionKey: ["mine"],
  });
  const { resources } = await things.items.query("SELECT * FROM c", { partitionKey: "mine" }).fetchAll();
  assert.deepEqual(resources.map((item) => item.id), ["1", "2"]);
  assert.equal(await statusOf(things.item("3", "theirs").read()), 403);
  assert.equal(await statusOf(things.items.create({ id: "6", pk: "theirs" })), 403);
});

test("a token of an item opens that item alone", async () => {
  const things = await bearer({
    id: "item",
    permissionMode: PermissionMode.Read,
    resource: container.item("1", "mine").url,
  });
  assert.equal((await things.item("1", "mine").read()).resource.id, "1");
  assert.equal(await statusOf(things.item("1", "mine").replace({ id: "1", pk: "mine", note: 1 })), 403);
});

test("an application with a token of Entra ID reads and writes items, and makes no containers", async () => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const expires = Math.floor(Date.now() / 1000) + 600;
  const token = `${part({ alg: "RS256", typ: "JWT" })}.${part({ oid: "an-application", exp: expires })}.c2lnbmF0dXJl`;
  const aadCredentials = { getToken: async () => ({ token, expiresOnTimestamp: expires * 1000 }) };
  const own = connectWith({ aadCredentials }).database(id);
  await own.container("things").items.upsert({ id: "7", pk: "mine" });
  await own.container("things").item("7", "mine").delete();
  assert.equal(await statusOf(own.containers.create({ id: "new", partitionKey: { paths: ["/pk"] } })), 403);
});
