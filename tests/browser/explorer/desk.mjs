// What the tests of the explorer share: a browser, a page that is watched, and a client that makes data.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const required = (name) => process.env[name] ?? assert.fail(`${name} is not set; tests/browser/run.sh sets it`);

export const endpoint = required("ORRERY_ENDPOINT").replace(/\/$/, "");
export const key = required("ORRERY_KEY");
const pictures = required("ORRERY_SCREENSHOTS");
/** How long a test waits for what must come. It is long, because a busy machine is no defect of the page. */
const patience = Number(process.env.ORRERY_PATIENCE_MS ?? 60_000);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The page itself, the NoSQL API and the management API: nothing that a script could not use as well. */
const DOCUMENTED = /^\/(|_explorer|_explorer\/.*|_orrery\/.*|dbs|dbs\/.*|offers|offers\/.*)$/;

/** A browser for the tests of one file. */
export function launch(...more) {
  const executablePath = process.env.ORRERY_CHROMIUM ?? "/usr/bin/chromium";
  // The tests may run as root in a container, where the browser's sandbox is not available.
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", ...more] });
}

/** A page that notes everything that must not happen: errors on the console, and requests to other hosts. */
export class Desk {
  problems = [];
  /** Statuses of requests that a test makes fail on purpose; the browser puts them on the console. */
  expected = new Set();
  requests = 0;
  endpoint = endpoint;

  static async open(t, browser, options = {}) {
    const desk = new Desk();
    desk.endpoint = options.endpoint ?? endpoint;
    t.after(() => desk.context?.close());
    desk.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
    desk.page = await desk.context.newPage();
    desk.page.setDefaultTimeout(patience);
    desk.watch(desk.page);
    return desk;
  }

  watch(page) {
    page.on("console", (message) => {
      if (message.type() !== "error" && message.type() !== "warning") return;
      const status = /status of (\d+)/.exec(message.text())?.[1];
      if (status !== undefined && this.expected.has(Number(status))) return;
      // Another test may delete a database between the list of databases and that of its containers.
      if (status === "404" && /\/dbs\/[^/]+\/colls$/.test(message.location().url)) return;
      this.problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.problems.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.problems.push(`dialog: ${dialog.message()}`);
      dialog.dismiss().catch(() => undefined);
    });
    page.on("request", (request) => {
      this.requests += 1;
      const url = request.url();
      if (/^(blob|data):/.test(url)) return;
      if (!url.startsWith(`${this.endpoint}/`)) this.problems.push(`another host: ${url}`);
      else if (!DOCUMENTED.test(new URL(url).pathname)) this.problems.push(`not a documented endpoint: ${url}`);
    });
  }

  async close() {
    await this.context.close();
    assert.deepEqual(this.problems, []);
  }

  async signIn(hash = "") {
    await this.page.goto(`${this.endpoint}/_explorer${hash}`);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.locator(".desk").waitFor();
  }

  /** Sets how long the page waits between two looks: 1 is without a pause, and with null it never looks again by itself. */
  async pace(milliseconds) {
    await this.page.addInitScript((pause) => {
      const { setTimeout } = window;
      window.setTimeout = (act, delay = 0) => {
        // Short delays are no pauses between looks; they belong to how the page is drawn.
        if (delay < 500) return setTimeout(act, delay);
        return pause === null ? 0 : setTimeout(act, pause);
      };
    }, milliseconds);
  }

  /** Goes to another address of the page, and comes back when the page has heard of it. */
  async goTo(hash) {
    const go = (hash) =>
      new Promise((done) => {
        if (location.hash === hash) return done();
        addEventListener("hashchange", done, { once: true });
        location.hash = hash;
      });
    // What an event is, is nothing to be told to the test.
    await this.page.evaluate(`(${go})(${JSON.stringify(hash)}).then(() => undefined)`);
  }

  /** Puts a text into an editor, as a user does who selects all and pastes. */
  async write(label, text) {
    const content = this.page.locator(`[data-editor="${label}"] .cm-content`);
    await content.click();
    await this.page.keyboard.press("Control+a");
    if (text === "") await this.page.keyboard.press("Delete");
    else await this.page.keyboard.insertText(text);
  }

  read(label) {
    return this.page.locator(`[data-editor="${label}"] .cm-content`).innerText();
  }

