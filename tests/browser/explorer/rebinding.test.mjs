// A page whose name was rebound to this machine must not read the server, though everybody knows its key.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { endpoint, key, launch } from "./desk.mjs";

const port = new URL(endpoint).port;
const foreign = `http://rebound.example:${port}`;
const local = `http://desk.localhost:${port}`;

// For the browser the names lead here, as those of an attacker's DNS would once their page is loaded. Some browsers ask
// before a page may reach this machine at all; the server must not depend on that.
const options = [
  "--host-resolver-rules=MAP rebound.example 127.0.0.1, MAP *.localhost 127.0.0.1",
  "--disable-features=LocalNetworkAccessChecks",
];
let browser;
before(async () => (browser = await launch(...options)));
after(async () => browser.close());

/** Signs a list of the databases, as the page of an attacker could with the key that everybody knows. */
function signed() {
  const date = new Date().toUTCString();
  const text = `get\ndbs\n\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  return {
    authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`),
    "x-ms-date": date,
    "x-ms-version": "2020-07-15",
  };
}

/** What a page of an origin reads from the server under its own name, without the browser objecting. */
async function read(t, origin, path, headers) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  // The page itself is the attacker's: it was loaded before the name was rebound.
  await page.route(`${origin}/attack`, (route) => route.fulfill({ contentType: "text/html", body: "<title>attack</title>" }));
  await page.goto(`${origin}/attack`);
  return page.evaluate(
    async ({ path, headers }) => {
      const answer = await fetch(path, { headers });
      return { status: answer.status, text: await answer.text() };
    },
    { path, headers },
  );
}

test("a page of a rebound name reads nothing", async (t) => {
  for (const path of ["/dbs", "/metrics", "/_explorer", "/_orrery/containers", "/ready"]) {
    const found = await read(t, foreign, path, path === "/dbs" ? signed() : {});
    assert.equal(found.status, 421, path);
    assert.match(found.text, /--tls-name rebound\.example/, path);
  }
  const page = await browser.newPage();
  t.after(() => page.close());
  const shown = await page.goto(`${foreign}/_explorer`);
  assert.equal(shown.status(), 421);
});

test("a name of this machine is served to the same page", async (t) => {
  const found = await read(t, local, "/dbs", signed());
  assert.equal(found.status, 200);
  assert.ok(Array.isArray(JSON.parse(found.text).Databases));
});
