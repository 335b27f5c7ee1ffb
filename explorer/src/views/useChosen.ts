// Several items of a list that are chosen together.

import { useRef, useState } from "preact/hooks";
import type { ItemHead } from "../wire/resources.ts";

/** They are known by their RIDs, so that they stay what they are when the list is read again. */
export function useChosen(rows: ItemHead[]) {
  const [heads, setHeads] = useState<ReadonlyMap<string, ItemHead>>(new Map());
  const anchor = useRef(0);
  const add = (more: ItemHead[]) => setHeads((now) => new Map([...now, ...more.map((head) => [head.rid, head] as const)]));
  return {
    heads: [...heads.values()],
    clear: () => setHeads(new Map()),
    has: (index: number) => heads.has(rows[index]?.rid ?? ""),
    toggle: (index: number) => {
      const head = rows[index];
      if (head === undefined) return;
      anchor.current = index;
      setHeads((now) => {
        const next = new Map(now);
        if (!next.delete(head.rid)) next.set(head.rid, head);
        return next;
      });
    },
    /** All from the one that was chosen last. */
    upTo: (index: number) => add(rows.slice(Math.min(anchor.current, index), Math.max(anchor.current, index) + 1)),
    all: () => add(rows),
  };
}
