// Signing in, databases, containers and scripts, as a person would go through them.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { call, Desk, endpoint, eventually, key, launch, makeContainer, upsert } from "./desk.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());

test("signing in is prefilled on loopback, refuses a wrong key, and offers what clients need", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await page.goto(`${endpoint}/_explorer`);
  assert.equal(await page.getByLabel("Account key").inputValue(), key);
  await desk.accessible("sign-in");
  await desk.picture("sign-in");
  desk.expected.add(401);
  await page.getByLabel("Account key").fill(Buffer.alloc(64, 7).toString("base64"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The key does not fit").waitFor();
  await page.getByLabel("Account key").fill("not base64!");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("An account key is base64").waitFor();
  // A connection string is as good as the key in it.
  await page.getByLabel("Account key").fill(`AccountEndpoint=${endpoint}/;AccountKey=${key};`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Connect", exact: true }).waitFor();
  for (const language of [".NET", "Java", "Python", "Go", "Rust", "JavaScript"]) {
    await page.getByRole("tab", { name: language, exact: true }).click();
    // Java speaks HTTPS only, on the same port.
    const dialled = language === "Java" ? endpoint.replace("http:", "https:") : endpoint;
    await page.getByLabel(`${language} code`, { exact: true }).getByText(dialled).waitFor();
  }
  await desk.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy the connection string" }).click();
  await page.getByText("Copied the connection string").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `AccountEndpoint=${endpoint}/;AccountKey=${key};`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Download the certificate authority").click()]);
  assert.match(readFileSync(await download.path(), "utf8"), /BEGIN CERTIFICATE/);
  await desk.accessible("home");
  // The key stays in this tab: a reload finds it, another tab does not.
  await page.reload();
  await page.getByRole("heading", { name: "Connect", exact: true }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await desk.close();
});

test("a tree that cannot be listed is told, and listed later", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  desk.expected.add(503);
  await page.route("**/dbs", (route) => route.fulfill({ status: 503, body: '{"code":"ServiceUnavailable","message":"busy"}' }));
  await page.route("**/offers", (route) => route.fulfill({ status: 503, body: '{"code":"ServiceUnavailable","message":"busy"}' }));
  await desk.signIn();
  await page.locator("[data-notice=failed]").getByText("Cannot list the databases").waitFor();
  await page.locator("[data-notice=failed]").getByText("Cannot read the throughput").waitFor();
  await page.getByText("The databases could not be listed").waitFor();
  await page.unrouteAll();
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("treeitem", { name: place.db }).waitFor();
  await desk.close();
});

test("a container is made with everything it can have, checked while typed, changed and deleted", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const db = `shop-${randomUUID().slice(0, 8)}`;
  await desk.signIn();
  await page.getByRole("button", { name: "New database" }).click();
  const name = page.getByLabel("Name", { exact: true });
  await name.fill("a/b");
  await page.getByText("A name cannot have").waitFor();
  await name.fill(db);
  await desk.accessible("new database");
  await page.getByRole("button", { name: "Create database" }).click();
  await page.getByRole("heading", { name: `New container in ${db}` }).waitFor();
  await name.fill("orders");
  await page.getByLabel("Partition key", { exact: true }).fill("tenant");
  await page.getByText("A path begins with a slash").waitFor();
  assert.ok(await page.getByRole("button", { name: "Create container" }).isDisabled());
  await page.getByLabel("Partition key", { exact: true }).fill("/address/tenant");
  await page.getByRole("button", { name: "Add a level" }).click();
  await page.getByLabel("Level 2", { exact: true }).fill("/user");
  await page.getByLabel("RU/s", { exact: true }).fill("401");
  await page.getByText("In steps of 100").waitFor();
  await page.getByLabel("RU/s", { exact: true }).fill("24000");
  await page.getByText("4 physical partitions, each with 6,000 RU/s").waitFor();
  await page.getByText("Time to live, unique keys, indexing").click();
  await page.getByRole("radio", { name: /^Default/ }).check();
  await page.getByLabel("Seconds to live").fill("0");
  await page.getByText("A whole number of seconds").waitFor();
  await page.getByLabel("Seconds to live").fill("86400");
  await page.getByLabel("Unique keys").fill("/email\n/a, /b");
  await desk.write("Indexing policy", '{"a":');
  await page.locator(".field.wrong").waitFor();
  await desk.write("Indexing policy", '{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/blob/*"}]}');
  await desk.accessible("new container");
  await desk.picture("new-container");
  await page.getByRole("button", { name: "Create container" }).click();
  await page.getByText("No items yet").waitFor();

  const made = await call("GET", "colls", `dbs/${db}/colls/orders`, `dbs/${db}/colls/orders`);
  assert.deepEqual(made.partitionKey, { paths: ["/address/tenant", "/user"], kind: "MultiHash", version: 2 });
  assert.equal(made.defaultTtl, 86400);
  assert.deepEqual(made.uniqueKeyPolicy.uniqueKeys, [{ paths: ["/email"] }, { paths: ["/a", "/b"] }]);
  assert.equal(made.indexingPolicy.excludedPaths[0].path, "/blob/*");

  await page.getByRole("tab", { name: "Settings" }).click();
  await page.locator("dt", { hasText: "Physical partitions" }).waitFor();
  await eventually(async () => assert.equal(await page.locator("dt:has-text('Physical partitions') + dd").innerText(), "4"));
  await page.getByRole("radio", { name: /^Autoscale/ }).check();
  await page.getByLabel("Maximum RU/s").fill("30000");
  await page.getByRole("button", { name: "Save throughput" }).click();
  await page.getByText("Changed the throughput").waitFor();
  await page.locator("[data-throughput-now='3000'][data-pending=false]").waitFor();
  await page.getByRole("radio", { name: /^Off/ }).check();
  await desk.write("Indexing policy", '{"includedPaths":[{"path":"/*"}],"excludedPaths":[]}');
  const readAgain = page.waitForResponse((answer) => answer.request().method() === "GET" && answer.url().endsWith("/colls/orders"));
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByText("Saved the settings").waitFor();
  await readAgain;
  await page.locator("[data-index-progress='100']").waitFor();
  await desk.accessible("settings");
  await desk.picture("settings");
  const changed = await call("GET", "colls", `dbs/${db}/colls/orders`, `dbs/${db}/colls/orders`);
  assert.equal(changed.defaultTtl, undefined);
  const offers = await call("GET", "offers", "", "offers");
  const offer = offers.Offers.find((one) => one.offerResourceId === changed._rid);
  assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 30000);

  await page.getByRole("button", { name: "Delete container" }).click();
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete container" });
  assert.ok(await confirm.isDisabled());
  await page.getByLabel("Type its name to confirm").fill("orders");
  await confirm.click();
  await page.getByText("None yet. A container holds items").waitFor();
  await page.getByRole("button", { name: "Delete database" }).click();
  await page.getByLabel("Type its name to confirm").fill(db);
  await page.getByRole("dialog").getByRole("button", { name: "Delete database" }).click();
  await page.getByText(`Deleted the database ${db}`).waitFor();
  await page.getByRole("treeitem", { name: db }).waitFor({ state: "detached" });
  await desk.close();
});

