// A value as a tree whose branches open and close. Long texts and long lists are shown in parts.

import { useState } from "preact/hooks";

/** Children shown before "more" is asked for, and characters of a text. */
const CHILDREN = 100;
const CHARACTERS = 2000;
const DEPTH_MAX = 130;

export function JsonTree(props: { value: unknown; name?: string; depth?: number; open?: boolean }) {
  const { value, depth = 0 } = props;
  const [open, setOpen] = useState(props.open ?? depth < 1);
  const [children, setChildren] = useState(CHILDREN);
  const name = props.name === undefined ? null : <span class="tree-name">{props.name}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      <div class="tree-leaf">
        {name}
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Array.isArray(value) ? value.map((inner, index) => [String(index), inner] as const) : Object.entries(value);
  const summary = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0 || depth > DEPTH_MAX) {
    return (
      <div class="tree-leaf">
        {name}
        {summary}
      </div>
    );
  }
  return (
    <div class="tree-branch">
      <button type="button" class="twist" aria-expanded={open} onClick={() => setOpen(!open)}>
        {name}
        <span class="soft">{summary}</span>
      </button>
      {open && (
        <div class="tree-children">
          {entries.slice(0, children).map(([key, inner]) => (
            <JsonTree key={key} name={key} value={inner} depth={depth + 1} />
          ))}
          {entries.length > children && (
            <button type="button" class="link" onClick={() => setChildren(children + 10 * CHILDREN)}>
              {entries.length - children} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf(props: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  const { value } = props;
  if (typeof value !== "string") return <span class="tree-number">{String(value)}</span>;
  if (value.length <= CHARACTERS || whole) return <span class="tree-string">{JSON.stringify(value)}</span>;
  return (
    <span class="tree-string">
      {JSON.stringify(value.slice(0, CHARACTERS))}{" "}
      <button type="button" class="link" onClick={() => setWhole(true)}>
        all {value.length.toLocaleString("en")} characters
      </button>
    </span>
  );
}
