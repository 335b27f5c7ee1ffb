// Every flow of the explorer's data pages, as a person would go through them.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { call, Desk, endpoint, key, launch, makeContainer, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const folder = mkdtempSync(join(tmpdir(), "orrery-explorer-"));
const file = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

test("signing in is prefilled on loopback, refuses a wrong key, and offers what clients need", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await page.goto(`${endpoint}/_explorer`);
  assert.equal(await page.getByLabel("Account key").inputValue(), key);
  await desk.accessible("sign-in");
  await desk.picture("sign-in");
  desk.expected.add(401);
  await page.getByLabel("Account key").fill(Buffer.alloc(64, 7).toString("base64"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The key does not fit").waitFor();
  await page.getByLabel("Account key").fill("not base64!");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("An account key is base64").waitFor();
  // A connection string is as good as the key in it.
  await page.getByLabel("Account key").fill(`AccountEndpoint=${endpoint}/;AccountKey=${key};`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Connect", exact: true }).waitFor();
  for (const language of [".NET", "Java", "Python", "Go", "Rust", "JavaScript"]) {
    await page.getByRole("tab", { name: language, exact: true }).click();
    await page.getByLabel(`${language} code`, { exact: true }).getByText(endpoint).waitFor();
  }
  await desk.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy the connection string" }).click();
  await page.getByText("Copied the connection string").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `AccountEndpoint=${endpoint}/;AccountKey=${key};`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Download the certificate authority").click()]);
  assert.match(readFileSync(await download.path(), "utf8"), /BEGIN CERTIFICATE/);
  await desk.accessible("home");
  // The key stays in this tab: a reload finds it, another tab does not.
  await page.reload();
  await page.getByRole("heading", { name: "Connect", exact: true }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await desk.close();
});

test("a container is made with everything it can have, checked while typed, changed and deleted", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const db = `shop-${randomUUID().slice(0, 8)}`;
  await desk.signIn();
  await page.getByRole("button", { name: "New database" }).click();
  const name = page.getByLabel("Name", { exact: true });
  await name.fill("a/b");
  await page.getByText("A name cannot have").waitFor();
  await name.fill(db);
  await desk.accessible("new database");
  await page.getByRole("button", { name: "Create database" }).click();
  await page.getByRole("heading", { name: `New container in ${db}` }).waitFor();
  await name.fill("orders");
  await page.getByLabel("Partition key", { exact: true }).fill("tenant");
  await page.getByText("A path begins with a slash").waitFor();
  assert.ok(await page.getByRole("button", { name: "Create container" }).isDisabled());
  await page.getByLabel("Partition key", { exact: true }).fill("/address/tenant");
  await page.getByRole("button", { name: "Add a level" }).click();
  await page.getByLabel("Level 2", { exact: true }).fill("/user");
  await page.getByLabel("RU/s", { exact: true }).fill("401");
  await page.getByText("In steps of 100").waitFor();
  await page.getByLabel("RU/s", { exact: true }).fill("24000");
  await page.getByText("4 physical partitions, each with 6,000 RU/s").waitFor();
  await page.getByText("Time to live, unique keys, indexing").click();
  await page.getByRole("radio", { name: /^Default/ }).check();
  await page.getByLabel("Seconds to live").fill("0");
  await page.getByText("A whole number of seconds").waitFor();
  await page.getByLabel("Seconds to live").fill("86400");
  await page.getByLabel("Unique keys").fill("/email\n/a, /b");
  await desk.write("Indexing policy", '{"a":');
  await page.locator(".field.wrong").waitFor();
  await desk.write("Indexing policy", '{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/blob/*"}]}');
  await desk.accessible("new container");
  await desk.picture("new-container");
  await page.getByRole("button", { name: "Create container" }).click();
  await page.getByText("No items yet").waitFor();

  const made = await call("GET", "colls", `dbs/${db}/colls/orders`, `dbs/${db}/colls/orders`);
  assert.deepEqual(made.partitionKey, { paths: ["/address/tenant", "/user"], kind: "MultiHash", version: 2 });
  assert.equal(made.defaultTtl, 86400);
  assert.deepEqual(made.uniqueKeyPolicy.uniqueKeys, [{ paths: ["/email"] }, { paths: ["/a", "/b"] }]);
  assert.equal(made.indexingPolicy.excludedPaths[0].path, "/blob/*");

  await page.getByRole("tab", { name: "Settings" }).click();
  await page.locator("dt", { hasText: "Physical partitions" }).waitFor();
  assert.equal(await page.locator("dt:has-text('Physical partitions') + dd").innerText(), "4");
  await page.getByRole("radio", { name: /^Autoscale/ }).check();
  await page.getByLabel("Maximum RU/s").fill("30000");
  await page.getByRole("button", { name: "Save throughput" }).click();
  await page.getByText("Changed the throughput").waitFor();
  await page.getByRole("radio", { name: /^Off/ }).check();
  await desk.write("Indexing policy", '{"includedPaths":[{"path":"/*"}],"excludedPaths":[]}');
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByText("Saved the settings").waitFor();
  await page.locator("[data-index-progress='100']").waitFor();
  await desk.accessible("settings");
  await desk.picture("settings");
  const changed = await call("GET", "colls", `dbs/${db}/colls/orders`, `dbs/${db}/colls/orders`);
  assert.equal(changed.defaultTtl, undefined);
  const offers = await call("GET", "offers", "", "offers");
  const offer = offers.Offers.find((one) => one.offerResourceId === changed._rid);
  assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 30000);

  await page.getByRole("button", { name: "Delete container" }).click();
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete container" });
  assert.ok(await confirm.isDisabled());
  await page.getByLabel("Type its name to confirm").fill("orders");
  await confirm.click();
  await page.getByText("None yet. A container holds items").waitFor();
  await page.getByRole("button", { name: "Delete database" }).click();
  await page.getByLabel("Type its name to confirm").fill(db);
  await page.getByRole("dialog").getByRole("button", { name: "Delete database" }).click();
  await page.getByText(`Deleted the database ${db}`).waitFor();
  assert.equal(await page.getByRole("treeitem", { name: db }).count(), 0);
  await desk.close();
});

test("a database shares its throughput with its containers", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const db = `shared-${randomUUID().slice(0, 8)}`;
  await desk.signIn("#/new-database");
  await page.getByLabel("Name", { exact: true }).fill(db);
  await page.getByRole("radio", { name: /^Autoscale/ }).check();
  await page.getByText("1 physical partition, each with 1,000 RU/s").waitFor();
  await page.getByRole("button", { name: "Create database" }).click();
  await page.getByRole("heading", { name: `New container in ${db}` }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("small");
  await page.getByLabel("Partition key", { exact: true }).fill("/id");
  assert.ok(await page.getByRole("radio", { name: /^Shared/ }).isChecked());
  await page.getByRole("button", { name: "Create container" }).click();
  await page.getByText("No items yet").waitFor();
  await page.getByRole("treeitem", { name: db }).click();
  await page.getByRole("cell", { name: "shared" }).waitFor();
  await page.getByRole("heading", { name: "Shared throughput" }).waitFor();
  await desk.accessible("database");
  await desk.close();
});

test("items are listed by page, filtered, opened, edited, made and deleted; numbers keep all their digits", async (t) => {
  const place = await makeContainer("/city", { throughput: 24_000 });
  for (let number = 0; number < 12; number += 1) {
    await upsert(place, [`city ${number % 5}`], { id: `item ${number}`, city: `city ${number % 5}`, number });
  }
  await upsert(place, ["Rome"], '{"id":"exact","city":"Rome","big":12345678901234567890,"tiny":1.50}');
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.locator("[data-count='13'][data-done=true]").waitFor();
  await page.getByLabel("Filter").fill("c.number >= 10 ORDER BY c.number DESC");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='2']").waitFor();
  assert.deepEqual(await page.getByRole("option").locator(".item-id").allInnerTexts(), ["item 11", "item 10"]);
  await page.getByLabel("Filter").fill("c.number >");
  await page.keyboard.press("Enter");
  desk.expected.add(400);
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Filter").fill("c.id = 'exact'");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='1']").waitFor();
  await page.getByRole("option").first().click();
  await page.locator("[data-editor=Item] .cm-content").waitFor();
  const shown = await desk.read("Item");
  assert.match(shown, /"big": 12345678901234567[0-9]+/);
  await desk.picture("item");
  await desk.accessible("items");

  const text = '{"id":"exact","city":"Rome","note":';
  await desk.write("Item", text);
  await page.locator("[data-invalid]").waitFor();
  assert.ok(await page.getByRole("button", { name: "Save", exact: true }).isDisabled());
  await desk.write("Item", `${text}"edited"}`);
  // What is typed survives a look at another tab.
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.getByRole("tab", { name: "Items" }).click();
  await page.getByLabel("Filter").fill("c.id = 'exact'");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='1']").waitFor();
  await page.getByRole("option").first().click();
  await page.locator("[data-editor=Item] .cm-content").getByText("edited").waitFor();
  await page.locator("[data-editor=Item] .cm-content").click();
  await page.keyboard.press("Control+s");
  await page.getByText("Saved exact").waitFor();
  await page.locator("details.charge summary").click();
  await page.getByRole("rowheader", { name: "Total" }).waitFor();

  await page.getByRole("button", { name: "New item" }).click();
  await desk.write("Item", '{"id":"exact","city":"Rome"}');
  desk.expected.add(409);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("exists already").waitFor();
  await desk.write("Item", '{"id":"fresh","city":"Oslo"}');
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Saved fresh").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete item" }).click();
  await page.getByText("Deleted fresh").waitFor();
  await desk.close();
});

