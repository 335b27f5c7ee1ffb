// A list of any length of which only the rows in sight exist. One row is active; the arrow keys move it. Where several may
// be chosen, Space and Ctrl-click choose one more, Shift all up to it, and Ctrl A all.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  label: string;
  count: number;
  rowHeight: number;
  /** The active row, or -1. */
  active: number;
  className?: string;
  /** Stays on top while the rows move. */
  header?: ComponentChildren;
  role?: "listbox" | "grid";
  row: (index: number) => ComponentChildren;
  onActive: (index: number) => void;
  onOpen?: (index: number) => void;
  /** The end is in sight, and nothing is under way that may move it. */
  onEnd?: () => void;
  /** Whether rows are on their way. */
  busy?: boolean;
  /** Where several rows may be chosen: which are, and what chooses them. */
  chosen?: { has: (index: number) => boolean; toggle: (index: number) => void; upTo: (index: number) => void; all: () => void };
}

/** Rows above and below those in sight, so that fast scrolling shows no gaps. */
const SPARE = 8;
/** Browsers lose precision beyond this height. */
const HEIGHT_MAX = 15_000_000;
let lists = 0;

/** Where a key leads from the active row. */
function moveOf(key: string, active: number, page: number, count: number): number | undefined {
  const moves: Record<string, number> = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: count - 1,
  };
  return moves[key];
}

/** Scrolls just as far as a row needs to be seen. */
function reveal(box: HTMLElement, above: number, rowHeight: number): void {
  const room = box.clientHeight - rowHeight * 2;
  if (above < box.scrollTop) box.scrollTop = above;
  else if (above > box.scrollTop + room) box.scrollTop = above - room;
}

/** The part of the list that is in sight. */
function useSight(box: { current: HTMLDivElement | null }) {
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);
  return { top, height, setTop };
}

export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, active } = props;
  const [name] = useState(() => `list-${++lists}`);
  const box = useRef<HTMLDivElement>(null);
  const { top, height, setTop } = useSight(box);
  const shown = Math.min(count, Math.floor(HEIGHT_MAX / rowHeight));
  const grid = props.role === "grid";

  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const last = Math.min(shown, Math.ceil((top + height) / rowHeight) + SPARE);
  const busy = props.busy ?? false;
  useEffect(() => {
    if (last >= shown && !busy) props.onEnd?.();
  }, [last, shown, busy]);

  const { chosen } = props;
  const onKeyDown = (event: KeyboardEvent) => {
    if (chosen !== undefined && event.key === " " && active >= 0) {
      event.preventDefault();
      return chosen.toggle(active);
    }
    if (chosen !== undefined && event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return chosen.all();
    }
    const wanted = moveOf(event.key, active, Math.max(1, Math.floor(height / rowHeight) - 2), shown);
    if (wanted !== undefined && shown > 0) {
      event.preventDefault();
      const next = Math.max(0, Math.min(shown - 1, wanted));
      if (box.current !== null) reveal(box.current, next * rowHeight, rowHeight);
      props.onActive(next);
      if (event.shiftKey) chosen?.upTo(next);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      props.onOpen?.(active);
    }
  };

  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div
        key={index}
        id={`${name}-${index}`}
        role={grid ? "row" : "option"}
        class={`row ${index % 2 === 1 ? "odd" : ""} ${index === active ? "active" : ""} ${chosen?.has(index) === true ? "chosen" : ""}`}
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
        {...(grid ? { "aria-rowindex": index + 2 } : { "aria-setsize": count, "aria-posinset": index + 1 })}
        aria-selected={chosen === undefined ? index === active : chosen.has(index)}
        onClick={(event) => {
          props.onActive(index);
          if (chosen !== undefined && event.shiftKey) return chosen.upTo(index);
          if (chosen !== undefined && (event.ctrlKey || event.metaKey)) return chosen.toggle(index);
          props.onOpen?.(index);
        }}
      >
        {props.row(index)}
      </div>,
    );
  }
  const inSight = active >= first && active < last;
  return (
    <div
      ref={box}
      class={`virtual ${props.className ?? ""}`}
      role={props.role ?? "listbox"}
      aria-label={props.label}
      aria-rowcount={grid ? count + 1 : undefined}
      aria-multiselectable={chosen === undefined ? undefined : true}
      aria-activedescendant={inSight ? `${name}-${active}` : undefined}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      {props.header}
      <div class="rows" role={grid ? "rowgroup" : "presentation"} style={{ height: `${shown * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  );
}
