// The same as worker.py with the official JavaScript SDK.

import { CosmosClient } from "@azure/cosmos";

const [name, database, container, mode] = process.argv.slice(2);
const kills = mode === "kills";
const KEYS = 12, IDS = 6;
const client = new CosmosClient({ endpoint: process.env.ORRERY_ENDPOINT, key: process.env.ORRERY_KEY });
const items = client.database(database).container(container);
await items.read();
process.stdout.write("ready\n");
const states = new Map();
const versions = new Map();
let stopped = false;
let ops = 0;
process.stdin.on("end", () => { stopped = true; }).resume();

const below = (most) => Math.floor(Math.random() * most);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const parts = (place) => place.split("|");
const allowed = (place) => states.get(place) ?? new Set([null]);

function fail(text) {
    process.stdout.write(`${JSON.stringify({ worker: name, wrong: text })}\n`, () => process.exit(1));
    throw new Error(text);
}

// Only a killed server may be noticed, and only as a broken connection or a refused one. The last of these words are
// what the SDK says when an answer breaks off in the middle.
const OUTAGE = /ECONNREFUSED|ECONNRESET|EPIPE|socket hang up|REQUEST_SEND_ERROR|Error reading response as text/;
const isOutage = (error) => kills && OUTAGE.test(`${error.code} ${error.message} ${error.name}`);

function settle(place, found, how) {
    if (!allowed(place).has(found)) fail(`${how} of ${place} found ${found}, and it must be one of ${[...allowed(place)]}`);
    states.set(place, new Set([found]));
}

async function put(place) {
    const [pk, id] = parts(place);
    const version = (versions.get(place) ?? 0) + 1;
    versions.set(place, version);
    states.set(place, new Set([...allowed(place), version]));
    await items.items.upsert({ id, pk, owner: name, n: version, text: "x".repeat(below(400)) });
    states.set(place, new Set([version]));
}

async function remove(place) {
    const [pk, id] = parts(place);
    const before = allowed(place);
    states.set(place, new Set([...before, null]));
    try {
        await items.item(id, pk).delete();
    } catch (error) {
        if (error.code !== 404) throw error;
        if (!before.has(null) && !kills) fail(`${place} is not there to be deleted`);
    }
    states.set(place, new Set([null]));
}

async function read(place) {
    const [pk, id] = parts(place);
    const { resource, statusCode } = await items.item(id, pk).read();
    settle(place, statusCode === 404 || !resource ? null : resource.n, "a read");
}

async function query() {
    const spec = {
        query: "SELECT c.pk, c.id, c.n FROM c WHERE c.owner = @me ORDER BY c.n",
        parameters: [{ name: "@me", value: name }],
    };
    const key = `${name}-${below(KEYS)}`;
    const one = Math.random() < 0.5;
    const options = one ? { partitionKey: key } : { maxItemCount: 7 };
    const { resources } = await items.items.query(spec, options).fetchAll();
    const found = new Map(resources.map((row) => [`${row.pk}|${row.id}`, row.n]));
    if (found.size !== resources.length) fail(`a query returned ${resources.length} rows of ${found.size} items`);
    for (const place of [...states.keys()].filter((place) => !one || parts(place)[0] === key)) {
        settle(place, found.get(place) ?? null, "a query");
        found.delete(place);
    }
    if (found.size > 0) fail(`a query found what was never written: ${[...found]}`);
}

const actions = [put, put, put, read, read, remove, query];
// The longest time in which nothing succeeded.
let longest = 0, succeeded = performance.now();
while (!stopped) {
    const place = `${name}-${below(KEYS)}|i${below(IDS)}`;
    const action = actions[below(actions.length)];
    try {
        await action(place);
        ops += 1;
        longest = Math.max(longest, performance.now() - succeeded);
        succeeded = performance.now();
    } catch (error) {
        if (!isOutage(error)) fail(`${action.name}: ${error.code} ${error.message}`);
        await pause(50);
    }
}
const model = Object.fromEntries([...states].map(([place, set]) => [place, [...set]]));
process.stdout.write(`${JSON.stringify({ worker: name, ops, longest_ms: Math.round(longest), items: model })}\n`, () => process.exit(0));
