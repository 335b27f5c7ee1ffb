// The key space from top to bottom, time from left to right; the warmer a cell, the more happened there.

import { useEffect, useRef, useState } from "preact/hooks";
import { valuesOf, type Column, type Metric, type Span } from "../state/heat.ts";
import { theme } from "../state/theme.ts";

/** From nothing to the most that is in sight. */
const COLOURS = {
  light: ["#eaf0f5", "#9ccbee", "#3d8fd1", "#f2b134", "#cf3f34"],
  dark: ["#17232f", "#1f4f7a", "#3d8fd1", "#f2b134", "#ff6a5c"],
};

function colourOf(share: number, colours: string[]): string {
  const place = Math.min(0.9999, Math.max(0, share)) * (colours.length - 1);
  const low = Math.floor(place);
  return mix(colours[low] as string, colours[low + 1] as string, place - low);
}

function mix(from: string, to: string, share: number): string {
  const part = (colour: string, at: number) => parseInt(colour.slice(at, at + 2), 16);
  const channel = (at: number) => Math.round(part(from, at) + (part(to, at) - part(from, at)) * share);
  return `rgb(${channel(1)} ${channel(3)} ${channel(5)})`;
}

interface HeatMapProps {
  label: string;
  columns: Column[];
  metric: Metric;
  describe: (value: number) => string;
}

export function HeatMap(props: HeatMapProps) {
  const { columns, metric } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hint, setHint] = useState("");
  const most = Math.max(1e-9, ...columns.map((column) => Math.max(0, ...column.spans.flatMap((span) => valuesOf(span, metric)))));
  const colours = COLOURS[theme.value];

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (element === null || context === null || context === undefined) return;
    const density = window.devicePixelRatio || 1;
    const width = element.clientWidth * density;
    const height = element.clientHeight * density;
    if (element.width !== width || element.height !== height) {
      element.width = width;
      element.height = height;
    }
    context.clearRect(0, 0, width, height);
    const step = width / Math.max(1, columns.length);
    columns.forEach((column, index) => {
      const left = Math.floor(index * step);
      const wide = Math.ceil((index + 1) * step) - left;
      for (const span of column.spans) {
        const values = valuesOf(span, metric);
        const top = span.from * height;
        const tall = ((span.to - span.from) * height) / values.length;
        values.forEach((value, row) => {
          context.fillStyle = colourOf(Math.sqrt(value / most), colours);
          context.fillRect(left, Math.floor(top + row * tall), wide, Math.ceil(tall) + 1);
        });
      }
      // Borders between partitions; where they change from one column to the next, something split or merged.
      context.fillStyle = theme.value === "dark" ? "#e6edf3" : "#16202a";
      for (const span of column.spans) {
        if (span.from > 0) context.fillRect(left, Math.round(span.from * height), wide, density);
      }
    });
  }, [columns, metric, theme.value, most]);

  const onMove = (event: MouseEvent & { currentTarget: HTMLCanvasElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = columns[Math.floor(((event.clientX - box.left) / box.width) * columns.length)];
    const place = (event.clientY - box.top) / box.height;
    const span = column?.spans.find((one) => place >= one.from && place < one.to);
    if (column === undefined || span === undefined) return setHint("");
    const values = valuesOf(span, metric);
    const row = Math.min(values.length - 1, Math.floor(((place - span.from) / (span.to - span.from)) * values.length));
    setHint(`${new Date(column.time * 1000).toLocaleTimeString()}, partition ${span.id}: ${props.describe(values[row] ?? 0)}`);
  };
  const last = columns[columns.length - 1];
  return (
    <figure class="heat">
      <p class="axis-title soft" aria-hidden="true">
        Physical partitions, by their share of the key space ↓
      </p>
      <PartitionAxis spans={last?.spans ?? []} />
      <canvas ref={canvas} role="img" aria-label={props.label} onMouseMove={onMove} onMouseLeave={() => setHint("")} />
      <TimeAxis columns={columns} />
      <figcaption class="hint" aria-live="off">
        {hint === "" ? "Point at a cell to see its figures." : hint}
      </figcaption>
      <div class="legend" aria-hidden="true">
        <span>0</span>
        {colours.map((colour) => (
          <i key={colour} style={{ backgroundColor: colour }} />
        ))}
        <span>{props.describe(most)}</span>
      </div>
    </figure>
  );
}

/** Labels nearer to each other than this share of the height would lie on one another. */
const LABELS_APART = 0.06;

/** Which partition each band is. Where many are narrow, some go without a label; the pointer tells all. */
function PartitionAxis(props: { spans: Span[] }) {
  let lowest = -1;
  const shown = props.spans.filter((span) => {
    const middle = (span.from + span.to) / 2;
    if (middle - lowest < LABELS_APART) return false;
    lowest = middle;
    return true;
  });
  return (
    <ol class="axis-left" aria-hidden="true">
      {shown.map((span) => (
        <li key={span.id} style={{ top: `${((span.from + span.to) / 2) * 100}%` }} title={`${percent(span.from)} to ${percent(span.to)} of the key space`}>
          <span class="word">partition </span>
          {span.id}
        </li>
      ))}
    </ol>
  );
}

const percent = (share: number) => `${(share * 100).toLocaleString("en", { maximumFractionDigits: 1 })} %`;

const TICKS = 5;

function TimeAxis(props: { columns: Column[] }) {
  const { columns } = props;
  const first = columns[0]?.time;
  const last = columns[columns.length - 1]?.time;
  if (first === undefined || last === undefined) return null;
  const times = Array.from({ length: TICKS }, (_, tick) => first + ((last - first) * tick) / (TICKS - 1));
  // Days matter only where there are several.
  const form: Intl.DateTimeFormatOptions = last - first > 43_200 ? { weekday: "short", hour: "2-digit", minute: "2-digit" } : { timeStyle: last - first < 600 ? "medium" : "short" };
  return (
    <ol class="axis-below soft" aria-hidden="true">
      {times.map((time, tick) => (
        <li key={tick}>{new Date(time * 1000).toLocaleString([], form)}</li>
      ))}
    </ol>
  );
}
