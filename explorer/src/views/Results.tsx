// Rows as a table, as trees and as JSON. A row is read when it comes into sight.

import { useMemo, useState } from "preact/hooks";
import { JsonTree } from "../parts/JsonTree.tsx";
import { templateOf } from "../parts/columns.ts";
import { VirtualList } from "../parts/VirtualList.tsx";
import { brief, cellsOf, columnsShown, layOut, plainText, toCsv } from "../text/json.ts";
import type { Run } from "./useQuery.ts";

/** Rows that are looked at to find the columns, and columns that are shown. */
const SAMPLE = 200;
const COLUMNS_SHOWN = 30;
/** Rows whose cells tell how wide the columns are. */
const WIDTHS_SAMPLE = 50;
/** Characters of JSON text that are laid out at once. */
const CHARACTERS_SHOWN = 400_000;

type Form = "table" | "tree" | "json";

export function Results(props: { run: Run | null; onMore: () => void; onAll: () => void }) {
  const { run } = props;
  const [form, setForm] = useState<Form>("table");
  const [active, setActive] = useState(-1);
  if (run === null) return <p class="soft pad">Write a query above and run it. The rows appear here.</p>;
  if (run.rows.length === 0) {
    const words = { running: "Running…", cancelled: "Cancelled before the first row.", failed: "The query failed; see above.", more: "No row on this page; ask for the next.", done: "No row passes this query." };
    return (
      <div class="pad soft">
        <p>{words[run.state]}</p>
        {run.state === "more" && <More {...props} run={run} />}
      </div>
    );
  }
  const chosen = run.rows[active];
  return (
    <div class="results">
      <div class="row-of">
        <div role="group" aria-label="Form of the rows" class="segmented">
          {(["table", "tree", "json"] as const).map((name) => (
            <button key={name} type="button" aria-pressed={form === name} onClick={() => setForm(name)}>
              {{ table: "Table", tree: "Tree", json: "JSON" }[name]}
            </button>
          ))}
        </div>
        <More {...props} run={run} />
        <span class="spread" />
        <button type="button" onClick={() => download("rows.json", "application/json", jsonOf(run.rows))}>
          Export JSON
        </button>
        <button type="button" onClick={() => download("rows.csv", "text/csv", toCsv(run.rows))}>
          Export CSV
        </button>
      </div>
      {form === "table" && <TableOf rows={run.rows} active={active} onActive={setActive} />}
      {form === "tree" && <TreesOf rows={run.rows} />}
      {form === "json" && <JsonOf rows={run.rows} />}
      {form === "table" && chosen !== undefined && (
        <section class="chosen-row" aria-label="Chosen row">
          <button type="button" class="quiet close" aria-label="Close the row" onClick={() => setActive(-1)}>
            ×
          </button>
          <JsonTree key={active} json={chosen} open />
        </section>
      )}
    </div>
  );
}

function More(props: { run: Run; onMore: () => void; onAll: () => void }) {
  if (props.run.continuation === null || props.run.state === "running") return null;
  return (
    <>
      <button type="button" onClick={props.onMore}>
        Next page
      </button>
      <button type="button" onClick={props.onAll}>
        All rows
      </button>
    </>
  );
}

function TableOf(props: { rows: string[]; active: number; onActive: (index: number) => void }) {
  const { rows } = props;
  const sampled = Math.min(rows.length, SAMPLE);
  const columns = useMemo(() => columnsShown(rows.slice(0, sampled), COLUMNS_SHOWN), [rows[0], sampled]);
  const template = useMemo(() => {
    const cells = rows.slice(0, WIDTHS_SAMPLE).map(cellsOf);
    const text = (row: number, column: number) => (column === 0 ? "" : plainText(cells[row]?.get(columns[column - 1] ?? "")));
    return templateOf([String(rows.length), ...columns], cells.length, text);
  }, [columns]);
  return (
    <VirtualList
      label="Rows"
      role="grid"
      className="table"
      count={rows.length}
      rowHeight={28}
      active={props.active}
      onActive={props.onActive}
      header={
        <div class="row header" role="row" aria-rowindex={1} style={template}>
          <span role="columnheader" class="number">
            #
          </span>
          {columns.map((name) => (
            <span key={name} role="columnheader" title={name}>
              <bdi>{name}</bdi>
            </span>
          ))}
        </div>
      }
      row={(index) => {
        const cells = cellsOf(rows[index] ?? "null");
        return (
          <div class="cells" role="presentation" style={template}>
            <span role="rowheader" class="number soft">
              {index + 1}
            </span>
            {columns.map((name) => (
              <span key={name} role="gridcell">
                <bdi>{brief(plainText(cells.get(name)))}</bdi>
              </span>
            ))}
          </div>
        );
      }}
    />
  );
}

const TREES = 100;

function TreesOf(props: { rows: string[] }) {
  const [shown, setShown] = useState(TREES);
  return (
    <div class="scroll pad" tabIndex={0} role="region" aria-label="Rows as trees">
      {props.rows.slice(0, shown).map((row, index) => (
        <JsonTree key={index} name={String(index + 1)} json={row} />
      ))}
      {props.rows.length > shown && (
        <button type="button" class="link" onClick={() => setShown(shown + TREES * 10)}>
          {(props.rows.length - shown).toLocaleString("en")} more
        </button>
      )}
    </div>
  );
}

function JsonOf(props: { rows: string[] }) {
  const { rows } = props;
  const [most, setMost] = useState(CHARACTERS_SHOWN);
  let characters = 0;
  const count = rows.findIndex((row) => (characters += row.length) > most);
  const shown = count < 0 ? rows : rows.slice(0, Math.max(1, count));
  const text = shown.map((row) => layOut(row)).join(",\n");
  const cut = text.length > most * 3 ? `${text.slice(0, most * 3)}…` : text;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Rows as JSON">
      <pre class="json-rows">
        [{"\n"}
        {cut}
        {"\n"}]
      </pre>
      {shown.length < rows.length && (
        <button type="button" class="link" onClick={() => setMost(most * 4)}>
          {(rows.length - shown.length).toLocaleString("en")} more rows; Export JSON has all
        </button>
      )}
    </div>
  );
}

/** The rows as one JSON text, each as it came. */
const jsonOf = (rows: string[]) => `[\n${rows.join(",\n")}\n]\n`;

function download(name: string, kind: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
