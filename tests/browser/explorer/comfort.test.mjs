// What makes the explorer pleasant: answers that are true of this server, drafts that are seen, several queries, several items.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { call, Desk, eventually, launch, makeContainer, serve, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const editor = (page) => page.locator("[data-editor=Query]:visible .cm-content");

test("a new container is told what its throughput means on this server", async (t) => {
  const desk = await Desk.open(t, browser, { endpoint: await serve(t, ["--partition-throughput", "2000"]) });
  const { page } = desk;
  await desk.signIn("#/new-database");
  await page.getByLabel("Name", { exact: true }).fill("small");
  await page.getByRole("button", { name: "Create database" }).click();
  await page.getByRole("heading", { name: "New container in small" }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("parts");
  await page.getByLabel("Partition key", { exact: true }).fill("/id");
  const meaning = page.locator("[data-meaning]");
  for (const [units, words] of [["2000", "1 physical partition with 2,000 RU/s"], ["2500", "3 physical partitions, each with 833 RU/s"]]) {
    await page.getByLabel("RU/s", { exact: true }).fill(units);
    await meaning.getByText(words).waitFor();
  }
  await page.getByRole("button", { name: "Create container" }).click();
  await page.getByText("No items yet").waitFor();
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.locator(".facts-list > div", { hasText: "Physical partitions" }).getByText("3", { exact: true }).waitFor();
  await desk.close();
});

test("columns stand in the order of SELECT, whatever the first rows lack, and charges have two decimals", async (t) => {
  const place = await makeContainer("/city");
  // Groups without a value come first.
  await upsert(place, ["Rome"], { id: "1", city: "Rome" });
  await upsert(place, ["Rome"], { id: "2", city: "Rome", zone: "north" });
  await upsert(place, ["Oslo"], { id: "3", city: "Oslo", zone: "south" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "SELECT c.zone, COUNT(1) AS n, c._ts > 0 AS _late, c.city FROM c GROUP BY c.city, c._ts > 0, c.zone");
  await page.keyboard.press("Control+Enter");
  await page.locator("[data-run=done]").getByText("3 rows").waitFor();
  await eventually(async () => assert.deepEqual(await page.getByRole("columnheader").allInnerTexts(), ["#", "zone", "n", "_late", "city"]));
  assert.match(await page.locator("[data-run=done]").innerText(), /3 rows, [\d,]+\.\d\d RU in/);
  await page.getByRole("tab", { name: "Charge, metrics, plan" }).click();
  const steps = page.locator("[data-plan-graph] li");
  await eventually(async () => assert.match((await steps.last().innerText()).replace(/\s+/g, " "), /^Evaluate 3 rows/));
  await desk.close();
});

test("completion offers the container's own properties first, with the name that the query has for its items", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1", counter: 1, "odd name": 2 });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "SELECT  FROM orders o");
  await page.keyboard.press("Control+Home");
  for (let step = 0; step < "SELECT ".length; step += 1) await page.keyboard.press("ArrowRight");
  await page.keyboard.type("co");
  const list = page.locator(".cm-tooltip-autocomplete li");
  await list.getByText("counter").waitFor();
  // In front of COUNT, CONTAINS and COS, which begin with the same letters.
  await eventually(async () => assert.match(await list.first().innerText(), /^counter/));
  await list.getByText("counter").click();
  await eventually(async () => assert.equal(await editor(page).innerText(), "SELECT o.counter FROM orders o"));
  await desk.write("Query", "SELECT ");
  await page.keyboard.type("c.odd");
  await list.getByText("odd name").click();
  await eventually(async () => assert.equal(await editor(page).innerText(), 'SELECT c["odd name"]'));
  await desk.close();
});

test("a syntax error is underlined where it is, until the text is another", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  desk.expected.add(400);
  await desk.signIn(`${place.hash}/query`);
  const marked = page.locator("[data-editor=Query] .cm-lintRange-error");
  for (const [text, wrong] of [["SELECT '😀' FROM c WHERE GROUP", "GROUP"], ["SELECT * FROM c WHERE c.n >", ">"], ["SELEC * FROM c", "SELEC"]]) {
    await desk.write("Query", text);
    await page.keyboard.press("Control+Enter");
    await page.locator("[data-run=failed]").waitFor();
    await eventually(async () => assert.equal((await marked.allInnerTexts()).join(""), wrong));
    await desk.append("Query", " ");
    await eventually(async () => assert.equal(await marked.count(), 0));
  }
  await desk.close();
});

