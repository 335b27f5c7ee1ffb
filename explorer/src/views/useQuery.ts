// Running a query page by page, and knowing the names that it may use.

import { useEffect, useRef, useState } from "preact/hooks";
import { propertiesOf } from "../parts/query-language.ts";
import { keepPastQuery } from "../state/queries.ts";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort, Refused, type Mistake } from "../wire/client.ts";
import { linkOf, runQuery, type Place, type QueryAsked, type QueryPage } from "../wire/resources.ts";

/** Rows that are kept in the page at most; a user who needs more exports by script. */
const ROWS_MAX = 500_000;
/** Pages whose metrics and charges are kept. */
const PAGES_MAX = 1000;
const PAGE_ROWS_MAX = 10_000;
const SAMPLE = "SELECT TOP 20 * FROM c";

export interface Run {
  text: string;
  /** What its further pages are asked with, whatever has been typed since: a continuation belongs to one query. */
  settings: QuerySettings;
  rows: string[];
  pages: QueryPage[];
  continuation: string | null;
  charge: number;
  state: "running" | "more" | "done" | "cancelled" | "failed";
  error: string;
  /** Where the text is wrong, if the server said so. */
  mistakes: Mistake[];
}

/** What is asked for besides the text. */
export type QuerySettings = Pick<QueryAsked, "parameters" | "pageSize" | "access">;

const NOTHING: Omit<Run, "text" | "settings"> = { rows: [], pages: [], continuation: null, charge: 0, state: "running", error: "", mistakes: [] };

export function useQuery(place: Place) {
  const [run, setRun] = useState<Run | null>(null);
  const control = useRef<AbortController | null>(null);
  const names = useNames(place);
  const abandon = () => {
    control.current?.abort();
    control.current = null;
  };
  useEffect(() => abandon, []);

  const ask = async (from: Run, everything: boolean) => {
    abandon();
    const mine = (control.current = new AbortController());
    const { settings } = from;
    let now: Run = { ...from, state: "running", error: "", mistakes: [] };
    setRun(now);
    // A page of the server may be short, as when one partition has no more; ours is filled from the next.
    const wanted = everything ? ROWS_MAX : now.rows.length + settings.pageSize;
    try {
      do {
        const pageSize = Math.min(PAGE_ROWS_MAX, wanted - now.rows.length);
        const page = await runQuery(client(), place, { ...settings, text: from.text, pageSize, continuation: now.continuation, signal: mine.signal });
        // Another run may have taken the place of this one while it waited; then there is nothing more to say.
        if (control.current !== mine) return;
        const pages = now.pages.length < PAGES_MAX ? [...now.pages, page] : now.pages;
        now = { ...now, rows: now.rows.concat(page.rows), pages, continuation: page.continuation, charge: now.charge + page.charge };
        setRun(now);
      } while (now.continuation !== null && now.rows.length < wanted);
      now = { ...now, state: now.continuation === null ? "done" : "more" };
    } catch (error) {
      if (control.current !== mine) return;
      now = isAbort(error) ? { ...now, state: "cancelled" } : failed(now, error);
    }
    setRun(now);
    if (now.state === "failed") return;
    names.learn(now.rows.slice(0, 50));
    keepPastQuery({ container: linkOf(place), text: now.text, at: Date.now(), charge: now.charge, rows: now.rows.length });
  };
  return {
    run,
    start: (text: string, settings: QuerySettings) => void ask({ ...NOTHING, text, settings }, false),
    more: (everything: boolean) => run !== null && void ask(run, everything),
    cancel: () => control.current?.abort(),
    names: names.all,
  };
}

const failed = (run: Run, error: unknown): Run => {
  return { ...run, state: "failed", error: explain(error), mistakes: error instanceof Refused ? error.mistakes : [] };
};

/** Property names: those seen in results, and those of a few items the first time that the editor asks. */
function useNames(place: Place) {
  const sampled = useRef<Promise<string[]> | null>(null);
  const learned = useRef(new Set<string>());
  const read = (rows: string[]) => propertiesOf(rows.map((row) => JSON.parse(row) as unknown));
  const sample = async () => {
    const signal = new AbortController().signal;
    const asked = { text: SAMPLE, parameters: [], pageSize: 20, access: "auto" as const, continuation: null, signal };
    return read((await runQuery(client(), place, asked)).rows);
  };
  return {
    learn: (rows: string[]) => read(rows).forEach((name) => learned.current.add(name)),
    all: async () => {
      // A sample that failed is not the last word; the next one who asks tries it again.
      sampled.current ??= sample().catch(() => {
        sampled.current = null;
        return [];
      });
      return [...new Set([...(await sampled.current), ...learned.current])];
    },
  };
}
