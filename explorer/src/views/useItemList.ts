// The items of a container, or the entities of a table, a page at a time.

import { useEffect, useRef, useState } from "preact/hooks";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort } from "../wire/client.ts";
import { listItems, type Container, type ItemHead, type Page, type Place } from "../wire/resources.ts";
import { listEntities } from "../wire/tables.ts";

export interface Listed<T = ItemHead> {
  rows: T[];
  continuation: string | null;
  done: boolean;
  charge: number;
  error: string;
}

const NOTHING: Listed<never> = { rows: [], continuation: null, done: false, charge: 0, error: "" };

export const useItemList = (place: Place, container: Container, filter: string) =>
  usePages((continuation, signal) => listItems(client(), place, container, filter, continuation, signal), filter);

export const useEntityList = (place: Place, container: Container, condition: string) =>
  usePages((continuation, signal) => listEntities(client(), place, container, condition, continuation, signal), condition);

/** Pages of something; they begin anew with another question. */
function usePages<T>(ask: (continuation: string | null, signal: AbortSignal) => Promise<Page<T>>, question: string) {
  const [listed, setListed] = useState<Listed<T>>(NOTHING);
  // The first page is asked for as soon as this is drawn; until it has come nobody knows that there is nothing.
  const [busy, setBusy] = useState(true);
  const walk = useRef<AbortController | null>(null);

  const load = async (from: Listed<T>) => {
    walk.current?.abort();
    const control = (walk.current = new AbortController());
    setBusy(true);
    try {
      const rows: T[] = [];
      let { continuation, charge } = from;
      // A partition without a match answers with an empty page; the next may have more.
      do {
        const page = await ask(continuation, control.signal);
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
  }, [question]);
  const more = () => {
    if (!busy && !listed.done && listed.rows.length > 0) void load(listed);
  };
  return { listed, busy, reload, more };
}
