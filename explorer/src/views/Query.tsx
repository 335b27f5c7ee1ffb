// The query tab: several queries, each with its own text and rows. They are kept in this browser.

import { useRef, useState } from "preact/hooks";
import { Dialog } from "../parts/Dialog.tsx";
import { Field } from "../parts/Field.tsx";
import { Tabs } from "../parts/Tabs.tsx";
import { say } from "../state/notices.ts";
import { keepOpenQueries, OPEN_MOST, openQueries, savedQueries, saveQuery, withNewQuery, withoutQuery, type OpenQueries, type OpenQuery } from "../state/queries.ts";
import { linkOf, type Container, type Place } from "../wire/resources.ts";
import { QueryPane } from "./QueryPane.tsx";

export function Query(props: { place: Place; container: Container }) {
  const container = linkOf(props.place);
  const [queries, setQueries] = useState(() => openQueries(container));
  const [naming, setNaming] = useState(false);
  // What is typed comes faster than the page is drawn.
  const latest = useRef(queries);
  // A query keeps its rows while another is looked at; those that nobody has looked at yet are not drawn.
  const seen = useRef(new Set<number>());
  seen.current.add(queries.active);
  const put = (next: OpenQueries) => {
    latest.current = next;
    setQueries(next);
    keepOpenQueries(container, next);
  };
  const change = (id: number, part: Partial<OpenQuery>) => {
    const { list, active } = latest.current;
    put({ list: list.map((one) => (one.id === id ? { ...one, ...part } : one)), active });
  };
  const active = queries.list.find(({ id }) => id === queries.active);
  const saved = new Map(savedQueries(container).map(({ name, text }) => [name, text]));
  const saveAs = (name: string) => {
    if (active === undefined) return;
    saveQuery({ container, name, text: active.text });
    change(active.id, { name });
    setNaming(false);
    say(`Saved the query ${name}`);
  };
  const save = () => {
    if (active?.name === null || active?.name === undefined) setNaming(true);
    else saveAs(active.name);
  };
  return (
    <div class="query">
      <div class="row-of query-tabs">
        <Tabs
          label="Queries"
          tabs={queries.list.map(({ id, name, text }) => {
            const isDraft = name !== null && saved.get(name) !== text;
            return { name: String(id), title: name ?? `Untitled ${id}`, ...(isDraft ? { note: "not saved" } : {}) };
          })}
          chosen={String(queries.active)}
          onChoose={(id) => put({ ...latest.current, active: Number(id) })}
        />
        <button type="button" class="quiet" disabled={queries.list.length >= OPEN_MOST} onClick={() => put(withNewQuery(latest.current))}>
          + New query
        </button>
        <button type="button" class="quiet" aria-label="Close this query" onClick={() => put(withoutQuery(latest.current, latest.current.active))}>
          × Close
        </button>
      </div>
      {queries.list
        .filter(({ id }) => seen.current.has(id))
        .map(({ id, text }) => (
          <div key={id} class="query-pane" hidden={id !== queries.active}>
            <QueryPane
              place={props.place}
              text={text}
              onChange={(next) => change(id, { text: next })}
              onOpen={(text, name) => put(opened(latest.current, text, name))}
              onSave={save}
            />
          </div>
        ))}
      {naming && <NameDialog taken={[...saved.keys()]} onSave={saveAs} onClose={() => setNaming(false)} />}
    </div>
  );
}

/** A saved query is opened once; there is room for it, or it takes the place of the one that is shown. */
function opened(queries: OpenQueries, text: string, name: string): OpenQueries {
  const there = queries.list.find((one) => one.name === name);
  if (there !== undefined) return { ...queries, active: there.id };
  if (queries.list.length < OPEN_MOST) return withNewQuery(queries, text, name);
  return { ...queries, list: queries.list.map((one) => (one.id === queries.active ? { ...one, text, name } : one)) };
}

function NameDialog(props: { taken: string[]; onSave: (name: string) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const typed = name.trim();
  return (
    <Dialog title="Save this query" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed !== "") props.onSave(typed);
        }}
      >
        <Field label="Name" help={props.taken.includes(typed) ? "There is a query with this name; it will be replaced." : "It is kept in this browser, for this container."}>
          {(attributes) => <input {...attributes} name="query-name" maxLength={80} value={name} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
        <div class="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={typed === ""}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