test("a container that is being deleted is not looked at any more", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  let looks = 0;
  page.on("request", (request) => (looks += request.url().includes("/throughput") ? 1 : 0));
  await desk.pace(1);
  await desk.signIn(`${place.hash}/settings`);
  await eventually(() => assert.ok(looks > 3));
  await page.getByRole("button", { name: "Delete container" }).click();
  await page.getByLabel("Type its name to confirm").fill("things");
  const before = looks;
  const held = await desk.hold((request) => request.method() === "DELETE");
  await page.getByRole("dialog").getByRole("button", { name: "Delete container" }).click();
  await held.isReached(1);
  await held.letGo();
  await page.getByText("None yet. A container holds items").waitFor();
  assert.equal(looks, before);
  await desk.close();
});

test("a database shares its throughput with its containers", async (t) => {
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const db = `shared-${randomUUID().slice(0, 8)}`;
  await desk.signIn("#/new-database");
  await page.getByLabel("Name", { exact: true }).fill(db);
  await page.getByRole("radio", { name: /^Autoscale/ }).check();
  await page.getByText("1 physical partition with 1,000 RU/s").waitFor();
  await page.getByRole("button", { name: "Create database" }).click();
  await page.getByRole("heading", { name: `New container in ${db}` }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("small");
  await page.getByLabel("Partition key", { exact: true }).fill("/id");
  await eventually(async () => assert.ok(await page.getByRole("radio", { name: /^Shared/ }).isChecked()));
  await page.getByRole("button", { name: "Create container" }).click();
  await page.getByText("No items yet").waitFor();
  await page.getByRole("treeitem", { name: db }).click();
  await page.getByRole("cell", { name: "shared" }).waitFor();
  await page.getByRole("heading", { name: "Shared throughput" }).waitFor();
  await desk.accessible("database");
  await desk.close();
});

test("a new container shares the throughput of its database, also when that is known late", async (t) => {
  const db = `late-${randomUUID().slice(0, 8)}`;
  await call("POST", "dbs", "", "dbs", { id: db }, { "x-ms-offer-throughput": "400" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const offers = await desk.hold(() => true, "**/offers");
  await desk.signIn(`#/dbs/${db}/new-container`);
  await offers.isReached(1);
  await page.getByRole("radio", { name: /^Manual/ }).waitFor();
  await offers.letGo();
  await eventually(async () => assert.ok(await page.getByRole("radio", { name: /^Shared/ }).isChecked()));
  await desk.close();
});

test("procedures, triggers and functions are made, run with arguments, and deleted", async (t) => {
  const place = await makeContainer("/city");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/scripts`);
  await page.getByRole("button", { name: "New procedure" }).click();
  await page.getByLabel("Name", { exact: true }).fill("greet");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByLabel("Partition key", { exact: true }).fill('["Rome"]');
  await page.getByLabel("Arguments", { exact: true }).fill('["Ada"');
  await page.getByText("A JSON array is needed").waitFor();
  await page.getByLabel("Arguments", { exact: true }).fill('["Ada"]');
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByLabel("Result").getByText("Hello, Ada").waitFor();
  await page.getByLabel("Log").getByText("greeting Ada").waitFor();
  await desk.accessible("scripts");
  await desk.picture("scripts");
  desk.expected.add(400);
  await desk.write("Script", 'function greet() { throw new Error("no luck"); }');
  await page.locator("[data-editor=Script] .cm-content").click();
  // This button is there exactly while something is not saved; Save is disabled during the save already.
  const discard = page.getByRole("button", { name: "Discard changes" });
  await discard.waitFor();
  await page.keyboard.press("Control+s");
  await discard.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("alert").getByText("no luck").waitFor();

  await page.getByRole("button", { name: "New trigger" }).click();
  await page.getByLabel("Name", { exact: true }).fill("stamp");
  await page.getByLabel("Runs").selectOption("Pre");
  await page.getByRole("combobox", { name: /^On/ }).selectOption("Create");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("pre-trigger-include").waitFor();
  await page.getByRole("button", { name: "New function" }).click();
  await page.getByLabel("Name", { exact: true }).fill("double");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("udf.double(c.value)").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete script" }).click();
  await page.getByText("Deleted double").waitFor();
  const triggers = await call("GET", "triggers", `dbs/${place.db}/colls/things`, `dbs/${place.db}/colls/things/triggers`);
  assert.deepEqual(triggers.Triggers.map((one) => [one.id, one.triggerType, one.triggerOperation]), [["stamp", "Pre", "Create"]]);
  await desk.close();
});

test("a procedure that is being saved runs when it is saved", async (t) => {
  const place = await makeContainer("/city");
  await call("POST", "sprocs", `dbs/${place.db}/colls/things`, `dbs/${place.db}/colls/things/sprocs`, { id: "old", body: "function old() {}" });
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/scripts`);
  await page.getByRole("button", { name: "old", exact: true }).click();
  await desk.write("Script", 'function old() { getContext().getResponse().setBody("new"); }');
  const put = await desk.hold((request) => request.method() === "PUT");
  await page.keyboard.press("Control+s");
  await put.isReached(1);
  await page.locator(".item-editor[aria-busy=true]").waitFor();
  assert.ok(await page.getByRole("button", { name: "Run", exact: true }).isDisabled());
  await put.letGo();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByLabel("Result").getByText("new").waitFor();
  await desk.close();
});

test("what is typed into a script stays until it is saved or discarded, whatever else is looked at", async (t) => {
  const place = await makeContainer("/city");
  for (const id of ["first", "second"]) {
    await call("POST", "sprocs", `dbs/${place.db}/colls/things`, `dbs/${place.db}/colls/things/sprocs`, { id, body: `function ${id}() {}` });
  }
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  const script = page.locator("[data-editor=Script] .cm-content");
  const asksBeforeLeaving = () => page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
  const open = async (id) => {
    await page.getByRole("button", { name: id, exact: true }).click();
    await script.getByText(`function ${id}`).waitFor();
  };
  await desk.signIn(`${place.hash}/scripts`);
  await open("first");
  assert.equal(await asksBeforeLeaving(), false);
  await desk.append("Script", " // one");
  await open("second");
  await open("first");
  await script.getByText("// one").waitFor();
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.getByRole("tab", { name: "Scripts" }).click();
  await open("first");
  await script.getByText("// one").waitFor();
  assert.equal(await asksBeforeLeaving(), true);

  const put = await desk.hold((request) => request.method() === "PUT");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await put.isReached(1);
  await desk.append("Script", " // two");
  await page.keyboard.press("Control+s");
  await put.letGo();
  await page.getByText("Saved first").waitFor();
  await page.locator("button:enabled", { hasText: /^Save$/ }).waitFor();
  assert.equal(put.waiting.length, 1, "one save at a time");
  assert.equal(await desk.read("Script"), "function first() {} // one // two");
  await page.keyboard.press("Control+s");
  // Save is disabled during the save already; this button goes when nothing is left to save.
  await page.getByRole("button", { name: "Discard changes" }).waitFor({ state: "detached" });
  assert.equal(await asksBeforeLeaving(), false);
  const { StoredProcedures } = await call("GET", "sprocs", `dbs/${place.db}/colls/things`, `dbs/${place.db}/colls/things/sprocs`);
  assert.equal(StoredProcedures.find(({ id }) => id === "first").body, "function first() {} // one // two");

  await desk.append("Script", " // three");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await eventually(async () => assert.equal(await desk.read("Script"), "function first() {} // one // two"));
  await page.getByRole("button", { name: "New procedure" }).click();
  await page.getByLabel("Name", { exact: true }).fill("third");
  await open("second");
  await page.getByRole("button", { name: "New procedure" }).click();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "third");
  await desk.close();
});

test("a dialog gives the focus back to what opened it", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  await desk.signIn(`${place.hash}/items`);
  const upload = page.getByRole("button", { name: "Upload" });
  for (const leave of [() => page.keyboard.press("Escape"), () => page.getByRole("button", { name: "Close" }).click()]) {
    await upload.focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Files").waitFor();
    await leave();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.ok(await upload.evaluate((button) => button === document.activeElement));
  }
  await desk.close();
});

