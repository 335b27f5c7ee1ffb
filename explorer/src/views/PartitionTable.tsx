// The physical partitions with their figures, and the buttons that split and merge them.

import { useState } from "preact/hooks";
import { Dialog } from "../parts/Dialog.tsx";
import { Field } from "../parts/Field.tsx";
import { Meter } from "../parts/TimeChart.tsx";
import { explain, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { mergePartitions, splitPartition, type Partition } from "../wire/manage.ts";
import type { Place } from "../wire/resources.ts";
import { bytesText, numberText } from "./figures.ts";

type Asked = { what: "split"; partition: Partition } | { what: "merge"; left: Partition; right: Partition };

export function PartitionTable(props: { place: Place; partitions: Partition[]; onChanged: () => void }) {
  const { partitions } = props;
  const [asked, setAsked] = useState<Asked | null>(null);
  return (
    <>
      <table class="plain" data-partition-table>
        <thead>
          <tr>
            <th scope="col">Id</th>
            <th scope="col">Key space</th>
            <th scope="col" class="number">Items</th>
            <th scope="col" class="number">Storage</th>
            <th scope="col">RU/s now</th>
            <th scope="col" class="number">Throttled/s</th>
            <th scope="col">
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {partitions.map((one, index) => (
            <PartitionRow key={one.id} partition={one} next={partitions[index + 1]} onAsk={setAsked} />
          ))}
        </tbody>
      </table>
      {asked !== null && (
        <Elastic
          asked={asked}
          place={props.place}
          onClose={() => setAsked(null)}
          onDone={() => {
            setAsked(null);
            props.onChanged();
          }}
        />
      )}
    </>
  );
}

function PartitionRow(props: { partition: Partition; next: Partition | undefined; onAsk: (asked: Asked) => void }) {
  const { partition: one, next } = props;
  const now = one.use.perSecond;
  const percent = (share: number) => `${numberText(share * 100)} %`;
  return (
    <tr data-partition={one.id}>
      <th scope="row">
        {one.id}
        {one.parents.length > 0 && <span class="soft"> from {one.parents.join(", ")}</span>}
      </th>
      <td>
        {percent(one.from)} to {percent(one.to)}
      </td>
      <td class="number">{one.items.toLocaleString("en")}</td>
      <td class="number">{bytesText(one.bytes)}</td>
      <td>
        {one.throughput > 0 ? (
          <Meter label={`Throughput of partition ${one.id}`} value={now.requestUnits} most={one.throughput} text={`${numberText(now.requestUnits)} of ${numberText(one.throughput)}`} />
        ) : (
          numberText(now.requestUnits)
        )}
      </td>
      <td class="number">{numberText(now.throttled)}</td>
      <td class="buttons">
        <button type="button" aria-label={`Split partition ${one.id}`} onClick={() => props.onAsk({ what: "split", partition: one })}>
          Split
        </button>
        {next !== undefined && (
          <button type="button" class="quiet" aria-label={`Merge partitions ${one.id} and ${next.id}`} onClick={() => props.onAsk({ what: "merge", left: one, right: next })}>
            Merge with {next.id}
          </button>
        )}
      </td>
    </tr>
  );
}

function Elastic(props: { asked: Asked; place: Place; onClose: () => void; onDone: () => void }) {
  const { asked, place } = props;
  const [children, setChildren] = useState("2");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const count = Number(children);
  const wrong = asked.what === "split" && !(Number.isInteger(count) && count >= 2 && count <= 64) ? "A whole number from 2 to 64." : "";
  const act = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      if (asked.what === "split") {
        const done = await splitPartition(client(), place, asked.partition.id, count);
        say(`Partition ${asked.partition.id} split into ${done.children.join(" and ")}`);
      } else {
        const done = await mergePartitions(client(), place, asked.left.id, asked.right.id);
        say(`Partitions ${asked.left.id} and ${asked.right.id} merged into ${done.child}`);
      }
      props.onDone();
    } catch (error) {
      setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  const title = asked.what === "split" ? `Split partition ${asked.partition.id}` : `Merge partitions ${asked.left.id} and ${asked.right.id}`;
  return (
    <Dialog title={title} onClose={props.onClose}>
      <form onSubmit={(event) => void act(event)}>
        {asked.what === "split" ? (
          <>
            <p>
              Its part of the key space is divided while reads and writes go on. Each part gets its own budget; the throughput of the
              container does not change. Clients notice and follow by themselves.
            </p>
            <Field label="Into how many" help="Two, unless it should become many at once." error={wrong}>
              {(attributes) => (
                <input {...attributes} name="children" inputMode="numeric" value={children} onInput={(event) => setChildren(event.currentTarget.value.trim())} />
              )}
            </Field>
          </>
        ) : (
          <p>The two become one partition with the budget of both, while reads and writes go on.</p>
        )}
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || wrong !== ""}>
            {asked.what === "split" ? "Split" : "Merge"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
