// The key space from top to bottom, time from left to right; the warmer a cell, the more happened there.

import { useEffect, useRef, useState } from "preact/hooks";
import { valuesOf, type Column, type Metric } from "../state/heat.ts";
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
  const first = columns[0];
  const last = columns[columns.length - 1];
  return (
    <figure class="heat">
      <canvas ref={canvas} role="img" aria-label={props.label} onMouseMove={onMove} onMouseLeave={() => setHint("")} />
      <figcaption>
        <span>{first === undefined ? "" : new Date(first.time * 1000).toLocaleTimeString()}</span>
        <span class="hint">{hint === "" ? "key space ↓ time →" : hint}</span>
        <span>{last === undefined ? "" : new Date(last.time * 1000).toLocaleTimeString()}</span>
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
