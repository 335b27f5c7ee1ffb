// Databases and their containers. One entry takes part in the order of Tab; the arrow keys move from there.

import { useEffect, useRef, useState } from "preact/hooks";
import { hasDrafts } from "../state/drafts.ts";
import { fail } from "../state/notices.ts";
import { go, route, type Route } from "../state/route.ts";
import { refreshBranch, tree, unlisted, type Branch } from "../state/session.ts";
import { isTable } from "../wire/tables.ts";

interface Entry {
  id: string;
  title: string;
  level: 1 | 2;
  to: Route;
  /** Of a database. */
  open?: boolean;
  db: string;
  isTable?: boolean;
}

function entriesOf(branches: Branch[], closed: ReadonlySet<string>, current: Route): Entry[] {
  const tab = current.page === "container" ? current.tab : "items";
  return branches.flatMap(({ database, containers }) => {
    const db = database.id;
    const open = containers !== undefined && !closed.has(db);
    const own: Entry = { id: `d ${db}`, title: db, level: 1, to: { page: "database", db }, open, db };
    const inner = (open ? containers : []).map((one): Entry => {
      return { id: `c ${db}/${one.id}`, title: one.id, level: 2, to: { page: "container", db, coll: one.id, tab }, db, isTable: isTable(db, one) };
    });
    return [own, ...inner];
  });
}

/** The entry that the page shows. */
function entryOf(current: Route): string {
  if (current.page === "container") return `c ${current.db}/${current.coll}`;
  return current.page === "database" ? `d ${current.db}` : "";
}

export function Tree() {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const here = entryOf(route.value);
  const known = tree.value?.reduce((sum, branch) => sum + 1 + (branch.containers?.length ?? 0), 0);
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [here, known]);
  if (tree.value === null) {
    return <p class="soft pad grow">{unlisted.value ? "The databases could not be listed. Refresh tries it again." : "Loading…"}</p>;
  }
  if (tree.value.length === 0) {
    return <p class="soft pad grow">No database yet. Create one below; a database holds containers, and these hold items.</p>;
  }
  const entries = entriesOf(tree.value, closed, route.value);
  const reachable = [at, here].find((id) => entries.some((entry) => entry.id === id)) ?? entries[0]?.id;

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
  const open = (entry: Entry) => {
    setAt(entry.id);
    if (entry.level === 1 && entry.open === false) toggle(entry, true);
    go(entry.to);
  };
  const onKeyDown = (event: KeyboardEvent, entry: Entry, index: number) => {
    const owner = entries.findIndex((other) => other.level === 1 && other.db === entry.db);
    const actions: Record<string, () => void> = {
      ArrowDown: () => focus(index + 1),
      ArrowUp: () => focus(index - 1),
      Home: () => focus(0),
      End: () => focus(entries.length - 1),
      ArrowRight: () => (entry.open === false ? toggle(entry, true) : focus(index + 1)),
      ArrowLeft: () => (entry.open === true ? toggle(entry, false) : focus(owner)),
      Enter: () => open(entry),
      " ": () => open(entry),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  return (
    <ul class="tree" role="tree" aria-label="Databases and containers" ref={list}>
      {entries.map((entry, index) => (
        <TreeItem
          key={entry.id}
          entry={entry}
          chosen={entry.id === here}
          reachable={entry.id === reachable}
          onOpen={() => open(entry)}
          onToggle={() => toggle(entry, entry.open === false)}
          onKeyDown={(event) => onKeyDown(event, entry, index)}
        />
      ))}
    </ul>
  );
}

interface TreeItemProps {
  entry: Entry;
  chosen: boolean;
  reachable: boolean;
  onOpen: () => void;
  onToggle: () => void;
  onKeyDown: (event: KeyboardEvent) => void;
}

function TreeItem(props: TreeItemProps) {
  const { entry } = props;
  const isDraft = entry.level === 2 && hasDrafts(`dbs/${entry.db}/colls/${entry.title}`);
  return (
    <li
      role="treeitem"
      aria-description={isDraft ? "has something that is not saved" : undefined}
      aria-level={entry.level}
      aria-expanded={entry.level === 1 ? entry.open : undefined}
      aria-selected={props.chosen}
      tabIndex={props.reachable ? 0 : -1}
      class={`level-${entry.level}`}
      title={entry.title}
      onClick={props.onOpen}
      onKeyDown={props.onKeyDown}
    >
      {entry.level === 1 && (
        <span
          class="twisty"
          aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            props.onToggle();
          }}
        >
          {entry.open ? "▾" : "▸"}
        </span>
      )}
      {entry.isTable && (
        <span class="glyph" aria-hidden="true">
          ▦
        </span>
      )}
      <bdi>{entry.title}</bdi>
      {isDraft && (
        <span class="draft-dot" aria-hidden="true">
          ●
        </span>
      )}
    </li>
  );
}
