// Stored procedures, triggers and user-defined functions: edit them, run procedures, see what they say.

import { useRef, useState } from "preact/hooks";
import { ChargeTable, units } from "../parts/Charge.tsx";
import { Confirm } from "../parts/Dialog.tsx";
import { Editor } from "../parts/Editor.tsx";
import { Field } from "../parts/Field.tsx";
import { scriptDraft } from "../state/drafts.ts";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { layOut } from "../text/json.ts";
import { isAbort } from "../wire/client.ts";
import { runProcedure, type Container, type Place, type Script, type ScriptKind, type ScriptRun } from "../wire/resources.ts";
import { nameError } from "./names.ts";
import { draftName, useScript, useScripts, type ScriptEditorProps } from "./useScripts.ts";

const KINDS: readonly { kind: ScriptKind; title: string; one: string; body: string }[] = [
  {
    kind: "sprocs",
    title: "Stored procedures",
    one: "procedure",
    body: 'function greet(name) {\n  console.log("greeting " + name);\n  getContext().getResponse().setBody("Hello, " + name);\n}\n',
  },
  {
    kind: "triggers",
    title: "Triggers",
    one: "trigger",
    body: "function stamp() {\n  const request = getContext().getRequest();\n  const item = request.getBody();\n  item.stampedAt = new Date().toISOString();\n  request.setBody(item);\n}\n",
  },
  { kind: "udfs", title: "User-defined functions", one: "function", body: "function double(value) {\n  return value * 2;\n}\n" },
];
const OPERATIONS = ["All", "Create", "Replace", "Upsert", "Delete"];

export function Scripts(props: { place: Place; container: Container }) {
  const { place, container } = props;
  const { lists, open, setOpen, refresh, saved } = useScripts(place);
  return (
    <div class={`split ${open === null ? "" : "has-open"}`}>
      <nav class="pane list-pane scroll" aria-label="Scripts" tabIndex={0}>
        {KINDS.map(({ kind, title, one, body }) => (
          <section key={kind}>
            <h2 class="small">{title}</h2>
            <ul class="plain-list">
              {(lists?.[kind] ?? []).map((script) => (
                <li key={script.id}>
                  <button
                    type="button"
                    class={`link script ${open?.kind === kind && open.script.id === script.id ? "chosen" : ""}`}
                    onClick={() => setOpen({ kind, script, isNew: false })}
                  >
                    <bdi>{script.id}</bdi>
                  </button>
                  {scriptDraft(draftName(place, { kind, script, isNew: false })) !== undefined && <span class="draft">not saved</span>}
                </li>
              ))}
            </ul>
            <button
              type="button"
              class="quiet"
              onClick={() => {
                const trigger = kind === "triggers" ? { triggerType: "Pre" as const, triggerOperation: "All" } : {};
                setOpen({ kind, isNew: true, script: { id: "", body, ...trigger } });
              }}
            >
              New {one}
            </button>
            {scriptDraft(draftName(place, { kind, isNew: true, script: { id: "", body: "" } })) !== undefined && <span class="draft">not saved</span>}
          </section>
        ))}
      </nav>
      <div class="pane">
        {open === null ? (
          <p class="soft pad">Scripts run inside one logical partition; a procedure is one transaction. Choose one, or make a new one.</p>
        ) : (
          <ScriptEditor
            key={draftName(place, open)}
            place={place}
            container={container}
            open={open}
            onClose={() => setOpen(null)}
            onSaved={(script) => saved(open, script)}
            onDiscarded={() => void refresh()}
            onDeleted={() => {
              setOpen(null);
              void refresh();
            }}
          />
        )}
      </div>
    </div>
  );
}

function ScriptEditor(props: ScriptEditorProps) {
  const { open } = props;
  const { script, isDraft, ready, problem, busy, change, save, remove, discard } = useScript(props);
  const [deleting, setDeleting] = useState(false);
  const changed = open.isNew || isDraft;
  return (
    <div class="item-editor" aria-busy={busy}>
      <div class="row-of">
        {open.isNew ? (
          <label class="inline grow">
            Name{" "}
            <input name="script-id" value={script.id} spellcheck={false} onInput={(event) => change({ id: event.currentTarget.value })} />
          </label>
        ) : (
          <strong class="grow ellipsis">
            <bdi>{script.id}</bdi>
          </strong>
        )}
        {open.kind === "triggers" && <TriggerFields script={script} onChange={change} />}
        <button type="button" class="primary" disabled={!changed || !ready || busy} onClick={() => void save()}>
          Save
        </button>
        {isDraft && (
          <button type="button" class="quiet" disabled={busy} onClick={discard}>
            Discard changes
          </button>
        )}
        {!open.isNew && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete
          </button>
        )}
        <button type="button" class="quiet" onClick={props.onClose}>
          Close
        </button>
      </div>
      {nameError(script.id) !== "" && <p class="problem">{nameError(script.id)}</p>}
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <Editor label="Script" language="javascript" text={script.body} onChange={(body) => change({ body })} onSave={() => void save()} />
      {open.kind === "sprocs" && !open.isNew && <RunProcedure {...props} id={script.id} unsaved={changed} saving={busy} />}
      {!open.isNew && <UseHint kind={open.kind} script={script} />}
      {deleting && (
        <Confirm title="Delete this script?" action="Delete script" onConfirm={remove} onClose={() => setDeleting(false)}>
          <p>
            <bdi>{open.script.id}</bdi> will be gone.
          </p>
        </Confirm>
      )}
    </div>
  );
}

