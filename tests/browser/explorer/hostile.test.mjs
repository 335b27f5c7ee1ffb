// Content that means harm is shown as what it is: text.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call, Desk, launch, makeContainer, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const SCRIPT = `<script>document.title="taken"</script><img src=x onerror="document.title='taken'"><svg onload=alert(1)>`;
const NAMES = [SCRIPT.slice(0, 60).replaceAll("/", "_").replaceAll("#", ""), `quote " and ' and \` and $\{x}`, "emoji 👩‍🚀 ünï", "\u202egnitirw", "a\tb\nc", "%2e%2e%2f", "javascript:alert(1)"];

test("names with markup, quotes, emoji and controls are shown and reached", async (t) => {
  const place = await makeContainer("/tenant", { db: `db <b>"'😀 ${process.pid}`, coll: `<i>'"&amp;🚀` });
  for (const name of NAMES) await upsert(place, [1], { id: name, tenant: 1, [SCRIPT]: SCRIPT }).catch((error) => assert.fail(`${name}: ${error.message}`));
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.locator(`[data-count='${NAMES.length}']`).waitFor();
  await desk.picture("hostile-names");
  const count = await page.getByRole("option").count();
  assert.equal(count, NAMES.length);
  for (let index = 0; index < count; index += 1) {
    await page.getByRole("option").nth(index).click();
    const id = await page.getByRole("option").nth(index).locator(".item-id").innerText();
    await page.locator(".item-editor strong", { hasText: id.split(/[\t\n]/)[0] }).waitFor();
    await page.locator("[data-editor=Item] .cm-content").getByText("onerror").first().waitFor();
  }
  assert.equal(await page.title(), "Orrery explorer");
  assert.equal(await page.locator("main script, main img[src=x], main svg[onload]").count(), 0);

  await page.getByRole("tab", { name: "Query" }).click();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=done]").waitFor();
  await page.getByRole("columnheader", { name: /<script>/ }).waitFor();
  await page.getByRole("button", { name: "Tree" }).click();
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  await page.getByLabel("Rows as JSON").getByText("onerror").first().waitFor();
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.locator("dt", { hasText: "Physical partitions" }).waitFor();
  assert.equal(await page.title(), "Orrery explorer");
  await desk.close();
});

test("an item of 2 MB with one long line and one with deep nesting open, and scroll", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["huge"], { id: "huge", text: `<b>${"x".repeat(1_900_000)}</b>` });
  await upsert(place, ["deep"], `{"id":"deep","a":${"[".repeat(100)}1${"]".repeat(100)}}`);
  await upsert(place, ["wide"], { id: "wide", list: Array.from({ length: 60_000 }, (_, number) => number) });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  // Items of this size use up the budget of a second; the page waits and asks again.
  desk.expected.add(429);
  await desk.signIn(`${place.hash}/items`);
  for (const name of ["huge", "deep", "wide"]) {
    await page.getByRole("option", { name }).first().click();
    await page.locator("[data-editor=Item] .cm-content").getByText(`"${name}"`).waitFor();
  }
  await page.getByRole("tab", { name: "Query" }).click();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=done]").waitFor();
  await page.getByRole("gridcell", { name: /^<b>xxx/ }).first().click();
  await page.getByLabel("Chosen row").getByText("all 1,900,007 characters").waitFor();
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  await page.getByLabel("Rows as JSON").waitFor();
  await desk.picture("hostile-huge");
  await desk.close();
});

test("ids that no path can carry are reached all the same", async (t) => {
  const place = await makeContainer("/tenant");
  const names = [];
  for (const name of ["a/b", "a?b#c", "back\\slash"]) {
    // Whether such names are taken is up to the server; those that are must be shown and opened.
    await upsert(place, ["x"], { id: name, tenant: "x" }).then(
      () => names.push(name),
      () => undefined,
    );
  }
  await upsert(place, ["a/b #?"], { id: "plain", tenant: "a/b #?" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  for (const name of [...names, "plain"]) {
    await page.locator(".item-id", { hasText: name }).click();
    await page.locator("[data-editor=Item] .cm-content").getByText(JSON.stringify(name)).waitFor();
  }
  await desk.close();
});

test("the page's answers carry a policy that allows nothing from elsewhere", async () => {
  const found = await fetch(`${process.env.ORRERY_ENDPOINT.replace(/\/$/, "")}/_explorer`);
  assert.match(found.headers.get("content-security-policy"), /default-src 'self'/);
  assert.doesNotMatch(found.headers.get("content-security-policy"), /unsafe/);
  await assert.rejects(call("GET", "docs", "nothing", "dbs/nothing/colls/x/docs"));
});