test("several queries are open, each with its rows, and are kept; one can be saved under a name", async (t) => {
  const place = await makeContainer("/id");
  for (const id of ["a", "b", "c"]) await upsert(place, [id], { id });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const rows = page.locator("[data-run]:visible");
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "SELECT c.id FROM c");
  await page.keyboard.press("Control+Enter");
  await rows.getByText("3 rows").waitFor();
  await page.getByRole("button", { name: "New query" }).click();
  await page.getByRole("tab", { name: "Untitled 2", selected: true }).waitFor();
  await editor(page).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("SELECT VALUE COUNT(1) FROM c");
  await page.keyboard.press("Control+Enter");
  await rows.getByText("1 row,").waitFor();
  await page.getByRole("tab", { name: "Untitled 1" }).click();
  await rows.getByText("3 rows").waitFor();
  await desk.accessible("several queries");

  await page.getByRole("button", { name: "Save query" }).filter({ visible: true }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("all ids");
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "all ids", selected: true }).waitFor();
  await editor(page).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText(" WHERE c.id > 'a'");
  await page.getByRole("tab", { name: "all ids not saved" }).waitFor();
  await page.keyboard.press("Control+s");
  await page.getByRole("tab", { name: "all ids", exact: true }).waitFor();

  // Closed, it is opened again from those that were saved; a reload loses nothing.
  await page.getByRole("button", { name: "Close this query" }).click();
  await page.getByRole("tab", { name: "Untitled 2", selected: true }).waitFor();
  await page.reload();
  await eventually(async () => assert.equal(await editor(page).innerText(), "SELECT VALUE COUNT(1) FROM c"));
  await page.getByRole("tab", { name: "Saved" }).click();
  await desk.accessible("saved queries");
  await page.getByRole("button", { name: /^all ids/ }).click();
  await page.getByRole("tab", { name: "all ids", selected: true }).waitFor();
  await eventually(async () => assert.equal(await editor(page).innerText(), "SELECT c.id FROM c WHERE c.id > 'a'"));
  await desk.close();
});

