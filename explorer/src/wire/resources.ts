// Databases, containers, items, queries, scripts and offers, as the NoSQL REST API has them.

import { asciiJson, type Answer, type Asked, type ChargeLine, type Client, Refused } from "./client.ts";
import { elements, members, pathNames } from "../text/json.ts";

export interface Account {
  id: string;
  consistency: string;
  region: string;
  endpoint: string;
}

export interface Database {
  id: string;
  _rid: string;
}

export interface IndexingPolicy {
  [name: string]: unknown;
}

export interface Container {
  id: string;
  _rid: string;
  _self: string;
  _etag: string;
  partitionKey: { paths: string[]; kind: string; version?: number };
  indexingPolicy: IndexingPolicy;
  defaultTtl?: number;
  uniqueKeyPolicy?: { uniqueKeys: { paths: string[] }[] };
  [name: string]: unknown;
}

export interface Offer {
  id: string;
  _rid: string;
  offerResourceId: string;
  content: { offerThroughput: number; offerAutopilotSettings?: { maxThroughput: number } };
  [name: string]: unknown;
}

export type Throughput =
  | { kind: "shared" }
  | { kind: "manual"; units: number }
  | { kind: "autoscale"; max: number };

export interface Range {
  id: string;
  minInclusive: string;
  maxExclusive: string;
  throughputFraction: number;
  parents: string[];
}

/** Where a container is: its database and its own name. */
export interface Place {
  db: string;
  coll: string;
}

const EXPLAIN_CHARGE = { "x-orrery-explain-charge": "true" };
const JSON_BODY = { "content-type": "application/json" };

export const linkOf = (place: Place) => `dbs/${place.db}/colls/${place.coll}`;

export async function readAccount(client: Client): Promise<Account> {
  const answer = await client.resource("GET", "", "");
  const body = JSON.parse(answer.text) as {
    id: string;
    userConsistencyPolicy: { defaultConsistencyLevel: string };
    writableLocations: { name: string; databaseAccountEndpoint: string }[];
  };
  const location = body.writableLocations[0];
  return {
    id: body.id,
    consistency: body.userConsistencyPolicy.defaultConsistencyLevel,
    region: location?.name ?? "",
    endpoint: location?.databaseAccountEndpoint ?? "",
  };
}

/** Reads all pages of a list of resources. */
async function list<T>(client: Client, type: string, link: string, name: string): Promise<T[]> {
  const found: T[] = [];
  let continuation: string | null = null;
  do {
    const headers: Record<string, string> = { "x-ms-max-item-count": "1000" };
    if (continuation !== null) headers["x-ms-continuation"] = continuation;
    const answer: Answer = await client.resource("GET", type, link, { headers });
    found.push(...((JSON.parse(answer.text) as Record<string, T[]>)[name] ?? []));
    continuation = answer.headers.get("x-ms-continuation");
  } while (continuation !== null && found.length < 100_000);
  return found;
}

export const listDatabases = (client: Client) => list<Database>(client, "dbs", "dbs", "Databases");

export const listContainers = (client: Client, db: string) =>
  list<Container>(client, "colls", `dbs/${db}/colls`, "DocumentCollections");

function throughputHeaders(throughput: Throughput): Record<string, string> {
  switch (throughput.kind) {
    case "shared":
      return {};
    case "manual":
      return { "x-ms-offer-throughput": String(throughput.units) };
    case "autoscale":
      return { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: throughput.max }) };
  }
}

export async function createDatabase(client: Client, id: string, throughput: Throughput): Promise<void> {
  const headers = { ...JSON_BODY, ...throughputHeaders(throughput) };
  await client.resource("POST", "dbs", "dbs", { headers, body: JSON.stringify({ id }) });
}

export async function deleteDatabase(client: Client, db: string): Promise<void> {
  await client.resource("DELETE", "dbs", `dbs/${db}`);
}

export async function createContainer(client: Client, db: string, body: object, throughput: Throughput): Promise<void> {
  const headers = { ...JSON_BODY, ...throughputHeaders(throughput) };
  await client.resource("POST", "colls", `dbs/${db}/colls`, { headers, body: JSON.stringify(body) });
}

export interface ContainerState {
  container: Container;
  /** Percent of the index that is built. */
  indexProgress: number;
  /** Items, as the quota header tells. */
  items: number | undefined;
  kilobytes: number | undefined;
}