test("the arrow keys lead over all tabs, and an editor that appears late takes no focus away", async (t) => {
  const place = await makeContainer("/id");
  const desk = await Desk.open(t, browser);
  const { page } = desk;
  // The editors are loaded when the first one is shown; here that takes until something else has the focus.
  await desk.signIn();
  const loaded = await desk.hold(() => true, /_explorer\/part-/);
  await desk.goTo(`${place.hash}/query`);
  await page.getByLabel("Parameters").focus();
  await loaded.isReached(1);
  await loaded.letGo();
  await page.locator("[data-editor=Query] .cm-content").waitFor();
  await page.keyboard.type("{}");
  assert.equal(await page.getByLabel("Parameters").inputValue(), "{}");
  await page.getByRole("tab", { name: "Items" }).click();
  for (const name of ["Query", "Scripts", "Settings"]) {
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tab", { name, selected: true }).waitFor();
    if (name === "Query") await page.locator("[data-editor=Query] .cm-content").waitFor();
  }
  // Where nothing has the focus, the editor takes it.
  await desk.goTo(`${place.hash}/items`);
  await page.evaluate(() => document.activeElement.blur());
  await desk.goTo(`${place.hash}/query`);
  await page.locator("[data-editor=Query] .cm-content:focus").waitFor();
  await desk.close();
});

