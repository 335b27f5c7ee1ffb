// The page is light: small to load, quick to appear, and at ease with many rows.
//
// tests/browser/run.sh runs this file after all others, so that what it measures is the page and not another browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Desk, endpoint, fill, launch, makeContainer } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

const BYTES_MAX = 500 * 1024;
const READY_MS = 1000;
const ROWS = 100_000;
/** Only the rows in sight exist. */
const CELLS_MAX = 300;

test("the first load, editors included, takes less than 500 KB and is kept by the browser", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  let bytes = 0;
  const sizes = [];
  const unpacked = [];
  page.on("response", (response) => {
    if (!response.url().startsWith(`${endpoint}/_explorer`)) return;
    const size = response.request().sizes().then((size) => (bytes += size.responseBodySize + size.responseHeadersSize));
    // Where the test has failed before it asks for the sizes, the browser closes and nobody is there to hear of it.
    size.catch(() => undefined);
    sizes.push(size);
    if (!["br", "gzip"].includes(response.headers()["content-encoding"])) unpacked.push(response.url());
  });
  await desk.signIn(`${place.hash}/query`);
  await page.locator("[data-editor=Query] .cm-content").waitFor();
  await Promise.all(sizes);
  t.diagnostic(`first load: ${Math.round(bytes / 1024)} KB in ${sizes.length} files`);
  assert.ok(bytes > 50_000 && bytes < BYTES_MAX, `${bytes} bytes`);
  assert.deepEqual(unpacked, []);
  const script = await page.evaluate(() => document.querySelector("script").src);
  const answer = await fetch(script);
  assert.match(answer.headers.get("cache-control"), /immutable/);
  const again = await fetch(script, { headers: { "if-none-match": answer.headers.get("etag") } });
  assert.equal(again.status, 304);
  await desk.close();
});

test("the page is ready in less than a second", async (t) => {
  // The browser itself has been started and has opened a page before; what counts is ours.
  const times = [];
  // A machine may be busy for a while; a page that is too slow is so every time.
  while (times.length < 10 && !(Math.min(...times) < READY_MS)) {
    const desk = await Desk.open(t, browser);
    const started = performance.now();
    await desk.page.goto(`${endpoint}/_explorer`);
    await desk.page.getByRole("button", { name: "Sign in" }).waitFor();
    times.push(performance.now() - started);
    await desk.close();
  }
  t.diagnostic(`ready after ${times.map((time) => Math.round(time)).join(", ")} ms`);
  assert.ok(Math.min(...times) < READY_MS, `${times}`);
});

/** In the page: goes all over the rows, and tells what is there two frames after each jump. */
async function jumpAround(rows) {
  const box = document.querySelector(".virtual.table");
  const jumps = [];
  for (let step = 0; step < 60; step += 1) {
    const row = (step * 7919) % rows;
    const started = performance.now();
    box.scrollTop = row * 28;
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const milliseconds = performance.now() - started;
    const isThere = [...box.querySelectorAll("[role=rowheader]")].some((header) => header.textContent.trim() === String(row + 1));
    jumps.push({ row, isThere, milliseconds, cells: box.querySelectorAll("[role=gridcell]").length });
  }
  return jumps;
}

test("100,000 rows are browsed smoothly", async (t) => {
  const place = await makeContainer("/k", { throughput: 100_000, body: { indexingPolicy: { indexingMode: "none", automatic: false } } });
  // Few items and a join make many rows without a long preparation.
  const list = Array.from({ length: 1000 }, (_, number) => number);
  await fill(place, "x", Array.from({ length: 100 }, (_, number) => ({ id: `i${number}`, k: "x", list })));
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/query`);
  await desk.write("Query", "SELECT c.id, n FROM c JOIN n IN c.list");
  await page.getByLabel("Rows a page").selectOption("10000");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run=more]").waitFor();
  await page.getByRole("button", { name: "All rows" }).click();
  await page.locator("[data-run=done]").getByText("100,000 rows").waitFor();
  const grid = page.getByRole("grid", { name: "Rows" });
  await grid.focus();
  await page.keyboard.press("End");
  await page.getByRole("rowheader", { name: "100000", exact: true }).waitFor();
  assert.ok((await page.getByRole("gridcell").count()) < CELLS_MAX);
  const jumps = await page.evaluate(jumpAround, ROWS);
  for (const { row, isThere, cells } of jumps) {
    assert.ok(isThere, `row ${row} is there two frames after the jump to it`);
    assert.ok(cells > 0 && cells < CELLS_MAX, `${cells} cells exist at row ${row}`);
  }
  const times = jumps.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
  t.diagnostic(`a jump in 100,000 rows: ${times[30].toFixed(1)} ms in the median, ${times[59].toFixed(1)} ms at most`);
  await desk.picture("100000-rows");
  await desk.close();
});
