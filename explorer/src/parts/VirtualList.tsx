// A list of any length of which only the rows in sight exist. One row is active; the arrow keys move it.

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
  /** The end is in sight. */
  onEnd?: () => void;
}

/** Rows above and below those in sight, so that fast scrolling shows no gaps. */
const SPARE = 8;
/** Browsers lose precision beyond this height. */
const HEIGHT_MAX = 15_000_000;
let lists = 0;

export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, active } = props;
  const [name] = useState(() => `list-${++lists}`);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const box = useRef<HTMLDivElement>(null);
  const shown = Math.min(count, Math.floor(HEIGHT_MAX / rowHeight));
  const grid = props.role === "grid";

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const last = Math.min(shown, Math.ceil((top + height) / rowHeight) + SPARE);
  useEffect(() => {
    if (last >= shown) props.onEnd?.();
  }, [last, shown]);

  const reveal = (index: number) => {
    const element = box.current;
    if (element === null) return;
    const above = index * rowHeight;
    const room = element.clientHeight - rowHeight * 2;
    if (above < element.scrollTop) element.scrollTop = above;
    else if (above > element.scrollTop + room) element.scrollTop = above - room;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 2);
    const moves: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: shown - 1,
    };
    const wanted = moves[event.key];
    if (wanted !== undefined && shown > 0) {
      event.preventDefault();
      const next = Math.max(0, Math.min(shown - 1, wanted));
      reveal(next);
      props.onActive(next);
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
        class={`row ${index % 2 === 1 ? "odd" : ""} ${index === active ? "active" : ""}`}
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
        {...(grid ? { "aria-rowindex": index + 2 } : { "aria-setsize": count, "aria-posinset": index + 1 })}
        aria-selected={index === active}
        onClick={() => {
          props.onActive(index);
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
