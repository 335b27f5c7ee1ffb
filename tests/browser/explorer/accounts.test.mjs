// Accounts that are not like the one of a developer's machine: serverless ones, and ones with keys of their own.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Desk, endpoint, key, launch, makeContainer, serve } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

test("a serverless account has no throughput to choose", async (t) => {
  const desk = await Desk.open(t, browser, { endpoint: await serve(t, ["--serverless"]) });
  const { page } = desk;
  desk.expected.add(400);
  await desk.signIn("#/new-database");
  await page.getByText("This account is serverless").waitFor();
  await page.getByLabel("Name", { exact: true }).fill("lean");
  await page.getByRole("button", { name: "Create database" }).click();
  await page.getByRole("heading", { name: "New container in lean" }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("things");
  await page.getByLabel("Partition key", { exact: true }).fill("/id");
  await page.getByRole("button", { name: "Create container" }).click();
  await page.getByText("No items yet").waitFor();
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.getByText("nothing is provisioned").waitFor();
  await page.getByRole("tab", { name: "Partitions" }).click();
  await page.locator("[data-partitions='1']").waitFor();
  await desk.close();
});

test("with keys of its own an account refuses the public one, and a read-only key reads only", async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), "orrery-keys-")), "keys.toml");
  const [primary, reader] = [randomBytes(64).toString("base64"), randomBytes(64).toString("base64")];
  writeFileSync(file, `primary = "${primary}"\nprimary-readonly = "${reader}"\n`);
  const desk = await Desk.open(t, browser, { endpoint: await serve(t, ["--key-file", file]) });
  const { page } = desk;
  desk.expected.add(401).add(403);
  await page.goto(`${desk.endpoint}/_explorer`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The key does not fit").waitFor();
  await page.getByLabel("Account key").fill(reader);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "New database" }).click();
  await page.getByLabel("Name", { exact: true }).fill("forbidden");
  await page.getByRole("button", { name: "Create database" }).click();
  await page.locator("[data-notice=failed]").getByText("Cannot create the database forbidden").waitFor();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "forbidden");
  await page.getByRole("button", { name: "Dismiss" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Account key").fill(primary);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("No database yet").waitFor();
  await desk.close();
});

test("over plain HTTP from another machine, where browsers offer less, everything works too", async (t) => {
  const place = await makeContainer("/id");
  // A name that is not loopback's makes the page an insecure one; it is this machine all the same, and no site can have it.
  const elsewhere = await launch("--host-resolver-rules=MAP orrery.internal 127.0.0.1");
  t.after(() => elsewhere.close());
  const desk = await Desk.open(t, elsewhere, { endpoint: endpoint.replace("localhost", "orrery.internal") });
  const { page } = desk;
  await page.goto(`${desk.endpoint}/_explorer`);
  assert.equal(await page.evaluate(() => isSecureContext), false);
  assert.equal(await page.getByLabel("Account key").inputValue(), "", "the public key is not offered here");
  await page.getByLabel("Account key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Copy the connection string" }).click();
  await page.getByText("Copied the connection string").waitFor();
  await desk.goTo(`${place.hash}/items`);
  await page.getByRole("button", { name: "New item" }).click();
  await page.locator("[data-editor=Item] .cm-content").waitFor();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator("[data-count='1']").waitFor();
  await desk.close();
});