test("a conflict is shown as a difference and nothing is lost", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1", colour: "red", size: 1 });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  desk.expected.add(412);
  await desk.signIn(`${place.hash}/items`);
  await page.getByRole("option").first().click();
  await page.locator("[data-editor=Item] .cm-content").getByText("red").waitFor();
  await upsert(place, ["1"], { id: "1", colour: "blue", size: 1 });
  await desk.write("Item", '{"id":"1","colour":"red","size":2}');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator("[data-conflict]").waitFor();
  await page.getByLabel("The server's version").getByText("blue").waitFor();
  await page.getByLabel("Your version").getByText("2").waitFor();
  await desk.picture("conflict");
  await desk.accessible("conflict");
  await page.getByRole("button", { name: "Save mine over it" }).click();
  await page.getByText("Saved 1").waitFor();
  const kept = await call("GET", "docs", `dbs/${place.db}/colls/things/docs/1`, `dbs/${place.db}/colls/things/docs/1`, undefined, {
    "x-ms-documentdb-partitionkey": '["1"]',
  });
  assert.equal(kept.size, 2);
  await desk.close();
});

test("files are uploaded with progress, and what is refused is told", async (t) => {
  const place = await makeContainer("/tenant");
  const many = Array.from({ length: 300 }, (_, number) => ({ id: `u${number}`, tenant: `t${number % 7}` }));
  const files = [
    file("many.json", JSON.stringify(many)),
    file("lines.jsonl", '{"id":"l1","tenant":"x"}\n{"id":"l2","tenant":"é 😀"}\n{"id":7}\n'),
    file("broken.json", '[{"id":'),
  ];
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  desk.expected.add(400);
  await desk.signIn(`${place.hash}/items`);
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByLabel("Files").setInputFiles(files);
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  await page.locator("[data-upload=done]").waitFor({ timeout: 20_000 });
  await page.getByText("302 of 303 written, 2 failed").waitFor();
  await page.getByText("lines.jsonl, item 3").waitFor();
  await desk.accessible("upload");
  await desk.picture("upload");
  await page.getByRole("button", { name: "Close" }).click();
  // The list goes on by itself as its end comes into sight.
  await page.locator("[data-count='100'][data-done=false]").waitFor();
  await page.getByRole("listbox", { name: "Items" }).focus();
  const done = page.locator("[data-count='302'][data-done=true]");
  for (let step = 0; step < 50 && (await done.count()) === 0; step += 1) {
    await page.keyboard.press("End");
    await page.waitForTimeout(100);
  }
  await done.waitFor();
  await desk.close();
});

