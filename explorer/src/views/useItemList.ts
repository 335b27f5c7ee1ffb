// The items of a container, a page at a time.

import { useEffect, useRef, useState } from "preact/hooks";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort } from "../wire/client.ts";
import { listItems, type Container, type ItemHead, type Place } from "../wire/resources.ts";

export interface Listed {
  rows: ItemHead[];
  continuation: string | null;
  done: boolean;
  charge: number;
  error: string;
}

const NOTHING: Listed = { rows: [], continuation: null, done: false, charge: 0, error: "" };

export function useItemList(place: Place, container: Container, filter: string) {
  const [listed, setListed] = useState<Listed>(NOTHING);
  // The first page is asked for as soon as this is drawn; until it has come nobody knows that there is nothing.
  const [busy, setBusy] = useState(true);
  const walk = useRef<AbortController | null>(null);

  const load = async (from: Listed) => {
    walk.current?.abort();
    const control = (walk.current = new AbortController());
    setBusy(true);
    try {
      const rows: ItemHead[] = [];
      let { continuation, charge } = from;
      // A partition without a match answers with an empty page; the next may have more.
      do {
        const page = await listItems(client(), place, container, filter, continuation, control.signal);
        rows.push(...page.rows);
        charge += page.charge;
        continuation = page.continuation;
      } while (rows.length === 0 && continuation !== null);
      setListed({ rows: [...from.rows, ...rows], continuation, done: continuation === null, charge, error: "" });
    } catch (error) {
      if (isAbort(error)) return;
      setListed({ ...from, error: explain(error), done: true });
    } finally {
      if (walk.current === control) setBusy(false);
    }
  };
  const reload = () => void load(NOTHING);
  useEffect(() => {
    reload();
    return () => walk.current?.abort();
  }, [filter]);
  const more = () => {
    if (!busy && !listed.done && listed.rows.length > 0) void load(listed);
  };
  return { listed, busy, reload, more };
}
