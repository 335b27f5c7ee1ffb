// One line over time, with the limit that it may not cross.

interface TimeChartProps {
  label: string;
  values: number[];
  /** Drawn as a dashed line; 0 is none. */
  limit: number;
}

const WIDTH = 600;
const HEIGHT = 80;

export function TimeChart(props: TimeChartProps) {
  const { values, limit } = props;
  const most = Math.max(1, limit, ...values) * 1.05;
  const x = (index: number) => (index / Math.max(1, values.length - 1)) * WIDTH;
  const y = (value: number) => HEIGHT - (value / most) * HEIGHT;
  const line = values.map((value, index) => `${index === 0 ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={props.label}>
      <path class="area" d={`${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`} />
      <path class="line" d={line} />
      {limit > 0 && <line class="limit" x1="0" x2={WIDTH} y1={y(limit)} y2={y(limit)} />}
    </svg>
  );
}

/** Part of a whole, with the figures beside it. Where the whole is a limit, coming close to it is a warning. */
export function Meter(props: { label: string; value: number; most: number; text: string; isLimit?: boolean }) {
  const share = props.most > 0 ? Math.min(1, props.value / props.most) : 0;
  return (
    <span class="meter">
      <span
        role="meter"
        aria-label={props.label}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuetext={props.text}
        class={props.isLimit !== false && share >= 0.8 ? "high" : ""}
      >
        <i style={{ width: `${share * 100}%` }} />
      </span>
      <span>{props.text}</span>
    </span>
  );
}
