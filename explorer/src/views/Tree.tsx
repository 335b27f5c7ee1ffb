// Databases and their containers. One entry takes part in the order of Tab; the arrow keys move from there.

import { useRef, useState } from "preact/hooks";
import { fail } from "../state/notices.ts";
import { go, route, type Route } from "../state/route.ts";
import { refreshBranch, tree } from "../state/session.ts";

interface Entry {
  id: string;
  title: string;
  level: 1 | 2;
  to: Route;
  /** Of a database. */
  open?: boolean;
  db: string;
}

export function Tree() {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const branches = tree.value;
  if (branches === null) return <p class="soft pad">Loading…</p>;
  if (branches.length === 0) {
    return <p class="soft pad">No database yet. Create one below; a database holds containers, and these hold items.</p>;
  }
  const current = route.value;
  const entries: Entry[] = branches.flatMap(({ database, containers }) => {
    const db = database.id;
    const open = containers !== undefined && !closed.has(db);
    const own: Entry = { id: `d ${db}`, title: db, level: 1, to: { page: "database", db }, open, db };
    const inner = (open ? containers : []).map((one): Entry => {
      const tab = current.page === "container" ? current.tab : "items";
      return { id: `c ${db}/${one.id}`, title: one.id, level: 2, to: { page: "container", db, coll: one.id, tab }, db };
    });
    return [own, ...inner];
  });
  const here = current.page === "container" ? `c ${current.db}/${current.coll}` : current.page === "database" ? `d ${current.db}` : "";
  const focusable = entries.some((entry) => entry.id === at) ? at : entries.some((entry) => entry.id === here) ? here : entries[0]?.id;

  const toggle = (entry: Entry, open: boolean) => {
    const next = new Set(closed);
    if (open) next.delete(entry.db);
    else next.add(entry.db);
    setClosed(next);
    if (open) refreshBranch(entry.db).catch((error: unknown) => fail(`Cannot list the containers of ${entry.db}`, error));
  };
  const focus = (index: number) => {
    const entry = entries[index];
    if (entry === undefined) return;
    setAt(entry.id);
    list.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[index]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent, entry: Entry, index: number) => {
    switch (event.key) {
      case "ArrowDown":
        focus(index + 1);
        break;
      case "ArrowUp":
        focus(index - 1);
        break;
      case "Home":
        focus(0);
        break;
      case "End":
        focus(entries.length - 1);
        break;
      case "ArrowRight":
        if (entry.level === 1 && entry.open === false) toggle(entry, true);
        else focus(index + 1);
        break;
      case "ArrowLeft":
        if (entry.level === 1 && entry.open === true) toggle(entry, false);
        else focus(entries.findIndex((other) => other.level === 1 && other.db === entry.db));
        break;
      case "Enter":
      case " ":
        go(entry.to);
        break;
      default:
        return;
    }
    event.preventDefault();
  };

  return (
    <ul class="tree" role="tree" aria-label="Databases and containers" ref={list}>
      {entries.map((entry, index) => (
        <li
          key={entry.id}
          role="treeitem"
          aria-level={entry.level}
          aria-expanded={entry.level === 1 ? entry.open : undefined}
          aria-selected={entry.id === here}
          tabIndex={entry.id === focusable ? 0 : -1}
          class={`level-${entry.level}`}
          title={entry.title}
          onClick={() => {
            setAt(entry.id);
            if (entry.level === 1 && entry.open === false) toggle(entry, true);
            go(entry.to);
          }}
          onKeyDown={(event) => onKeyDown(event, entry, index)}
        >
          {entry.level === 1 && (
            <span
              class="twisty"
              aria-hidden="true"
              onClick={(event) => {
                event.stopPropagation();
                toggle(entry, entry.open === false);
              }}
            >
              {entry.open ? "▾" : "▸"}
            </span>
          )}
          <bdi>{entry.title}</bdi>
        </li>
      ))}
    </ul>
  );
}
