// What comes sooner, later or in another order than usual: keys before the page is drawn, answers after newer ones.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { call, Desk, launch, makeContainer, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

/** Does something the moment an element is drawn for the first time, before the page gets to do anything else. */
const atFirstSight = (page, selector, act) =>
  page.addInitScript(`new MutationObserver((_, observer) => {
    if (document.querySelector(${JSON.stringify(selector)}) === null) return;
    observer.disconnect();
    (${act})();
  }).observe(document, { childList: true, subtree: true });`);

/** Makes the next answer from an address come late: it is what the server said at once, and is told when it is let go. */
async function delayNext(page, where) {
  let reached, letGo;
  const isReached = new Promise((resolve) => (reached = resolve));
  const isLetGo = new Promise((resolve) => (letGo = resolve));
  const late = async (route) => {
    const response = await route.fetch();
    reached();
    await isLetGo;
    await route.fulfill({ response });
  };
  await page.route(where, late, { times: 1 });
  return { isReached, letGo };
}

/** Makes a container without the page. */
const addContainer = (db, id) =>
  call("POST", "colls", `dbs/${db}`, `dbs/${db}/colls`, { id, partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } });

test("arrow keys that come faster than the page is drawn lead from tab to tab", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await page.getByRole("tab", { name: "Query", selected: true }).waitFor();
  // All in one breath, so that nothing can be drawn in between.
  await page.evaluate(() => {
    const items = document.querySelector("[role=tab][data-tab=items]");
    items.focus();
    items.click();
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"].forEach(press);
  });
  await page.getByRole("tab", { name: "Scripts", selected: true }).waitFor();
  assert.ok(await page.getByRole("tab", { name: "Scripts" }).evaluate((tab) => tab === document.activeElement));
  await desk.close();
});

test("what was chosen is shown before the next key can be pressed", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await page.getByRole("tab", { name: "Query", selected: true }).waitFor();
  const chosen = await page.evaluate(async () => {
    document.querySelector("[role=tab][data-tab=settings]").click();
    // No event comes in before all promises that can go on have done so.
    for (let turn = 0; turn < 20; turn += 1) await null;
    return document.querySelector("[role=tab][aria-selected=true]").dataset.tab;
  });
  assert.equal(chosen, "settings");
  await desk.close();
});

test("a key that is pressed at first sight of the page is heard", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await atFirstSight(page, ".desk", () => dispatchEvent(new KeyboardEvent("keydown", { key: "?", cancelable: true })));
  await desk.signIn();
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await desk.close();
});

test("nobody is told that there are no items before they were asked for", async (t) => {
  const place = await makeContainer("/id");
  await upsert(place, ["1"], { id: "1" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await atFirstSight(page, "[data-empty]", () => (window.wasEmpty = true));
  await desk.signIn(`${place.hash}/items`);
  await page.getByRole("option").first().waitFor();
  assert.equal(await page.evaluate(() => window.wasEmpty), undefined);
  await desk.close();
});

test("a list of containers that comes late does not replace a newer one", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`#/dbs/${place.db}/colls/later/settings`);
  await page.getByRole("heading", { name: "No such container" }).waitFor();
  const list = `**/dbs/${place.db}/colls`;
  const late = await delayNext(page, list);
  await page.getByRole("button", { name: "Refresh" }).click();
  await late.isReached;
  await addContainer(place.db, "later");
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("tab", { name: "Settings", selected: true }).waitFor();
  const told = page.waitForResponse(list);
  late.letGo();
  await (await told).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100))));
  assert.equal(await page.getByRole("heading", { name: "No such container" }).count(), 0);
  await desk.close();
});

test("what comes after signing out is nobody's", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn();
  await page.locator("[role=treeitem], .tree, .grow").first().waitFor();
  const late = await delayNext(page, "**/dbs");
  await page.getByRole("button", { name: "Refresh" }).click();
  await late.isReached;
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  const told = page.waitForResponse("**/dbs");
  late.letGo();
  await (await told).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100))));
  assert.equal(await page.locator("[data-notice=failed]").count(), 0);
  await desk.close();
});

test("a container keeps its name in a list that grows", async (t) => {
  // The first in the list comes late.
  const first = await makeContainer("/id", { db: `a-${randomUUID().slice(0, 8)}` });
  const second = await makeContainer("/id", { db: `b-${randomUUID().slice(0, 8)}` });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await page.goto(`${desk.endpoint}/_explorer#/jobs`);
  const held = await desk.hold(() => true, `**/dbs/${first.db}/colls`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Copy a container" }).click();
  const option = (place) => page.getByLabel("From", { exact: true }).locator("option", { hasText: place.db });
  await option(second).waitFor({ state: "attached" });
  const before = await option(second).getAttribute("value");
  await held.letGo();
  await option(first).waitFor({ state: "attached" });
  assert.equal(await option(second).getAttribute("value"), before);
  await desk.close();
});

test("a user who has left a form stays away when it is done", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const db = `left-${randomUUID().slice(0, 8)}`;
  await desk.signIn("#/new-database");
  await page.getByLabel("Name", { exact: true }).fill(db);
  const made = await desk.hold((request) => request.method() === "POST", "**/dbs");
  await page.getByRole("button", { name: "Create database" }).click();
  await made.isReached(1);
  await desk.goTo("#/jobs");
  await made.letGo();
  await page.getByText(`Created the database ${db}`).waitFor();
  assert.equal(await page.evaluate(() => location.hash), "#/jobs");
  await desk.close();
});
