// The query language as the editor knows it: words to colour, and words to complete.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { SQLDialect } from "@codemirror/lang-sql";
import type { EditorView } from "@codemirror/view";

const KEYWORDS = (
  "SELECT FROM WHERE ORDER BY GROUP TOP DISTINCT VALUE AS IN JOIN AND OR NOT BETWEEN LIKE ESCAPE EXISTS ARRAY ASC DESC " +
  "OFFSET LIMIT UDF ROOT"
).split(" ");

/** Functions with what they take, which is shown beside the name. */
const FUNCTIONS: Record<string, string> = {
  ABS: "number", ACOS: "number", ARRAY_AVG: "array", ARRAY_CONCAT: "array, array", ARRAY_CONTAINS: "array, value, partial?",
  ARRAY_CONTAINS_ALL: "array, value, …", ARRAY_CONTAINS_ANY: "array, value, …", ARRAY_LENGTH: "array", ARRAY_MAX: "array",
  ARRAY_MEDIAN: "array", ARRAY_MIN: "array", ARRAY_SLICE: "array, start, length?", ARRAY_SUM: "array", ASIN: "number",
  ATAN: "number", ATN2: "number, number", AVG: "number", CEILING: "number", CHOOSE: "index, value, …",
  CONCAT: "string, string", CONTAINS: "string, substring, ignoreCase?", COS: "number", COT: "number", COUNT: "value",
  DateTimeAdd: "part, number, date", DateTimeBin: "date, part, size?", DateTimeDiff: "part, from, to",
  DateTimeFromParts: "year, month, day", DateTimePart: "part, date", DateTimeToTicks: "date", DateTimeToTimestamp: "date",
  DEGREES: "number", DOCUMENTID: "root", ENDSWITH: "string, suffix, ignoreCase?", EXP: "number", FLOOR: "number",
  GetCurrentDateTime: "", GetCurrentTicks: "", GetCurrentTimestamp: "", IIF: "condition, then, else",
  INDEX_OF: "string, substring, start?", INTADD: "integer, integer", IS_ARRAY: "value", IS_BOOL: "value", IS_DATETIME: "value",
  IS_DEFINED: "value", IS_FINITE_NUMBER: "value", IS_INTEGER: "value", IS_NULL: "value", IS_NUMBER: "value",
  IS_OBJECT: "value", IS_PRIMITIVE: "value", IS_STRING: "value", LEFT: "string, length", LENGTH: "string",
  LOG: "number, base?", LOG10: "number", LOWER: "string", LTRIM: "string", MAX: "value", MIN: "value",
  NumberBin: "number, size?", ObjectToArray: "object", PI: "", POWER: "number, number", RADIANS: "number", RAND: "",
  RegexMatch: "string, pattern, modifiers?", REPLACE: "string, search, by", REPLICATE: "string, count", REVERSE: "string",
  RIGHT: "string, length", ROUND: "number", RTRIM: "string", SetDifference: "array, array", SetIntersect: "array, array",
  SetUnion: "array, array", SIGN: "number", SIN: "number", SQRT: "number", SQUARE: "number",
  STARTSWITH: "string, prefix, ignoreCase?", ST_AREA: "shape", ST_DISTANCE: "shape, shape", ST_INTERSECTS: "shape, shape",
  ST_ISVALID: "shape", ST_ISVALIDDETAILED: "shape", ST_WITHIN: "shape, shape", StringEquals: "string, string, ignoreCase?",
  StringJoin: "array, separator", StringSplit: "string, separator", StringToArray: "string", StringToBoolean: "string",
  StringToNull: "string", StringToNumber: "string", StringToObject: "string", SUBSTRING: "string, start, length",
  SUM: "number", TAN: "number", TicksToDateTime: "ticks", TimestampToDateTime: "timestamp", ToString: "value",
  TRIM: "string", TRUNC: "number", TYPE: "value", UPPER: "string",
};

