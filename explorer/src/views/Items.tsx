// The items of a container: a list by pages on the left, the chosen one on the right.

import { useEffect, useRef, useState } from "preact/hooks";
import { VirtualList } from "../parts/VirtualList.tsx";
import { units } from "../parts/Charge.tsx";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { brief } from "../text/json.ts";
import { isAbort } from "../wire/client.ts";
import { listItems, type Container, type ItemHead, type Place } from "../wire/resources.ts";
import { ItemEditor } from "./ItemEditor.tsx";
import { Upload } from "./Upload.tsx";

/** What stands in the place of a key value that an item does not have. */
export function keyText(key: unknown[]): string {
  const isMissing = (value: unknown) => typeof value === "object" && value !== null;
  return key.map((value) => (isMissing(value) ? "(none)" : brief(value, 60))).join(" / ");
}

interface Listed {
  rows: ItemHead[];
  continuation: string | null;
  done: boolean;
  charge: number;
  error: string;
}

const NOTHING: Listed = { rows: [], continuation: null, done: false, charge: 0, error: "" };

export function Items(props: { place: Place; container: Container }) {
  const { place, container } = props;
  const [typed, setTyped] = useState("");
  const [filter, setFilter] = useState("");
  const [listed, setListed] = useState<Listed>(NOTHING);
  const [busy, setBusy] = useState(false);
  const [active, setActive] = useState(-1);
  const [open, setOpen] = useState<ItemHead | "new" | null>(null);
  const [uploading, setUploading] = useState(false);
  const walk = useRef<AbortController | null>(null);

  const load = async (from: Listed) => {
    walk.current?.abort();
    const control = (walk.current = new AbortController());
    setBusy(true);
    try {
      const rows: ItemHead[] = [];
      let { continuation, charge } = from;
      // A partition without a match answers with an empty page; the next may have more.
      do {
        const page = await listItems(client(), place, container, filter, continuation, control.signal);
        rows.push(...page.rows);
        charge += page.charge;
        continuation = page.continuation;
      } while (rows.length === 0 && continuation !== null);
      setListed({ rows: [...from.rows, ...rows], continuation, done: continuation === null, charge, error: "" });
    } catch (error) {
      if (isAbort(error)) return;
      setListed({ ...from, error: explain(error), done: true });
    } finally {
      if (walk.current === control) setBusy(false);
    }
  };
  const reload = () => {
    setActive(-1);
    void load(NOTHING);
  };
  useEffect(() => {
    reload();
    return () => walk.current?.abort();
  }, [filter]);

  const more = () => {
    if (!busy && !listed.done && listed.rows.length > 0) void load(listed);
  };
  const show = (index: number) => {
    const head = listed.rows[index];
    if (head !== undefined) setOpen(head);
  };
  const applied = typed.trim() === "" || /^(where|order|join|offset)\b/i.test(typed.trim()) ? typed.trim() : `WHERE ${typed.trim()}`;
  return (
    <div class="split">
      <div class="pane list-pane">
        <form
          class="row-of filter"
          onSubmit={(event) => {
            event.preventDefault();
            if (applied === filter) reload();
            else setFilter(applied);
          }}
        >
          <input
            type="search"
            name="filter"
            aria-label="Filter"
            placeholder="c.total > 40 ORDER BY c.total"
            value={typed}
            spellcheck={false}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
          <button type="submit">Filter</button>
        </form>
        <div class="row-of">
          <button type="button" class="primary" onClick={() => setOpen("new")}>
            New item
          </button>
          <button type="button" onClick={() => setUploading(true)}>
            Upload
          </button>
          <button type="button" class="quiet" onClick={reload}>
            Reload
          </button>
        </div>
        {listed.error !== "" && (
          <p class="problem" role="alert">
            {listed.error}
          </p>
        )}
        {listed.rows.length === 0 && !busy && listed.error === "" && (
          <p class="soft pad" data-empty>
            {filter === "" ? "No items yet. Create one, or upload a JSON file." : "No item passes this filter."}
          </p>
        )}
        <VirtualList
          label="Items"
          className="items"
          count={listed.rows.length}
          rowHeight={44}
          active={active}
          onActive={setActive}
          onOpen={show}
          onEnd={more}
          row={(index) => {
            const head = listed.rows[index];
            return head === undefined ? null : (
              <>
                <bdi class="item-id">{head.id}</bdi>
                <bdi class="item-key soft">{keyText(head.key)}</bdi>
              </>
            );
          }}
        />
        <p class="foot soft" data-count={listed.rows.length} data-done={listed.done}>
          {listed.rows.length.toLocaleString("en")} items{listed.done ? "" : " so far"}, {units(listed.charge)} RU
          {!listed.done && (
            <button type="button" class="link" disabled={busy} onClick={more}>
              Next page
            </button>
          )}
        </p>
      </div>
      <div class="pane">
        {open === null ? (
          <p class="soft pad">Choose an item to see and edit it.</p>
        ) : (
          <ItemEditor
            key={open === "new" ? "new" : open.rid}
            place={place}
            container={container}
            head={open === "new" ? null : open}
            onSaved={(head) => {
              setOpen(head);
              reload();
            }}
            onDeleted={() => {
              setOpen(null);
              reload();
            }}
            onClose={() => setOpen(null)}
          />
        )}
      </div>
      {uploading && (
        <Upload
          place={place}
          container={container}
          onClose={() => {
            setUploading(false);
            reload();
          }}
        />
      )}
    </div>
  );
}