test("queries complete names, show rows in three forms, tell their price and plan, page, export and are remembered", async (t) => {
  const place = await makeContainer("/city", { throughput: 24_000 });
  for (let number = 0; number < 30; number += 1) {
    const city = `city ${number % 6}`;
    await upsert(place, [city], { id: `q${number}`, city, customer: { name: `n, "${number}"` }, total: number });
  }
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "");
  await page.keyboard.type("SELECT c.cust");
  await page.locator(".cm-tooltip-autocomplete").getByText("customer").waitFor();
  await desk.picture("completion");
  // Editors ignore keys that come too soon after the list appears.
  await page.waitForTimeout(150);
  await page.keyboard.press("Enter");
  await page.locator("[data-editor=Query] .cm-content").getByText("SELECT c.customer").waitFor();
  await desk.write("Query", "SELECT c.id, c.total, c.customer FROM c WHERE c.total >= @least ORDER BY c.total DESC");
  await page.getByLabel("Parameters").fill('{"@least": 10}');
  await page.getByLabel("Rows a page").selectOption("10");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=more]").waitFor();
  assert.equal(await page.getByRole("gridcell", { name: "q29" }).count(), 1);
  await page.getByRole("button", { name: "Next page" }).click();
  await page.locator("[data-run=more], [data-run=done]").getByText("20 rows").waitFor();
  await desk.accessible("query rows");
  await desk.picture("query-table");
  await page.getByRole("gridcell", { name: "q29" }).click();
  await page.getByLabel("Chosen row").getByText("customer").waitFor();
  await page.getByLabel("Close the row").click();
  await page.getByRole("button", { name: "Tree" }).click();
  await page.getByLabel("Rows as trees").getByText("total").first().waitFor();
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  await page.getByLabel("Rows as JSON").getByText('"q29"').waitFor();

  const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click()]);
  const lines = readFileSync(await csv.path(), "utf8").split("\r\n");
  assert.equal(lines[0], "id,total,customer");
  assert.equal(lines[1], 'q29,29,"{""name"":""n, \\""29\\""""}"');
  const [json] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export JSON" }).click()]);
  assert.equal(JSON.parse(readFileSync(await json.path(), "utf8")).length, 20);

  await page.getByRole("tab", { name: "Charge, metrics, plan" }).click();
  await page.getByRole("rowheader", { name: "Total", exact: true }).waitFor();
  await page.locator("[data-plan]").getByText("method:").waitFor();
  assert.ok((await page.locator("[data-metrics] tr").count()) > 5);
  await desk.accessible("query facts");
  await desk.picture("query-facts");

  await desk.write("Query", "SELECT VALUE c.id FROM c WHERE CONTAINS(c.city, 'city')");
  await page.getByLabel("Parameters").fill("");
  await page.getByLabel("Access").selectOption("index");
  await page.locator("[data-editor=Query] .cm-content").click();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("tab", { name: /1 advice/ }).click();
  await page.locator("[data-advice]").getByText("STARTSWITH").waitFor();
  assert.equal(await page.locator("[data-access]").innerText(), "index");

  desk.expected.add(400);
  await desk.write("Query", "SELEC nonsense");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=failed]").waitFor();
  await page.getByRole("alert").waitFor();
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("button", { name: /ORDER BY c.total DESC/ }).click();
  await page.locator("[data-editor=Query] .cm-content").getByText("ORDER BY c.total DESC").waitFor();
  await desk.accessible("history");
  await desk.close();
});