test("several items are chosen by mouse and keyboard and deleted together", async (t) => {
  const place = await makeContainer("/city");
  for (let number = 0; number < 8; number += 1) await upsert(place, ["Rome"], { id: `i${number}`, city: "Rome" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  desk.expected.add(404);
  await desk.signIn(`${place.hash}/items`);
  await page.locator("[data-count='8'][data-done=true]").waitFor();
  await page.getByLabel("Filter").fill("ORDER BY c.id");
  await page.keyboard.press("Enter");
  const options = page.getByRole("option");
  await eventually(async () => assert.deepEqual(await page.locator(".item-id").allInnerTexts(), ["i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"]));
  await options.nth(1).click({ modifiers: ["Control"] });
  await options.nth(3).click({ modifiers: ["Shift"] });
  await page.locator("[data-chosen='3']").waitFor();
  await options.nth(6).locator(".tick").click();
  await page.locator("[data-chosen='4']").waitFor();
  await page.getByRole("listbox", { name: "Items" }).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Space");
  await page.locator("[data-chosen='5']").waitFor();
  await page.keyboard.press("Space");
  await page.locator("[data-chosen='4']").waitFor();
  await desk.accessible("chosen items");
  // One of them is deleted by another client meanwhile.
  const link = `dbs/${place.db}/colls/things/docs/i2`;
  await call("DELETE", "docs", link, link, undefined, { "x-ms-documentdb-partitionkey": '["Rome"]' });
  await page.getByRole("button", { name: "Delete chosen" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete 4 items" }).click();
  await page.getByText("Deleted 4 items").waitFor();
  await eventually(async () => assert.deepEqual(await page.locator(".item-id").allInnerTexts(), ["i0", "i4", "i5", "i7"]));
  assert.equal(await page.locator("[data-chosen]").count(), 0);
  await page.getByRole("listbox", { name: "Items" }).focus();
  await page.keyboard.press("Control+a");
  await page.locator("[data-chosen='4']").waitFor();
  await desk.close();
});

test("drafts are marked where they are", async (t) => {
  const place = await makeContainer("/id");
  for (const id of ["a", "b"]) await upsert(place, [id], { id });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  const rowOf = (id) => page.getByRole("option").filter({ has: page.locator(".item-id", { hasText: id }) });
  await rowOf("a").click();
  await desk.write("Item", '{"id":"a","note":"typed"}');
  await page.locator(".item-editor").getByText("not saved").waitFor();
  await rowOf("b").click();
  await rowOf("a").getByText("not saved").waitFor();
  assert.equal(await rowOf("b").getByText("not saved").count(), 0);
  await page.locator("[role=treeitem][aria-selected=true][aria-description]").waitFor();
  await rowOf("a").click();
  await page.locator("[data-editor=Item] .cm-content").getByText("typed").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved a").waitFor();
  await eventually(async () => assert.equal(await page.getByText("not saved").count(), 0));
  await eventually(async () => assert.equal(await page.locator("[role=treeitem][aria-description]").count(), 0));
  await desk.close();
});

test("the partition key is changed in Settings, and states have colours of their own", async (t) => {
  const place = await makeContainer("/region", { coll: "orders" });
  await upsert(place, ["south"], { id: "1", region: "south", customer: "c1" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/settings`);
  await page.getByRole("button", { name: "Change the partition key" }).click();
  const dialog = page.getByRole("dialog");
  const change = dialog.getByRole("button", { name: "Change the partition key" });
  await dialog.getByText("This is the key that it has").waitFor();
  assert.ok(await change.isDisabled());
  await dialog.getByLabel("Partition key").fill("/customer");
  await change.click();
  await page.locator("[data-state=completed]", { hasText: place.db }).waitFor();
  const { partitionKey } = await call("GET", "colls", `dbs/${place.db}/colls/orders`, `dbs/${place.db}/colls/orders`);
  assert.deepEqual(partitionKey.paths, ["/customer"]);

  // The page knows the container that has taken the place of the first.
  await desk.goTo(`${place.hash}/items`);
  await page.getByText("key /customer").waitFor();

  desk.expected.add(400);
  const colourOf = (state) => page.locator(`[data-run=${state}] .status`).evaluate((status) => getComputedStyle(status).backgroundColor);
  await desk.goTo(`${place.hash}/query`);
  await editor(page).waitFor();
  const docs = await desk.hold((request) => request.method() === "POST");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=running]").waitFor();
  const colours = [await colourOf("running")];
  await docs.isReached(1);
  await docs.letGo();
  await page.locator("[data-run=done]").waitFor();
  colours.push(await colourOf("done"));
  await desk.write("Query", "SELEC");
  await page.keyboard.press("Control+Enter");
  await page.locator("[data-run=failed]").waitFor();
  colours.push(await colourOf("failed"));
  assert.equal(new Set(colours).size, 3, `${colours}`);
  await desk.close();
});

test("a key under which items collide is told, and not offered", async (t) => {
  const place = await makeContainer("/city");
  for (let number = 0; number < 30; number += 1) {
    // The same ids in two cities, which lie in one zone.
    for (const city of ["Rome", "Oslo"]) await upsert(place, [city], { id: `i${number}`, city, zone: `z${number % 3}`, customer: `${city} ${number}` });
  }
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/advisor`);
  await page.getByLabel("Candidate keys").fill("/zone\n/customer");
  await page.getByRole("button", { name: "Compare keys" }).click();
  const card = page.locator("[data-candidate='/zone']");
  await card.locator("[data-finding=collides].against").getByText("a rekey to it is refused").waitFor();
  await card.getByText("The container cannot be given this key").waitFor();
  assert.equal(await card.getAttribute("data-verdict"), "collides");
  assert.equal(await card.getByRole("button").count(), 0);
  await page.getByRole("button", { name: "Change the partition key to /customer" }).waitFor();
  await desk.accessible("a collision");
  await desk.picture("advisor-collides");
  await desk.close();
});

test("the heat map names its partitions and times", async (t) => {
  const place = await makeContainer("/id", { throughput: 24_000 });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/partitions`);
  await page.locator("[data-partitions='4']").waitFor();
  const labels = page.locator(".axis-left li");
  await eventually(async () => assert.deepEqual(await labels.allInnerTexts(), ["partition 0", "partition 1", "partition 2", "partition 3"]));
  // Each label stands at the middle of its band.
  const canvas = await page.locator(".heat canvas").boundingBox();
  for (const [place, box] of (await Promise.all((await labels.all()).map((label) => label.boundingBox()))).entries()) {
    const middle = (box.y + box.height / 2 - canvas.y) / canvas.height;
    assert.ok(Math.abs(middle - (place + 0.5) / 4) < 0.02, `label ${place} is at ${middle}`);
  }
  assert.equal(await page.locator(".axis-below li").count(), 5);
  await page.getByRole("button", { name: "Split partition 1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Split", exact: true }).click();
  await eventually(async () => assert.deepEqual(await labels.allInnerTexts(), ["partition 0", "partition 4", "partition 5", "partition 2", "partition 3"]));
  await desk.close();
});

test("a phone shows one thing at a time, and all can be reached", async (t) => {
  const coll = `pocket-${randomUUID().slice(0, 8)}`;
  const place = await makeContainer("/id", { coll });
  await upsert(place, ["1"], { id: "1", total: 3 });
  const desk = await Desk.open(t, browser, { viewport: { width: 420, height: 800 } });
  const { page } = desk;
  await desk.signIn(`#/dbs/${place.db}`);
  await page.getByRole("button", { name: "Databases" }).click();
  const entry = page.getByRole("treeitem", { name: coll, exact: true });
  await entry.click();
  await page.getByRole("tab", { name: "Items", selected: true }).waitFor();
  await eventually(async () => assert.ok((await page.locator(".side").boundingBox()).x < -100, "the tree has gone aside"));
  await page.getByRole("option").first().click();
  await page.locator("[data-editor=Item] .cm-content").getByText("total").waitFor();
  assert.ok(!(await page.getByRole("listbox", { name: "Items", includeHidden: true }).isVisible()));
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("listbox", { name: "Items" }).waitFor();
  // The keyboard brings the tree back.
  await page.locator("body").press("t");
  await eventually(async () => assert.ok((await page.locator(".side").boundingBox()).x >= 0, "the tree is there again"));
  await page.keyboard.press("Enter");
  await desk.close();
});