export async function readContainer(client: Client, place: Place): Promise<ContainerState> {
  const headers = { "x-ms-documentdb-populatequotainfo": "true" };
  const answer = await client.resource("GET", "colls", linkOf(place), { headers });
  const usage = figures(answer.headers.get("x-ms-resource-usage") ?? "");
  return {
    container: JSON.parse(answer.text) as Container,
    indexProgress: Number(answer.headers.get("x-ms-documentdb-collection-index-transformation-progress") ?? 100),
    items: usage.get("documentsCount"),
    kilobytes: usage.get("collectionSize") ?? usage.get("documentsSize"),
  };
}

/** `a=1;b=2` */
export function figures(text: string): Map<string, number> {
  const pairs = text.split(";").map((part) => part.split("="));
  return new Map(pairs.filter((pair) => pair.length === 2).map(([name, value]) => [name as string, Number(value)]));
}

export async function replaceContainer(client: Client, place: Place, body: Container): Promise<void> {
  const headers = { ...JSON_BODY, "if-match": body._etag };
  await client.resource("PUT", "colls", linkOf(place), { headers, body: JSON.stringify(body) });
}

export async function deleteContainer(client: Client, place: Place): Promise<void> {
  await client.resource("DELETE", "colls", linkOf(place));
}

export async function readRanges(client: Client, place: Place): Promise<Range[]> {
  const answer = await client.resource("GET", "pkranges", `${linkOf(place)}/pkranges`);
  return (JSON.parse(answer.text) as { PartitionKeyRanges: Range[] }).PartitionKeyRanges;
}

/** All offers, or undefined where the account is serverless and has none. */
export async function listOffers(client: Client): Promise<Offer[] | undefined> {
  try {
    return await list<Offer>(client, "offers", "offers", "Offers");
  } catch (error) {
    if (error instanceof Refused && error.status === 400) return undefined;
    throw error;
  }
}

export async function replaceOffer(client: Client, offer: Offer, throughput: Throughput): Promise<void> {
  const wasAutoscale = offer.content.offerAutopilotSettings !== undefined;
  const path = `offers/${offer._rid}`;
  const body = (content: object) => JSON.stringify({ ...offer, content });
  if (throughput.kind === "manual" && wasAutoscale) {
    const headers = { ...JSON_BODY, "x-ms-cosmos-migrate-offer-to-manual-throughput": "true" };
    await client.byRid("PUT", "offers", path, offer._rid, { headers, body: body(offer.content) });
  }
  if (throughput.kind === "autoscale" && !wasAutoscale) {
    const headers = { ...JSON_BODY, "x-ms-cosmos-migrate-offer-to-autopilot": "true" };
    await client.byRid("PUT", "offers", path, offer._rid, { headers, body: body(offer.content) });
  }
  const content =
    throughput.kind === "autoscale"
      ? { offerThroughput: -1, offerAutopilotSettings: { maxThroughput: throughput.max } }
      : { offerThroughput: throughput.kind === "manual" ? throughput.units : 0 };
  await client.byRid("PUT", "offers", path, offer._rid, { headers: JSON_BODY, body: body(content) });
}

// Items.

export interface ItemHead {
  id: string;
  rid: string;
  etag: string;
  ts: number;
  /** The values of the partition key; where an item has none, `{}` stands for it, as the protocol has it. */
  key: unknown[];
}

export interface Page<T> {
  rows: T[];
  continuation: string | null;
  charge: number;
}

/** A path as an expression of the query language. */
export const pathExpression = (path: string) => `c${pathNames(path).map((name) => `[${JSON.stringify(name)}]`).join("")}`;

const QUERY_HEADERS = {
  "content-type": "application/query+json",
  "x-ms-documentdb-isquery": "True",
  "x-ms-documentdb-query-enablecrosspartition": "True",
  "x-orrery-query-merge": "true",
};

export async function listItems(
  client: Client,
  place: Place,
  container: Container,
  filter: string,
  continuation: string | null,
  signal?: AbortSignal,
): Promise<Page<ItemHead>> {
  const paths = container.partitionKey.paths;
  const key = paths.map((path, index) => `"k${index}": ${pathExpression(path)}`).join(", ");
  const query = `SELECT c.id, c._rid AS rid, c._etag AS etag, c._ts AS ts, {${key}} AS k FROM c ${filter}`;
  const page = await queryItems(client, place, query, continuation, signal);
  const rows = page.rows.map((row) => {
    const { k, ...head } = JSON.parse(row) as Omit<ItemHead, "key"> & { k: Record<string, unknown> };
    return { ...head, key: paths.map((_, index) => (Object.hasOwn(k, `k${index}`) ? k[`k${index}`] : {})) };
  });
  return { ...page, rows };
}

