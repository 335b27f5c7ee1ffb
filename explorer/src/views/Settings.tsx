// What can be changed about a container later, and what it holds.

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Confirm } from "../parts/Dialog.tsx";
import { Editor } from "../parts/Editor.tsx";
import { Field } from "../parts/Field.tsx";
import { fail, say } from "../state/notices.ts";
import { go } from "../state/route.ts";
import { bytesText } from "./figures.ts";
import { RekeyDialog } from "./NewJob.tsx";
import { client, findOffer, refreshBranch, serverless } from "../state/session.ts";
import { deleteContainer, readContainer, readRanges, replaceContainer, type Container, type ContainerState, type Place } from "../wire/resources.ts";
import { isTable } from "../wire/tables.ts";
import { policyError, TtlFields, ttlError, ttlValue, type TtlDraft } from "./NewContainer.tsx";
import { ThroughputNow } from "./ThroughputNow.tsx";
import { ThroughputSettings } from "./ThroughputSettings.tsx";

export function Settings(props: { place: Place; container: Container }) {
  const { place } = props;
  const [state, setState] = useState<ContainerState | null>(null);
  const [partitions, setPartitions] = useState(1);
  const [deleting, setDeleting] = useState(false);
  const [rekeying, setRekeying] = useState(false);
  const read = async () => {
    const [found, ranges] = await Promise.all([readContainer(client(), place), readRanges(client(), place)]);
    setState(found);
    setPartitions(ranges.length);
  };
  const refresh = () => read().catch((error: unknown) => fail("Cannot read the container", error));
  useEffect(() => void refresh(), []);
  // An index in the making is looked at until it is there.
  const building = state !== null && state.indexProgress < 100;
  useLayoutEffect(() => {
    if (!building || deleting) return;
    const timer = setInterval(() => void refresh(), 1000);
    return () => clearInterval(timer);
  }, [building, deleting]);

  if (state === null) return <p class="soft pad">Loading…</p>;
  const offer = findOffer(state.container._rid);
  // The question stays open until the page is left: while it is, nobody looks at the container, which is gone then.
  const remove = async () => {
    try {
      await deleteContainer(client(), place);
      say(`Deleted the container ${place.coll}`);
      go({ page: "database", db: place.db });
      await refreshBranch(place.db);
    } catch (error) {
      fail(`Cannot delete the container ${place.coll}`, error);
    }
  };
  return (
    <div class="page scroll" tabIndex={0} role="region" aria-label="Settings">
      <Facts state={state} partitions={partitions} />
      {!isTable(place.db, state.container) && (
        <div class="row-of">
          <button type="button" onClick={() => setRekeying(true)}>
            Change the partition key
          </button>
          <button type="button" class="link" onClick={() => go({ page: "container", db: place.db, coll: place.coll, tab: "advisor" })}>
            Compare keys first
          </button>
        </div>
      )}
      {rekeying && <RekeyDialog place={place} paths={state.container.partitionKey.paths} onClose={() => setRekeying(false)} />}
      <h2>Throughput</h2>
      {serverless.value && <p class="soft">This account is serverless: nothing is provisioned.</p>}
      {!serverless.value && offer === undefined && <p class="soft">Shared with the database; change it there.</p>}
      {offer !== undefined && <ThroughputNow place={place} paused={deleting} />}
      {offer !== undefined && <ThroughputSettings key={String(offer["_etag"])} offer={offer} partitions={partitions} onSaved={() => void refresh()} />}
      <DefinitionSettings key={state.container._etag} place={place} container={state.container} onSaved={() => void refresh()} />
      <h2>Delete</h2>
      <p class="soft">The container and all its items are gone at once.</p>
      <button type="button" class="danger" onClick={() => setDeleting(true)}>
        Delete container
      </button>
      {deleting && (
        <Confirm title="Delete this container?" action="Delete container" typed={place.coll} onConfirm={remove} onClose={() => setDeleting(false)}>
          <p>
            <bdi>{place.coll}</bdi> with {state.items === undefined ? "all its" : state.items.toLocaleString("en")} items will be gone. This
            cannot be undone.
          </p>
        </Confirm>
      )}
    </div>
  );
}

function Facts(props: { state: ContainerState; partitions: number }) {
  const { container, items, kilobytes, indexProgress } = props.state;
  const key = container.partitionKey;
  const unique = container.uniqueKeyPolicy?.uniqueKeys.map((one) => one.paths.join(" + ")) ?? [];
  const facts: [string, string][] = [
    ["Partition key", `${key.paths.join(", ")} (${key.kind === "MultiHash" ? "hierarchical" : `hash, version ${key.version ?? 1}`})`],
    ["Items", items === undefined ? "unknown" : items.toLocaleString("en")],
    ["Size", kilobytes === undefined ? "unknown" : bytesText(kilobytes * 1024)],
    ["Physical partitions", String(props.partitions)],
    ["Unique keys", unique.length === 0 ? "none" : unique.join("; ")],
    ["Index", indexProgress >= 100 ? "complete" : `${indexProgress} % built`],
  ];
  return (
    <dl class="facts-list" data-index-progress={indexProgress}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function ttlOf(container: Container): TtlDraft {
  const value = container.defaultTtl;
  if (value === undefined || value === null) return { kind: "off", seconds: "3600" };
  return value === -1 ? { kind: "items", seconds: "3600" } : { kind: "default", seconds: String(value) };
}

function DefinitionSettings(props: { place: Place; container: Container; onSaved: () => void }) {
  const { container } = props;
  const [ttl, setTtl] = useState(ttlOf(container));
  const [policy, setPolicy] = useState(JSON.stringify(container.indexingPolicy, null, 2));
  const [busy, setBusy] = useState(false);
  const wrong = ttlError(ttl) || policyError(policy);
  const save = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const { defaultTtl: _, ...rest } = container;
      const seconds = ttlValue(ttl);
      const body = { ...rest, indexingPolicy: JSON.parse(policy) as Container["indexingPolicy"], ...(seconds === undefined ? {} : { defaultTtl: seconds }) };
      await replaceContainer(client(), props.place, body as Container);
      await refreshBranch(props.place.db);
      say("Saved the settings");
      props.onSaved();
    } catch (error) {
      fail("Cannot save the settings", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <h2>Time to live and indexing</h2>
      <TtlFields ttl={ttl} onChange={setTtl} />
      <Field
        label="Indexing policy"
        help="A changed policy is built in the background; queries use the old index until the new one is there."
        error={policyError(policy)}
      >
        {() => <Editor label="Indexing policy" language="json" className="short" text={policy} onChange={setPolicy} />}
      </Field>
      <div class="actions">
        <button type="submit" class="primary" disabled={busy || wrong !== ""}>
          Save settings
        </button>
      </div>
    </form>
  );
}
