// Real throttling: seen when the client does not retry, overcome when it does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, connectWithoutRetry, databaseName } from "./client.mjs";

const id = databaseName("throttling");
const patient = connect({ connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 120 } } });
// Every property is an index term to write, so these small items are expensive ones.
const properties = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`p${index}`, index]));
const writes = 40;
const writers = 8;

before(async () => {
  const { database } = await patient.databases.create({ id });
  await database.containers.create({ id: "slow", partitionKey: { paths: ["/pk"] }, throughput: 400 });
});

after(() => patient.database(id).delete());

/** A few writers at once, one write after the other each: a server may admit what arrives together. */
async function writeTo(client, round) {
  const container = client.database(id).container("slow");
  const answers = [];
  let next = 0;
  const writer = async () => {
    while (next < writes) {
      const index = next;
      next += 1;
      const item = { id: `${round}-${index}`, pk: `${index}`, ...properties };
      answers.push(await container.items.upsert(item).catch((error) => error));
    }
  };
  await Promise.all(Array.from({ length: writers }, writer));
  return answers;
}

test("a hammered container answers 429 with a time to wait", async () => {
  const answers = await writeTo(connectWithoutRetry(), "hard");
  const refused = answers.filter((answer) => answer instanceof Error || answer.statusCode === undefined);
  assert.ok(refused.length > 0, "no request was throttled");
  for (const error of refused) {
    assert.equal(error.code, 429);
    assert.equal(Number(error.substatus ?? error.headers["x-ms-substatus"]), 3200);
    assert.ok(error.retryAfterInMs > 0 || Number(error.headers["x-ms-retry-after-ms"]) > 0);
  }
});

test("the SDK waits and retries until every write is in", async () => {
  const answers = await writeTo(patient, "patient");
  const retries = answers.map((answer) => Number(answer.headers["x-ms-throttle-retry-count"] ?? 0));
  assert.ok(Math.max(...retries) > 0, "no request had to be retried");
  assert.ok(answers.every((answer) => answer.statusCode === 201));
});

for (const width of [5, 50]) {
  test(`the SDK's own retries bring 600 writes through with ${width} under way`, async () => {
    const client = connect();
    const { container } = await client.database(id).containers.create({
      id: `patient-${width}`,
      partitionKey: { paths: ["/pk"] },
      throughput: 400,
    });
    let next = 0;
    let charge = 0;
    let retries = 0;
    const writer = async () => {
      while (next < 600) {
        const index = next;
        next += 1;
        const answer = await container.items.create({ id: `item-${index}`, pk: `${index % 50}`, n: index });
        assert.equal(answer.statusCode, 201);
        charge += answer.requestCharge;
        retries += Number(answer.headers["x-ms-throttle-retry-count"] ?? 0);
      }
    };
    const began = performance.now();
    await Promise.all(Array.from({ length: width }, writer));
    const seconds = (performance.now() - began) / 1000;
    assert.ok(retries > 0, "no request had to be retried");
    // The budget decides how long it takes, not the client, which has a second for its connections and first steps.
    const ideal = charge / 400;
    assert.ok(seconds < 1.3 * ideal + 1, `${seconds.toFixed(1)} s for ${charge.toFixed(0)} RU, which are ${ideal.toFixed(1)} s`);
  });
}
