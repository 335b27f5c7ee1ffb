// Entities of tables, as items have them: each property is an object with its type (`$t`) and value (`$v`).
//
// 64-bit integers and moments are stored as texts of 20 digits, so that their order is that of their values. Values are
// kept as texts here: JavaScript has no numbers for all of them.

import { members } from "./json.ts";

export const KINDS = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"] as const;
export type Kind = (typeof KINDS)[number];

/** The numbers that stand for the types. */
export const NUMBERS: Record<Kind, number> = { Guid: 0, Double: 1, String: 2, Binary: 5, Boolean: 8, DateTime: 9, Int32: 16, Int64: 18 };

export interface Property {
  name: string;
  kind: Kind;
  /** As a person reads and types it. */
  text: string;
}

export interface Entity {
  partitionKey: string;
  rowKey: string;
  properties: Property[];
  /** Members of the item that are no properties: they stay as they are. */
  rest: [name: string, json: string][];
}

/** Names that items need for themselves; as names of properties they are stored behind `$$`, as are those with a `$` in front. */
const TAKEN = new Set(["id", "ttl", "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"]);
const SYSTEM = new Set(["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"]);
const KEYS = new Set(["id", "$id", "$pk"]);

export const storedName = (name: string) => (TAKEN.has(name) || name.startsWith("$") ? `$$${name}` : name);

function propertyName(stored: string): string | undefined {
  if (stored.startsWith("$$")) return stored.slice(2);
  return TAKEN.has(stored) || stored.startsWith("$") ? undefined : stored;
}

/** 20 digits; a negative number has a minus sign in front. */
export const padded = (value: bigint) => (value < 0n ? "-" : "") + String(value < 0n ? -value : value).padStart(20, "0");

const TICKS_A_SECOND = 10_000_000n;
/** Ticks of 100 ns from the year 1 to 1970. */
export const TICKS_TO_1970 = 719_162n * 86_400n * TICKS_A_SECOND;
const TICKS_END = 3_652_059n * 86_400n * TICKS_A_SECOND;

/** `2022-05-06T00:47:47.9267336Z` */
export function momentText(ticks: bigint): string {
  const since = ticks - TICKS_TO_1970;
  const part = ((since % TICKS_A_SECOND) + TICKS_A_SECOND) % TICKS_A_SECOND;
  const date = new Date(Number((since - part) / TICKS_A_SECOND) * 1000);
  return `${date.toISOString().slice(0, 19)}.${String(part).padStart(7, "0")}Z`;
}

const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d)?(?:\.(\d+))?(Z|z|[+-]\d\d:\d\d)?)?$/;

/** Ticks of a moment; undefined if it is none. A part of the second has seven digits that count; without a zone it is UTC. */
export function momentTicks(text: string): bigint | undefined {
  const match = MOMENT.exec(text.trim());
  if (match === null) return undefined;
  const [, day = "", minutes = "00:00", seconds = ":00", part = "", zone = "Z"] = match;
  const time = Date.parse(`${day}T${minutes}${seconds}${zone.toUpperCase()}`);
  // The 30th of February is another day to the browser.
  const isDay = Number.isFinite(time) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  if (!isDay) return undefined;
  const ticks = TICKS_TO_1970 + (BigInt(time) / 1000n) * TICKS_A_SECOND + BigInt(part.padEnd(7, "0").slice(0, 7));
  return ticks >= 0n && ticks < TICKS_END ? ticks : undefined;
}

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const NUMBER = /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const NO_NUMBERS = new Set(["NaN", "Infinity", "-Infinity"]);

/** What is wrong with the text of a value; nothing if it is one of its type. */
export function valueError(kind: Kind, text: string): string {
  const typed = text.trim();
  const between = (bits: bigint) => /^-?\d{1,20}$/.test(typed) && BigInt(typed) >= -(2n ** bits) && BigInt(typed) < 2n ** bits;
  switch (kind) {
    case "String":
      return "";
    case "Int32":
      return between(31n) ? "" : "A whole number of 32 bits.";
    case "Int64":
      return between(63n) ? "" : "A whole number of 64 bits.";
    case "Double":
      return (NUMBER.test(typed) && Number.isFinite(Number(typed))) || NO_NUMBERS.has(typed) ? "" : "A number, NaN, Infinity or -Infinity.";
    case "Boolean":
      return typed === "true" || typed === "false" ? "" : "true or false.";
    case "DateTime":
      return momentTicks(typed) === undefined ? "A moment such as 2026-01-31T12:30:00Z." : "";
    case "Guid":
      return GUID.test(typed) ? "" : "A GUID such as 0f8fad5b-d9cb-469f-a165-70867728950e.";
    case "Binary":
      return BASE64.test(typed) ? "" : "Bytes as base64.";
  }
}