test("everything works by keyboard, dark, and at 800 pixels", async (t) => {
  const place = await makeContainer("/id", { coll: "keys" });
  await upsert(place, ["1"], { id: "1", total: 3 });
  const desk = await Desk.open(t, browser, { viewport: { width: 800, height: 600 }, colorScheme: "dark" });
  const { page } = desk;
  await page.goto(`${endpoint}/_explorer`);
  await page.getByLabel("Account key").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("treeitem", { name: "keys", exact: true }).waitFor();
  await page.locator("body").focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  // Nothing behind an open dialog takes the focus.
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "detached" });
  await page.keyboard.press("t");
  await page.keyboard.press("End");
  // How many steps it takes is up to the other tests: their databases are in the tree too.
  const isReached = () => page.evaluate(() => document.activeElement?.matches("[role=treeitem][title=keys]") ?? false);
  for (let step = 0; step < 500 && !(await isReached()); step += 1) await page.keyboard.press("ArrowUp");
  assert.ok(await isReached(), "the arrow keys lead to the container");
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "Items", selected: true }).waitFor();
  await page.getByRole("option").first().waitFor();
  await page.getByRole("listbox", { name: "Items" }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("[data-editor=Item] .cm-content").waitFor();
  await desk.picture("800-dark-items");
  await desk.accessible("800 dark items");
  await page.getByRole("tab", { name: "Items", selected: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator("[data-editor=Query] .cm-content").focus();
  await page.keyboard.press("Control+Enter");
  await page.locator("[data-run=done]").waitFor();
  await desk.picture("800-dark-query");
  await desk.accessible("800 dark query");
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(overflow, 0, "the page does not scroll sideways");
  await page.getByRole("button", { name: "Light" }).click();
  await eventually(async () => assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light"));
  await page.reload();
  await page.locator(".desk").waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await desk.close();
});
