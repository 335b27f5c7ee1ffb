// Items and queries, as a person would go through them.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { call, Desk, eventually, fill, launch, makeContainer, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const folder = mkdtempSync(join(tmpdir(), "orrery-explorer-"));
const file = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

test("items are listed by page, filtered, opened, edited, made and deleted; numbers keep all their digits", async (t) => {
  const place = await makeContainer("/city", { throughput: 24_000 });
  for (let number = 0; number < 12; number += 1) {
    await upsert(place, [`city ${number % 5}`], { id: `item ${number}`, city: `city ${number % 5}`, number });
  }
  await upsert(place, ["Rome"], '{"id":"exact","city":"Rome","big":9007199254740993}');
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.locator("[data-count='13'][data-done=true]").waitFor();
  await page.getByLabel("Filter").fill("c.number >= 10 ORDER BY c.number DESC");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='2']").waitFor();
  await eventually(async () => assert.deepEqual(await page.getByRole("option").locator(".item-id").allInnerTexts(), ["item 11", "item 10"]));
  desk.expected.add(400);
  await page.getByLabel("Filter").fill("c.number >");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Filter").fill("c.id = 'exact'");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='1']").waitFor();
  await page.getByRole("option").first().click();
  await page.locator("[data-editor=Item] .cm-content").waitFor();
  await eventually(async () => assert.match(await desk.read("Item"), /"big": 9007199254740993/));
  await desk.picture("item");
  await desk.accessible("items");

  await page.getByRole("tab", { name: "Query" }).click();
  await desk.write("Query", "SELECT c.id, c.big FROM c WHERE c.id = 'exact'");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("gridcell", { name: "9007199254740993" }).click();
  await page.getByLabel("Chosen row").getByText("9007199254740993").waitFor();
  await page.getByRole("tab", { name: "Items" }).click();
  await page.locator("[data-count='13']").waitFor();
  await page.locator(".item-id", { hasText: "exact" }).click();
  await page.locator("[data-editor=Item] .cm-content").waitFor();

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
  await page.locator("[data-upload=done]").waitFor();
  await page.getByText("302 of 303 written, 2 failed").waitFor();
  await page.getByText("lines.jsonl, item 3").waitFor();
  await desk.accessible("upload");
  await desk.picture("upload");
  await page.getByRole("button", { name: "Close" }).click();
  // The list goes on by itself as its end comes into sight.
  await page.locator("[data-count='100'][data-done=false]").waitFor();
  await page.getByRole("listbox", { name: "Items" }).focus();
  const done = page.locator("[data-count='302'][data-done=true]");
  await eventually(async () => {
    await page.keyboard.press("End");
    assert.equal(await done.count(), 1);
  });
  await desk.close();
});

