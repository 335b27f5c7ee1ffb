// A row of tabs; the arrow keys go from one to the next.

import type { ComponentChildren } from "preact";

interface TabsProps<T extends string> {
  label: string;
  tabs: readonly { name: T; title: ComponentChildren; note?: string }[];
  chosen: T;
  onChoose: (name: T) => void;
}

export function Tabs<T extends string>(props: TabsProps<T>) {
  const choose = (event: KeyboardEvent & { currentTarget: HTMLElement }, step: number) => {
    event.preventDefault();
    const at = props.tabs.findIndex((tab) => tab.name === props.chosen);
    const next = props.tabs[(at + step + props.tabs.length) % props.tabs.length];
    if (next === undefined) return;
    props.onChoose(next.name);
    const buttons = event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]");
    buttons[props.tabs.indexOf(next)]?.focus();
  };
  return (
    <div
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
          {tab.title}
          {tab.note !== undefined && <span class="badge">{tab.note}</span>}
        </button>
      ))}
    </div>
  );
}
