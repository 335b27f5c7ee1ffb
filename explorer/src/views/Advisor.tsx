// Which partition key fits: candidates against the container's own items, and a workload that was recorded or written.

import { useEffect, useRef, useState } from "preact/hooks";
import { Editor } from "../parts/Editor.tsx";
import { Choice, Field } from "../parts/Field.tsx";
import { propertiesOf } from "../parts/query-language.ts";
import { explain, fail, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort } from "../wire/client.ts";
import { askAdvice, orderRecording, readWorkload, type Advice, type Recording } from "../wire/manage.ts";
import { runQuery, type Container, type Place } from "../wire/resources.ts";
import { AdviceReport } from "./AdviceReport.tsx";

type Source = "recorded" | "written" | "none";

const WRITTEN = `{
  "name": "what the application does",
  "items": { "perDay": 100000, "horizonDays": 365 },
  "operations": [
    { "name": "write", "kind": "create", "perSecond": 20 },
    { "name": "read one", "kind": "read", "perSecond": 100, "filters": ["/id"] }
  ]
}`;

/** A recording of what the container is asked to do. */
function useRecording(place: Place, onRecorded: () => void) {
  const [recording, setRecording] = useState<Recording | null>(null);
  const order = async (action: "start" | "stop") => {
    try {
      setRecording(await orderRecording(client(), place, action));
      if (action === "stop") onRecorded();
      say(action === "start" ? "Recording; let the application run" : "Recorded");
    } catch (error) {
      fail("Cannot record the workload", error);
    }
  };
  return { recording, order: (action: "start" | "stop") => void order(action) };
}

/** Asks the advisor; what it said last stays until it says something else. */
function useAdvice(place: Place) {
  const [advice, setAdvice] = useState<Advice | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const control = useRef<AbortController | null>(null);
  useEffect(() => () => control.current?.abort(), []);
  const ask = async (workload: () => Promise<object>, candidates: string[]) => {
    const abort = (control.current = new AbortController());
    setBusy(true);
    setProblem("");
    try {
      setAdvice(await askAdvice(client(), place, { workload: await workload(), candidates }, abort.signal));
    } catch (error) {
      if (!isAbort(error)) setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  return { advice, problem, busy, ask, cancel: () => control.current?.abort() };
}

export function Advisor(props: { place: Place; container: Container }) {
  const { place } = props;
  const [source, setSource] = useState<Source>("none");
  const [written, setWritten] = useState(WRITTEN);
  const [candidates, setCandidates] = useState("");
  const recording = useRecording(place, () => setSource("recorded"));
  const { advice, problem, busy, ask, cancel } = useAdvice(place);
  const wrong = source === "written" ? workloadError(written) : "";
  const workload = async (): Promise<object> => {
    if (source === "none") return {};
    return source === "written" ? (JSON.parse(written) as object) : readWorkload(client(), place);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void ask(workload, candidates.split("\n").map((line) => line.trim()).filter((line) => line !== ""));
  };
  return (
    <div class="page wide scroll" tabIndex={0} role="region" aria-label="Advisor">
      <form onSubmit={submit}>
        <div class="two">
          <div>
            <WorkloadFields source={source} onSource={setSource} {...recording} />
            {source === "written" && (
              <Field label="Workload as JSON" help="docs/advisor.md explains each word." error={wrong}>
                {() => <Editor label="Workload" language="json" className="short" text={written} onChange={setWritten} />}
              </Field>
            )}
          </div>
          <CandidateFields place={place} text={candidates} onChange={setCandidates} />
        </div>
        <div class="actions">
          {busy && (
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          )}
          <button type="submit" class="primary" disabled={busy || wrong !== ""}>
            {busy ? "Comparing…" : "Compare keys"}
          </button>
        </div>
      </form>
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {advice !== null && <AdviceReport advice={advice} place={place} container={props.container} />}
    </div>
  );
}

interface WorkloadFieldsProps {
  source: Source;
  onSource: (source: Source) => void;
  recording: Recording | null;
  order: (action: "start" | "stop") => void;
}

function WorkloadFields(props: WorkloadFieldsProps) {
  const { recording } = props;
  const running = recording?.state === "recording";
  const words = recording === null ? "" : `${recording.operations.toLocaleString("en")} operations in ${Math.round(recording.seconds)} s`;
  return (
    <>
      <Choice
        label="Workload"
        help="Storage is judged by the items that are here; throughput needs to know what is done with them."
        options={[
          { name: "recorded", title: "Recorded", note: "What the server saw while it recorded." },
          { name: "written", title: "Written", note: "As JSON, for what is to come." },
          { name: "none", title: "Storage only", note: "Just how items spread." },
        ]}
        chosen={props.source}
        onChoose={props.onSource}
      />
      <div class="row-of">
        <button type="button" disabled={running} onClick={() => props.order("start")}>
          Start recording
        </button>
        <button type="button" disabled={!running} onClick={() => props.order("stop")}>
          Stop recording
        </button>
        <span class="soft" data-recording={recording?.state ?? "none"}>
          {running ? "recording…" : words}
        </span>
      </div>
    </>
  );
}

function CandidateFields(props: { place: Place; text: string; onChange: (text: string) => void }) {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const asked = { text: "SELECT TOP 20 * FROM c", parameters: [], pageSize: 20, access: "auto" as const, continuation: null };
    runQuery(client(), props.place, { ...asked, signal: abort.signal }).then(
      (page) => setNames(pathsOf(page.rows)),
      (error: unknown) => fail("Cannot look at the items", error),
    );
    return () => abort.abort();
  }, []);
  return (
    <div>
      <Field
        label="Candidate keys"
        help="One in each line: /tenant, hierarchical /tenant,/user, synthetic /device+month(/time), /date+suffix(10). Without any, the advisor proposes some."
      >
        {(attributes) => (
          <textarea {...attributes} name="candidates" rows={5} value={props.text} spellcheck={false} onInput={(event) => props.onChange(event.currentTarget.value)} />
        )}
      </Field>
      <div class="row-of">
        {names.map((path) => (
          <button key={path} type="button" class="chip" onClick={() => props.onChange(`${props.text.trimEnd()}\n${path}`.trimStart())}>
            {path}
          </button>
        ))}
      </div>
    </div>
  );
}

/** Paths of a few items that could be keys: few levels, no system properties. */
function pathsOf(rows: string[]): string[] {
  const found = propertiesOf(rows.map((row) => JSON.parse(row) as unknown));
  const paths = found.filter((name) => !name.startsWith("_") && name.split(".").length <= 3 && /^[\w.]+$/.test(name));
  return paths.map((name) => `/${name.replaceAll(".", "/")}`).slice(0, 24);
}

function workloadError(text: string): string {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? "" : "A workload is a JSON object.";
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}
