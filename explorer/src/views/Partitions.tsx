// What happens inside a container: its key space as a heat map, its physical partitions and its busiest keys.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { HeatMap } from "../parts/HeatMap.tsx";
import { Meter, TimeChart } from "../parts/TimeChart.tsx";
import { Chronicle, History, type Event, type Metric } from "../state/heat.ts";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { watch } from "../state/watch.ts";
import { readAlerts, readHeat, readInsight, readKeys, type Alert, type Heat, type HotKey, type Insight, type LargeKey, type Window } from "../wire/manage.ts";
import type { Container, Place } from "../wire/resources.ts";
import { HottestKeys, LargestKeys } from "./KeyTables.tsx";
import { PartitionTable } from "./PartitionTable.tsx";
import { bytesText, numberText } from "./figures.ts";

const METRICS: readonly { name: Metric; title: string }[] = [
  { name: "requestUnits", title: "Request units" },
  { name: "requests", title: "Requests" },
  { name: "throttled", title: "Throttled" },
  { name: "bytes", title: "Storage" },
];
const WINDOWS: readonly { name: Window; title: string; every: number }[] = [
  { name: "minute", title: "Seconds", every: 1500 },
  { name: "hour", title: "Minutes", every: 10_000 },
  { name: "day", title: "Hours", every: 30_000 },
];

interface Seen {
  insight: Insight;
  hottest: HotKey[];
  largest: LargeKey[];
  alerts: Alert[];
}

async function readSeen(place: Place, window: Window, signal: AbortSignal): Promise<Seen & { heat: Heat | null }> {
  const [insight, heat, keys, alerts] = await Promise.all([
    readInsight(client(), place, window, signal),
    window === "day" ? null : readHeat(client(), place, window, signal),
    readKeys(client(), place, window, signal),
    readAlerts(client(), signal),
  ]);
  const here = alerts.filter((alert) => alert.database === place.db && alert.container === place.coll);
  return { insight, heat, hottest: keys.hottest, largest: keys.largest, alerts: here };
}

/** Looks at the container again and again while the page is open. */
function useInsight(place: Place, window: Window) {
  const [seen, setSeen] = useState<Seen | null>(null);
  const [problem, setProblem] = useState("");
  const history = useRef<History>(new History());
  const [chronicle] = useState(() => new Chronicle());
  const wake = useRef<() => void>(() => undefined);
  useLayoutEffect(() => {
    history.current = new History();
    const watching = watch({
      read: (signal) => readSeen(place, window, signal),
      seen: ({ heat, ...found }) => {
        history.current.take(found.insight, heat);
        chronicle.take(found.insight);
        setSeen(found);
        setProblem("");
      },
      failed: (error) => setProblem(explain(error)),
      every: () => WINDOWS.find((one) => one.name === window)?.every ?? 2000,
    });
    wake.current = watching.wake;
    return watching.stop;
  }, [window]);
  return { seen, problem, history: history.current, events: chronicle.events, wake: () => wake.current() };
}

export function Partitions(props: { place: Place; container: Container }) {
  const [window, setWindow] = useState<Window>("minute");
  const [metric, setMetric] = useState<Metric>("requestUnits");
  const { seen, problem, history, events, wake } = useInsight(props.place, window);
  const trouble = problem === "" ? null : (
    <p class="problem" role="alert">
      {problem}
    </p>
  );
  if (seen === null) return trouble ?? <p class="soft pad">Loading…</p>;
  const { insight } = seen;
  const budget = insight.partitions.reduce((sum, one) => sum + one.throughput, 0);
  return (
    <div
      class="page wide scroll"
      tabIndex={0}
      role="region"
      aria-label="Partitions"
      data-partitions={insight.partitions.length}
      data-window={insight.window}
    >
      {trouble}
      <Overview insight={insight} budget={budget} largest={seen.largest} />
      <Alerts alerts={seen.alerts} />
      <div class="row-of">
        <Segmented label="What to show" options={METRICS} chosen={metric} onChoose={setMetric} />
        <Segmented label="Time" options={WINDOWS} chosen={window} onChoose={setWindow} />
      </div>
      <HeatMap
        label={`Heat map of ${insight.partitions.length} partitions over time; the table below has the figures`}
        columns={history.columns()}
        metric={metric}
        describe={(value) => describe(value, metric, insight.slotSeconds)}
      />
      <h2>RU/s over time{budget > 0 && `, against ${numberText(budget)} RU/s provisioned`}</h2>
      <TimeChart
        label={`Request units a second of the whole container, now ${numberText(insight.whole.perSecond.requestUnits)}`}
        values={insight.whole.slots.requestUnits.map((value) => value / insight.slotSeconds)}
        limit={budget}
      />
      <h2>Physical partitions</h2>
      <PartitionTable place={props.place} partitions={insight.partitions} onChanged={wake} />
      <Events events={events} />
      <div class="two">
        <HottestKeys keys={seen.hottest} window={window} container={props.container} />
        <LargestKeys keys={seen.largest} container={props.container} />
      </div>
    </div>
  );
}

