// Every page at the width of a desk and of a phone, light and dark: nothing is cut off sideways, nobody is shut out. The pictures
// are kept as build output, for people to look at.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call, callOf, Desk, endpoint, eventually, launch, makeContainer, serve, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const SIZES = [
  { name: "1280-light", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "1280-dark", viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  { name: "420-light", viewport: { width: 420, height: 860 }, colorScheme: "light" },
  { name: "420-dark", viewport: { width: 420, height: 860 }, colorScheme: "dark" },
];
const QUERY = "SELECT c.tenant, COUNT(1) AS orders, SUM(c.total) AS total FROM c WHERE c.total > 20 GROUP BY c.tenant";

/** A shop with something to see on every page. */
async function shop() {
  const place = await makeContainer("/tenant", { coll: "orders", throughput: 12_000 });
  const link = `dbs/${place.db}/colls/${place.coll}`;
  await call("POST", "orrery", `_orrery/${link}/workload`, `_orrery/${link}/workload`, { action: "start" });
  for (let number = 0; number < 60; number += 1) {
    const tenant = number % 3 === 0 ? "contoso" : `tenant-${number % 7}`;
    const lines = [{ article: `a-${number % 11}`, pieces: (number % 4) + 1 }];
    await upsert(place, [tenant], { id: `order-${String(number).padStart(4, "0")}`, tenant, customer: `c-${number % 13}`, total: number * 1.25, lines });
  }
  const body = 'function greet(name) {\n  getContext().getResponse().setBody("Hello, " + name);\n}\n';
  await call("POST", "sprocs", link, `${link}/sprocs`, { id: "greet", body });
  // One job that is over and one that goes on; each needs containers of its own.
  for (const [from, into, mode] of [["orders", "archive", "offline"], ["carts", "carts-by-user", "online"]]) {
    for (const id of [from, into].filter((id) => id !== "orders")) {
      const partitionKey = { paths: ["/customer"], kind: "Hash", version: 2 };
      await call("POST", "colls", `dbs/${place.db}`, `dbs/${place.db}/colls`, { id, partitionKey });
    }
    const [source, target] = [from, into].map((container) => ({ database: place.db, container }));
    await call("POST", "orrery", "_orrery/jobs", "_orrery/jobs", { kind: "copy", source, target, mode, completesItself: false });
  }
  return place;
}

/** What there is to see at each address: what to wait for, and what to do before the picture is taken. */
const pages = (place) => [
  ["connect", "#/", (page) => page.getByLabel("connection string", { exact: true }).waitFor()],
  ["database", `#/dbs/${place.db}`, (page) => page.getByRole("link", { name: "orders" }).waitFor()],
  ["new-container", `#/dbs/${place.db}/new-container`, (page) => page.locator("[data-meaning]").getByText("1 physical partition").waitFor()],
  [
    "items",
    `${place.hash}/items`,
    async (page) => {
      await page.getByRole("option").nth(1).waitFor();
      await page.getByRole("listbox").focus();
      for (const key of ["ArrowDown", "ArrowDown", "Space", "ArrowDown", "Space"]) await page.keyboard.press(key);
      await page.locator("[data-chosen='2']").waitFor();
    },
  ],
  [
    "item",
    `${place.hash}/items`,
    async (page) => {
      await page.getByRole("option").first().click();
      await page.locator("[data-editor=Item] .cm-content").getByText("tenant").first().waitFor();
    },
  ],
  [
    "query",
    `${place.hash}/query`,
    async (page, desk) => {
      await desk.write("Query", QUERY);
      await page.keyboard.press("Control+Enter");
      await page.locator("[data-run=done]").waitFor();
      await page.getByRole("gridcell", { name: "contoso" }).waitFor();
    },
  ],
  [
    "plan",
    undefined,
    async (page) => {
      await page.getByRole("tab", { name: "Charge, metrics, plan" }).click();
      await page.locator("[data-plan-graph]").waitFor();
    },
  ],
  [
    "scripts",
    `${place.hash}/scripts`,
    async (page) => {
      await page.getByRole("button", { name: "greet", exact: true }).click();
      await page.locator("[data-editor=Script] .cm-content").getByText("greet").first().waitFor();
    },
  ],
  ["settings", `${place.hash}/settings`, (page) => page.getByRole("button", { name: "Change the partition key" }).waitFor()],
  [
    "rekey",
    undefined,
    async (page) => {
      await page.getByRole("button", { name: "Change the partition key" }).click();
      await page.getByRole("dialog").waitFor();
    },
    (page) => page.keyboard.press("Escape"),
  ],
  [
    "partitions",
    `${place.hash}/partitions`,
    async (page) => {
      // What is hot is counted over a minute, and that of the shop's making may be over.
      await eventually(async () => {
        await upsert(place, ["contoso"], { id: "order-0000", tenant: "contoso", customer: "c-0", total: 1 });
        await page.locator("[data-hottest]").waitFor({ timeout: 3000 });
      });
      await page.locator("[data-largest]").waitFor();
    },
  ],
  [
    "advisor",
    `${place.hash}/advisor`,
    async (page) => {
      await page.getByLabel("Candidate keys").fill("/tenant\n/customer\n/tenant,/customer\n/lines");
      await page.getByRole("button", { name: "Compare keys" }).click();
      await page.locator("[data-advice-for]").waitFor();
      await page.locator("[data-advice-for]").scrollIntoViewIfNeeded();
    },
  ],
  ["jobs", "#/jobs", (page) => page.locator("[data-state=completed]", { hasText: place.db }).waitFor()],
];

