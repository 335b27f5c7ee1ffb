// How the scenarios reach the server: one endpoint and key from the environment.
import { createHmac } from "node:crypto";
import { CosmosClient } from "@azure/cosmos";

const endpoint = required("ORRERY_ENDPOINT");
const key = required("ORRERY_KEY");

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run tests/sdk/run.sh`);
  return value;
}

export function connect(options = {}) {
  return new CosmosClient({ endpoint, key, ...options });
}

/** A client without the key: what it may do is in the options. */
export function connectWith(options) {
  return new CosmosClient({ endpoint, ...options });
}

/** A client that shows 429 to the caller instead of waiting and trying again. */
export function connectWithoutRetry() {
  return connect({
    connectionPolicy: {
      retryOptions: {
        maxRetryAttemptCount: 0,
        fixedRetryIntervalInMilliseconds: 0,
        maxWaitTimeInSeconds: 0,
      },
    },
  });
}

export function databaseName(label) {
  return `js-${label}-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
}

/** Runs an operation that must fail and hands back its status code. */
export async function statusOf(promise) {
  try {
    await promise;
  } catch (error) {
    if (typeof error.code !== "number") throw error;
    return error.code;
  }
  throw new Error("the operation succeeded but had to fail");
}

/** Sends a signed request to a path under /_orrery/, which no SDK knows, and returns the JSON of a good answer. */
export async function manage(verb, path, body) {
  const link = `_orrery/${path}`;
  const date = new Date().toUTCString();
  const text = `${verb.toLowerCase()}\norrery\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const answer = await fetch(new URL(link, endpoint), {
    method: verb,
    headers: { "x-ms-date": date, authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return answer.json();
}
