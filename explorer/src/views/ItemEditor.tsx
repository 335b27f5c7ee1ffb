// One item: shown as it is, edited, saved only over the version that was shown. If somebody else has written in
// between, both versions are shown side by side and nothing is lost.

import { useEffect, useState } from "preact/hooks";
import { ChargeTable, units } from "../parts/Charge.tsx";
import { Confirm } from "../parts/Dialog.tsx";
import { Diff, Editor } from "../parts/Editor.tsx";
import { dropItemDraft, itemDraft, keepItemDraft } from "../state/drafts.ts";
import { explain, fail, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { layOut, members, valueAt, withoutSystem } from "../text/json.ts";
import { Refused, type ChargeLine } from "../wire/client.ts";
import { createItem, deleteItem, linkOf, readItem, replaceItem, type Container, type Item, type ItemHead, type Place } from "../wire/resources.ts";

interface ItemEditorProps {
  place: Place;
  container: Container;
  /** Null for a new item. */
  head: ItemHead | null;
  onSaved: (head: ItemHead) => void;
  onDeleted: () => void;
  onClose: () => void;
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

/** The partition key of an item, in the form of the header: `{}` stands for a value that is not there. */
export function keyOf(item: unknown, container: Container): unknown[] {
  return container.partitionKey.paths.map((path) => valueAt(item, path) ?? (valueAt(item, path) === null ? null : {}));
}

function newItem(container: Container): string {
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

function jsonError(text: string): string {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return "An item is a JSON object.";
    const id = (value as Record<string, unknown>)["id"];
    if (id !== undefined && typeof id !== "string") return "The id of an item is a string.";
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}

export function ItemEditor(props: ItemEditorProps) {
  const { place, container, head } = props;
  const name = `${linkOf(place)}/${head === null ? "new" : head.rid}`;
  const [base, setBase] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [etag, setEtag] = useState("");
  const [charge, setCharge] = useState<{ total: number; lines: ChargeLine[] } | null>(null);
  const [theirs, setTheirs] = useState<Item | null>(null);
  const [problem, setProblem] = useState("");
  const [deleting, setDeleting] = useState(false);
  const [busy, setBusy] = useState(false);

  const take = (item: Item) => {
    const shown = layOut(item.text);
    setBase(shown);
    setText(shown);
    setEtag(item.etag);
    setCharge({ total: item.charge, lines: item.lines });
  };
  useEffect(() => {
    const draft = itemDraft(name);
    if (draft !== undefined) {
      setBase(draft.base);
      setText(draft.text);
      setEtag(draft.etag);
    } else if (head === null) {
      const fresh = newItem(container);
      setBase(fresh);
      setText(fresh);
    } else {
      readItem(client(), place, container, head).then(take, (error: unknown) => setProblem(explain(error)));
    }
  }, []);

  const change = (next: string) => {
    setText(next);
    if (base !== null) keepItemDraft(name, { text: next, base, etag });
  };
  const wrong = base === null ? "" : jsonError(text);
  const changed = base !== null && (text !== base || head === null);

  const saved = (item: Item) => {
    dropItemDraft(name);
    take(item);
    setTheirs(null);
    setProblem("");
    const now = headOf(item.text, container);
    say(`Saved ${now.id}`, `${units(item.charge)} RU`);
    props.onSaved(now);
  };
  const save = async (over: string | undefined) => {
    if (wrong !== "" || busy) return;
    setBusy(true);
    try {
      if (head === null) saved(await createItem(client(), place, keyOf(JSON.parse(text), container), text));
      else saved(await replaceItem(client(), place, container, head, text, over));
    } catch (error) {
      if (error instanceof Refused && error.status === 412 && head !== null) await conflict(head);
      else setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  const conflict = async (head: ItemHead) => {
    try {
      setTheirs(await readItem(client(), place, container, head));
      setProblem("");
    } catch (error) {
      setProblem(`It was changed or deleted by somebody else. ${explain(error)}`);
    }
  };
  const remove = async () => {
    if (head === null) return;
    try {
      const spent = await deleteItem(client(), place, container, head);
      dropItemDraft(name);
      setDeleting(false);
      say(`Deleted ${head.id}`, `${units(spent)} RU`);
      props.onDeleted();
    } catch (error) {
      fail(`Cannot delete ${head.id}`, error);
    }
  };

  if (base === null) return problem === "" ? <p class="soft pad">Loading…</p> : <Problem text={problem} />;
  return (
    <div class="item-editor">
      <div class="row-of">
        <strong class="grow ellipsis">
          <bdi>{head === null ? "New item" : head.id}</bdi>
        </strong>
        <button type="button" class="primary" disabled={!changed || wrong !== "" || busy || theirs !== null} onClick={() => void save(etag)}>
          {head === null ? "Create" : "Save"}
        </button>
        {head !== null && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete
          </button>
        )}
        <button type="button" class="quiet" onClick={props.onClose}>
          Close
        </button>
      </div>
      {wrong !== "" && (
        <p class="problem" data-invalid>
          {wrong}
        </p>
      )}
      {problem !== "" && <Problem text={problem} />}
      {theirs === null ? (
        <Editor label="Item" language="json" text={text} onChange={change} onSave={() => void save(etag)} />
      ) : (
        <Conflict
          theirs={theirs}
          mine={text}
          onChange={change}
          onMine={() => void save(theirs.etag)}
          onTheirs={() => {
            dropItemDraft(name);
            take(theirs);
            setTheirs(null);
          }}
        />
      )}
      {charge !== null && (
        <details class="charge">
          <summary>{units(charge.total)} RU</summary>
          <ChargeTable total={charge.total} lines={charge.lines} />
        </details>
      )}
      {deleting && (
        <Confirm title="Delete this item?" action="Delete item" onConfirm={remove} onClose={() => setDeleting(false)}>
          <p>
            <bdi>{head?.id}</bdi> will be gone.
          </p>
        </Confirm>
      )}
    </div>
  );
}

function Problem(props: { text: string }) {
  return (
    <p class="problem" role="alert">
      {props.text}
    </p>
  );
}

/** What differs, without what the server writes by itself. */
interface ConflictProps {
  theirs: Item;
  mine: string;
  onChange: (text: string) => void;
  onMine: () => void;
  onTheirs: () => void;
}

function Conflict(props: ConflictProps) {
  return (
    <div class="conflict" data-conflict>
      <p class="problem" role="alert">
        Somebody else changed this item since you opened it. The server's version is on the left, yours on the right; edit
        yours until it has what both wanted.
      </p>
      <Diff theirs={withoutSystem(props.theirs.text)} mine={withoutSystem(safe(props.mine))} onChange={props.onChange} />
      <div class="actions">
        <button type="button" onClick={props.onTheirs}>
          Take the server's version
        </button>
        <button type="button" class="primary" onClick={props.onMine}>
          Save mine over it
        </button>
      </div>
    </div>
  );
}

/** Text that is not an object yet is shown as it is. */
const safe = (text: string) => (members(text).size === 0 ? "{}" : text);
