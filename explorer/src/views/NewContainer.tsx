// A new container: everything that can be said about it, each explained in a sentence and checked while it is typed.

import { useState } from "preact/hooks";
import { Editor } from "../parts/Editor.tsx";
import { Choice, Field } from "../parts/Field.tsx";
import { fail, say } from "../state/notices.ts";
import { go, route } from "../state/route.ts";
import { client, findOffer, refreshOffers, refreshTree, serverless, tree } from "../state/session.ts";
import { createContainer } from "../wire/resources.ts";
import { tableDefinition, tableNameError, TABLES_DATABASE } from "../wire/tables.ts";
import { nameError, pathError } from "./names.ts";
import { ThroughputFields, throughputError, throughputOf, type ThroughputDraft } from "./throughput.tsx";

export const DEFAULT_POLICY = `{
  "indexingMode": "consistent",
  "automatic": true,
  "includedPaths": [{ "path": "/*" }],
  "excludedPaths": [{ "path": "/\\"_etag\\"/?" }]
}`;

const KEY_LEVELS = 3;

export type TtlDraft = { kind: "off" | "items" | "default"; seconds: string };

export function ttlError(ttl: TtlDraft): string {
  if (ttl.kind !== "default") return "";
  const value = Number(ttl.seconds);
  return Number.isInteger(value) && value >= 1 && value <= 2_147_483_647 ? "" : "A whole number of seconds, 1 or more.";
}

export function ttlValue(ttl: TtlDraft): number | undefined {
  if (ttl.kind === "off") return undefined;
  return ttl.kind === "items" ? -1 : Number(ttl.seconds);
}

export function policyError(text: string): string {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? "" : "An indexing policy is a JSON object.";
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}

export function TtlFields(props: { ttl: TtlDraft; onChange: (ttl: TtlDraft) => void }) {
  const { ttl, onChange } = props;
  return (
    <>
      <Choice
        label="Time to live"
        help="Expired items vanish at once and are deleted in the background with request units that are left over."
        options={[
          { name: "off", title: "Off", note: "Items stay until they are deleted." },
          { name: "items", title: "By item", note: "Only items with a ttl property expire." },
          { name: "default", title: "Default", note: "All items expire, unless their ttl says otherwise." },
        ]}
        chosen={ttl.kind}
        onChoose={(kind) => onChange({ ...ttl, kind })}
      />
      {ttl.kind === "default" && (
        <Field label="Seconds to live" help="Counted from the last write of an item." error={ttlError(ttl)}>
          {(attributes) => (
            <input
              {...attributes}
              name="ttl"
              inputMode="numeric"
              value={ttl.seconds}
              onInput={(event) => onChange({ ...ttl, seconds: event.currentTarget.value.trim() })}
            />
          )}
        </Field>
      )}
    </>
  );
}

/** One line of unique keys: paths with commas between. */
const uniqueKeyPaths = (line: string) => line.split(",").map((path) => path.trim()).filter((path) => path !== "");