/** A page of a query without parameters, each row as the text that came. */
export async function queryItems(
  client: Client,
  place: Place,
  query: string,
  continuation: string | null,
  signal?: AbortSignal,
): Promise<Page<string>> {
  const headers: Record<string, string> = { ...QUERY_HEADERS, "x-ms-max-item-count": "100" };
  if (continuation !== null) headers["x-ms-continuation"] = continuation;
  const asked: Asked = { headers, body: JSON.stringify({ query, parameters: [] }), signal };
  const answer = await client.resource("POST", "docs", `${linkOf(place)}/docs`, asked);
  const rows = elements(members(answer.text).get("Documents") ?? "[]");
  return { rows, continuation: answer.headers.get("x-ms-continuation"), charge: answer.charge };
}

/** Names that a path of the protocol cannot carry are reached by RID. */
const UNREACHABLE = /[/\\#\u0000-\u001f\u007f]|%[0-9a-f]{2}| $/i;

function itemRequest(
  client: Client,
  verb: string,
  place: Place,
  container: Container,
  item: { id: string; rid?: string; key: unknown[] },
  asked: Asked,
): Promise<Answer> {
  const headers = { ...asked.headers, ...EXPLAIN_CHARGE, "x-ms-documentdb-partitionkey": asciiJson(item.key) };
  if (item.rid !== undefined && UNREACHABLE.test(item.id)) {
    const path = `${container._self}docs/${item.rid}`;
    return client.byRid(verb, "docs", path, item.rid, { ...asked, headers });
  }
  return client.resource(verb, "docs", `${linkOf(place)}/docs/${item.id}`, { ...asked, headers });
}

export interface Item {
  text: string;
  etag: string;
  charge: number;
  lines: ChargeLine[];
}

export async function readItem(client: Client, place: Place, container: Container, head: ItemHead): Promise<Item> {
  return itemOf(await itemRequest(client, "GET", place, container, head, {}));
}

export async function replaceItem(
  client: Client,
  place: Place,
  container: Container,
  head: ItemHead,
  text: string,
  etag: string | undefined,
): Promise<Item> {
  const headers: Record<string, string> = { ...JSON_BODY };
  if (etag !== undefined) headers["if-match"] = etag;
  return itemOf(await itemRequest(client, "PUT", place, container, head, { headers, body: text }));
}

export async function deleteItem(client: Client, place: Place, container: Container, head: ItemHead): Promise<number> {
  const answer = await itemRequest(client, "DELETE", place, container, head, {});
  return answer.charge;
}

export async function createItem(
  client: Client,
  place: Place,
  key: unknown[],
  text: string,
  options: { upsert?: boolean; signal?: AbortSignal | undefined; minimal?: boolean } = {},
): Promise<Item> {
  const headers: Record<string, string> = {
    ...JSON_BODY,
    ...EXPLAIN_CHARGE,
    "x-ms-documentdb-partitionkey": asciiJson(key),
  };
  if (options.upsert === true) headers["x-ms-documentdb-is-upsert"] = "True";
  if (options.minimal === true) headers["prefer"] = "return=minimal";
  const asked: Asked = { headers, body: text, signal: options.signal };
  return itemOf(await client.resource("POST", "docs", `${linkOf(place)}/docs`, asked));
}

function itemOf(answer: Answer): Item {
  return { text: answer.text, etag: answer.headers.get("etag") ?? "", charge: answer.charge, lines: answer.lines };
}

// Queries.

export interface QueryPage {
  /** Each row as the text that came. */
  rows: string[];
  continuation: string | null;
  charge: number;
  lines: ChargeLine[];
  metrics: Map<string, number>;
  indexes: unknown;
  advice: { Id: string; Params?: string[]; [name: string]: unknown }[];
  plan: { text: string; plan: Plan } | undefined;
  access: string;
  milliseconds: number;
  bytes: number;
  throttled: number;
}

/** How a page was found, as docs of the query headers have it. */
export interface Plan {
  method: string;
  filter: Condition;
  order?: string;
  figures: Figures;
}

/** Of a filter; a text says that it is everything, or nothing. */
export type Condition = string | { all: Condition[] } | { any: Condition[] } | { path: string; condition: string; exact: boolean; used: boolean };

export interface Figures {
  scopeItems: number;
  indexEntries: number;
  documents: number;
  documentBytes: number;
  rows: number;
  indexLookupMicros: number;
  documentLoadMicros: number;
  evaluationMicros: number;
}

export interface QueryAsked {
  text: string;
  /** Values are JSON text: reading them would change numbers that JavaScript cannot hold. */
  parameters: { name: string; json: string }[];
  pageSize: number;
  access: "auto" | "scan" | "index";
  continuation: string | null;
  signal: AbortSignal;
}

export async function runQuery(client: Client, place: Place, asked: QueryAsked): Promise<QueryPage> {
  const headers: Record<string, string> = {
    ...QUERY_HEADERS,
    ...EXPLAIN_CHARGE,
    "x-orrery-explain": "true",
    "x-orrery-query-access": asked.access,
    "x-ms-documentdb-populatequerymetrics": "true",
    "x-ms-cosmos-populateindexmetrics-v2": "true",
    "x-ms-cosmos-populatequeryadvice": "true",
    "x-ms-max-item-count": String(asked.pageSize),
  };
  if (asked.continuation !== null) headers["x-ms-continuation"] = asked.continuation;
  const parameters = asked.parameters.map(({ name, json }) => `{"name":${JSON.stringify(name)},"value":${json}}`);
  const body = `{"query":${JSON.stringify(asked.text)},"parameters":[${parameters.join(",")}]}`;
  const answer = await client.resource("POST", "docs", `${linkOf(place)}/docs`, { headers, body, signal: asked.signal });
  const parts = members(answer.text);
  const told = parts.get("_explain");
  return {
    rows: elements(parts.get("Documents") ?? "[]"),
    continuation: answer.headers.get("x-ms-continuation"),
    charge: answer.charge,
    lines: answer.lines,
    metrics: figures(answer.headers.get("x-ms-documentdb-query-metrics") ?? ""),
    indexes: decoded(answer.headers.get("x-ms-cosmos-index-utilization")),
    advice: (decoded(answer.headers.get("x-ms-cosmos-query-advice")) as QueryPage["advice"] | undefined) ?? [],
    plan: told === undefined ? undefined : (JSON.parse(told) as QueryPage["plan"]),
    access: answer.headers.get("x-orrery-query-access") ?? "",
    milliseconds: answer.milliseconds,
    bytes: answer.text.length,
    throttled: answer.throttled,
  };
}

function decoded(header: string | null): unknown {
  if (header === null || header === "") return undefined;
  try {
    return JSON.parse(decodeURIComponent(header)) as unknown;
  } catch {
    return undefined;
  }
}

// Scripts.

export type ScriptKind = "sprocs" | "triggers" | "udfs";

export interface Script {
  id: string;
  body: string;
  triggerType?: "Pre" | "Post";
  triggerOperation?: string;
  _etag?: string;
}

const SCRIPT_LISTS: Record<ScriptKind, string> = {
  sprocs: "StoredProcedures",
  triggers: "Triggers",
  udfs: "UserDefinedFunctions",
};

export const listScripts = (client: Client, place: Place, kind: ScriptKind) =>
  list<Script>(client, kind, `${linkOf(place)}/${kind}`, SCRIPT_LISTS[kind]);

export async function saveScript(client: Client, place: Place, kind: ScriptKind, script: Script, isNew: boolean): Promise<Script> {
  const { _etag, ...content } = script;
  const headers: Record<string, string> = { ...JSON_BODY };
  if (!isNew && _etag !== undefined) headers["if-match"] = _etag;
  const link = isNew ? `${linkOf(place)}/${kind}` : `${linkOf(place)}/${kind}/${script.id}`;
  const answer = await client.resource(isNew ? "POST" : "PUT", kind, link, { headers, body: JSON.stringify(content) });
  return JSON.parse(answer.text) as Script;
}

export async function deleteScript(client: Client, place: Place, kind: ScriptKind, id: string): Promise<void> {
  await client.resource("DELETE", kind, `${linkOf(place)}/${kind}/${id}`);
}

export interface ScriptRun {
  result: string;
  log: string;
  charge: number;
  lines: ChargeLine[];
  milliseconds: number;
}

export async function runProcedure(
  client: Client,
  place: Place,
  id: string,
  key: unknown[],
  argumentsText: string,
  signal: AbortSignal,
): Promise<ScriptRun> {
  const headers = {
    ...JSON_BODY,
    ...EXPLAIN_CHARGE,
    "x-ms-documentdb-partitionkey": asciiJson(key),
    "x-ms-documentdb-script-enable-logging": "true",
  };
  const link = `${linkOf(place)}/sprocs/${id}`;
  const answer = await client.resource("POST", "sprocs", link, { headers, body: argumentsText, signal });
  return {
    result: answer.text,
    log: decodeURIComponent(answer.headers.get("x-ms-documentdb-script-log-results") ?? ""),
    charge: answer.charge,
    lines: answer.lines,
    milliseconds: answer.milliseconds,
  };
}
