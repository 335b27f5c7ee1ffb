// Deleting several items at once.

import { useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { Confirm } from "../parts/Dialog.tsx";
import { dropItemDraft } from "../state/drafts.ts";
import { explain, fail, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { Refused } from "../wire/client.ts";
import { countText } from "./figures.ts";
import { deleteItem, linkOf, type Container, type ItemHead, type Place } from "../wire/resources.ts";

/** Requests at the same time. */
const LANES = 8;
const NAMED = 8;

interface DeleteItemsProps {
  place: Place;
  container: Container;
  heads: ItemHead[];
  /** Some or all of them are gone. */
  onDone: () => void;
  onClose: () => void;
}

export function DeleteItems(props: DeleteItemsProps) {
  const { place, container, heads } = props;
  const [done, setDone] = useState(0);
  const remove = async () => {
    const waiting = [...heads];
    const problems: string[] = [];
    let charge = 0;
    const lane = async () => {
      for (let head = waiting.pop(); head !== undefined; head = waiting.pop()) {
        try {
          const spent = await deleteItem(client(), place, container, head);
          charge += spent;
          dropItemDraft(`${linkOf(place)}/${head.rid}`);
        } catch (error) {
          // What another client has deleted meanwhile is gone as well.
          if (!(error instanceof Refused && error.status === 404)) problems.push(`${head.id}: ${explain(error)}`);
        }
        setDone(heads.length - waiting.length);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    const gone = heads.length - problems.length;
    if (gone > 0) say(`Deleted ${count(gone)}`, `${units(charge)} RU`);
    if (problems.length > 0) fail(`Cannot delete ${count(problems.length)}`, new Error(problems.slice(0, NAMED).join("\n")));
    props.onDone();
  };
  return (
    <Confirm title={`Delete ${count(heads.length)}?`} action={`Delete ${count(heads.length)}`} onConfirm={remove} onClose={props.onClose}>
      <p>
        {heads.slice(0, NAMED).map((head) => (
          <span key={head.rid}>
            <bdi>{head.id}</bdi>
            <br />
          </span>
        ))}
        {heads.length > NAMED && `and ${(heads.length - NAMED).toLocaleString("en")} more `}
        will be gone. This cannot be undone.
      </p>
      {done > 0 && <progress max={heads.length} value={done} aria-label="Items deleted" />}
    </Confirm>
  );
}

const count = (items: number) => countText(items, "item");