export function NewContainer(props: { db: string }) {
  const database = tree.value?.find((one) => one.database.id === props.db)?.database;
  const databaseShares = database !== undefined && findOffer(database._rid) !== undefined;
  const isTables = props.db === TABLES_DATABASE;
  const what = isTables ? "table" : "container";
  const [id, setId] = useState("");
  const [paths, setPaths] = useState<string[]>([""]);
  // Until the user chooses, it follows what is known of the database, which may still be on its way.
  const [chosen, setThroughput] = useState<ThroughputDraft | null>(null);
  const throughput: ThroughputDraft = chosen ?? { kind: databaseShares ? "shared" : "manual", units: "400" };
  const [ttl, setTtl] = useState<TtlDraft>({ kind: "off", seconds: "3600" });
  const [unique, setUnique] = useState("");
  const [policy, setPolicy] = useState(DEFAULT_POLICY);
  const [busy, setBusy] = useState(false);

  const uniqueKeys = unique.split("\n").map(uniqueKeyPaths).filter((line) => line.length > 0);
  const uniqueError = uniqueKeys.flat().map(pathError).find((error) => error !== "") ?? "";
  const keyError = paths.map(pathError).find((error) => error !== "") ?? (new Set(paths).size < paths.length ? "Each level needs a path of its own." : "");
  const wrongName = isTables ? tableNameError(id) : nameError(id);
  const wrong = wrongName || keyError || uniqueError || ttlError(ttl) || policyError(policy) || (serverless.value ? "" : throughputError(throughput));
  const ready = id !== "" && (isTables || paths.every((path) => path !== "")) && wrong === "";

  const definition = () => {
    const ttlSeconds = ttlValue(ttl);
    return {
      id,
      partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 },
      indexingPolicy: JSON.parse(policy) as unknown,
      ...(ttlSeconds === undefined ? {} : { defaultTtl: ttlSeconds }),
      ...(uniqueKeys.length === 0 ? {} : { uniqueKeyPolicy: { uniqueKeys: uniqueKeys.map((line) => ({ paths: line })) } }),
    };
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await createContainer(client(), props.db, isTables ? tableDefinition(id) : definition(), serverless.value ? { kind: "shared" } : throughputOf(throughput));
      await Promise.all([refreshTree(), refreshOffers()]);
      say(`Created the ${what} ${id}`);
      // A user who has gone elsewhere meanwhile stays there.
      const here = route.value;
      if (here.page === "new-container" && here.db === props.db) go({ page: "container", db: props.db, coll: id, tab: "items" });
    } catch (error) {
      fail(`Cannot create the ${what} ${id}`, error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <form class="page" onSubmit={(event) => void submit(event)}>
      <h1>
        New {what} in <bdi>{props.db}</bdi>
      </h1>
      <Field label="Name" help={isTables ? "A table holds entities; their PartitionKey spreads them over partitions." : "A container holds items that are partitioned by one key."} error={wrongName}>
        {(attributes) => (
          <input {...attributes} name="id" required value={id} autocomplete="off" spellcheck={false} onInput={(event) => setId(event.currentTarget.value)} />
        )}
      </Field>
      {!isTables && <KeyFields paths={paths} error={keyError} onChange={setPaths} />}
      <ThroughputFields
        draft={throughput}
        onChange={setThroughput}
        shared={databaseShares ? { title: "Shared", note: "Uses the throughput of the database." } : undefined}
      />
      {!isTables && (
        <MoreFields ttl={ttl} unique={unique} uniqueError={uniqueError} policy={policy} onTtl={setTtl} onUnique={setUnique} onPolicy={setPolicy} />
      )}
      <div class="actions">
        <button type="submit" class="primary" disabled={busy || !ready}>
          Create {what}
        </button>
      </div>
    </form>
  );
}

interface MoreFieldsProps {
  ttl: TtlDraft;
  unique: string;
  uniqueError: string;
  policy: string;
  onTtl: (ttl: TtlDraft) => void;
  onUnique: (unique: string) => void;
  onPolicy: (policy: string) => void;
}

/** What most containers leave as it is. */
function MoreFields(props: MoreFieldsProps) {
  return (
    <details>
      <summary>Time to live, unique keys, indexing</summary>
      <TtlFields ttl={props.ttl} onChange={props.onTtl} />
      <Field
        label="Unique keys"
        help="One in each line; paths with commas between must be unique together. They hold within a logical partition and cannot be changed later."
        error={props.uniqueError}
      >
        {(attributes) => (
          <textarea {...attributes} name="unique" rows={2} value={props.unique} placeholder="/email" onInput={(event) => props.onUnique(event.currentTarget.value)} />
        )}
      </Field>
      <Field
        label="Indexing policy"
        help="By default every property is indexed. Excluded paths make writes cheaper and queries on them slower."
        error={policyError(props.policy)}
      >
        {() => <Editor label="Indexing policy" language="json" text={props.policy} className="short" onChange={props.onPolicy} />}
      </Field>
    </details>
  );
}

function KeyFields(props: { paths: string[]; error: string; onChange: (paths: string[]) => void }) {
  const { paths, onChange } = props;
  const set = (index: number, path: string) => onChange(paths.map((old, at) => (at === index ? path : old)));
  return (
    <>
      {paths.map((path, index) => (
        <Field
          key={index}
          label={index === 0 ? "Partition key" : `Level ${index + 1}`}
          error={pathError(path) || (index === paths.length - 1 ? props.error : "")}
          help={
            index === 0
              ? "The property that spreads items over partitions: many distinct values, evenly used, and in most queries. /tenant, or nested: /address/zip."
              : "Divides the level above, so that one large value of it can spread over several partitions."
          }
        >
          {(attributes) => (
            <div class="row-of">
              <input
                {...attributes}
                name={`key-${index}`}
                required
                value={path}
                placeholder={index === 0 ? "/tenant" : "/user"}
                autocomplete="off"
                spellcheck={false}
                onInput={(event) => set(index, event.currentTarget.value)}
              />
              {index > 0 && (
                <button type="button" class="quiet" aria-label={`Remove level ${index + 1}`} onClick={() => onChange(paths.filter((_, at) => at !== index))}>
                  Remove
                </button>
              )}
            </div>
          )}
        </Field>
      ))}
      {paths.length < KEY_LEVELS && (
        <button type="button" class="quiet" onClick={() => onChange([...paths, ""])}>
          Add a level (hierarchical key)
        </button>
      )}
    </>
  );
}