test("the list goes on by itself where its end was reached during a reload", async (t) => {
  const place = await makeContainer("/city", { throughput: 10_000 });
  await fill(place, "Rome", Array.from({ length: 120 }, (_, number) => ({ id: `r${number}`, city: "Rome" })));
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.locator("[data-count='100'][data-done=false]").waitFor();
  const list = await desk.hold((request) => request.method() === "POST");
  await page.getByRole("button", { name: "Reload" }).click();
  await list.isReached(1);
  await page.getByRole("listbox", { name: "Items" }).focus();
  await page.keyboard.press("End");
  await page.locator("[role=option].active[aria-posinset='100']").waitFor();
  await list.letGo();
  await page.locator("[data-count='120'][data-done=true]").waitFor();
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
  await page.getByRole("gridcell", { name: "q29" }).waitFor();
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
  await page.locator("[data-plan-graph]").getByText("Evaluate").waitFor();
  await page.getByText("Plan of the first page as text").click();
  await page.locator("[data-plan]").getByText("method:").waitFor();
  await eventually(async () => assert.ok((await page.locator("[data-metrics] tr").count()) > 5));
  await desk.accessible("query facts");
  await desk.picture("query-facts");

  await desk.write("Query", "SELECT VALUE c.id FROM c WHERE CONTAINS(c.city, 'city')");
  await page.getByLabel("Parameters").fill("");
  await page.getByLabel("Access").selectOption("index");
  await page.locator("[data-editor=Query] .cm-content").click();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("tab", { name: /1 advice/ }).click();
  await page.locator("[data-advice]").getByText("STARTSWITH").waitFor();
  await eventually(async () => assert.equal(await page.locator("[data-access]").innerText(), "index"));

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

test("names are completed although the first look at the items failed", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1", customer: "Ada" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  desk.expected.add(503);
  await desk.signIn(`${place.hash}/query`);
  await page.route("**/docs", (route) => route.fulfill({ status: 503, body: '{"code":"ServiceUnavailable","message":"busy"}' }));
  await desk.write("Query", "");
  const refused = page.waitForResponse("**/docs");
  await page.keyboard.type("SELECT c.cust");
  await (await refused).finished();
  await page.unrouteAll();
  await eventually(async () => {
    await desk.write("Query", "");
    await page.keyboard.type("SELECT c.cust");
    await page.locator(".cm-tooltip-autocomplete").getByText("customer").waitFor({ timeout: 1000 });
  });
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

test("when the server does not answer, nothing that was typed is lost", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.locator("[data-count='0'][data-done=true]").waitFor();
  await page.getByRole("button", { name: "New item" }).click();
  await desk.write("Item", '{"id":"precious"}');
  await page.route("**/docs", (route) => route.abort());
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator(".item-editor").getByText("The server did not answer. Is it running?").waitFor();
  await page.unroute("**/docs");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Saved precious").waitFor();
  desk.problems = desk.problems.filter((problem) => !problem.includes("net::ERR_FAILED"));
  await desk.close();
});

test("what is typed while an item is saved stays, and the next save goes over the first", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1", colour: "red" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.getByRole("option").first().click();
  await page.locator("[data-editor=Item] .cm-content").getByText("red").waitFor();
  await desk.write("Item", '{"id":"1","colour":"blue"}');
  const put = await desk.hold((request) => request.method() === "PUT");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await put.isReached(1);
  await desk.write("Item", '{"id":"1","colour":"blue","size":2}');
  await put.letGo();
  await page.getByText("Saved 1").waitFor();
  await page.locator("button:enabled", { hasText: /^Save$/ }).waitFor();
  assert.equal(await desk.read("Item"), '{"id":"1","colour":"blue","size":2}');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator("[data-editor=Item] .cm-content").getByText("_etag").waitFor();
  assert.match(await desk.read("Item"), /"size": 2/);
  assert.equal(await page.locator("[data-conflict]").count(), 0);

  await page.getByRole("button", { name: "New item" }).click();
  await desk.write("Item", '{"id":"fresh"}');
  const post = await desk.hold((request) => request.postData() === '{"id":"fresh"}');
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await post.isReached(1);
  await desk.write("Item", '{"id":"fresh","size":3}');
  await post.letGo();
  await page.locator("button:enabled", { hasText: /^Save$/ }).waitFor();
  await eventually(async () => assert.equal(await desk.read("Item"), '{"id":"fresh","size":3}'));
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator("[data-editor=Item] .cm-content").getByText("_etag").waitFor();
  assert.match(await desk.read("Item"), /"size": 3/);
  await desk.close();
});

test("further pages belong to the query that was run, whatever is in the fields", async (t) => {
  const place = await makeContainer("/city");
  for (let number = 0; number < 30; number += 1) await upsert(place, ["Rome"], { id: `q${number}`, city: "Rome", total: number });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const sent = [];
  page.on("request", (request) => {
    const body = request.postData() ?? "";
    if (body.includes("@least")) sent.push(body);
  });
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "SELECT c.total, @big AS big FROM c WHERE c.total >= @least");
  await page.getByLabel("Parameters").fill('{"@least": 5, "big": 9007199254740993}');
  await page.getByLabel("Rows a page").selectOption("10");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=more]").getByText("10 rows").waitFor();
  assert.match(sent[0], /"value":9007199254740993[,}]/, "numbers keep all their digits");

  await page.getByLabel("Parameters").fill('{"@least": 29, "@big": 1}');
  await page.getByRole("button", { name: "Next page" }).click();
  await page.locator("[data-run=more]").getByText("20 rows").waitFor();
  await page.getByLabel("Parameters").fill('{"@least": ');
  await page.getByRole("button", { name: "All rows" }).click();
  await page.locator("[data-run=done]").getByText("25 rows").waitFor();
  assert.ok(sent.length >= 3);
  assert.deepEqual([...new Set(sent)], [sent[0]]);
  await desk.close();
});

test("a query that is run again takes the place of the first, and one that is left is given up", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "SELECT c.id FROM c");
  const held = await desk.hold((request) => request.postData()?.includes("SELECT c.id FROM c") ?? false);
  await page.keyboard.press("Control+Enter");
  await held.isReached(1);
  await page.keyboard.press("Control+Enter");
  await held.isReached(2);
  assert.equal(await page.locator("[data-run]").getAttribute("data-run"), "running");
  const left = page.waitForEvent("requestfailed", (request) => request === held.waiting[1].request);
  await page.getByRole("tab", { name: "Items" }).click();
  await left;
  await held.letGo();
  await desk.close();
});