function describe(value: number, metric: Metric, seconds: number): string {
  switch (metric) {
    case "bytes":
      return bytesText(value);
    case "requestUnits":
      return `${numberText(value / seconds)} RU/s`;
    case "requests":
      return `${numberText(value / seconds)} requests/s`;
    case "throttled":
      return `${numberText(value / seconds)} throttled/s`;
  }
}

interface SegmentedProps<T extends string> {
  label: string;
  options: readonly { name: T; title: string }[];
  chosen: T;
  onChoose: (name: T) => void;
}

function Segmented<T extends string>(props: SegmentedProps<T>) {
  return (
    <div role="group" aria-label={props.label} class="segmented">
      {props.options.map((one) => (
        <button key={one.name} type="button" aria-pressed={props.chosen === one.name} onClick={() => props.onChoose(one.name)}>
          {one.title}
        </button>
      ))}
    </div>
  );
}

function Events(props: { events: Event[] }) {
  if (props.events.length === 0) return null;
  return (
    <>
      <h2>Seen while this page was open</h2>
      <ul data-events>
        {props.events.map((event, index) => (
          <li key={index}>
            {new Date(event.time * 1000).toLocaleTimeString()} {event.text}
          </li>
        ))}
      </ul>
    </>
  );
}

function Overview(props: { insight: Insight; budget: number; largest: LargeKey[] }) {
  const { insight, budget } = props;
  const now = insight.whole.perSecond;
  const bytes = insight.partitions.reduce((sum, one) => sum + one.bytes, 0);
  const largest = props.largest[0];
  return (
    <dl class="facts-list">
      <div>
        <dt>Throughput in use</dt>
        <dd>
          {budget > 0 ? (
            <Meter label="Throughput in use" value={now.requestUnits} most={budget} text={`${numberText(now.requestUnits)} of ${numberText(budget)} RU/s`} />
          ) : (
            `${numberText(now.requestUnits)} RU/s`
          )}
        </dd>
      </div>
      <div>
        <dt>Requests</dt>
        <dd>{numberText(now.requests)} a second</dd>
      </div>
      <div>
        <dt>Throttled (429)</dt>
        <dd data-throttled={now.throttled}>{numberText(now.throttled)} a second</dd>
      </div>
      <div>
        <dt>Storage</dt>
        <dd>
          {bytesText(bytes)} in {insight.partitions.length} {insight.partitions.length === 1 ? "partition" : "partitions"}
        </dd>
      </div>
      <div>
        <dt>Largest logical partition</dt>
        <dd>
          {largest === undefined ? (
            "nothing written yet"
          ) : (
            <Meter label="Largest logical partition" value={largest.percentOfLimit} most={100} text={`${bytesText(largest.bytes)}, ${largest.percentOfLimit} % of its limit`} />
          )}
        </dd>
      </div>
    </dl>
  );
}

function Alerts(props: { alerts: Alert[] }) {
  if (props.alerts.length === 0) return null;
  return (
    <div role="alert">
      <ul class="alerts" data-alerts>
      {props.alerts.map((alert) => (
        <li key={`${alert.kind} ${alert.partition} ${JSON.stringify(alert.partitionKey)}`}>
          <strong>{alert.kind.replaceAll("-", " ")}</strong> {alert.message}
        </li>
      ))}
      </ul>
    </div>
  );
}
