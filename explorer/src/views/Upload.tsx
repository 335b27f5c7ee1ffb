// Items from files: arrays, single objects, or one object in each line.

import { useRef, useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { itemsOfFile } from "../text/json.ts";
import { isAbort } from "../wire/client.ts";
import { createItem, type Container, type Place } from "../wire/resources.ts";
import { keyOf } from "./useItem.ts";

/** Requests at the same time. */
const LANES = 8;
const PROBLEMS_SHOWN = 50;

interface Progress {
  total: number;
  written: number;
  failed: number;
  charge: number;
  problems: string[];
  state: "running" | "done" | "cancelled";
}

/** The items of all files, and what is wrong with files that have none. */
async function readFiles(files: File[], problem: (text: string) => void): Promise<{ text: string; from: string }[]> {
  const found: { text: string; from: string }[] = [];
  for (const file of files) {
    try {
      for (const [index, text] of itemsOfFile(await file.text()).entries()) found.push({ text, from: `${file.name}, item ${index + 1}` });
    } catch (error) {
      problem(`${file.name}: ${explain(error)}`);
    }
  }
  return found;
}

async function uploadAll(place: Place, container: Container, files: File[], upsert: boolean, signal: AbortSignal, show: (progress: Progress) => void) {
  const now: Progress = { total: 0, written: 0, failed: 0, charge: 0, problems: [], state: "running" };
  const problem = (text: string) => {
    now.failed += 1;
    if (now.problems.length < PROBLEMS_SHOWN) now.problems.push(text);
  };
  const waiting = (await readFiles(files, problem)).reverse();
  now.total = waiting.length;
  show({ ...now });
  let shownAt = performance.now();
  const lane = async () => {
    for (let next = waiting.pop(); next !== undefined && !signal.aborted; next = waiting.pop()) {
      try {
        const key = keyOf(JSON.parse(next.text), container);
        const item = await createItem(client(), place, key, next.text, { upsert, minimal: true, signal });
        now.written += 1;
        now.charge += item.charge;
      } catch (error) {
        if (isAbort(error)) return;
        problem(`${next.from}: ${explain(error)}`);
      }
      if (performance.now() - shownAt > 100) {
        shownAt = performance.now();
        show({ ...now });
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  show({ ...now, state: signal.aborted ? "cancelled" : "done" });
}

export function Upload(props: { place: Place; container: Container; onClose: () => void }) {
  const { place, container } = props;
  const [files, setFiles] = useState<File[]>([]);
  const [upsert, setUpsert] = useState(true);
  const [progress, setProgress] = useState<Progress | null>(null);
  const control = useRef<AbortController | null>(null);
  const running = progress?.state === "running";

  const start = () => {
    const abort = (control.current = new AbortController());
    void uploadAll(place, container, files, upsert, abort.signal, setProgress);
  };

  return (
    <Dialog title="Upload items" onClose={() => (running ? control.current?.abort() : props.onClose())}>
      <p class="help">JSON files with an array of items, one item, or one item in each line. Items without an id are refused.</p>
      <label class="field">
        <span>Files</span>
        <input type="file" multiple accept=".json,.jsonl,.ndjson,application/json" disabled={running} onChange={(event) => setFiles([...(event.currentTarget.files ?? [])])} />
      </label>
      <label class="check">
        <input type="checkbox" checked={upsert} disabled={running} onChange={(event) => setUpsert(event.currentTarget.checked)} /> Replace items that exist
      </label>
      {progress !== null && <ProgressReport progress={progress} />}
      <div class="actions">
        {running ? (
          <button type="button" onClick={() => control.current?.abort()}>
            Cancel
          </button>
        ) : (
          <button type="button" onClick={props.onClose}>
            Close
          </button>
        )}
        <button type="button" class="primary" disabled={running || files.length === 0} onClick={start}>
          Upload
        </button>
      </div>
    </Dialog>
  );
}

function ProgressReport(props: { progress: Progress }) {
  const { progress } = props;
  const words = { running: "", done: "Done. ", cancelled: "Cancelled; what was written stays. " };
  return (
    <div data-upload={progress.state}>
      <progress max={Math.max(1, progress.total)} value={progress.written + progress.failed} aria-label="Upload" />
      <p aria-live="polite">
        {words[progress.state]}
        {progress.written.toLocaleString("en")} of {progress.total.toLocaleString("en")} written, {progress.failed} failed,{" "}
        {units(progress.charge)} RU
      </p>
      {progress.problems.length > 0 && (
        <ul class="problems" tabIndex={0} aria-label="Problems">
          {progress.problems.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
