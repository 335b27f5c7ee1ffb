// The items of a container: a list by pages on the left, the chosen one on the right.

import { useState } from "preact/hooks";
import { VirtualList } from "../parts/VirtualList.tsx";
import { units } from "../parts/Charge.tsx";
import { itemDraft } from "../state/drafts.ts";
import { brief } from "../text/json.ts";
import { linkOf, type Container, type ItemHead, type Place } from "../wire/resources.ts";
import { DeleteItems } from "./DeleteItems.tsx";
import { ItemEditor } from "./ItemEditor.tsx";
import { Upload } from "./Upload.tsx";
import { countText } from "./figures.ts";
import { useChosen } from "./useChosen.ts";
import { useItemList, type Listed } from "./useItemList.ts";

/** What stands in the place of a key value that an item does not have. */
function keyText(key: unknown[]): string {
  const isMissing = (value: unknown) => typeof value === "object" && value !== null;
  return key.map((value) => (isMissing(value) ? "(none)" : brief(value, 60))).join(" / ");
}

export function Items(props: { place: Place; container: Container }) {
  const { place, container } = props;
  const [filter, setFilter] = useState("");
  const [active, setActive] = useState(-1);
  const [open, setOpen] = useState<ItemHead | "new" | null>(null);
  const [uploading, setUploading] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const { listed, busy, reload, more } = useItemList(place, container, filter);
  const chosen = useChosen(listed.rows);
  const again = () => {
    setActive(-1);
    reload();
  };
  const filterBy = (next: string) => {
    chosen.clear();
    if (next === filter) again();
    else setFilter(next);
  };
  return (
    <div class={`split ${open === null ? "" : "has-open"}`}>
      <div class="pane list-pane">
        <FilterForm onFilter={filterBy} />
        <div class="row-of">
          <button type="button" class="primary" onClick={() => setOpen("new")}>
            New item
          </button>
          {itemDraft(`${linkOf(place)}/new`) !== undefined && <span class="draft">not saved</span>}
          <button type="button" onClick={() => setUploading(true)}>
            Upload
          </button>
          <button type="button" class="quiet" onClick={again}>
            Reload
          </button>
        </div>
        {chosen.heads.length > 0 && (
          <div class="row-of chosen-bar">
            <strong data-chosen={chosen.heads.length}>{chosen.heads.length.toLocaleString("en")} chosen</strong>
            <button type="button" class="danger" onClick={() => setDeleting(true)}>
              Delete chosen
            </button>
            <button type="button" class="quiet" onClick={chosen.clear}>
              Clear
            </button>
          </div>
        )}
        <ItemList link={linkOf(place)} chosen={chosen} listed={listed} busy={busy} filtered={filter !== ""} active={active} onActive={setActive} onOpen={setOpen} onMore={more} />
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
              // A user who has gone on to another item meanwhile stays there.
              setOpen((now) => (now === open ? head : now));
              again();
            }}
            onDeleted={() => {
              setOpen(null);
              again();
            }}
            onClose={() => setOpen(null)}
          />
        )}
      </div>
      {deleting && (
        <DeleteItems
          place={place}
          container={container}
          heads={chosen.heads}
          onDone={() => {
            const gone = new Set(chosen.heads.map((head) => head.rid));
            setOpen((now) => (now !== null && now !== "new" && gone.has(now.rid) ? null : now));
            setDeleting(false);
            chosen.clear();
            again();
          }}
          onClose={() => setDeleting(false)}
        />
      )}
      {uploading && (
        <Upload
          place={place}
          container={container}
          onClose={() => {
            setUploading(false);
            again();
          }}
        />
      )}
    </div>
  );
}

function FilterForm(props: { onFilter: (filter: string) => void }) {
  const [typed, setTyped] = useState("");
  const condition = typed.trim();
  const filter = condition === "" || /^(where|order|join|offset)\b/i.test(condition) ? condition : `WHERE ${condition}`;
  return (
    <form
      class="row-of filter"
      onSubmit={(event) => {
        event.preventDefault();
        props.onFilter(filter);
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
  );
}

interface ItemListProps {
  link: string;
  chosen: ReturnType<typeof useChosen>;
  listed: Listed;
  busy: boolean;
  filtered: boolean;
  active: number;
  onActive: (index: number) => void;
  onOpen: (head: ItemHead) => void;
  onMore: () => void;
}

function ItemList(props: ItemListProps) {
  const { listed, busy } = props;
  return (
    <>
      {listed.error !== "" && (
        <p class="problem" role="alert">
          {listed.error}
        </p>
      )}
      {listed.rows.length === 0 && !busy && listed.error === "" && (
        <p class="soft pad" data-empty>
          {props.filtered ? "No item passes this filter." : "No items yet. Create one, or upload a JSON file."}
        </p>
      )}
      <VirtualList
        label="Items"
        className="items"
        count={listed.rows.length}
        rowHeight={44}
        chosen={props.chosen}
        active={props.active}
        onActive={props.onActive}
        onOpen={(index) => {
          const head = listed.rows[index];
          if (head !== undefined) props.onOpen(head);
        }}
        busy={busy}
        onEnd={props.onMore}
        row={(index) => {
          const head = listed.rows[index];
          return head === undefined ? null : (
            <>
              <span
                class="tick"
                aria-hidden="true"
                onClick={(event) => {
                  event.stopPropagation();
                  if (event.shiftKey) props.chosen.upTo(index);
                  else props.chosen.toggle(index);
                }}
              />
              <bdi class="item-id">{head.id}</bdi>
              {itemDraft(`${props.link}/${head.rid}`) !== undefined && <span class="draft">not saved</span>}
              <bdi class="item-key soft">{keyText(head.key)}</bdi>
            </>
          );
        }}
      />
      <p class="foot soft" data-count={listed.rows.length} data-done={listed.done}>
        {countText(listed.rows.length, "item")}
        {listed.done ? "" : " so far"}, {units(listed.charge)} RU
        {!listed.done && (
          <button type="button" class="link" disabled={busy} onClick={props.onMore}>
            Next page
          </button>
        )}
      </p>
    </>
  );
}
