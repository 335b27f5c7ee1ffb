// The heat of a container's key space over time, as the page has seen it.
//
// The server keeps a window for each partition, and the children of a split begin with empty ones. So columns that
// have been seen are kept here: what a parent did before its split stays in the picture, with its own borders.

import type { Heat, Insight } from "../wire/manage.ts";

export type Metric = "requestUnits" | "requests" | "throttled" | "bytes";

/** A part of the key space during one slot of time. */
export interface Span {
  id: string;
  from: number;
  to: number;
  /** Values that divide the part evenly. */
  requestUnits: number[];
  requests: number[];
  throttled: number;
  bytes: number;
}

export interface Column {
  /** When the slot began, in seconds. */
  time: number;
  spans: Span[];
}

export interface Event {
  time: number;
  text: string;
}

const COLUMNS_MAX = 240;

/** Columns of one window; another window has slots of another length. */
export class History {
  readonly #columns = new Map<number, Column>();
  slotSeconds = 1;
  #latest = 0;

  /** Takes what the server has just told. */
  take(insight: Insight, heat: Heat | null): void {
    this.slotSeconds = insight.slotSeconds;
    const slots = insight.whole.slots.requests.length;
    const aligned = Math.floor(insight.until / insight.slotSeconds) * insight.slotSeconds;
    for (let slot = 0; slot < slots; slot += 1) {
      const time = aligned - (slots - 1 - slot) * insight.slotSeconds;
      // The newest slot seen before may have been running; older ones are as they were.
      if (time < this.#latest && this.#columns.has(time)) continue;
      this.#columns.set(time, { time, spans: spansAt(insight, heat, slot, slots) });
    }
    this.#latest = aligned;
    const old = [...this.#columns.keys()].sort((a, b) => a - b);
    for (const time of old.slice(0, Math.max(0, old.length - COLUMNS_MAX))) this.#columns.delete(time);
  }

  columns(): Column[] {
    return [...this.#columns.values()].sort((a, b) => a.time - b.time);
  }
}

/** Which partitions came and went, whatever window was looked at meanwhile. */
export class Chronicle {
  readonly events: Event[] = [];
  #known: ReadonlySet<string> | null = null;

  /** Says what has changed since the last time. */
  take(insight: Insight): void {
    const now = new Set(insight.partitions.map((one) => one.id));
    const before = this.#known;
    this.#known = now;
    if (before === null) return;
    const born = insight.partitions.filter((one) => !before.has(one.id));
    const gone = [...before].filter((id) => !now.has(id));
    for (const parent of gone) {
      const children = born.filter((one) => one.parents.includes(parent)).map((one) => one.id);
      if (children.length > 1) this.events.unshift({ time: insight.until, text: `Partition ${parent} split into ${children.join(" and ")}` });
    }
    for (const child of born) {
      const parents = gone.filter((id) => child.parents.includes(id));
      if (parents.length > 1) this.events.unshift({ time: insight.until, text: `Partitions ${parents.join(" and ")} merged into ${child.id}` });
    }
    this.events.splice(50);
  }
}

function spansAt(insight: Insight, heat: Heat | null, slot: number, slots: number): Span[] {
  return insight.partitions.map((one) => {
    const rows = heat?.partitions.find((other) => other.id === one.id);
    const ago = slots - 1 - slot;
    const of = (table: number[][] | undefined, whole: number[]) =>
      table === undefined || table.length === 0 ? [whole[slot] ?? 0] : table.map((row) => row[row.length - 1 - ago] ?? 0);
    return {
      id: one.id,
      from: one.from,
      to: one.to,
      requestUnits: of(rows?.requestUnits, one.use.slots.requestUnits),
      requests: of(rows?.requests, one.use.slots.requests),
      throttled: one.use.slots.throttled[slot] ?? 0,
      bytes: one.use.slots.bytes[slot] ?? 0,
    };
  });
}

export function valuesOf(span: Span, metric: Metric): number[] {
  const value = span[metric];
  return typeof value === "number" ? [value] : value;
}