/** How a script that is not run from here comes to be used. */
function UseHint(props: { kind: ScriptKind; script: Script }) {
  const { script } = props;
  const when = script.triggerType === "Post" ? "post" : "pre";
  switch (props.kind) {
    case "sprocs":
      return null;
    case "udfs":
      return (
        <p class="help">
          In queries: <code>SELECT VALUE udf.{script.id}(c.value) FROM c</code>
        </p>
      );
    case "triggers":
      return (
        <p class="help">
          A write names it in <code>x-ms-documentdb-{when}-trigger-include: {script.id}</code>
        </p>
      );
  }
}

function TriggerFields(props: { script: Script; onChange: (next: Partial<Script>) => void }) {
  const { script, onChange } = props;
  return (
    <>
      <label class="inline">
        Runs{" "}
        <select value={script.triggerType ?? "Pre"} onChange={(event) => onChange({ triggerType: event.currentTarget.value as "Pre" | "Post" })}>
          <option value="Pre">before</option>
          <option value="Post">after</option>
        </select>
      </label>
      <label class="inline">
        On{" "}
        <select value={script.triggerOperation ?? "All"} onChange={(event) => onChange({ triggerOperation: event.currentTarget.value })}>
          {OPERATIONS.map((operation) => (
            <option key={operation}>{operation}</option>
          ))}
        </select>
      </label>
    </>
  );
}

function listError(text: string, length: number | undefined): string {
  try {
    const value = JSON.parse(text) as unknown;
    if (!Array.isArray(value)) return "A JSON array is needed.";
    if (length !== undefined && value.length !== length) return `The key has ${length} levels.`;
    return "";
  } catch {
    return "A JSON array is needed.";
  }
}

function RunProcedure(props: { place: Place; container: Container; id: string; unsaved: boolean; saving: boolean }) {
  const [key, setKey] = useState(JSON.stringify(props.container.partitionKey.paths.map(() => "")));
  const [list, setList] = useState("[]");
  const [run, setRun] = useState<ScriptRun | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const control = useRef<AbortController | null>(null);
  const keyError = listError(key, props.container.partitionKey.paths.length);
  const wrong = keyError || listError(list, undefined);
  const start = async (event: Event) => {
    event.preventDefault();
    const abort = (control.current = new AbortController());
    setBusy(true);
    setProblem("");
    try {
      setRun(await runProcedure(client(), props.place, props.id, JSON.parse(key) as unknown[], list, abort.signal));
    } catch (error) {
      setRun(null);
      setProblem(isAbort(error) ? "Cancelled. The server may have finished all the same." : explain(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="run" onSubmit={(event) => void start(event)}>
      <div class="row-of top">
        <Field label="Partition key" help="In which logical partition it runs." error={keyError}>
          {(attributes) => <input {...attributes} name="run-key" value={key} spellcheck={false} onInput={(event) => setKey(event.currentTarget.value)} />}
        </Field>
        <Field label="Arguments" help="What the function gets, as a JSON array." error={listError(list, undefined)}>
          {(attributes) => <input {...attributes} name="run-arguments" value={list} spellcheck={false} onInput={(event) => setList(event.currentTarget.value)} />}
        </Field>
        <button type="submit" class="primary" disabled={busy || props.saving || wrong !== ""}>
          Run
        </button>
        {busy && (
          <button type="button" onClick={() => control.current?.abort()}>
            Cancel
          </button>
        )}
      </div>
      {props.unsaved && <p class="help">Runs what was saved, not what is in the editor.</p>}
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {run !== null && (
        <div class="run-result" data-run-result>
          <h3>
            Result <span class="soft">{units(run.charge)} RU, {Math.round(run.milliseconds)} ms</span>
          </h3>
          <pre tabIndex={0} aria-label="Result">{run.result === "" ? "(nothing)" : layOut(run.result)}</pre>
          <h3>Log</h3>
          <pre tabIndex={0} aria-label="Log">{run.log === "" ? "(nothing)" : run.log}</pre>
          <details>
            <summary>Charge</summary>
            <ChargeTable total={run.charge} lines={run.lines} />
          </details>
        </div>
      )}
    </form>
  );
}
