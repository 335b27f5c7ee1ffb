// The query language as the editor knows it: words to colour, and words to complete.

import { type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { SQLDialect } from "@codemirror/lang-sql";

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

/** Completes property names behind a dot, keywords and functions elsewhere. */
export function completeQuery(context: CompletionContext, properties: string[]): CompletionResult | null {
  const path = context.matchBefore(/[A-Za-z_]\w*(?:\.\w+|\[\])*\.\w*/);
  if (path !== null) {
    const parts = path.text.split(".");
    const typed = parts.pop() ?? "";
    const owner = parts.slice(1).join(".");
    const prefix = owner === "" ? "" : `${owner}.`;
    const names = new Set<string>();
    for (const property of properties) {
      if (property.startsWith(prefix)) names.add(property.slice(prefix.length).split(".")[0] ?? "");
    }
    const options = [...names].filter((name) => /^[A-Za-z_]\w*$/.test(name)).map((label) => ({ label, type: "property" }));
    return { from: context.pos - typed.length, options, validFor: /^\w*$/ };
  }
  const word = context.matchBefore(/\w+/);
  if (word === null && !context.explicit) return null;
  return { from: word?.from ?? context.pos, options: words, validFor: /^\w*$/ };
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