/** What is wrong with a page goes to what is wrong with all, so that one run tells everything. */
async function look(desk, name) {
  await desk.picture(name);
  const overflow = await desk.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (overflow !== 0) desk.problems.push(`${name} scrolls sideways by ${overflow} pixels`);
  desk.problems.push(...(await desk.shutOut(name)));
}

test("every page fits a desk and a phone, light and dark", async (t) => {
  const place = await shop();
  const problems = [];
  for (const { name: size, ...options } of SIZES) {
    const desk = await Desk.open(t, browser, options);
    const { page } = desk;
    await page.goto(`${endpoint}/_explorer`);
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await look(desk, `screen-sign-in-${size}`);
    await desk.signIn("#/");
    for (const [name, hash, ready, leave] of pages(place)) {
      if (hash !== undefined) await desk.goTo(hash);
      await ready(page, desk);
      await look(desk, `screen-${name}-${size}`);
      await leave?.(page);
    }
    await desk.context.close();
    problems.push(...desk.problems);
  }
  assert.deepEqual(problems, []);
});

test("tables fit a desk and a phone, light and dark", async (t) => {
  const own = await serve(t, ["--table-port", "0"]);
  const make = (type, link, path, body, headers) => callOf(own, "POST", type, link, path, body, headers);
  await make("dbs", "", "dbs", { id: "TablesDB" });
  const partitionKey = { paths: ["/'$pk'"], kind: "Hash", version: 2 };
  await make("colls", "dbs/TablesDB", "dbs/TablesDB/colls", { id: "people", partitionKey });
  for (const [pk, id, born] of [["lovelace", "ada", 1815], ["hopper", "grace", 1906], ["hamilton", "margaret", 1936]]) {
    const entity = { id, $id: id, $pk: pk, born: { $t: 16, $v: born }, when: { $t: 9, $v: "00638396640000000000" }, alive: { $t: 8, $v: false } };
    const headers = { "x-ms-documentdb-partitionkey": JSON.stringify([pk]) };
    await make("docs", "dbs/TablesDB/colls/people", "dbs/TablesDB/colls/people/docs", entity, headers);
  }
  for (const { name: size, ...options } of SIZES) {
    const desk = await Desk.open(t, browser, { ...options, endpoint: own });
    const { page } = desk;
    await desk.signIn("#/dbs/TablesDB");
    await page.getByLabel("Table connection string", { exact: true }).waitFor();
    await look(desk, `screen-tables-${size}`);
    await desk.goTo("#/dbs/TablesDB/colls/people/items");
    await page.getByRole("gridcell", { name: "grace" }).waitFor();
    await look(desk, `screen-entities-${size}`);
    await page.getByRole("gridcell", { name: "grace" }).click();
    await page.getByRole("form", { name: "Entity" }).waitFor();
    await look(desk, `screen-entity-${size}`);
    await desk.close();
  }
});
