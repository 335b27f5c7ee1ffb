// Tables: containers of the database TablesDB whose key is `$pk`. The page reads and writes them through the NoSQL API, with
// items in the shape of entities, as older clients of the service do.

import { pathNames } from "../text/json.ts";
import { TICKS_TO_1970, momentText, readEntity, writeEntity, type Entity } from "../text/entity.ts";
import type { Client } from "./client.ts";
import { createItem, queryItems, replaceItem, type Container, type Item, type ItemHead, type Page, type Place } from "./resources.ts";
import { members } from "../text/json.ts";

export const TABLES_DATABASE = "TablesDB";

export function isTable(db: string, container: Container): boolean {
  const [path, ...more] = container.partitionKey.paths;
  return db === TABLES_DATABASE && path !== undefined && more.length === 0 && pathNames(path).join("/") === "$pk";
}

/** The definition of a new table, as the Table API makes it. */
export const tableDefinition = (id: string) => ({
  id,
  partitionKey: { paths: ["/'$pk'"], kind: "Hash", version: 2 },
  indexingPolicy: {
    indexingMode: "consistent",
    automatic: true,
    includedPaths: [{ path: "/*" }],
    excludedPaths: [{ path: '/"_etag"/?' }, { path: '/"$id"/?' }],
    compositeIndexes: [[{ path: '/"$pk"', order: "ascending" }, { path: "/id", order: "ascending" }]],
  },
});

const TABLE_NAME_CHARS_MAX = 254;

/** What is wrong with the name of a new table, by the rule of the Table API. */
export function tableNameError(name: string): string {
  if ([...name].length > TABLE_NAME_CHARS_MAX) return `A table's name has at most ${TABLE_NAME_CHARS_MAX} characters.`;
  if (/[/\\#?\p{Cc}]/u.test(name)) return "A table's name has none of the characters / \\ # ? and no control characters.";
  if (name.endsWith(" ")) return "A table's name does not end with a space.";
  const isOther = /^Tables($|\()|\(\s*(PartitionKey|RowKey)=|\(\s*\)$/.test(name) || name === "$batch";
  return isOther ? "This name means something else in the addresses of the Table API." : "";
}

export interface EntityRow {
  head: ItemHead;
  entity: Entity;
  /** When it was last written. */
  timestamp: string;
}

/** The order of keys where an index has it, as tables have; else that of partition keys alone. */
function orderOf(container: Container): string {
  const indexes = (container.indexingPolicy["compositeIndexes"] ?? []) as { path: string }[][];
  const hasKeys = indexes.some((index) => index.map(({ path }) => path.replaceAll('"', "")).join() === "/$pk,/id");
  return `ORDER BY c["$pk"]${hasKeys ? ', c["id"]' : ""}`;
}

export async function listEntities(
  client: Client,
  place: Place,
  container: Container,
  condition: string,
  continuation: string | null,
  signal: AbortSignal,
): Promise<Page<EntityRow>> {
  const where = condition === "" ? "" : `WHERE ${condition}`;
  const query = `SELECT c AS e, WRITTENAT(c) AS w FROM c ${where} ${orderOf(container)}`;
  const page = await queryItems(client, place, query, continuation, signal);
  return { ...page, rows: page.rows.map(rowOf) };
}

function rowOf(json: string): EntityRow {
  const parts = members(json);
  const item = parts.get("e") ?? "{}";
  const written = BigInt(parts.get("w") ?? "0");
  return { head: headOf(item), entity: readEntity(item), timestamp: momentText(written + TICKS_TO_1970) };
}

export function headOf(item: string): ItemHead {
  const found = members(item);
  const text = (name: string) => String(JSON.parse(found.get(name) ?? '""'));
  return { id: text("id"), rid: text("_rid"), etag: text("_etag"), ts: Number(found.get("_ts") ?? 0), key: [text("$pk")] };
}

export const createEntity = (client: Client, place: Place, entity: Entity): Promise<Item> =>
  createItem(client, place, [entity.partitionKey], writeEntity(entity));

export const replaceEntity = (client: Client, place: Place, container: Container, head: ItemHead, entity: Entity, etag: string): Promise<Item> =>
  replaceItem(client, place, container, head, writeEntity(entity), etag);
