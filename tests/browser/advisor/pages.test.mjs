// The advisor's page, as a person opens it: from a file, in light and in dark, wide and narrow.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const required = (name) => process.env[name] ?? assert.fail(`${name} is not set; tests/browser/run.sh sets it`);
const folder = required("ORRERY_ADVICE");
const pages = readdirSync(folder).filter((name) => name.endsWith(".html"));

let browser;
before(async () => {
  const executablePath = required("ORRERY_CHROMIUM");
  // The tests may run as root in a container, where the browser's sandbox is not available.
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
});
after(async () => browser.close());

/** Opens a page, and gives it with the list of what must not happen. */
async function open(name, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.setDefaultTimeout(Number(process.env.ORRERY_PATIENCE_MS ?? 60_000));
  const problems = [];
  page.on("console", (message) => problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(join(folder, name)).href);
  return { page, problems };
}

test("there is a page for each workload of the guides", () => assert.equal(pages.length, 6));

for (const name of pages) {
  test(`${name} shows its verdicts and charts without an error`, async () => {
    const { page, problems } = await open(name);
    await page.getByRole("heading", { level: 1, name: /^Partition keys for/ }).waitFor();
    const rows = await page.locator(".comparison tbody tr").count();
    assert.ok(rows >= 4, `${rows} candidates`);
    assert.equal(await page.locator("article").count(), rows);
    const charts = page.getByRole("img");
    assert.equal(await charts.count(), 3 * rows);
    for (const chart of await charts.all()) {
      const box = await chart.boundingBox();
      assert.ok(box.width > 150 && box.height > 60, "a chart has a size that can be seen");
    }
    // What is drawn has an area and lies inside its chart.
    const bad = await page.locator(".chart").evaluateAll((all) =>
      all.flatMap((chart) => {
        const outer = chart.getBoundingClientRect();
        return [...chart.querySelectorAll("rect.bar, text")]
          .map((shape) => shape.getBoundingClientRect())
          .filter((box) => !(box.left >= outer.left - 2 && box.right <= outer.right + 2 && box.bottom <= outer.bottom + 2))
          .map((box) => JSON.stringify(box));
      }),
    );
    assert.deepEqual(bad, []);
    const drawn = await page.locator(".chart rect.bar").evaluateAll((bars) => bars.filter((bar) => bar.getBBox().height > 5).length);
    assert.ok(drawn > 0, "bars are drawn");
    assert.deepEqual(problems, []);
    await page.close();
  });
}

test("the links of the comparison lead to the candidates", async () => {
  const { page } = await open("connected-cars.html");
  await page.getByRole("link", { name: "/vehicleModel" }).click();
  const article = page.locator("article").filter({ has: page.getByRole("heading", { name: "/vehicleModel" }) });
  // A click on a link scrolls a moment later.
  const isInView = (element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top < innerHeight && bottom > 0;
  };
  await page.waitForFunction(isInView, await article.elementHandle());
  await page.getByText("7.52 GB a year").first().waitFor();
  await page.screenshot({ path: join(required("ORRERY_SCREENSHOTS"), "advice.png"), fullPage: true });
  await page.close();
});

test("the page is dark where the reader wants it, and fits a narrow screen", async () => {
  const ink = async (colorScheme) => {
    const { page } = await open("food-groups.html", { colorScheme });
    const colours = await page.evaluate(() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]);
    await page.close();
    return colours;
  };
  const light = ([red]) => Number(/\d+/.exec(red)[0]);
  const [ofLight, ofDark] = [await ink("light"), await ink("dark")];
  assert.ok(light([ofLight[1]]) > light([ofLight[0]]), "dark ink on a light page");
  assert.ok(light([ofDark[1]]) < light([ofDark[0]]), "light ink on a dark page");
  const { page } = await open("food-groups.html", { viewport: { width: 360, height: 700 } });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `the page is ${wide} wide`);
  await page.close();
});
