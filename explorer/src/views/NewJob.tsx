// Starting a copy, or giving a container another key.

import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../parts/Dialog.tsx";
import { Choice, Field } from "../parts/Field.tsx";
import { explain, fail, say } from "../state/notices.ts";
import { go } from "../state/route.ts";
import { client, findContainer, openAllBranches, tree } from "../state/session.ts";
import { createJob, type ContainerName, type NewJob } from "../wire/manage.ts";
import type { Place } from "../wire/resources.ts";
import { pathError } from "./names.ts";

function rateError(rate: string): string {
  if (rate === "") return "";
  const value = Number(rate);
  return Number.isInteger(value) && value >= 1 ? "" : "A whole number of items, or nothing.";
}

const rateOf = (rate: string) => (rate === "" ? {} : { rate: Number(rate) });

function RateField(props: { rate: string; onChange: (rate: string) => void }) {
  return (
    <Field label="Items a second, at most" help="10,000 if it is empty. Copying is charged no request units." error={rateError(props.rate)}>
      {(attributes) => <input {...attributes} name="rate" inputMode="numeric" value={props.rate} onInput={(event) => props.onChange(event.currentTarget.value.trim())} />}
    </Field>
  );
}

/** What every form of a job does when it is sent. */
function useJob(onDone: () => void) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const start = async (job: NewJob) => {
    setBusy(true);
    setProblem("");
    try {
      const made = await createJob(client(), job);
      say(`Started the job ${made.id}`);
      onDone();
      go({ page: "jobs" });
    } catch (error) {
      setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  return { problem, busy, start };
}

function Problem(props: { text: string }) {
  return props.text === "" ? null : (
    <p class="problem" role="alert">
      {props.text}
    </p>
  );
}

export function RekeyDialog(props: { place: Place; paths: string[]; onClose: () => void }) {
  const current = findContainer(props.place.db, props.place.coll)?.partitionKey.paths.join(",");
  const [text, setText] = useState(props.paths.join(", "));
  const [rate, setRate] = useState("");
  const { problem, busy, start } = useJob(props.onClose);
  const paths = text.split(",").map((path) => path.trim());
  const wrong = paths.map((path) => (path === "" ? "A path is needed." : pathError(path))).find((error) => error !== "") ?? (paths.length > 3 ? "At most three levels." : "");
  const same = paths.join(",") === current;
  return (
    <Dialog title="Change the partition key" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const partitionKey = { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 };
          void start({ kind: "rekey", container: { database: props.place.db, container: props.place.coll }, partitionKey, completesItself: true, ...rateOf(rate) });
        }}
      >
        <p>
          <bdi>{props.place.coll}</bdi> is copied into a new container with this key while it is in use. When the copy has caught
          up, writes wait for a moment and the new one takes its name.
        </p>
        <Field label="Partition key" help={same ? "This is the key that it has. One path, or up to three with commas between." : "One path, or up to three with commas between."} error={wrong}>
          {(attributes) => <input {...attributes} name="rekey-paths" value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />}
        </Field>
        <RateField rate={rate} onChange={setRate} />
        <Problem text={problem} />
        <div class="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || wrong !== "" || same || rateError(rate) !== ""}>
            Change the partition key
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function ContainerChoice(props: { label: string; help: string; value: ContainerName | null; onChange: (name: ContainerName) => void }) {
  const all = (tree.value ?? []).flatMap((branch) => (branch.containers ?? []).map((one) => ({ database: branch.database.id, container: one.id })));
  // Not by their places: the list grows while it is open, and what is chosen must be what was read.
  const valueOf = (name: ContainerName) => JSON.stringify([name.database, name.container]);
  return (
    <Field label={props.label} help={props.help}>
      {(attributes) => (
        <select
          {...attributes}
          value={props.value === null ? "" : valueOf(props.value)}
          onChange={(event) => {
            const chosen = all.find((one) => valueOf(one) === event.currentTarget.value);
            if (chosen !== undefined) props.onChange(chosen);
          }}
        >
          <option value="" disabled>
            choose a container
          </option>
          {all.map((one) => (
            <option key={valueOf(one)} value={valueOf(one)}>
              {one.database} / {one.container}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CopyDialog(props: { onClose: () => void; onStarted: () => void }) {
  const [source, setSource] = useState<ContainerName | null>(null);
  const [target, setTarget] = useState<ContainerName | null>(null);
  const [mode, setMode] = useState<"online" | "offline">("online");
  const [completes, setCompletes] = useState(false);
  const [rate, setRate] = useState("");
  const { problem, busy, start } = useJob(props.onStarted);
  useEffect(() => {
    openAllBranches().catch((error: unknown) => fail("Cannot list all containers", error));
  }, []);
  const same = source !== null && target !== null && source.database === target.database && source.container === target.container;
  return (
    <Dialog title="Copy a container" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (source !== null && target !== null) void start({ kind: "copy", source, target, mode, completesItself: completes, ...rateOf(rate) });
        }}
      >
        <ContainerChoice label="From" help="Its items stay where they are." value={source} onChange={setSource} />
        <ContainerChoice label="Into" help="A container that exists; it may have another key, index or throughput." value={target} onChange={setTarget} />
        {same && <p class="problem">From and into are the same container.</p>}
        <Choice
          label="While it is in use"
          help="Online copies follow every change until they are completed."
          options={[
            { name: "online", title: "Online", note: "Writes go on." },
            { name: "offline", title: "Offline", note: "Nobody should write meanwhile." },
          ]}
          chosen={mode}
          onChoose={setMode}
        />
        {mode === "online" && (
          <label class="check">
            <input type="checkbox" checked={completes} onChange={(event) => setCompletes(event.currentTarget.checked)} /> Complete by itself when it has caught up
          </label>
        )}
        <RateField rate={rate} onChange={setRate} />
        <Problem text={problem} />
        <div class="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || source === null || target === null || same || rateError(rate) !== ""}>
            Start copying
          </button>
        </div>
      </form>
    </Dialog>
  );
}
