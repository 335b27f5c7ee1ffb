// Filters of the Table API, as conditions of the query language over entities that are called c.
//
// A comparison asks for the type of the property as well as for its value: a text may look like a padded number.

import { momentTicks, NUMBERS, padded, storedName, TICKS_TO_1970 } from "./entity.ts";

export class FilterError extends Error {}

const TOKEN = /\s*(?:(\()|(\))|(datetime|guid|binary|X)?'((?:[^']|'')*)'|(-?\d+)[Ll](?![\w.])|(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|([A-Za-z_][\w]*))/y;
const OPERATORS: Record<string, string> = { eq: "=", ne: "!=", gt: ">", ge: ">=", lt: "<", le: "<=" };
const TURNED: Record<string, string> = { ">": "<", ">=": "<=", "<": ">", "<=": ">=" };

type Token =
  | { type: "open" | "close" }
  | { type: "word"; word: string }
  | { type: "text" | "datetime" | "guid"; text: string }
  | { type: "long"; value: bigint }
  | { type: "number"; text: string };

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim() !== "") {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new FilterError(`A filter cannot have this: ${text.slice(at).trim().slice(0, 20)}`);
    const [, open, close, prefix, quoted, long, number, word] = match;
    if (open !== undefined) tokens.push({ type: "open" });
    else if (close !== undefined) tokens.push({ type: "close" });
    else if (long !== undefined) tokens.push({ type: "long", value: BigInt(long) });
    else if (number !== undefined) tokens.push({ type: "number", text: number });
    else if (word !== undefined) tokens.push({ type: "word", word });
    else if (prefix === "datetime" || prefix === "guid") tokens.push({ type: prefix, text: quoted ?? "" });
    else if (prefix !== undefined) throw new FilterError("Binary values cannot be filtered by here; use the Query tab.");
    else tokens.push({ type: "text", text: (quoted ?? "").replaceAll("''", "'") });
  }
  return tokens;
}

/** The condition that a filter stands for. */
export function conditionOf(filter: string): string {
  const tokens = tokensOf(filter);
  let at = 0;
  const isWord = (word: string) => {
    const token = tokens[at];
    return token?.type === "word" && token.word.toLowerCase() === word;
  };
  const chain = (word: string, part: () => string): string => {
    const parts = [part()];
    while (isWord(word)) {
      at += 1;
      parts.push(part());
    }
    return parts.length === 1 ? (parts[0] as string) : `(${parts.join(` ${word.toUpperCase()} `)})`;
  };
  const either = (): string => chain("or", () => chain("and", one));
  const one = (): string => {
    if (isWord("not")) {
      at += 1;
      return `NOT (${one()})`;
    }
    const token = tokens[at];
    at += 1;
    if (token?.type === "open") {
      const inner = either();
      if (tokens[at]?.type !== "close") throw new FilterError("A closing parenthesis is missing.");
      at += 1;
      return `(${inner})`;
    }
    if (token?.type !== "word") throw new FilterError("A comparison such as Age gt 40 is needed.");
    const operator = tokens[at];
    const sign = operator?.type === "word" ? OPERATORS[operator.word.toLowerCase()] : undefined;
    if (sign === undefined) throw new FilterError(`Behind ${token.word} one of eq, ne, gt, ge, lt and le is needed.`);
    const literal = tokens[at + 1];
    if (literal === undefined) throw new FilterError("A value is missing at the end.");
    at += 2;
    return comparison(token.word, sign, literal);
  };
  const condition = either();
  if (at < tokens.length) throw new FilterError("Between two comparisons an and or an or is needed.");
  return condition;
}

function comparison(name: string, sign: string, literal: Token): string {
  if (name === "PartitionKey" || name === "RowKey") {
    if (literal.type !== "text") throw new FilterError(`${name} is a text: '…'.`);
    return `c[${JSON.stringify(name === "RowKey" ? "id" : "$pk")}] ${sign} ${JSON.stringify(literal.text)}`;
  }
  if (name === "Timestamp") {
    if (literal.type !== "datetime") throw new FilterError("Timestamp is a moment: datetime'2026-01-31T12:30:00Z'.");
    return `WRITTENAT(c) ${sign} ${ticksOf(literal.text) - TICKS_TO_1970}`;
  }
  const stored = `c[${JSON.stringify(storedName(name))}]`;
  const value = `${stored}["$v"]`;
  const typed = (kind: keyof typeof NUMBERS, condition: string) => `(${stored}["$t"] = ${NUMBERS[kind]} AND ${condition})`;
  const short = (number: string) => `(${stored}["$t"] IN (${NUMBERS.Int32}, ${NUMBERS.Double}) AND ${value} ${sign} ${number})`;
  switch (literal.type) {
    case "text":
      return typed("String", `${value} ${sign} ${JSON.stringify(literal.text)}`);
    case "guid":
      return typed("Guid", `${value} ${sign} ${JSON.stringify(literal.text.toLowerCase())}`);
    case "datetime":
      return typed("DateTime", `${value} ${sign} ${JSON.stringify(padded(ticksOf(literal.text)))}`);
    case "long":
      return `(${short(String(literal.value))} OR ${typed("Int64", longCondition(value, sign, literal.value))})`;
    case "number":
      return `(${short(literal.text)} OR ${typed("Int64", besideCondition(value, sign, literal.text))})`;
    case "word":
      if (literal.word === "true" || literal.word === "false") return typed("Boolean", `${value} ${sign} ${literal.word}`);
  }
  throw new FilterError(`What ${name} is compared with is no value: texts are in single quotes.`);
}

/** Among negative numbers, which are texts with a minus sign, the order is turned, and all of them come before the others. */
function longCondition(value: string, sign: string, number: bigint): string {
  const text = JSON.stringify(padded(number));
  const turned = TURNED[sign];
  if (number >= 0n || turned === undefined) return `${value} ${sign} ${text}`;
  return sign.startsWith("<") ? `${value} ${turned} ${text} AND ${value} < "0"` : `(${value} ${turned} ${text} OR ${value} >= "0")`;
}

/** The same with a number that may lie between two whole ones. */
function besideCondition(value: string, sign: string, text: string): string {
  if (/^-?\d+$/.test(text)) return longCondition(value, sign, BigInt(text));
  const number = Number(text);
  if (!Number.isFinite(number)) throw new FilterError(`This is no number: ${text}`);
  const below = BigInt(Math.floor(number));
  if (Number.isInteger(number)) return longCondition(value, sign, below);
  if (!(sign in TURNED)) return String(sign === "!=");
  return longCondition(value, sign.startsWith("<") ? "<=" : ">", below);
}

function ticksOf(text: string): bigint {
  const ticks = momentTicks(text);
  if (ticks === undefined) throw new FilterError(`This is no moment: ${text}`);
  return ticks;
}
