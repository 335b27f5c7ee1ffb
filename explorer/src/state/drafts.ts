// What has been typed and not saved outlives a change of tab, so that looking at something else costs nothing.

import { signal } from "@preact/signals";
import type { Script } from "../wire/resources.ts";

export interface ItemDraft {
  text: string;
  /** What the text was made from; the difference is what would be lost. */
  base: string;
  etag: string;
}

const items = new Map<string, ItemDraft>();

export const itemDraft = (name: string) => items.get(name);

export function keepItemDraft(name: string, draft: ItemDraft): void {
  if (draft.text === draft.base) items.delete(name);
  else items.set(name, draft);
}

export const dropItemDraft = (name: string) => items.delete(name);

export interface ScriptDraft {
  script: Script;
  /** What it was made from, with the ETag that a save goes over. */
  base: Script;
}

const scripts = signal<ReadonlyMap<string, ScriptDraft>>(new Map());

export const scriptDraft = (name: string) => scripts.value.get(name);

const SCRIPT_FIELDS = ["id", "body", "triggerType", "triggerOperation"] as const;

export function keepScriptDraft(name: string, draft: ScriptDraft): void {
  if (SCRIPT_FIELDS.every((field) => draft.script[field] === draft.base[field])) dropScriptDraft(name);
  else scripts.value = new Map(scripts.value).set(name, draft);
}

export function dropScriptDraft(name: string): void {
  const kept = new Map(scripts.value);
  if (kept.delete(name)) scripts.value = kept;
}

// A reload would lose them; the browser asks first.
addEventListener("beforeunload", (event) => {
  if (items.size > 0 || scripts.value.size > 0) event.preventDefault();
});

const QUERY = "orrery.query.";
const HISTORY = "orrery.history";
const HISTORY_MOST = 100;

/** The text of a container's query tab, kept in this browser. */
export const queryDraft = (container: string) => localStorage.getItem(QUERY + container);

export function keepQueryDraft(container: string, text: string): void {
  keep(QUERY + container, text.slice(0, 100_000));
}

export interface PastQuery {
  container: string;
  text: string;
  at: number;
  charge: number;
  rows: number;
}

export function pastQueries(): PastQuery[] {
  try {
    const kept = JSON.parse(localStorage.getItem(HISTORY) ?? "[]") as unknown;
    return Array.isArray(kept) ? (kept as PastQuery[]) : [];
  } catch {
    return [];
  }
}

export function keepPastQuery(query: PastQuery): void {
  const others = pastQueries().filter((past) => past.text !== query.text || past.container !== query.container);
  keep(HISTORY, JSON.stringify([{ ...query, text: query.text.slice(0, 20_000) }, ...others].slice(0, HISTORY_MOST)));
}

export const forgetPastQueries = () => localStorage.removeItem(HISTORY);

/** A full store is no reason to stop working. */
function keep(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    console.warn("The browser's store is full; this is not kept:", name);
  }
}