/** The stored value of a text that [valueError] takes, as JSON. */
function storedValue(kind: Kind, text: string): string {
  const typed = text.trim();
  switch (kind) {
    case "String":
      return JSON.stringify(text);
    case "Int32":
      return String(BigInt(typed));
    case "Int64":
      return JSON.stringify(padded(BigInt(typed)));
    case "Double":
      // Without a point it is the same number; the type says what it is.
      return NO_NUMBERS.has(typed) ? JSON.stringify(typed) : JSON.stringify(Number(typed));
    case "Boolean":
      return typed;
    case "DateTime":
      return JSON.stringify(padded(momentTicks(typed) ?? 0n));
    case "Guid":
      return JSON.stringify(typed.toLowerCase());
    case "Binary":
      return JSON.stringify(typed);
  }
}

/** Reads a stored property; undefined if it is not of the shape. */
function readProperty(name: string, json: string): Property | undefined {
  const parts = members(json);
  const number = Number(parts.get("$t"));
  const kind = KINDS.find((one) => NUMBERS[one] === number);
  const stored = parts.get("$v");
  if (kind === undefined || stored === undefined || !parts.has("$t")) return undefined;
  const isText = stored.startsWith('"');
  const value = isText ? (JSON.parse(stored) as string) : stored;
  if (kind === "Int64" || kind === "DateTime") {
    if (!isText || !/^-?\d{1,20}$/.test(value)) return undefined;
    const whole = BigInt(value);
    if (kind === "Int64") return { name, kind, text: String(whole) };
    return whole >= 0n && whole < TICKS_END ? { name, kind, text: momentText(whole) } : undefined;
  }
  const wantsText = kind === "String" || kind === "Guid" || kind === "Binary" || NO_NUMBERS.has(value);
  return isText === wantsText && valueError(kind, value) === "" ? { name, kind, text: value } : undefined;
}

export function readEntity(json: string): Entity {
  const found = members(json);
  const text = (name: string) => {
    const value = found.get(name);
    return value?.startsWith('"') === true ? (JSON.parse(value) as string) : "";
  };
  const entity: Entity = { partitionKey: text("$pk"), rowKey: text("id"), properties: [], rest: [] };
  for (const [stored, value] of found) {
    if (KEYS.has(stored) || SYSTEM.has(stored)) continue;
    const name = propertyName(stored);
    const property = name === undefined ? undefined : readProperty(name, value);
    if (property === undefined) entity.rest.push([stored, value]);
    else entity.properties.push(property);
  }
  return entity;
}

/** The item of an entity whose values are all right. */
export function writeEntity(entity: Entity): string {
  const key = JSON.stringify(entity.rowKey);
  const properties = entity.properties.map(({ name, kind, text }) => {
    return `${JSON.stringify(storedName(name))}:{"$t":${NUMBERS[kind]},"$v":${storedValue(kind, text)}}`;
  });
  const rest = entity.rest.map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  return `{${[`"id":${key}`, `"$id":${key}`, `"$pk":${JSON.stringify(entity.partitionKey)}`, ...properties, ...rest].join(",")}}`;
}

/** What tables forbid in keys. */
const KEY_FORBIDDEN = /[/\\#?\u0000-\u001f\u007f-\u009f]/;

export const keyError = (key: string) => (KEY_FORBIDDEN.test(key) ? "A key cannot have / \\ # ? or control characters." : "");

/** What is wrong with an entity; nothing if it can be saved. */
export function entityError(entity: Entity): string {
  if (entity.rowKey === "") return "A RowKey is needed.";
  const names = new Set<string>();
  for (const { name, kind, text } of entity.properties) {
    if (name === "") return "Every property needs a name.";
    if (/^(PartitionKey|RowKey|Timestamp)$/.test(name)) return `${name} is not a property of its own.`;
    if (names.has(name)) return `There are two properties named ${name}.`;
    names.add(name);
    const wrong = valueError(kind, text);
    if (wrong !== "") return `${name}: ${wrong}`;
  }
  return keyError(entity.partitionKey) || keyError(entity.rowKey);
}
