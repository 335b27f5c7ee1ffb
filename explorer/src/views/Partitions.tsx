// What happens inside a container: its key space as a heat map, its physical partitions and its busiest keys.

import { useEffect, useRef, useState } from "preact/hooks";
import { HeatMap } from "../parts/HeatMap.tsx";
import { Meter, TimeChart } from "../parts/TimeChart.tsx";
import { History, type Metric } from "../state/heat.ts";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort } from "../wire/client.ts";
import { readAlerts, readHeat, readInsight, readKeys, type Alert, type HotKey, type Insight, type LargeKey, type Window } from "../wire/manage.ts";
import type { Container, Place } from "../wire/resources.ts";
import { HottestKeys, LargestKeys } from "./KeyTables.tsx";
import { PartitionTable } from "./PartitionTable.tsx";
import { bytesText, numberText } from "./figures.ts";

const METRICS: readonly { name: Metric; title: string }[] = [
  { name: "requestUnits", title: "Request units" },
  { name: "requests", title: "Requests" },
  { name: "throttled", title: "429s" },
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

export function Partitions(props: { place: Place; container: Container }) {
  const { place, container } = props;
  const [window, setWindow] = useState<Window>("minute");
  const [metric, setMetric] = useState<Metric>("requestUnits");
  const [seen, setSeen] = useState<Seen | null>(null);
  const [problem, setProblem] = useState("");
  const history = useRef<History>(new History());
  const wake = useRef<() => void>(() => undefined);

  useEffect(() => {
    const control = new AbortController();
    history.current = new History();
    let timer = 0;
    const look = async () => {
      clearTimeout(timer);
      const signal = control.signal;
      try {
        const [insight, heat, keys, alerts] = await Promise.all([
          readInsight(client(), place, window, signal),
          window === "day" ? null : readHeat(client(), place, window, signal),
          readKeys(client(), place, window, signal),
          readAlerts(client(), signal),
        ]);
        history.current.take(insight, heat);
        const here = alerts.filter((alert) => alert.database === place.db && alert.container === place.coll);
        setSeen({ insight, hottest: keys.hottest, largest: keys.largest, alerts: here });
        setProblem("");
      } catch (error) {
        if (isAbort(error)) return;
        setProblem(explain(error));
      }
      timer = setTimeout(() => void look(), WINDOWS.find((one) => one.name === window)?.every ?? 2000);
    };
    wake.current = () => void look();
    void look();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [window]);

  if (seen === null) {
    return problem === "" ? (
      <p class="soft pad">Loading…</p>
    ) : (
      <p class="problem" role="alert">
        {problem}
      </p>
    );
  }
  const { insight } = seen;
  const columns = history.current.columns();
  const budget = insight.partitions.reduce((sum, one) => sum + one.throughput, 0);
  const perSlot = (values: number[]) => values.map((value) => value / insight.slotSeconds);
  const describe = (value: number) => {
    if (metric === "bytes") return bytesText(value);
    const unit = { requestUnits: "RU/s", requests: "requests/s", throttled: "refused/s" }[metric];
    return `${numberText(value / insight.slotSeconds)} ${unit}`;
  };
  return (
    <div class="page wide scroll" tabIndex={0} role="region" aria-label="Partitions" data-partitions={insight.partitions.length}>
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <Overview insight={insight} budget={budget} largest={seen.largest} />
      <Alerts alerts={seen.alerts} />
      <div class="row-of">
        <div role="group" aria-label="What to show" class="segmented">
          {METRICS.map((one) => (
            <button key={one.name} type="button" aria-pressed={metric === one.name} onClick={() => setMetric(one.name)}>
              {one.title}
            </button>
          ))}
        </div>
        <div role="group" aria-label="Time" class="segmented">
          {WINDOWS.map((one) => (
            <button key={one.name} type="button" aria-pressed={window === one.name} onClick={() => setWindow(one.name)}>
              {one.title}
            </button>
          ))}
        </div>
      </div>
      <HeatMap
        label={`Heat map of ${insight.partitions.length} partitions over time; the table below has the figures`}
        columns={columns}
        metric={metric}
        slotSeconds={insight.slotSeconds}
        describe={describe}
      />
      <h2>Request units a second, against {budget > 0 ? `${numberText(budget)} provisioned` : "no limit"}</h2>
      <TimeChart
        label={`Request units a second of the whole container, now ${numberText(insight.whole.perSecond.requestUnits)}`}
        values={perSlot(insight.whole.slots.requestUnits)}
        limit={budget}
      />
      <h2>Physical partitions</h2>
      <PartitionTable place={place} partitions={insight.partitions} onChanged={() => wake.current()} />
      {history.current.events.length > 0 && (
        <>
          <h2>Seen while this page was open</h2>
          <ul data-events>
            {history.current.events.map((event, index) => (
              <li key={index}>
                {new Date(event.time * 1000).toLocaleTimeString()} {event.text}
              </li>
            ))}
          </ul>
        </>
      )}
      <div class="two">
        <HottestKeys keys={seen.hottest} window={window} container={container} />
        <LargestKeys keys={seen.largest} container={container} />
      </div>
    </div>
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
        <dt>Request units a second</dt>
        <dd>
          {budget > 0 ? (
            <Meter label="Throughput in use" value={now.requestUnits} most={budget} text={`${numberText(now.requestUnits)} of ${numberText(budget)}`} />
          ) : (
            numberText(now.requestUnits)
          )}
        </dd>
      </div>
      <div>
        <dt>Requests a second</dt>
        <dd>{numberText(now.requests)}</dd>
      </div>
      <div>
        <dt>Refused with 429, a second</dt>
        <dd data-throttled={now.throttled}>{numberText(now.throttled)}</dd>
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
