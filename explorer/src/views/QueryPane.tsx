// One open query: an editor, the rows, and everything that the server can tell about how it found them.

import { useState } from "preact/hooks";
import { Editor } from "../parts/Editor.tsx";
import { sumLines, units } from "../parts/Charge.tsx";
import { Status } from "../parts/Status.tsx";
import { Tabs } from "../parts/Tabs.tsx";
import { members } from "../text/json.ts";
import { linkOf, type Place, type QueryAsked } from "../wire/resources.ts";
import { QueryFacts } from "./QueryFacts.tsx";
import { QueryHistory } from "./QueryHistory.tsx";
import { Results } from "./Results.tsx";
import { SavedQueries } from "./SavedQueries.tsx";
import { countText } from "./figures.ts";
import { useQuery, type Run } from "./useQuery.ts";

type View = "rows" | "facts" | "history" | "saved";

/** The settings as they are typed. */
interface Typed {
  parameters: string;
  pageSize: string;
  access: QueryAsked["access"];
}

interface QueryPaneProps {
  place: Place;
  text: string;
  onChange: (text: string) => void;
  /** Opens a saved query, beside this one. */
  onOpen: (text: string, name: string) => void;
  onSave: () => void;
}

export function QueryPane(props: QueryPaneProps) {
  const { text } = props;
  const name = linkOf(props.place);
  const [typed, setTyped] = useState<Typed>({ parameters: "", pageSize: "100", access: "auto" });
  const [view, setView] = useState<View>("rows");
  const query = useQuery(props.place);
  const { run } = query;
  const wrong = parametersError(typed.parameters);
  const start = () => {
    if (text.trim() === "" || wrong !== "") return;
    setView("rows");
    query.start(text, { parameters: readParameters(typed.parameters), pageSize: Number(typed.pageSize), access: typed.access });
  };
  return (
    <>
      <Editor
        label="Query"
        language="sql"
        className="query-editor"
        text={text}
        autoFocus
        properties={query.names}
        onRun={start}
        onSave={props.onSave}
        onChange={props.onChange}
        {...(run !== null && run.text === text ? { mistakes: run.mistakes } : {})}
      />
      <QueryBar typed={typed} wrong={wrong} run={run} onChange={setTyped} onStart={start} onCancel={query.cancel} onSave={props.onSave} />
      {wrong !== "" && <p class="problem">{wrong}</p>}
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
          { name: "saved", title: "Saved" },
        ]}
        chosen={view}
        onChoose={setView}
      />
      <div class="query-result">
        {view === "rows" && <Results run={run} onMore={() => query.more(false)} onAll={() => query.more(true)} />}
        {view === "facts" && <QueryFacts run={run} lines={sumLines(run?.pages.map((page) => page.lines) ?? [])} />}
        {view === "history" && <QueryHistory container={name} onTake={props.onChange} />}
        {view === "saved" && <SavedQueries container={name} onOpen={props.onOpen} />}
      </div>
    </>
  );
}

interface QueryBarProps {
  typed: Typed;
  wrong: string;
  run: Run | null;
  onChange: (typed: Typed) => void;
  onStart: () => void;
  onCancel: () => void;
  onSave: () => void;
}

function QueryBar(props: QueryBarProps) {
  const { typed, wrong, run, onChange } = props;
  const running = run?.state === "running";
  return (
    <div class="row-of bar-of-query">
      <button type="button" class="primary" disabled={running || wrong !== ""} onClick={props.onStart}>
        Run
      </button>
      {running && (
        <button type="button" onClick={props.onCancel}>
          Cancel
        </button>
      )}
      <button type="button" onClick={props.onSave}>
        Save query
      </button>
      <label class="inline">
        Rows a page{" "}
        <select value={typed.pageSize} onChange={(event) => onChange({ ...typed, pageSize: event.currentTarget.value })}>
          {["10", "100", "1000", "10000"].map((size) => (
            <option key={size}>{size}</option>
          ))}
        </select>
      </label>
      <label class="inline">
        Access{" "}
        <select value={typed.access} onChange={(event) => onChange({ ...typed, access: event.currentTarget.value as Typed["access"] })}>
          <option value="auto">by cost</option>
          <option value="index">index</option>
          <option value="scan">scan</option>
        </select>
      </label>
      <label class="inline grow">
        Parameters{" "}
        <input
          name="parameters"
          aria-invalid={wrong !== ""}
          placeholder='{"@city": "Rome"}'
          value={typed.parameters}
          spellcheck={false}
          onInput={(event) => onChange({ ...typed, parameters: event.currentTarget.value })}
        />
      </label>
      <span class="soft" role="status" data-run={run?.state ?? "none"}>
        {run === null ? "Ctrl Enter runs" : <Status state={run.state} text={summary(run)} />}
      </span>
    </div>
  );
}

function noteOf(run: Run | null): { note?: string } {
  const advice = run?.pages[0]?.advice.length ?? 0;
  return advice === 0 ? {} : { note: `${advice} advice` };
}

function summary(run: Run): string {
  const rows = `${countText(run.rows.length, "row")}, ${units(run.charge)} RU`;
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

function readParameters(text: string): QueryAsked["parameters"] {
  return [...members(text)].map(([name, json]) => ({ name: name.startsWith("@") ? name : `@${name}`, json }));
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
