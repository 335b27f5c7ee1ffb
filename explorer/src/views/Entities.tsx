// The entities of a table as rows with typed columns; the chosen one is edited beside them.

import { useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { templateOf } from "../parts/columns.ts";
import { VirtualList } from "../parts/VirtualList.tsx";
import type { Kind } from "../text/entity.ts";
import { brief } from "../text/json.ts";
import { conditionOf } from "../text/odata.ts";
import { itemDraft } from "../state/drafts.ts";
import { linkOf, type Container, type Place } from "../wire/resources.ts";
import type { EntityRow } from "../wire/tables.ts";
import { EntityEditor } from "./EntityEditor.tsx";
import { explain } from "../state/notices.ts";
import { useEntityList, type Listed } from "./useItemList.ts";

/** Columns that are shown at most, of the rows that are looked at to find them. */
const COLUMNS_SHOWN = 30;
const SAMPLE = 200;

export interface Column {
  name: string;
  /** Undefined where entities differ in it. */
  kind: Kind | undefined;
}

function columnsOf(rows: EntityRow[]): Column[] {
  const found = new Map<string, Kind | undefined>();
  for (const { entity } of rows.slice(0, SAMPLE)) {
    for (const { name, kind } of entity.properties) found.set(name, !found.has(name) || found.get(name) === kind ? kind : undefined);
  }
  return [...found].slice(0, COLUMNS_SHOWN).map(([name, kind]) => ({ name, kind }));
}

export function Entities(props: { place: Place; container: Container }) {
  const { place, container } = props;
  const [condition, setCondition] = useState("");
  const [active, setActive] = useState(-1);
  const [open, setOpen] = useState<EntityRow | "new" | null>(null);
  const { listed, busy, reload, more } = useEntityList(place, container, condition);
  const columns = columnsOf(listed.rows);
  const again = () => {
    setActive(-1);
    reload();
  };
  return (
    <div class={`split entities ${open === null ? "" : "has-open"}`}>
      <div class="pane">
        <FilterForm onFilter={(next) => (next === condition ? again() : setCondition(next))} />
        <div class="row-of">
          <button type="button" class="primary" onClick={() => setOpen("new")}>
            New entity
          </button>
          {itemDraft(`${linkOf(place)}/new`) !== undefined && <span class="draft">not saved</span>}
          <button type="button" class="quiet" onClick={again}>
            Reload
          </button>
        </div>
        <EntityTable link={linkOf(place)} listed={listed} busy={busy} columns={columns} filtered={condition !== ""} active={active} onActive={setActive} onOpen={setOpen} onMore={more} />
      </div>
      {open !== null && (
        <div class="pane side-pane">
          <EntityEditor
            key={open === "new" ? "new" : open.head.rid}
            place={place}
            container={container}
            row={open === "new" ? null : open}
            columns={columns}
            onSaved={(row) => {
              // A user who has gone on to another entity meanwhile stays there.
              setOpen((now) => (now === open ? row : now));
              again();
            }}
            onDeleted={() => {
              setOpen(null);
              again();
            }}
            onClose={() => setOpen(null)}
          />
        </div>
      )}
    </div>
  );
}

function FilterForm(props: { onFilter: (condition: string) => void }) {
  const [typed, setTyped] = useState("");
  const [wrong, setWrong] = useState("");
  const filter = (event: Event) => {
    event.preventDefault();
    try {
      props.onFilter(typed.trim() === "" ? "" : conditionOf(typed));
      setWrong("");
    } catch (error) {
      setWrong(explain(error));
    }
  };
  return (
    <>
      <form class="row-of filter" onSubmit={filter}>
        <input
          type="search"
          name="filter"
          aria-label="Filter"
          aria-invalid={wrong !== ""}
          placeholder="PartitionKey eq 'lovelace' and born gt 1800"
          value={typed}
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit">Filter</button>
      </form>
      {wrong !== "" && (
        <p class="problem" role="alert">
          {wrong}
        </p>
      )}
    </>
  );
}

interface EntityTableProps {
  link: string;
  listed: Listed<EntityRow>;
  busy: boolean;
  columns: Column[];
  filtered: boolean;
  active: number;
  onActive: (index: number) => void;
  onOpen: (row: EntityRow) => void;
  onMore: () => void;
}

const KEY_COLUMNS = [["PartitionKey", "String"], ["RowKey", "String"], ["Timestamp", "DateTime"]] as const;

const cellsOf = ({ entity, timestamp }: EntityRow, columns: Column[]) => {
  const values = new Map(entity.properties.map(({ name, text }) => [name, text]));
  return [entity.partitionKey, entity.rowKey, timestamp, ...columns.map(({ name }) => values.get(name) ?? "")];
};

const NUMERIC = new Set<Kind | undefined>(["Int32", "Int64", "Double"]);

function EntityTable(props: EntityTableProps) {
  const { listed, busy, columns } = props;
  const headers = [...KEY_COLUMNS, ...columns.map(({ name, kind }) => [name, kind ?? "mixed"] as const)];
  const template = templateOf(headers.map(([name, kind]) => `${name} ${kind}`), listed.rows.length, (row, column) => {
    const found = listed.rows[row];
    return found === undefined ? "" : cellsOf(found, columns)[column] ?? "";
  });
  return (
    <>
      {listed.error !== "" && (
        <p class="problem" role="alert">
          {listed.error}
        </p>
      )}
      {listed.rows.length === 0 && !busy && listed.error === "" && (
        <p class="soft pad" data-empty>
          {props.filtered ? "No entity passes this filter." : "No entities yet. Create one here, or with any client of the Table API."}
        </p>
      )}
      <VirtualList
        label="Entities"
        role="grid"
        className="table"
        count={listed.rows.length}
        rowHeight={28}
        active={props.active}
        onActive={props.onActive}
        onOpen={(index) => {
          const row = listed.rows[index];
          if (row !== undefined) props.onOpen(row);
        }}
        busy={busy}
        onEnd={props.onMore}
        header={<HeaderRow headers={headers} template={template} />}
        row={(index) => {
          const row = listed.rows[index];
          return row === undefined ? null : <Cells row={row} isDraft={itemDraft(`${props.link}/${row.head.rid}`) !== undefined} columns={columns} template={template} />;
        }}
      />
      <p class="foot soft" data-count={listed.rows.length} data-done={listed.done}>
        {listed.rows.length.toLocaleString("en")} {listed.rows.length === 1 ? "entity" : "entities"}
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

function HeaderRow(props: { headers: (readonly [string, string])[]; template: { gridTemplateColumns: string } }) {
  return (
    <div class="row header" role="row" aria-rowindex={1} style={props.template}>
      {props.headers.map(([name, kind]) => (
        <span key={name} role="columnheader" title={`${name}, ${kind}`} class={NUMERIC.has(kind as Kind) ? "number" : ""}>
          <bdi>{name}</bdi> <small class="kind">{kind}</small>
        </span>
      ))}
    </div>
  );
}

function Cells(props: { row: EntityRow; isDraft: boolean; columns: Column[]; template: { gridTemplateColumns: string } }) {
  const { entity, timestamp } = props.row;
  return (
    <div class="cells" role="presentation" style={props.template}>
      <span role="rowheader">
        <bdi>{entity.partitionKey}</bdi>
        {props.isDraft && <span class="draft">not saved</span>}
      </span>
      <span role="gridcell">
        <bdi>{entity.rowKey}</bdi>
      </span>
      <span role="gridcell">{timestamp}</span>
      {props.columns.map((column) => {
        const property = entity.properties.find((one) => one.name === column.name);
        const kind = property?.kind;
        const title = kind === undefined || kind === column.kind ? undefined : kind;
        return (
          <span key={column.name} role="gridcell" title={title} data-kind={kind} class={NUMERIC.has(kind) ? "number" : ""}>
            <bdi>{brief(property?.text)}</bdi>
          </span>
        );
      })}
    </div>
  );
}
