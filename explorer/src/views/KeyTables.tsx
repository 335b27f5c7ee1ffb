// The logical partitions that do most and hold most.

import { go } from "../state/route.ts";
import { units } from "../parts/Charge.tsx";
import { brief } from "../text/json.ts";
import { Meter } from "../parts/TimeChart.tsx";
import type { HotKey, LargeKey, Window } from "../wire/manage.ts";
import type { Container } from "../wire/resources.ts";
import { bytesText, numberText } from "./figures.ts";

function keyText(key: unknown): string {
  return Array.isArray(key) ? key.map((part) => brief(part, 80)).join(" / ") : brief(key, 80);
}

const WORDS: Record<Window, string> = { minute: "of the last minute", hour: "of the last hour", day: "of the last day" };

export function HottestKeys(props: { keys: HotKey[]; window: Window; container: Container }) {
  const most = props.keys[0]?.requestUnits ?? 0;
  return (
    <section>
      <h2>Hottest logical partitions {WORDS[props.window]}</h2>
      {props.keys.length === 0 ? (
        <p class="soft">No request for one logical partition yet.</p>
      ) : (
        <table class="plain" data-hottest>
          <thead>
            <tr>
              <th scope="col">{props.container.partitionKey.paths.join(" / ")}</th>
              <th scope="col">RU</th>
              <th scope="col" class="number">Requests</th>
              <th scope="col" class="number">Throttled</th>
            </tr>
          </thead>
          <tbody>
            {props.keys.map((key) => (
              <tr key={`${key.partition} ${JSON.stringify(key.partitionKey)}`}>
                <th scope="row">
                  <bdi>{keyText(key.partitionKey)}</bdi> <span class="soft">in partition {key.partition}</span>
                </th>
                <td>
                  <Meter label="Request units" value={key.requestUnits} most={most} isLimit={false} text={units(key.requestUnits)} />
                </td>
                <td class="number">{numberText(key.requests)}</td>
                <td class="number">{numberText(key.throttled)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function LargestKeys(props: { keys: LargeKey[]; container: Container }) {
  return (
    <section>
      <h2>Largest logical partitions</h2>
      {props.keys.length === 0 ? (
        <p class="soft">Nothing has been written since these partitions were made or the server started.</p>
      ) : (
        <table class="plain" data-largest>
          <thead>
            <tr>
              <th scope="col">{props.container.partitionKey.paths.join(" / ")}</th>
              <th scope="col">Size</th>
              <th scope="col" class="number">Of its limit</th>
            </tr>
          </thead>
          <tbody>
            {props.keys.map((key) => (
              <tr key={key.effectivePartitionKey}>
                <th scope="row">
                  <bdi>{key.partitionKey === null ? key.effectivePartitionKey : keyText(key.partitionKey)}</bdi>{" "}
                  <span class="soft">in partition {key.partition}</span>
                </th>
                <td>
                  <Meter label="Share of the limit" value={key.percentOfLimit} most={100} text={bytesText(key.bytes)} />
                </td>
                <td class="number">{key.percentOfLimit} %</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {(props.keys[0]?.percentOfLimit ?? 0) >= 50 && (
        <p class="help">
          A logical partition cannot be split.{" "}
          <button type="button" class="link" onClick={() => goToAdvisor()}>
            Look for a better key
          </button>
        </p>
      )}
    </section>
  );
}

function goToAdvisor(): void {
  const parts = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  const [, db, , coll] = parts;
  if (db !== undefined && coll !== undefined) go({ page: "container", db, coll, tab: "advisor" });
}
