// One item being edited: what was read, what was typed, and what the server said to it.

import { useEffect, useRef, useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { dropItemDraft, itemDraft, keepItemDraft } from "../state/drafts.ts";
import { explain, fail, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { layOut, valueAt } from "../text/json.ts";
import { Refused, type ChargeLine } from "../wire/client.ts";
import { createItem, deleteItem, linkOf, readItem, replaceItem, type Container, type Item, type ItemHead, type Place } from "../wire/resources.ts";

export interface ItemProps {
  place: Place;
  container: Container;
  /** Null for a new item. */
  head: ItemHead | null;
  onSaved: (head: ItemHead) => void;
  onDeleted: () => void;
}

/** The partition key of an item, in the form of the header: `{}` stands for a value that is not there. */
export function keyOf(item: unknown, container: Container): unknown[] {
  return container.partitionKey.paths.map((path) => {
    const value = valueAt(item, path);
    return value === undefined ? {} : value;
  });
}

/** The head of an item as its text tells it. */
function headOf(text: string, container: Container): ItemHead {
  const item = JSON.parse(text) as Record<string, unknown>;
  return {
    id: String(item["id"] ?? ""),
    rid: String(item["_rid"] ?? ""),
    etag: String(item["_etag"] ?? ""),
    ts: Number(item["_ts"] ?? 0),
    key: keyOf(item, container),
  };
}

function newItem(container: Container): string {
  // Without a secure connection browsers do not make UUIDs.
  const item: Record<string, unknown> = { id: crypto.randomUUID?.() ?? String(Date.now()) };
  for (const path of container.partitionKey.paths) {
    const names = path.split("/").filter((name) => name !== "");
    let place = item;
    names.forEach((name, index) => {
      if (index === names.length - 1) place[name] ??= "";
      else place = (place[name] ??= {}) as Record<string, unknown>;
    });
  }
  return JSON.stringify(item, null, 2);
}

export function itemError(text: string): string {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return "An item is a JSON object.";
    const id = (value as Record<string, unknown>)["id"];
    return id !== undefined && typeof id !== "string" ? "The id of an item is a string." : "";
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}

interface Shown {
  /** What the text was made from; null while it is being read. */
  base: string | null;
  text: string;
  etag: string;
  charge: { total: number; lines: ChargeLine[] } | null;
}

const shownOf = (item: Item): Shown => {
  const text = layOut(item.text);
  return { base: text, text, etag: item.etag, charge: { total: item.charge, lines: item.lines } };
};

/** The text and its draft, which outlives a look at another tab. */
function useText({ place, container, head }: ItemProps, onFailed: (error: unknown) => void) {
  const nameOf = (rid: string) => `${linkOf(place)}/${rid}`;
  const name = nameOf(head === null ? "new" : head.rid);
  const [shown, setShown] = useState<Shown>({ base: null, text: "", etag: "", charge: null });
  // A save ends long after the rendering that began it, so it asks here what has been typed since.
  const latest = useRef(shown);
  const show = (next: Shown) => {
    latest.current = next;
    setShown(next);
  };
  useEffect(() => {
    const draft = itemDraft(name);
    if (draft !== undefined) show({ ...draft, charge: null });
    else if (head !== null) readItem(client(), place, container, head).then((item) => show(shownOf(item)), onFailed);
    else {
      const fresh = newItem(container);
      show({ base: fresh, text: fresh, etag: "", charge: null });
    }
  }, []);
  return {
    shown,
    latest,
    change: (text: string) => {
      const { base, etag } = latest.current;
      show({ ...latest.current, text });
      if (base !== null) keepItemDraft(name, { text, base, etag });
    },
    take: (item: Item) => {
      dropItemDraft(name);
      show(shownOf(item));
    },
    /** Takes what a save made of the text that was sent. What was typed since then stays, as a draft over it. */
    settle: (item: Item, sent: string, rid: string) => {
      // The draft may be newer than this editor: of one that was closed and opened again meanwhile.
      const text = itemDraft(name)?.text ?? latest.current.base ?? sent;
      dropItemDraft(name);
      const saved = shownOf(item);
      if (text === sent) return show(saved);
      show({ ...saved, text });
      keepItemDraft(nameOf(rid), { text, base: saved.text, etag: saved.etag });
    },
    drop: () => dropItemDraft(name),
  };
}

export function useItem(props: ItemProps) {
  const { place, container, head } = props;
  const [problem, setProblem] = useState("");
  const [theirs, setTheirs] = useState<Item | null>(null);
  const [busy, setBusy] = useState(false);
  // The state is as old as the rendering, and a held key saves again before the next one.
  const saving = useRef(false);
  const { shown, latest, change, take, settle, drop } = useText(props, (error) => setProblem(explain(error)));

  const saved = (item: Item, sent: string) => {
    const now = headOf(item.text, container);
    settle(item, sent, now.rid);
    setTheirs(null);
    setProblem("");
    say(`Saved ${now.id}`, `${units(item.charge)} RU`);
    props.onSaved(now);
  };
  /** Saves over the version with this ETag and no other. */
  const save = async (etag: string) => {
    const { text } = latest.current;
    if (saving.current || itemError(text) !== "") return;
    saving.current = true;
    setBusy(true);
    try {
      if (head === null) saved(await createItem(client(), place, keyOf(JSON.parse(text), container), text), text);
      else saved(await replaceItem(client(), place, container, head, text, etag), text);
    } catch (error) {
      if (error instanceof Refused && error.status === 412 && head !== null) await conflict(head);
      else setProblem(explain(error));
    } finally {
      saving.current = false;
      setBusy(false);
    }
  };
  const conflict = async (head: ItemHead) => {
    try {
      setTheirs(await readItem(client(), place, container, head));
      setProblem("");
    } catch (error) {
      setProblem(`Another client changed or deleted it. ${explain(error)}`);
    }
  };
  const remove = async () => {
    if (head === null) return;
    try {
      const spent = await deleteItem(client(), place, container, head);
      drop();
      say(`Deleted ${head.id}`, `${units(spent)} RU`);
      props.onDeleted();
    } catch (error) {
      fail(`Cannot delete ${head.id}`, error);
    }
  };
  const yieldTo = (item: Item) => {
    take(item);
    setTheirs(null);
  };
  return { shown, change, save, remove, theirs, yieldTo, problem, busy };
}
