// JSON as text, without reading numbers: what a person did not change must go back to the server as it came.
//
// JavaScript's own reader turns 12345678901234567890 into another number. So items are laid out for editing by
// moving white space only, and the rows of a result are cut out of its text and read when they are shown.

const SPACE = /\s/;

/** The end of the value that begins at `at`: the place behind its last character. */
function endOfValue(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return endOfString(text, at);
  if (first !== "{" && first !== "[") {
    let end = at;
    while (end < text.length && !/[,\]}\s]/.test(text[end] as string)) end += 1;
    return end;
  }
  let depth = 0;
  for (let place = at; place < text.length; place += 1) {
    const character = text.charCodeAt(place);
    if (character === 0x22) place = endOfString(text, place) - 1;
    else if (character === 0x7b || character === 0x5b) depth += 1;
    else if (character === 0x7d || character === 0x5d) {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  return text.length;
}

function endOfString(text: string, at: number): number {
  let place = at + 1;
  for (;;) {
    const quote = text.indexOf('"', place);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    place = quote + 1;
  }
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && SPACE.test(text[at] as string)) at += 1;
  return at;
}

/** The elements of an array that begins at `at`, each as text. */
export function elements(text: string, at = 0): string[] {
  const found: string[] = [];
  let place = skipSpace(text, at);
  if (text[place] !== "[") return found;
  place = skipSpace(text, place + 1);
  while (place < text.length && text[place] !== "]") {
    const end = endOfValue(text, place);
    found.push(text.slice(place, end));
    place = skipSpace(text, end);
    if (text[place] === ",") place = skipSpace(text, place + 1);
  }
  return found;
}

/** The members of an object, each value as text. */
export function members(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let place = skipSpace(text, 0);
  if (text[place] !== "{") return found;
  place = skipSpace(text, place + 1);
  while (place < text.length && text[place] === '"') {
    const nameEnd = endOfString(text, place);
    const name = JSON.parse(text.slice(place, nameEnd)) as string;
    place = skipSpace(text, nameEnd);
    place = skipSpace(text, place + 1);
    const end = endOfValue(text, place);
    found.set(name, text.slice(place, end));
    place = skipSpace(text, end);
    if (text[place] === ",") place = skipSpace(text, place + 1);
  }
  return found;
}

/** Lays JSON out in lines, two spaces a level, and changes nothing else. */
export function layOut(text: string): string {
  const out: string[] = [];
  let level = 0;
  const line = () => out.push("\n", "  ".repeat(Math.min(level, 100)));
  let place = 0;
  while (place < text.length) {
    const character = text[place] as string;
    if (character === '"') {
      const end = endOfString(text, place);
      out.push(text.slice(place, end));
      place = end;
      continue;
    }
    place += 1;
    if (SPACE.test(character)) continue;
    if (character === "{" || character === "[") {
      const next = skipSpace(text, place);
      if (text[next] === "}" || text[next] === "]") {
        out.push(character, text[next] as string);
        place = next + 1;
        continue;
      }
      level += 1;
      out.push(character);
      line();
    } else if (character === "}" || character === "]") {
      level -= 1;
      line();
      out.push(character);
    } else if (character === ",") {
      out.push(character);
      line();
    } else if (character === ":") {
      out.push(": ");
    } else {
      out.push(character);
    }
  }
  return out.join("");
}

const SYSTEM = new Set(["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"]);

/** An item without what the server adds to it, laid out. */
export function withoutSystem(text: string): string {
  const kept = [...members(text)].filter(([name]) => !SYSTEM.has(name));
  return layOut(`{${kept.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`);
}

/** Items in the text of a file: one array, one object, or one object in each line. */
export function itemsOfFile(text: string): string[] {
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  if (trimmed === "") return [];
  if (trimmed.startsWith("[")) {
    JSON.parse(trimmed);
    return elements(trimmed);
  }
  try {
    JSON.parse(trimmed);
    return [trimmed];
  } catch (error) {
    const lines = trimmed.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "");
    if (lines.length < 2) throw error;
    for (const [place, line] of lines.entries()) {
      try {
        JSON.parse(line);
      } catch {
        throw new Error(`Line ${place + 1} is not JSON.`);
      }
    }
    return lines;
  }
}

/** A value at a path such as /address/zip, or undefined. */
export function valueAt(root: unknown, path: string): unknown {
  let value = root;
  for (const name of pathNames(path)) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** The names in a path; one with quotes of either kind may have slashes. */
export function pathNames(path: string): string[] {
  const names: string[] = [];
  const pattern = /\/(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^/"'][^/"]*))/gy;
  let match: RegExpExecArray | null;
  while ((match = pattern.exec(path)) !== null) names.push(match[1] ?? match[2] ?? match[3] ?? "");
  return names;
}

/** Rows as CSV. The columns are those that any row has, in the order in which they are met. */
export function toCsv(rows: string[]): string {
  const columns = columnsOf(rows, Infinity);
  const cell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = rows.map((row) => {
    const found = cellsOf(row);
    return columns.map((name) => cell(plainText(found.get(name)))).join(",");
  });
  return [columns.map(cell).join(","), ...lines].join("\r\n") + "\r\n";
}

/** The name of the one column for rows that are not objects. */
export const WHOLE = "value";

/** The cells of a row, each as its JSON text. */
export function cellsOf(row: string): Map<string, string> {
  return row.trimStart().startsWith("{") ? members(row) : new Map([[WHOLE, row]]);
}

/**
 * The columns of rows in the order that the rows have them, which is that of SELECT. A row may lack some, even the first
 * one: what another has in front of a known column goes in front of it.
 */
export function columnsOf(rows: string[], most = 200): string[] {
  const columns: string[] = [];
  const known = new Set<string>();
  for (const row of rows) {
    const names = [...cellsOf(row).keys()];
    names.forEach((name, place) => {
      if (known.has(name)) return;
      const next = names.slice(place + 1).find((later) => known.has(later));
      columns.splice(next === undefined ? columns.length : columns.indexOf(next), 0, name);
      known.add(name);
    });
    if (columns.length >= most) break;
  }
  return columns;
}

/** The same with what the server adds to whole items last: it is of less interest than what the user wrote. */
export function columnsShown(rows: string[], most: number): string[] {
  const found = columnsOf(rows, most).slice(0, most);
  if (!["_rid", "_self", "_etag"].every((name) => found.includes(name))) return found;
  return [...found.filter((name) => !SYSTEM.has(name)), ...found.filter((name) => SYSTEM.has(name))];
}

/** A value as people write it: strings without quotes, all else as its JSON text. */
export function plainText(json: string | undefined): string {
  if (json === undefined) return "";
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** A value in one short line. */
export function brief(value: unknown, most = 120): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value.slice(0, most + 1) : JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
