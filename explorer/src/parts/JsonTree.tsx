// A value as a tree whose branches open and close. Long texts and long lists are shown in parts.

import { useState } from "preact/hooks";
import { elements, members } from "../text/json.ts";

/** Children shown before "more" is asked for, and characters of a text. */
const CHILDREN = 100;
const CHARACTERS = 2000;
const DEPTH_MAX = 130;

interface JsonTreeProps {
  /** The value as its JSON text, so that numbers are shown with all their digits. */
  json: string;
  name?: string;
  depth?: number;
  open?: boolean;
}

function entriesOf(json: string): [string, string][] | undefined {
  if (json.startsWith("{")) return [...members(json)];
  return json.startsWith("[") ? elements(json).map((inner, index) => [String(index), inner]) : undefined;
}

export function JsonTree(props: JsonTreeProps) {
  const { json, depth = 0 } = props;
  const [open, setOpen] = useState(props.open ?? depth < 1);
  const [children, setChildren] = useState(CHILDREN);
  const name = props.name === undefined ? null : <span class="tree-name">{props.name}: </span>;
  const entries = entriesOf(json);
  if (entries === undefined) {
    return (
      <div class="tree-leaf">
        {name}
        <Leaf json={json} />
      </div>
    );
  }
  const summary = json.startsWith("[") ? `[${entries.length}]` : `{${entries.length}}`;
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
            <JsonTree key={key} name={key} json={inner} depth={depth + 1} />
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

function Leaf(props: { json: string }) {
  const [whole, setWhole] = useState(false);
  const { json } = props;
  if (!json.startsWith('"')) return <span class="tree-number">{json}</span>;
  if (json.length <= CHARACTERS || whole) return <span class="tree-string">{json}</span>;
  const characters = (JSON.parse(json) as string).length;
  return (
    <span class="tree-string">
      {json.slice(0, CHARACTERS)}…{" "}
      <button type="button" class="link" onClick={() => setWhole(true)}>
        all {characters.toLocaleString("en")} characters
      </button>
    </span>
  );
}