test("a query that runs is cancelled at once", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  // The answer is held back, as by a long query.
  let release = () => undefined;
  await page.route("**/docs", async (route) => {
    await new Promise((resolve) => (release = resolve));
    await route.continue().catch(() => undefined);
  });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=running]").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator("[data-run=cancelled]").waitFor();
  release();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=done]").waitFor();
  await desk.close();
});

test("procedures, triggers and functions are made, run with arguments, and deleted", async (t) => {
  const place = await makeContainer("/city");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/scripts`);
  await page.getByRole("button", { name: "New procedure" }).click();
  await page.getByLabel("Name", { exact: true }).fill("greet");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByLabel("Partition key", { exact: true }).fill('["Rome"]');
  await page.getByLabel("Arguments", { exact: true }).fill('["Ada"');
  await page.getByText("A JSON array is needed").waitFor();
  await page.getByLabel("Arguments", { exact: true }).fill('["Ada"]');
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByLabel("Result").getByText("Hello, Ada").waitFor();
  await page.getByLabel("Log").getByText("greeting Ada").waitFor();
  await desk.accessible("scripts");
  await desk.picture("scripts");
  desk.expected.add(400);
  await desk.write("Script", 'function greet() { throw new Error("no luck"); }');
  await page.locator("[data-editor=Script] .cm-content").click();
  await page.keyboard.press("Control+s");
  await page.locator("button:disabled", { hasText: /^Save$/ }).waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("alert").getByText("no luck").waitFor();

  await page.getByRole("button", { name: "New trigger" }).click();
  await page.getByLabel("Name", { exact: true }).fill("stamp");
  await page.getByLabel("Runs").selectOption("Pre");
  await page.getByRole("combobox", { name: /^On/ }).selectOption("Create");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("pre-trigger-include").waitFor();
  await page.getByRole("button", { name: "New function" }).click();
  await page.getByLabel("Name", { exact: true }).fill("double");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("udf.double(c.value)").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete script" }).click();
  await page.getByText("Deleted double").waitFor();
  const triggers = await call("GET", "triggers", `dbs/${place.db}/colls/things`, `dbs/${place.db}/colls/things/triggers`);
  assert.deepEqual(triggers.Triggers.map((one) => [one.id, one.triggerType, one.triggerOperation]), [["stamp", "Pre", "Create"]]);
  await desk.close();
});

test("when the server does not answer, nothing that was typed is lost", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.getByRole("button", { name: "New item" }).click();
  await desk.write("Item", '{"id":"precious"}');
  await page.route("**/docs", (route) => route.abort());
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("The server did not answer. Is it running?").waitFor();
  await page.unroute("**/docs");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Saved precious").waitFor();
  desk.problems = desk.problems.filter((problem) => !problem.includes("net::ERR_FAILED"));
  await desk.close();
});

test("everything works by keyboard, dark, and at 800 pixels", async (t) => {
  const place = await makeContainer("/id", { coll: "keys" });
  await upsert(place, ["1"], { id: "1", total: 3 });
  const desk = await Desk.open(t, browser, { viewport: { width: 800, height: 600 }, colorScheme: "dark" });
  const { page } = desk;
  await page.goto(`${endpoint}/_explorer`);
  await page.getByLabel("Account key").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("treeitem", { name: place.db }).waitFor();
  await page.locator("body").focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.keyboard.press("End");
  for (let step = 0; step < 60; step += 1) {
    if ((await page.evaluate(() => document.activeElement?.textContent ?? "")).includes("keys")) break;
    await page.keyboard.press("ArrowUp");
  }
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "Items", selected: true }).waitFor();
  await page.getByRole("option").first().waitFor();
  await page.getByRole("listbox", { name: "Items" }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("[data-editor=Item] .cm-content").waitFor();
  await desk.picture("800-dark-items");
  await desk.accessible("800 dark items");
  await page.getByRole("tab", { name: "Items", selected: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator("[data-editor=Query] .cm-content").waitFor();
  await page.keyboard.press("Control+Enter");
  await page.locator("[data-run=done]").waitFor();
  await desk.picture("800-dark-query");
  await desk.accessible("800 dark query");
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(overflow, 0, "the page does not scroll sideways");
  await page.getByRole("button", { name: "Light" }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await page.reload();
  await page.locator(".desk").waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await desk.close();
});
