// The pages about partitions, keys and jobs, with real load.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call, Desk, eventually, fill, launch, makeContainer, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const manage = (verb, path, body) => call(verb, "orrery", path, path, body, { "content-type": "application/json" });
const ofContainer = ({ db, coll }, rest) => `_orrery/dbs/${encodeURIComponent(db)}/colls/${encodeURIComponent(coll)}/${rest}`;

/** The lengths of time that can be looked at: what they are called, and what the server calls them. */
const WINDOWS = [["Minutes", "hour"], ["Hours", "day"], ["Seconds", "minute"]];

/** Writes to one key without an end, and gives the function that ends it: what the page tells about load passes with it. */
function keepBusy(place, tenant, text) {
  let over = false;
  const write = async () => {
    for (let number = 0; !over; number = (number + 1) % 20) {
      // Partitions come and go under this load, and the server ends with the test; only the attempt matters.
      await upsert(place, [tenant], { id: `more ${number}`, tenant, text }).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const writers = Array.from({ length: 10 }, write);
  return async () => {
    over = true;
    await Promise.all(writers);
  };
}

test("the key space is a heat map; a hot key, its budget and a split are seen as they happen", async (t) => {
  const place = await makeContainer("/tenant", { throughput: 400 });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/partitions`);
  await page.locator("[data-partitions='1']").waitFor();
  await page.getByText("Nothing has been written since").waitFor();
  // More than the container may use: one key that everybody writes to, and some others.
  // Unused request units are saved up for a burst, so it takes a while.
  const text = "x".repeat(30_000);
  let refused = 0;
  for (let round = 0; round < 60 && refused < 40; round += 1) {
    const writes = Array.from({ length: 50 }, (_, number) => {
      const tenant = number % 5 === 0 ? `t${number}` : "busy";
      return upsert(place, [tenant], { id: `i${round}-${number}`, tenant, text }).then(
        () => 0,
        (error) => (error.message.includes("429") ? 1 : assert.fail(error)),
      );
    });
    refused += (await Promise.all(writes)).reduce((sum, one) => sum + one, 0);
  }
  assert.ok(refused >= 40, "some are throttled");
  const rest = keepBusy(place, "busy", text);
  t.after(rest);
  await page.locator("[data-hottest] th", { hasText: "busy" }).waitFor();
  await page.locator("[data-largest] th", { hasText: "busy" }).waitFor();
  await page.locator("[data-throttled]:not([data-throttled='0'])").waitFor();
  await page.getByRole("meter", { name: "Throughput in use" }).waitFor();
  await page.locator("[data-alerts]").getByText("throttling").waitFor();
  await desk.accessible("partitions");
  await desk.picture("partitions-hot");
  for (const metric of ["Requests", "Throttled", "Storage", "Request units"]) {
    await page.getByRole("button", { name: metric, exact: true }).click();
    const colours = () => page.locator(".heat canvas").evaluate((canvas) => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let at = 0; at < data.length; at += 4 * 97) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
      return seen.size;
    });
    await eventually(async () => assert.ok((await colours()) > 1, `${metric} has more than one colour`));
  }
  for (const [time, window] of WINDOWS) {
    await page.getByRole("button", { name: time, exact: true }).click();
    await page.getByRole("button", { name: time, exact: true, pressed: true }).waitFor();
    await page.locator(`[data-window=${window}][data-partitions='1']`).waitFor();
  }

  await page.getByRole("button", { name: "Split partition 0" }).click();
  await page.getByLabel("Into how many").fill("1");
  await page.getByText("A whole number from 2 to 64").waitFor();
  await page.getByLabel("Into how many").fill("2");
  await desk.accessible("split dialog");
  await page.getByRole("dialog").getByRole("button", { name: "Split", exact: true }).click();
  await page.locator("[data-partitions='2']").waitFor();
  await page.locator("[data-events]").getByText("Partition 0 split into").waitFor();
  await desk.picture("partitions-split");
  // What was seen stays when another time is looked at.
  for (const [time, window] of WINDOWS) {
    await page.getByRole("button", { name: time, exact: true }).click();
    await page.locator(`[data-window=${window}][data-partitions='2']`).waitFor();
    assert.equal(await page.locator("[data-events]").getByText("Partition 0 split into").count(), 1);
  }
  await page.getByRole("button", { name: /^Merge partitions/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
  await page.locator("[data-partitions='1']").waitFor();
  await page.locator("[data-events]").getByText("merged into").waitFor();
  await desk.goTo("#/");
  await page.locator(".alerts").getByText(place.db).first().waitFor();
  await rest();
  await desk.accessible("home with alerts");
  await desk.goTo(`${place.hash}/partitions`);
  await page.locator("[data-partitions='1']").waitFor();
  await page.setViewportSize({ width: 800, height: 600 });
  await page.getByRole("button", { name: "Dark" }).click();
  await desk.picture("800-dark-partitions");
  await desk.accessible("800 dark partitions");
  await desk.close();
});

/** While keys are compared the button has another name; what was found before stays until then. */
const isCompared = (page) => page.getByRole("button", { name: "Compare keys" }).waitFor();

test("candidate keys are compared on live data, with a recorded and a written workload", async (t) => {
  const place = await makeContainer("/region");
  const items = Array.from({ length: 300 }, (_, number) => ({
    id: `o${number}`,
    region: number % 10 === 0 ? "north" : "south",
    customer: `customer ${number % 60}`,
    total: number,
  }));
  await fill(place, "south", items.filter((item) => item.region === "south"));
  await fill(place, "north", items.filter((item) => item.region === "north"));
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/advisor`);
  await page.getByRole("button", { name: "/customer", exact: true }).click();
  await eventually(async () => assert.equal(await page.getByLabel("Candidate keys").inputValue(), "/customer"));
  await page.getByRole("button", { name: "/region", exact: true }).click();
  await eventually(async () => assert.equal(await page.getByLabel("Candidate keys").inputValue(), "/customer\n/region"));
  await page.getByRole("button", { name: "Compare keys" }).click();
  await page.locator("[data-candidate='/customer']").waitFor();
  await page.locator("[data-candidate='/region']").getByText("now", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Start recording" }).click();
  await page.locator("[data-recording=recording]").waitFor();
  for (const item of items.slice(0, 40)) await upsert(place, [item.region], item);
  await page.getByRole("button", { name: "Stop recording" }).click();
  await page.locator("[data-recording=stopped]").getByText("operations in").waitFor();
  await eventually(async () => assert.ok(await page.getByRole("radio", { name: /^Recorded/ }).isChecked()));
  await page.getByRole("button", { name: "Compare keys" }).click();
  await isCompared(page);
  const advised = page.locator("[data-advice-for]");
  await advised.waitFor();
  await eventually(async () => assert.equal(await advised.getAttribute("data-advice-for"), "/customer"));
  await page.getByRole("img", { name: /Storage of each partition with \/region/ }).waitFor();
  await desk.accessible("advisor");
  await desk.picture("advisor");

  await page.getByRole("radio", { name: /^Written/ }).check();
  await desk.write("Workload", '{"operations":[{"name":"w","kind":"create","perSecond":');
  await eventually(async () => assert.ok(await page.getByRole("button", { name: "Compare keys" }).isDisabled()));
  await desk.write("Workload", '{"operations":[{"name":"w","kind":"create","perSecond":50}]}');
  await page.getByLabel("Candidate keys").fill("nothing");
  desk.expected.add(400);
  await page.getByRole("button", { name: "Compare keys" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Candidate keys").fill("");
  await page.getByRole("button", { name: "Compare keys" }).click();
  await isCompared(page);
  assert.equal(await page.getByRole("alert").count(), 0);
  await page.locator("[data-candidate]").first().waitFor();
  await desk.close();
});

test("a container is given another key while the page watches", async (t) => {
  const place = await makeContainer("/region", { coll: "orders" });
  await fill(place, "south", Array.from({ length: 200 }, (_, number) => ({ id: `o${number}`, region: "south", customer: `c${number % 20}` })));
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/advisor`);
  await page.getByLabel("Candidate keys").fill("/customer");
  await page.getByRole("button", { name: "Compare keys" }).click();
  await page.getByRole("button", { name: "Change the partition key to /customer" }).click();
  await desk.accessible("rekey dialog");
  await page.getByRole("button", { name: "Change the partition key", exact: true }).click();
  await page.getByRole("heading", { name: "Copy jobs" }).waitFor();
  const card = page.locator("[data-job]", { hasText: place.db });
  await card.and(page.locator("[data-state=completed]")).waitFor();
  await desk.accessible("jobs");
  await desk.picture("jobs");
  const rekeyed = await call("GET", "colls", `dbs/${place.db}/colls/orders`, `dbs/${place.db}/colls/orders`);
  assert.deepEqual(rekeyed.partitionKey.paths, ["/customer"]);
  await desk.goTo(`${place.hash}/items`);
  await page.getByText("key /customer").waitFor();
  await page.locator("[data-count]:not([data-count='0'])").waitFor();
  await desk.close();
});

test("a key that was changed before the page looked at the job is shown too", async (t) => {
  const place = await makeContainer("/region", { coll: "orders" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  await page.getByText("key /region").waitFor();
  const container = { database: place.db, container: "orders" };
  const partitionKey = { paths: ["/customer"], kind: "Hash", version: 2 };
  const { id } = await manage("POST", "_orrery/jobs", { kind: "rekey", container, partitionKey });
  await eventually(async () => assert.equal((await manage("GET", `_orrery/jobs/${id}`)).state, "completed"));
  await desk.goTo("#/jobs");
  await page.locator("[data-state=completed]", { hasText: place.db }).waitFor();
  await desk.goTo(`${place.hash}/items`);
  await page.getByText("key /customer").waitFor();
  await desk.close();
});

test("a copy that was started is shown at once", async (t) => {
  const place = await makeContainer("/id", { coll: "from" });
  const partitionKey = { paths: ["/id"], kind: "Hash", version: 2 };
  await call("POST", "colls", `dbs/${place.db}`, `dbs/${place.db}/colls`, { id: "to", partitionKey });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.pace(null);
  await desk.signIn("#/jobs");
  await page.getByRole("button", { name: "Copy a container" }).click();
  await page.getByLabel("From", { exact: true }).selectOption(`${place.db} / from`);
  await page.getByLabel("Into", { exact: true }).selectOption(`${place.db} / to`);
  await page.getByRole("button", { name: "Start copying" }).click();
  await page.locator("[data-job]", { hasText: place.db }).waitFor();
  await desk.close();
});

test("a copy is started, paused, resumed, completed and forgotten", async (t) => {
  const place = await makeContainer("/region", { coll: "from" });
  const target = { ...place, coll: "to" };
  const partitionKey = { paths: ["/customer"], kind: "Hash", version: 2 };
  await call("POST", "colls", `dbs/${place.db}`, `dbs/${place.db}/colls`, { id: "to", partitionKey }, { "x-ms-offer-throughput": "10000" });
  await fill(place, "south", Array.from({ length: 400 }, (_, number) => ({ id: `o${number}`, region: "south", customer: `c${number % 20}` })));
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn("#/jobs");
  await page.getByRole("button", { name: "Copy a container" }).click();
  await page.getByLabel("From", { exact: true }).selectOption(`${place.db} / from`);
  await page.getByLabel("Into", { exact: true }).selectOption(`${place.db} / to`);
  await page.getByLabel("Items a second, at most").fill("100");
  await page.getByRole("button", { name: "Start copying" }).click();
  const card = page.locator("[data-job]", { hasText: place.db });
  await card.getByRole("button", { name: "Pause" }).click();
  await card.and(page.locator("[data-state=paused]")).waitFor();
  await desk.picture("jobs-paused");
  await card.getByRole("button", { name: "Resume" }).click();
  await card.getByRole("button", { name: "Complete", exact: true }).click();
  await card.and(page.locator("[data-state=completed]")).waitFor();
  await card.getByRole("button", { name: "Forget" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Forget" }).click();
  await card.waitFor({ state: "detached" });
  const copied = await call("GET", "docs", `dbs/${place.db}/colls/to`, `dbs/${place.db}/colls/to/docs`, undefined, { "x-ms-max-item-count": "1000" });
  assert.equal(copied._count, 400);
  assert.deepEqual(await manage("GET", ofContainer(target, "partitions")).then((found) => found.partitions.length), 1);
  await desk.close();
});
