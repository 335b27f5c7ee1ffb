// What has been typed and not saved outlives a change of tab, so that looking at something else costs nothing.

import { signal } from "@preact/signals";
import type { Script } from "../wire/resources.ts";

export interface ItemDraft {
  text: string;
  /** What the text was made from; the difference is what would be lost. */
  base: string;
  etag: string;
}

const items = signal<ReadonlyMap<string, ItemDraft>>(new Map());

export const itemDraft = (name: string) => items.value.get(name);

export function keepItemDraft(name: string, draft: ItemDraft): void {
  if (draft.text === draft.base) dropItemDraft(name);
  else items.value = new Map(items.value).set(name, draft);
}

export function dropItemDraft(name: string): void {
  const kept = new Map(items.value);
  if (kept.delete(name)) items.value = kept;
}

/** Whether something of a container has been typed and not saved; `name` is the link of the container. */
export function hasDrafts(name: string): boolean {
  const isInside = (key: string) => key.startsWith(`${name}/`);
  return [...items.value.keys(), ...scripts.value.keys()].some(isInside);
}

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
  if (items.value.size > 0 || scripts.value.size > 0) event.preventDefault();
});
