// One item: shown as it is, edited, saved only over the version that was shown. If another client has written in
// between, both versions are shown side by side and nothing is lost.

import { useState } from "preact/hooks";
import { ChargeTable, units } from "../parts/Charge.tsx";
import { Confirm } from "../parts/Dialog.tsx";
import { Diff, Editor } from "../parts/Editor.tsx";
import { members, withoutSystem } from "../text/json.ts";
import type { Item } from "../wire/resources.ts";
import { itemError, useItem, type ItemProps } from "./useItem.ts";

export function ItemEditor(props: ItemProps & { onClose: () => void }) {
  const { head } = props;
  const item = useItem(props);
  const [deleting, setDeleting] = useState(false);
  const { base, text, etag, charge } = item.shown;
  if (base === null) return item.problem === "" ? <p class="soft pad">Loading…</p> : <Problem text={item.problem} />;
  const wrong = itemError(text);
  const changed = text !== base || head === null;
  const save = () => void item.save(etag);
  return (
    <div class="item-editor" aria-busy={item.busy}>
      <div class="row-of">
        <strong class="grow ellipsis">
          <bdi>{head === null ? "New item" : head.id}</bdi>
        </strong>
        {text !== base && <span class="draft">not saved</span>}
        <button type="button" class="primary" disabled={!changed || wrong !== "" || item.busy || item.theirs !== null} onClick={save}>
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
      {item.problem !== "" && <Problem text={item.problem} />}
      {item.theirs === null ? (
        <Editor label="Item" language="json" text={text} onChange={item.change} onSave={save} />
      ) : (
        <Conflict theirs={item.theirs} mine={text} onChange={item.change} onMine={(over) => void item.save(over.etag)} onTheirs={item.yieldTo} />
      )}
      {charge !== null && (
        <details class="charge">
          <summary>{units(charge.total)} RU</summary>
          <ChargeTable total={charge.total} lines={charge.lines} />
        </details>
      )}
      {deleting && (
        <Confirm title="Delete this item?" action="Delete item" onConfirm={item.remove} onClose={() => setDeleting(false)}>
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

interface ConflictProps {
  theirs: Item;
  mine: string;
  onChange: (text: string) => void;
  onMine: (over: Item) => void;
  onTheirs: (item: Item) => void;
}

/** What differs, without what the server writes by itself. */
function Conflict(props: ConflictProps) {
  const { theirs, mine } = props;
  return (
    <div class="conflict" data-conflict>
      <p class="problem" role="alert">
        Another client changed this item since you opened it. The server's version is on the left, yours on the right; edit
        yours until it has what both wanted.
      </p>
      <Diff theirs={withoutSystem(theirs.text)} mine={members(mine).size === 0 ? "{}" : withoutSystem(mine)} onChange={props.onChange} />
      <div class="actions">
        <button type="button" onClick={() => props.onTheirs(theirs)}>
          Take the server's version
        </button>
        <button type="button" class="primary" onClick={() => props.onMine(theirs)}>
          Save mine over it
        </button>
      </div>
    </div>
  );
}
