// Short messages that say what happened, and errors that say what to do.

import { signal } from "@preact/signals";
import { isAbort, Refused } from "../wire/client.ts";

export interface Notice {
  number: number;
  kind: "done" | "failed";
  text: string;
  detail: string;
}

let last = 0;
export const notices = signal<Notice[]>([]);

function add(kind: Notice["kind"], text: string, detail: string, milliseconds: number): void {
  const number = ++last;
  notices.value = [...notices.value.slice(-3), { number, kind, text, detail }];
  if (milliseconds > 0) setTimeout(() => dismiss(number), milliseconds);
}

export const say = (text: string, detail = "") => add("done", text, detail, 5000);

export function dismiss(number: number): void {
  notices.value = notices.value.filter((notice) => notice.number !== number);
}

/** Says what went wrong with something; what was cancelled is not an error. */
export function fail(what: string, error: unknown): void {
  if (isAbort(error)) return;
  add("failed", what, explain(error), 0);
}

export function explain(error: unknown): string {
  if (error instanceof Refused) {
    const status = error.status === 0 ? "" : ` (${error.status}${error.substatus > 0 ? `/${error.substatus}` : ""})`;
    return [`${error.message}${status}`, error.hint].filter((part) => part !== "").join("\n");
  }
  return error instanceof Error ? error.message : String(error);
}
