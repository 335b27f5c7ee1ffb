// A row of tabs; the arrow keys go from one to the next.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface TabsProps<T extends string> {
  label: string;
  tabs: readonly { name: T; title: ComponentChildren; note?: string }[];
  chosen: T;
  onChoose: (name: T) => void;
}

/** Moves a row that is wider than the page until its chosen tab is in sight. */
function reveal(row: HTMLElement | null): void {
  const tab = row?.querySelector("[aria-selected=true]");
  if (row === null || tab === null || tab === undefined) return;
  const [outer, inner] = [row.getBoundingClientRect(), tab.getBoundingClientRect()];
  if (inner.right > outer.right) row.scrollLeft += inner.right - outer.right;
  else if (inner.left < outer.left) row.scrollLeft -= outer.left - inner.left;
}

export function Tabs<T extends string>(props: TabsProps<T>) {
  const row = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => reveal(row.current), [props.chosen]);
  const choose = (event: KeyboardEvent & { currentTarget: HTMLElement }, step: number) => {
    event.preventDefault();
    // From the tab that has the focus: the page draws what was chosen a moment later, and keys may come faster than that.
    const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
    const at = buttons.findIndex((button) => button === document.activeElement);
    const next = (at + step + buttons.length) % buttons.length;
    const tab = props.tabs[next];
    if (tab === undefined) return;
    props.onChoose(tab.name);
    buttons[next]?.focus();
  };
  return (
    <div
      ref={row}
      class="tabs"
      role="tablist"
      aria-label={props.label}
      onKeyDown={(event) => {
        if (event.key === "ArrowRight") choose(event, 1);
        else if (event.key === "ArrowLeft") choose(event, -1);
      }}
    >
      {props.tabs.map((tab) => (
        <button
          key={tab.name}
          type="button"
          role="tab"
          data-tab={tab.name}
          aria-selected={tab.name === props.chosen}
          tabIndex={tab.name === props.chosen ? 0 : -1}
          onClick={() => props.onChoose(tab.name)}
        >
          {tab.title}{" "}
          {tab.note !== undefined && <span class="badge">{tab.note}</span>}
        </button>
      ))}
    </div>
  );
}
