import { useState } from "preact/hooks";
import { Field } from "../parts/Field.tsx";
import { fail, say } from "../state/notices.ts";
import { go, route } from "../state/route.ts";
import { client, refreshOffers, refreshTree, serverless } from "../state/session.ts";
import { createDatabase } from "../wire/resources.ts";
import { nameError } from "./names.ts";
import { ThroughputFields, throughputError, throughputOf, type ThroughputDraft } from "./throughput.tsx";

export function NewDatabase() {
  const [id, setId] = useState("");
  const [draft, setDraft] = useState<ThroughputDraft>({ kind: "shared", units: "400" });
  const [busy, setBusy] = useState(false);
  const wrong = nameError(id) || throughputError(draft);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await createDatabase(client(), id, serverless.value ? { kind: "shared" } : throughputOf(draft));
      await Promise.all([refreshTree(), refreshOffers()]);
      say(`Created the database ${id}`);
      // A user who has gone elsewhere meanwhile stays there.
      if (route.value.page === "new-database") go({ page: "new-container", db: id });
    } catch (error) {
      fail(`Cannot create the database ${id}`, error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="page" onSubmit={(event) => void submit(event)}>
      <h1>New database</h1>
      <Field label="Name" help="A database is a folder for containers; its name is part of every path." error={nameError(id)}>
        {(attributes) => (
          <input
            {...attributes}
            name="id"
            required
            maxLength={255}
            value={id}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        )}
      </Field>
      <ThroughputFields
        draft={draft}
        onChange={setDraft}
        shared={{ title: "Each container has its own", note: "Most databases do it this way." }}
      />
      {draft.kind !== "shared" && <p class="help">The containers of this database share this throughput, unless they get their own.</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={busy || id === "" || wrong !== ""}>
          Create database
        </button>
      </div>
    </form>
  );
}
