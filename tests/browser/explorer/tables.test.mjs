// Tables: what the page writes is what clients of the Table API read, and the other way round.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { callOf, Desk, eventually, key, launch, serve } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

/** A server with the Table API, and a client of it. */
async function world(t) {
  const endpoint = await serve(t, ["--table-port", "0", "--account-name", "shelf"]);
  const { ports } = await callOf(endpoint, "GET", "orrery", "_orrery/server", "_orrery/server");
  const table = async (verb, path, body, headers = {}) => {
    const date = new Date().toUTCString();
    const signature = createHmac("sha256", Buffer.from(key, "base64")).update(`${date}\n/shelf/${path}`).digest("base64");
    const response = await fetch(`http://localhost:${ports.table}/${path}`, {
      method: verb,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: {
        authorization: `SharedKeyLite shelf:${signature}`,
        "x-ms-date": date,
        accept: "application/json;odata=fullmetadata",
        "content-type": "application/json",
        ...headers,
      },
    });
    const text = await response.text();
    assert.ok(response.ok, `${verb} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  return { endpoint, port: ports.table, table };
}

const entityOf = (pk, rk) => `people(PartitionKey='${pk}',RowKey='${rk}')`;

test("entities are rows of typed columns; what is edited and made keeps its types", async (t) => {
  const { endpoint, table } = await world(t);
  await table("POST", "Tables", { TableName: "people" });
  const ada = {
    PartitionKey: "lovelace",
    RowKey: "ada",
    born: 1815,
    big: "9007199254740993",
    "big@odata.type": "Edm.Int64",
    height: 1.5,
    when: "2024-01-01T00:00:00.1234567Z",
    "when@odata.type": "Edm.DateTime",
    token: "0F8FAD5B-D9CB-469F-A165-70867728950E",
    "token@odata.type": "Edm.Guid",
    bytes: "AAE=",
    "bytes@odata.type": "Edm.Binary",
    id: "a name that items need",
    alive: false,
  };
  await table("POST", "people", ada);
  await table("POST", "people", { PartitionKey: "hopper", RowKey: "grace", born: 1906, big: "-5", "big@odata.type": "Edm.Int64" });
  const before = await table("GET", entityOf("lovelace", "ada"));

  const desk = await Desk.open(t, browser, { endpoint });
  const { page } = desk;
  await desk.signIn("#/dbs/TablesDB/colls/people/items");
  await page.locator("[data-count='2'][data-done=true]").waitFor();
  for (const header of ["born Int32", "big Int64", "height Double", "when DateTime", "token Guid", "bytes Binary", "id String", "alive Boolean"]) {
    await page.getByRole("columnheader", { name: header, exact: true }).waitFor();
  }
  // The order is that of the keys.
  assert.deepEqual(await page.getByRole("grid").getByRole("rowheader").allInnerTexts(), ["hopper", "lovelace"]);
  await page.getByRole("gridcell", { name: "9007199254740993" }).waitFor();
  await page.getByRole("gridcell", { name: "2024-01-01T00:00:00.1234567Z" }).waitFor();
  await desk.accessible("entities");

  await page.getByLabel("Filter").fill("big lt -4 and Timestamp gt datetime'2020-01-01'");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='1']").waitFor();
  assert.deepEqual(await page.getByRole("grid").getByRole("rowheader").allInnerTexts(), ["hopper"]);
  await page.getByLabel("Filter").fill("born gt");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("A value is missing").waitFor();
  await page.getByLabel("Filter").fill("born eq 1815");
  await page.keyboard.press("Enter");
  await page.locator("[data-count='1']").waitFor();

  await page.getByRole("gridcell", { name: "ada", exact: true }).click();
  const form = page.getByRole("form", { name: "Entity" });
  await form.getByLabel("Value of born", { exact: true }).fill("x");
  await form.getByText("A whole number of 32 bits.").first().waitFor();
  assert.ok(await form.getByRole("button", { name: "Save" }).isDisabled());
  await form.getByLabel("Value of born", { exact: true }).fill("1816");
  // What is typed survives a look at another tab.
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.getByRole("tab", { name: "Entities" }).click();
  await page.getByRole("gridcell", { name: "ada", exact: true }).click();
  assert.equal(await form.getByLabel("Value of born", { exact: true }).inputValue(), "1816");
  await form.getByText("not saved").waitFor();
  await desk.accessible("an entity");
  await desk.picture("entity");
  await form.getByLabel("Value of born", { exact: true }).press("Control+s");
  await page.getByText("Saved lovelace / ada").waitFor();
  const { "odata.etag": _was, Timestamp: _at, ...saved } = await table("GET", entityOf("lovelace", "ada"));
  const { "odata.etag": _old, Timestamp: _then, ...wanted } = { ...before, born: 1816 };
  assert.deepEqual(saved, wanted);

  await page.getByRole("button", { name: "New entity" }).click();
  const fresh = page.getByRole("form", { name: "New entity" });
  await fresh.getByLabel("PartitionKey").fill("hopper");
  await fresh.getByLabel("RowKey").fill("o'neil");
  const add = async (name, kind, text) => {
    await fresh.getByRole("button", { name: "Add a property" }).click();
    await fresh.getByLabel("Name of the property").last().fill(name);
    await fresh.getByLabel(`Type of ${name}`, { exact: true }).selectOption(kind);
    if (kind === "Boolean") await fresh.getByLabel(`Value of ${name}`, { exact: true }).selectOption(text);
    else await fresh.getByLabel(`Value of ${name}`, { exact: true }).fill(text);
  };
  await add("small", "Int32", "-7");
  await add("long", "Int64", "-9223372036854775808");
  await add("ratio", "Double", "3");
  await add("odd", "Double", "NaN");
  await add("flag", "Boolean", "true");
  await add("since", "DateTime", "2026-02-28T10:30:00+02:00");
  await add("_ts", "String", "mine");
  await fresh.getByRole("button", { name: "Create" }).click();
  await page.getByText("Saved hopper / o'neil").waitFor();
  const made = await table("GET", entityOf("hopper", "o''neil"));
  const told = Object.entries(made).filter(([name]) => /^(small|long|ratio|odd|flag|since|_ts)/.test(name));
  assert.deepEqual(Object.fromEntries(told), {
    small: -7,
    "long@odata.type": "Edm.Int64",
    long: "-9223372036854775808",
    ratio: 3,
    "odd@odata.type": "Edm.Double",
    odd: "NaN",
    flag: true,
    "since@odata.type": "Edm.DateTime",
    since: "2026-02-28T08:30:00.0000000Z",
    _ts: "mine",
  });
  await page.getByRole("form", { name: "Entity" }).getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete entity" }).click();
  await page.getByText("Deleted hopper / o'neil").waitFor();
  await desk.close();
});

test("an entity that another client changed is not written over unasked", async (t) => {
  const { endpoint, table } = await world(t);
  await table("POST", "Tables", { TableName: "people" });
  await table("POST", "people", { PartitionKey: "p", RowKey: "r", colour: "red" });
  const desk = await Desk.open(t, browser, { endpoint });
  const { page } = desk;
  desk.expected.add(412);
  await desk.signIn("#/dbs/TablesDB/colls/people/items");
  await page.getByRole("gridcell", { name: "red" }).click();
  await table("PUT", entityOf("p", "r"), { colour: "blue" }, { "if-match": "*" });
  const colour = page.getByLabel("Value of colour", { exact: true });
  await colour.fill("green");
  await colour.press("Enter");
  await page.locator("[data-conflict]").waitFor();
  await page.getByRole("button", { name: "Take the server's version" }).click();
  await eventually(async () => assert.equal(await colour.inputValue(), "blue"));
  await table("PUT", entityOf("p", "r"), { colour: "white" }, { "if-match": "*" });
  await colour.fill("black");
  await colour.press("Enter");
  await page.getByRole("button", { name: "Save mine over it" }).click();
  await page.getByText("Saved p / r").waitFor();
  assert.equal((await table("GET", entityOf("p", "r"))).colour, "black");
  await desk.close();
});

test("tables are made in the page, and it shows how to connect to them", async (t) => {
  const { endpoint, port, table } = await world(t);
  await table("POST", "Tables", { TableName: "first" });
  const desk = await Desk.open(t, browser, { endpoint });
  const { page } = desk;
  await desk.signIn("#/");
  await page.getByLabel("Show the key").check();
  const wanted = `DefaultEndpointsProtocol=http;AccountName=shelf;AccountKey=${key};TableEndpoint=http://localhost:${port}/shelf;`;
  await eventually(async () => assert.equal((await page.getByLabel("Table connection string", { exact: true }).innerText()).trim(), wanted));
  await page.getByRole("treeitem", { name: "TablesDB" }).click();
  await page.getByRole("button", { name: "New table" }).click();
  await page.getByLabel("Name", { exact: true }).fill("a/b");
  await page.getByText("has none of the characters").waitFor();
  await page.getByLabel("Name", { exact: true }).fill("second");
  await page.getByRole("button", { name: "Create table" }).click();
  await page.getByText("No entities yet").waitFor();
  assert.deepEqual((await table("GET", "Tables")).value.map((one) => one.TableName), ["first", "second"]);
  await desk.close();
});
