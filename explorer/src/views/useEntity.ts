// One entity being edited: what was read, what was typed, and what the server said to it.

import { useRef, useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { dropItemDraft, itemDraft, keepItemDraft } from "../state/drafts.ts";
import { explain, fail, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { entityError, readEntity, type Entity } from "../text/entity.ts";
import { Refused } from "../wire/client.ts";
import { deleteItem, linkOf, readItem, type Container, type Item, type Place } from "../wire/resources.ts";
import { createEntity, headOf, replaceEntity, type EntityRow } from "../wire/tables.ts";

export interface EntityProps {
  place: Place;
  container: Container;
  /** Null for a new entity. */
  row: EntityRow | null;
  onSaved: (row: EntityRow) => void;
  onDeleted: () => void;
}

const NEW: Entity = { partitionKey: "", rowKey: "", properties: [], rest: [] };

interface Shown {
  entity: Entity;
  /** What it was made from; the difference is what would be lost. */
  base: Entity;
  etag: string;
}

const textOf = (entity: Entity) => JSON.stringify(entity);
const shownOf = (item: Item): Shown => {
  const entity = readEntity(item.text);
  return { entity, base: entity, etag: item.etag };
};

/** What is typed, kept as a draft that outlives a look at another tab. */
function useDraft(props: EntityProps) {
  const { place, row } = props;
  const nameOf = (rid: string) => `${linkOf(place)}/${rid}`;
  const name = nameOf(row === null ? "new" : row.head.rid);
  const [shown, setShown] = useState<Shown>(() => {
    const draft = itemDraft(name);
    if (draft !== undefined) return { entity: JSON.parse(draft.text) as Entity, base: JSON.parse(draft.base) as Entity, etag: draft.etag };
    const entity = row?.entity ?? NEW;
    return { entity, base: entity, etag: row?.head.etag ?? "" };
  });
  // A save ends long after the rendering that began it, so it asks here what has been typed since.
  const latest = useRef(shown);
  const show = (next: Shown) => {
    latest.current = next;
    setShown(next);
  };
  const keep = (name: string, { entity, base, etag }: Shown) => keepItemDraft(name, { text: textOf(entity), base: textOf(base), etag });
  return {
    shown,
    latest,
    change: (entity: Entity) => {
      show({ ...latest.current, entity });
      keep(name, latest.current);
    },
    take: (item: Item) => {
      dropItemDraft(name);
      show(shownOf(item));
    },
    /** Takes what a save made of what was sent; what was typed since then stays, as a draft over it. */
    settle: (item: Item, sent: Entity) => {
      // The draft may be newer than this editor: of one that was closed and opened again meanwhile.
      const typed = itemDraft(name)?.text ?? textOf(latest.current.base);
      dropItemDraft(name);
      const saved = shownOf(item);
      if (typed === textOf(sent)) return show(saved);
      show({ ...saved, entity: JSON.parse(typed) as Entity });
      keep(nameOf(headOf(item.text).rid), latest.current);
    },
    drop: () => dropItemDraft(name),
  };
}

export function useEntity(props: EntityProps) {
  const { place, container, row } = props;
  const draft = useDraft(props);
  const { shown, latest } = draft;
  const [problem, setProblem] = useState("");
  const [theirs, setTheirs] = useState<Item | null>(null);
  const [busy, setBusy] = useState(false);
  const [charge, setCharge] = useState<number | null>(null);
  const saving = useRef(false);

  const saved = (item: Item, sent: Entity) => {
    draft.settle(item, sent);
    setTheirs(null);
    setProblem("");
    setCharge(item.charge);
    const head = headOf(item.text);
    say(`Saved ${sent.partitionKey} / ${sent.rowKey}`, `${units(item.charge)} RU`);
    props.onSaved({ head, entity: readEntity(item.text), timestamp: row?.timestamp ?? "" });
  };
  /** Saves over the version with this ETag and no other. */
  const save = async (etag = latest.current.etag) => {
    const { entity, base } = latest.current;
    if (saving.current || entityError(entity) !== "" || textOf(entity) === textOf(base)) return;
    saving.current = true;
    setBusy(true);
    try {
      if (row === null) saved(await createEntity(client(), place, entity), entity);
      else saved(await replaceEntity(client(), place, container, row.head, entity, etag), entity);
    } catch (error) {
      if (error instanceof Refused && error.status === 412 && row !== null) await conflict(row);
      else setProblem(explain(error));
    } finally {
      saving.current = false;
      setBusy(false);
    }
  };
  const conflict = async ({ head }: EntityRow) => {
    try {
      setTheirs(await readItem(client(), place, container, head));
      setProblem("");
    } catch (error) {
      setProblem(`Another client changed or deleted it. ${explain(error)}`);
    }
  };
  const remove = async () => {
    if (row === null) return;
    try {
      const spent = await deleteItem(client(), place, container, row.head);
      draft.drop();
      say(`Deleted ${row.entity.partitionKey} / ${row.entity.rowKey}`, `${units(spent)} RU`);
      props.onDeleted();
    } catch (error) {
      fail(`Cannot delete ${row.entity.rowKey}`, error);
    }
  };
  const yieldTo = () => {
    if (theirs !== null) draft.take(theirs);
    setTheirs(null);
  };
  const changed = textOf(shown.entity) !== textOf(shown.base);
  return { entity: shown.entity, changed, change: draft.change, save, remove, busy, problem, theirs, yieldTo, charge };
}