  /** Holds requests back, as a slow server would, until they are let go. Those that are held are in `waiting`. */
  async hold(isHeld, where = "**/dbs/**") {
    const waiting = [];
    await this.page.route(where, async (route) => {
      if (isHeld(route.request())) await new Promise((go) => waiting.push({ request: route.request(), go }));
      // A request that the page has given up meanwhile cannot go on.
      await route.continue().catch(() => undefined);
    });
    const letGo = async () => {
      await this.page.unrouteAll({ behavior: "ignoreErrors" });
      waiting.forEach(({ go }) => go());
    };
    return { waiting, letGo, isReached: (count) => eventually(() => assert.equal(waiting.length, count)) };
  }

  /** Types behind what an editor holds. */
  async append(label, text) {
    await this.page.locator(`[data-editor="${label}"] .cm-content`).click();
    await this.page.keyboard.press("Control+End");
    await this.page.keyboard.insertText(text);
  }

  /** A picture for people to look at, kept as build output. */
  async picture(name) {
    mkdirSync(pictures, { recursive: true });
    await this.page.screenshot({ path: join(pictures, `${name}.png`) });
  }

  /** Nobody who cannot see or point is shut out: no serious finding of the accessibility checker. */
  async accessible(name) {
    assert.deepEqual(await this.shutOut(name), []);
  }

  /** The serious findings themselves. */
  async shutOut(name) {
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(() =>
      globalThis.axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: true } } }),
    );
    const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
    return serious.map((one) => `${name}: ${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 5).join(" | ")}`);
  }
}

/** Waits until a check holds: pages draw what they know a moment later. */
export async function eventually(check) {
  const until = performance.now() + patience;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Starts a server of its own for one test and returns where it listens. */
export async function serve(t, options) {
  const binary = process.env.ORRERY_BIN ?? assert.fail("ORRERY_BIN is not set");
  const server = spawn(binary, ["serve", "--in-memory", "--nosql-port", "0", ...options], { stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => server.kill());
  let said = "";
  for await (const chunk of server.stdout) {
    said += chunk;
    const port = /ORRERY READY.* port=(\d+)/.exec(said)?.[1];
    if (port !== undefined) return `http://localhost:${port}`;
  }
  return assert.fail("the server did not start");
}

/** One signed request, as a script would make it. `link` is what the signature names. */
export const call = (verb, type, link, path, body, headers = {}) => callOf(endpoint, verb, type, link, path, body, headers);

/** The same, to another server. */
export async function callOf(endpoint, verb, type, link, path, body, headers = {}) {
  const date = new Date().toUTCString();
  const line = `${verb.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(line).digest("base64");
  const response = await fetch(`${endpoint}/${path}`, {
    method: verb,
    body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    headers: {
      authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`),
      "x-ms-date": date,
      "x-ms-version": "2020-07-15",
      ...headers,
    },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${verb} ${path}: ${response.status} ${text.slice(0, 300)}`);
  return text === "" ? undefined : JSON.parse(text);
}

const escape = (name) => encodeURIComponent(name);

/** A database with one container, made without the page. */
export async function makeContainer(keyPath, options = {}) {
  const db = options.db ?? `db-${randomUUID().slice(0, 8)}`;
  const coll = options.coll ?? "things";
  await call("POST", "dbs", "", "dbs", { id: db });
  const paths = [keyPath].flat();
  const partitionKey = { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 };
  const headers = { "x-ms-offer-throughput": String(options.throughput ?? 15_000) };
  await call("POST", "colls", `dbs/${db}`, `dbs/${escape(db)}/colls`, { id: coll, partitionKey, ...options.body }, headers);
  return { db, coll, hash: `#/dbs/${escape(db)}/colls/${escape(coll)}` };
}

export async function upsert({ db, coll }, keyValues, item) {
  const headers = { "x-ms-documentdb-partitionkey": JSON.stringify(keyValues), "x-ms-documentdb-is-upsert": "True" };
  return call("POST", "docs", `dbs/${db}/colls/${coll}`, `dbs/${escape(db)}/colls/${escape(coll)}/docs`, item, headers);
}

/** Many items at once, by bulk requests of up to a hundred for one key. */
export async function fill({ db, coll }, keyValue, items) {
  const headers = {
    "x-ms-documentdb-partitionkey": JSON.stringify([keyValue]),
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "True",
  };
  const path = `dbs/${escape(db)}/colls/${escape(coll)}/docs`;
  for (let at = 0; at < items.length; at += 100) {
    const operations = items.slice(at, at + 100).map((resourceBody) => ({ operationType: "Upsert", resourceBody }));
    await call("POST", "docs", `dbs/${db}/colls/${coll}`, path, operations, headers);
  }
}
