// The query tab: an editor, the rows, and everything that the server can tell about how it found them.

import { useRef, useState } from "preact/hooks";
import { Editor } from "../parts/Editor.tsx";
import { sumLines, units } from "../parts/Charge.tsx";
import { propertiesOf } from "../parts/query-language.ts";
import { Tabs } from "../parts/Tabs.tsx";
import { keepPastQuery, keepQueryDraft, queryDraft } from "../state/drafts.ts";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort } from "../wire/client.ts";
import { linkOf, runQuery, type Container, type Place, type QueryPage } from "../wire/resources.ts";
import { QueryFacts } from "./QueryFacts.tsx";
import { QueryHistory } from "./QueryHistory.tsx";
import { Results } from "./Results.tsx";

const FIRST = "SELECT * FROM c";
/** Rows that are kept in the page at most; whoever needs more exports by script. */
export const ROWS_MAX = 500_000;
const SAMPLE = "SELECT TOP 20 * FROM c";

export interface Run {
  text: string;
  rows: string[];
  pages: QueryPage[];
  continuation: string | null;
  charge: number;
  state: "running" | "more" | "done" | "cancelled" | "failed";
  error: string;
}

type View = "rows" | "facts" | "history";

export function Query(props: { place: Place; container: Container }) {
  const { place } = props;
  const name = linkOf(place);
  const [text, setText] = useState(queryDraft(name) ?? FIRST);
  const [parameters, setParameters] = useState("");
  const [pageSize, setPageSize] = useState("100");
  const [access, setAccess] = useState<"auto" | "scan" | "index">("auto");
  const [run, setRun] = useState<Run | null>(null);
  const [view, setView] = useState<View>("rows");
  const control = useRef<AbortController | null>(null);
  const properties = useRef<Promise<string[]> | null>(null);
  const learned = useRef<Set<string>>(new Set());
  const running = run?.state === "running";

  const ask = async (start: Run, everything: boolean) => {
    control.current?.abort();
    const abort = (control.current = new AbortController());
    let now: Run = { ...start, state: "running", error: "" };
    setRun(now);
    // A page of the server may be short, as when one partition has no more; ours is filled from the next.
    const wanted = everything ? ROWS_MAX : now.rows.length + Number(pageSize);
    try {
      do {
        const page = await runQuery(client(), place, {
          text: start.text,
          parameters: readParameters(parameters),
          pageSize: Math.min(10_000, wanted - now.rows.length),
          access,
          continuation: now.continuation,
          signal: abort.signal,
        });
        // A page in the middle of a long result is not told about line by line.
        const pages = now.pages.length < 1000 ? [...now.pages, page] : now.pages;
        const rows = now.rows.concat(page.rows);
        now = { ...now, rows, pages, continuation: page.continuation, charge: now.charge + page.charge };
        setRun(now);
      } while (now.continuation !== null && now.rows.length < wanted);
      now = { ...now, state: now.continuation === null ? "done" : "more" };
    } catch (error) {
      now = isAbort(error) ? { ...now, state: "cancelled" } : { ...now, state: "failed", error: explain(error) };
    }
    setRun(now);
    if (now.state !== "failed") {
      learn(now.rows.slice(0, 50));
      keepPastQuery({ container: name, text: now.text, at: Date.now(), charge: now.charge, rows: now.rows.length });
    }
  };
  const start = (everything = false) => {
    if (text.trim() === "") return;
    setView("rows");
    void ask({ text, rows: [], pages: [], continuation: null, charge: 0, state: "running", error: "" }, everything);
  };
  const learn = (rows: string[]) => {
    for (const path of propertiesOf(rows.map((row) => JSON.parse(row) as unknown))) learned.current.add(path);
  };
  /** Names seen in results, and those of a few items the first time that somebody asks. */
  const known = async () => {
    properties.current ??= runQuery(client(), place, {
      text: SAMPLE,
      parameters: [],
      pageSize: 20,
      access: "auto",
      continuation: null,
      signal: new AbortController().signal,
    }).then(
      (page) => propertiesOf(page.rows.map((row) => JSON.parse(row) as unknown)),
      () => [],
    );
    return [...new Set([...(await properties.current), ...learned.current])];
  };
  const wrongParameters = parametersError(parameters);

  return (
    <div class="query">
      <Editor
        label="Query"
        language="sql"
        className="query-editor"
        text={text}
        autoFocus
        properties={known}
        onRun={() => start()}
        onChange={(next) => {
          setText(next);
          keepQueryDraft(name, next);
        }}
      />
      <div class="row-of bar-of-query">
        <button type="button" class="primary" disabled={running || wrongParameters !== ""} onClick={() => start()}>
          Run
        </button>
        {running && (
          <button type="button" onClick={() => control.current?.abort()}>
            Cancel
          </button>
        )}
        <label class="inline">
          Rows a page{" "}
          <select value={pageSize} onChange={(event) => setPageSize(event.currentTarget.value)}>
            {["10", "100", "1000", "10000"].map((size) => (
              <option key={size}>{size}</option>
            ))}
          </select>
        </label>
        <label class="inline">
          Access{" "}
          <select value={access} onChange={(event) => setAccess(event.currentTarget.value as typeof access)}>
            <option value="auto">by cost</option>
            <option value="index">index</option>
            <option value="scan">scan</option>
          </select>
        </label>
        <label class="inline grow">
          Parameters{" "}
          <input
            name="parameters"
            class={wrongParameters === "" ? "" : "wrong"}
            aria-invalid={wrongParameters !== ""}
            placeholder='{"@city": "Rome"}'
            value={parameters}
            spellcheck={false}
            onInput={(event) => setParameters(event.currentTarget.value)}
          />
        </label>
        <span class="soft" role="status" data-run={run?.state ?? "none"}>
          {run === null ? "Ctrl Enter runs" : summary(run)}
        </span>
      </div>
      {wrongParameters !== "" && <p class="problem">{wrongParameters}</p>}
      {run !== null && run.state === "failed" && (
        <p class="problem" role="alert">
          {run.error}
        </p>
      )}
      <Tabs
        label="Result"
        tabs={[
          { name: "rows", title: "Rows" },
          { name: "facts", title: "Charge, metrics, plan", ...noteOf(run) },
          { name: "history", title: "History" },
        ]}
        chosen={view}
        onChoose={setView}
      />
      <div class="query-result">
        {view === "rows" && (
          <Results run={run} onMore={() => run !== null && void ask(run, false)} onAll={() => run !== null && void ask(run, true)} />
        )}
        {view === "facts" && <QueryFacts run={run} lines={sumLines(run?.pages.map((page) => page.lines) ?? [])} />}
        {view === "history" && (
          <QueryHistory
            container={name}
            onTake={(past) => {
              setText(past);
              keepQueryDraft(name, past);
            }}
          />
        )}
      </div>
    </div>
  );
}

function noteOf(run: Run | null): { note?: string } {
  const advice = run?.pages[0]?.advice.length ?? 0;
  return advice === 0 ? {} : { note: `${advice} advice` };
}

function summary(run: Run): string {
  const rows = `${run.rows.length.toLocaleString("en")} rows, ${units(run.charge)} RU`;
  const time = Math.round(run.pages.reduce((sum, page) => sum + page.milliseconds, 0)).toLocaleString("en");
  switch (run.state) {
    case "running":
      return `Running… ${rows}`;
    case "more":
      return `${rows} in ${time} ms; there is more`;
    case "done":
      return `${rows} in ${time} ms`;
    case "cancelled":
      return `Cancelled after ${rows}`;
    case "failed":
      return run.rows.length > 0 ? `Stopped after ${rows}` : "Failed";
  }
}

function readParameters(text: string): { name: string; value: unknown }[] {
  if (text.trim() === "") return [];
  const entries = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return entries.map(([name, value]) => ({ name: name.startsWith("@") ? name : `@${name}`, value }));
}

function parametersError(text: string): string {
  if (text.trim() === "") return "";
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? "" : "Parameters are a JSON object.";
  } catch {
    return 'Parameters are a JSON object such as {"@city": "Rome"}.';
  }
}