export const dialect = SQLDialect.define({
  keywords: KEYWORDS.join(" ").toLowerCase(),
  builtin: Object.keys(FUNCTIONS).join(" ").toLowerCase(),
  types: "true false null undefined",
  doubleQuotedStrings: true,
  doubleDollarQuotedStrings: false,
  backslashEscapes: true,
  specialVar: "@",
});

const words = [
  ...KEYWORDS.map((label) => ({ label, type: "keyword" })),
  ...["true", "false", "null", "undefined"].map((label) => ({ label, type: "constant" })),
  ...Object.entries(FUNCTIONS).map(([label, takes]) => ({ label, type: "function", detail: `(${takes})`, apply: `${label}(` })),
];

const IDENTIFIER = /^[A-Za-z_]\w*$/;
/** What the server adds comes behind what the user wrote, and all of it before keywords and functions. */
const OWN = 60;
const SYSTEM = 30;
const boostOf = (name: string) => (name.startsWith("_") ? SYSTEM : OWN);

/** The name that the query gives to the items: `c`, unless FROM says otherwise. */
export function aliasOf(query: string): string {
  const match = /\bFROM\s+(\w+)(?:\s+AS\s+(\w+)|\s+(?!WHERE\b|JOIN\b|ORDER\b|GROUP\b|OFFSET\b|IN\b|AS\b)(\w+))?/i.exec(query);
  return match?.[2] ?? match?.[3] ?? match?.[1] ?? "c";
}

/** One name behind a dot; one that no identifier can be stands in brackets, without the dot. */
function property(label: string): Completion {
  const base = { label, type: "property", boost: boostOf(label) };
  if (IDENTIFIER.test(label)) return base;
  const text = `[${JSON.stringify(label)}]`;
  const apply = (view: EditorView, _: Completion, from: number, to: number) => {
    view.dispatch({ changes: { from: from - 1, to, insert: text }, selection: { anchor: from - 1 + text.length } });
  };
  return { ...base, apply };
}

/** Completes property names behind a dot; elsewhere the container's own properties, then keywords and functions. */
export function completeQuery(context: CompletionContext, properties: string[]): CompletionResult | null {
  const path = context.matchBefore(/[A-Za-z_]\w*(?:\.\w+|\[\])*\.\w*/);
  if (path !== null) {
    const parts = path.text.split(".");
    const typed = parts.pop() ?? "";
    const owner = parts.slice(1).join(".");
    const prefix = owner === "" ? "" : `${owner}.`;
    const names = new Set<string>();
    for (const name of properties) {
      if (name.startsWith(prefix)) names.add(name.slice(prefix.length).split(".")[0] ?? "");
    }
    return { from: context.pos - typed.length, options: [...names].map(property), validFor: /^\w*$/ };
  }
  const word = context.matchBefore(/\w+/);
  if (word === null && !context.explicit) return null;
  const alias = aliasOf(context.state.doc.toString());
  const top = properties.filter((name) => name.split(".").every((part) => IDENTIFIER.test(part)));
  const own = top.map((name) => ({ label: name, detail: "property", type: "property", apply: `${alias}.${name}`, boost: boostOf(name) }));
  return { from: word?.from ?? context.pos, options: [...own, ...words], validFor: /^\w*$/ };
}

/** The property paths of some items, with dots; elements of arrays are not looked into. */
export function propertiesOf(rows: unknown[], most = 500): string[] {
  const found = new Set<string>();
  const visit = (value: unknown, prefix: string, depth: number) => {
    if (depth > 6 || typeof value !== "object" || value === null || Array.isArray(value)) return;
    for (const [name, inner] of Object.entries(value)) {
      if (found.size >= most) return;
      found.add(prefix + name);
      visit(inner, `${prefix}${name}.`, depth + 1);
    }
  };
  for (const row of rows) visit(row, "", 0);
  return [...found];
}
