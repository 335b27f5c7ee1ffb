// One request to the server, signed, with its charge and its refusal in a form that views can show.

import { readKey, sign } from "./signature.ts";

/** Something that is wrong at a place of a query's text, in UTF-16 units as everywhere in JavaScript. */
export interface Mistake {
  start: number;
  end: number;
  message: string;
}

/** What the server said instead of doing what was asked. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly substatus: number,
    readonly activity: string,
    readonly charge: number,
    readonly mistakes: Mistake[] = [],
  ) {
    super(message);
  }

  /** What a person can do about it. */
  get hint(): string {
    switch (this.status) {
      case 0:
        return "The server did not answer. Is it running? Nothing that you typed is lost; try again.";
      case 401:
        return "The key does not fit. Sign out and use the account key of this server.";
      case 403:
        return this.substatus === 1014
          ? "The logical partition is full. Choose a partition key with more distinct values."
          : "The key that you signed in with may not do this.";
      case 404:
        return "It may have been deleted in the meantime. Refresh the list.";
      case 408:
        return "The request took too long. Ask for less, or try again.";
      case 409:
        return "Something with this id (or unique key) exists already. Choose another.";
      case 412:
        return "Another client changed it in the meantime.";
      case 413:
        return "An item may have 2 MB at most.";
      case 429:
        return "The request units of this second are used up. Wait a moment, or raise the throughput in Settings.";
      case 503:
        return "The server cannot do this now. See its log; nothing has been changed.";
      default:
        return "";
    }
  }
}

export interface ChargeLine {
  what: string;
  count: number;
  each: number;
  units: number;
}

export interface Answer {
  status: number;
  text: string;
  headers: Headers;
  charge: number;
  /** What the charge is made of, if the request asked. */
  lines: ChargeLine[];
  /** How often the request was throttled before it got through. */
  throttled: number;
  milliseconds: number;
}

export interface Asked {
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal | undefined;
}

const API_VERSION = "2020-07-15";
/** How often a throttled request is sent again; the server says how long to wait in between. */
const THROTTLED_TRIES = 9;

export class Client {
  readonly #key: Uint8Array;

  constructor(readonly keyText: string) {
    this.#key = readKey(keyText);
  }

  /** A resource by its names: `link` is as it stands in signatures, each name unescaped. */
  async resource(verb: string, type: string, link: string, asked: Asked = {}): Promise<Answer> {
    return this.#send(verb, type, ownerOf(verb, type, link), `/${escapeLink(link)}`, asked);
  }

  /** A resource by its RIDs, for names that no path can carry. Signatures then name the last one only. */
  async byRid(verb: string, type: string, path: string, rid: string, asked: Asked = {}): Promise<Answer> {
    return this.#send(verb, type, rid.toLowerCase(), `/${path}`, asked);
  }

  /** The server's own management API. */
  async manage(verb: string, path: string, asked: Asked = {}): Promise<Answer> {
    const plain = path.split("?")[0] ?? path;
    return this.#send(verb, "orrery", plain.replace(/^\//, ""), path, asked);
  }

  async #send(verb: string, type: string, link: string, path: string, asked: Asked): Promise<Answer> {
    let throttled = 0;
    for (;;) {
      const answer = await this.#once(verb, type, link, path, asked);
      answer.throttled = throttled;
      if (answer.status === 429 && throttled < THROTTLED_TRIES) {
        throttled += 1;
        await pause(Number(answer.headers.get("x-ms-retry-after-ms") ?? 100) + 5, asked.signal);
        continue;
      }
      if (answer.status < 400) return answer;
      throw refusalOf(answer);
    }
  }

  async #once(verb: string, type: string, link: string, path: string, asked: Asked): Promise<Answer> {
    const date = new Date().toUTCString();
    const headers: Record<string, string> = {
      "x-ms-date": date,
      "x-ms-version": API_VERSION,
      authorization: sign(this.#key, verb, type, link, date),
      ...asked.headers,
    };
    const started = performance.now();
    let response: Response;
    let text: string;
    try {
      response = await fetch(path, {
        method: verb,
        headers,
        body: asked.body ?? null,
        signal: asked.signal ?? null,
        cache: "no-store",
        credentials: "omit",
      });
      text = await response.text();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new Refused(0, "NoAnswer", "The server did not answer.", 0, "", 0);
    }
    const lines = response.headers.get("x-orrery-charge");
    return {
      status: response.status,
      text,
      headers: response.headers,
      charge: Number(response.headers.get("x-ms-request-charge") ?? 0),
      lines: lines === null ? [] : (JSON.parse(lines) as { lines: ChargeLine[] }).lines,
      throttled: 0,
      milliseconds: performance.now() - started,
    };
  }
}

/** Lists and creations are signed with the owner of what they name. */
function ownerOf(_verb: string, type: string, link: string): string {
  if (link === "" || link === "offers") return "";
  const parts = link.split("/");
  const isFeed = parts.length % 2 === 1 && parts[parts.length - 1] === type;
  return (isFeed ? parts.slice(0, -1) : parts).join("/");
}

/** Names may have any character but a slash; what separates them here are slashes. */
function escapeLink(link: string): string {
  return link.split("/").map(encodeURIComponent).join("/");
}

function refusalOf(answer: Answer): Refused {
  let code = `Status ${answer.status}`;
  let message = answer.text;
  try {
    const body = JSON.parse(answer.text) as { code?: string; message?: string };
    code = body.code ?? code;
    message = body.message ?? message;
  } catch {
    // A proxy answered, perhaps; its text is shown as it is.
  }
  const header = (name: string) => answer.headers.get(name);
  const told = tellingPart(message);
  return new Refused(
    answer.status,
    code,
    told.text,
    Number(header("x-ms-substatus") ?? 0),
    header("x-ms-activity-id") ?? "",
    answer.charge,
    told.mistakes,
  );
}

/** Messages of the API wrap the telling part into lists and append the activity's id. Those of queries say where they are. */
function tellingPart(message: string): { text: string; mistakes: Mistake[] } {
  const first = message.split(/\r?\nActivityId:/)[0] ?? message;
  const wrapped = /^Message: (\{.*\})$/s.exec(first.trim());
  if (wrapped?.[1] !== undefined) {
    try {
      const inner = JSON.parse(wrapped[1]) as { Errors?: string[]; errors?: ToldError[] };
      const texts = inner.Errors ?? inner.errors?.map((error) => error.message ?? "") ?? [];
      if (texts.length > 0) return { text: texts.join("\n"), mistakes: (inner.errors ?? []).flatMap(mistakeOf) };
    } catch {
      // Not JSON after all.
    }
  }
  return { text: first.trim().slice(0, 4000), mistakes: [] };
}

interface ToldError {
  message?: string;
  location?: { start?: number; end?: number };
}

function mistakeOf({ message = "", location }: ToldError): Mistake[] {
  const { start, end } = location ?? {};
  return typeof start === "number" && typeof end === "number" ? [{ start, end, message }] : [];
}

export function pause(milliseconds: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("cancelled", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Headers carry ASCII only; JSON can say everything else with escapes. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
