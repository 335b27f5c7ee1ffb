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
