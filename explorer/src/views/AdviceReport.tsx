// Candidates side by side: how storage and load would spread over partitions, and the verdict in words.

import { useState } from "preact/hooks";
import { Meter } from "../parts/TimeChart.tsx";
import type { Advice, Candidate } from "../wire/manage.ts";
import type { Container, Place } from "../wire/resources.ts";
import { bytesText, countText, numberText } from "./figures.ts";
import { RekeyDialog } from "./NewJob.tsx";

/** A key that a container can simply be given; others need a property that the application writes. */
export function plainPaths(key: string): string[] | undefined {
  const paths = key.split(",").map((path) => path.trim());
  return paths.every((path) => /^\/[^+()]+$/.test(path)) ? paths : undefined;
}

/** How bad a verdict is; one that is not here is a fault. */
const SEVERITY: Record<string, "done" | "waiting"> = {
  best: "done",
  good: "done",
  "good-until": "waiting",
  "splits-transactions": "waiting",
  scattered: "waiting",
  uneven: "waiting",
};

export function AdviceReport(props: { advice: Advice; place: Place; container: Container }) {
  const { advice } = props;
  const [rekeying, setRekeying] = useState<string[] | null>(null);
  const most = {
    bytes: Math.max(1, ...advice.candidates.flatMap((one) => one.partitions.map((part) => part.bytesAtHorizon))),
    units: Math.max(1e-9, ...advice.candidates.flatMap((one) => [one.load.budget, ...one.partitions.map((part) => part.unitsPerSecond)])),
  };
  const current = props.container.partitionKey.paths.join(",");
  return (
    <section aria-label="Advice" data-advice-for={advice.recommended}>
      <h2>
        {countText(advice.partitions, "partition")}, {numberText(advice.throughput)} RU/s, looking {numberText(advice.horizonDays)} days ahead
      </h2>
      <p>
        <strong>{advice.summary}</strong>
      </p>
      {(advice.notes ?? []).map((note) => (
        <p key={note} class="help">
          {note}
        </p>
      ))}
      <div class="candidates">
        {advice.candidates.map((candidate) => (
          <CandidateCard
            key={candidate.key}
            candidate={candidate}
            most={most}
            limit={advice.logicalPartitionLimit}
            isCurrent={candidate.key === current}
            onRekey={setRekeying}
          />
        ))}
      </div>
      {rekeying !== null && <RekeyDialog place={props.place} paths={rekeying} onClose={() => setRekeying(null)} />}
    </section>
  );
}

interface CandidateCardProps {
  candidate: Candidate;
  most: { bytes: number; units: number };
  limit: number;
  isCurrent: boolean;
  onRekey: (paths: string[]) => void;
}

function CandidateCard(props: CandidateCardProps) {
  const { candidate, most } = props;
  const paths = plainPaths(candidate.key);
  const { largest, load } = candidate;
  // The server would refuse to copy the items; docs/advisor.md has these words.
  const isRefused = candidate.findings.some(({ code }) => code === "collides" || code === "too-long");
  const severity = SEVERITY[candidate.verdict] ?? "failed";
  return (
    <article class="candidate" data-severity={severity} data-candidate={candidate.key} data-verdict={candidate.verdict}>
      <header>
        <h3>
          <bdi>{candidate.key}</bdi> {props.isCurrent && <span class="badge">now</span>}
        </h3>
        <span class="status" data-status={severity}>
          {candidate.verdict.replaceAll("-", " ")}
        </span>
      </header>
      <Meter label={`Score of ${candidate.key}`} value={candidate.score} most={100} isLimit={false} text={`${numberText(candidate.score)} of 100`} />
      <p>{candidate.words}</p>
      <h4>Storage of each partition</h4>
      <Bars label={`Storage of each partition with ${candidate.key}`} values={candidate.partitions.map((one) => one.bytesAtHorizon)} most={most.bytes} limit={0} text={bytesText} />
      <h4>RU/s of each partition</h4>
      <Bars label={`RU/s of each partition with ${candidate.key}`} values={candidate.partitions.map((one) => one.unitsPerSecond)} most={most.units} limit={load.budget} text={numberText} />
      <dl class="small-facts">
        <dt>Distinct values</dt>
        <dd>{candidate.distinct === null ? "one for each item" : numberText(candidate.distinct)}</dd>
        <dt>Largest logical partition</dt>
        <dd>
          {bytesText(largest.bytesToday)} now, {bytesText(largest.bytesAtHorizon)} then
          {largest.daysUntilFull !== null && `; full in ${numberText(largest.daysUntilFull)} days`}
        </dd>
        <dt>Busiest partition</dt>
        <dd>
          {numberText(load.busiest)} of {numberText(load.budget)} RU/s{load.throttled > 0 && `; ${numberText(load.throttled * 100)} % throttled`}
        </dd>
      </dl>
      <ul class="findings">
        {candidate.findings.map((finding, index) => (
          <li key={index} class={finding.against ? "against" : ""} data-finding={finding.code}>
            {finding.words}
          </li>
        ))}
      </ul>
      {isRefused && <p class="help">The container cannot be given this key with the items that it has.</p>}
      {paths !== undefined && !props.isCurrent && !isRefused && (
        <button type="button" aria-label={`Change the partition key to ${candidate.key}`} onClick={() => props.onRekey(paths)}>
          Change the partition key
        </button>
      )}
    </article>
  );
}

/** One bar for each partition, all on the same scale. */
function Bars(props: { label: string; values: number[]; most: number; limit: number; text: (value: number) => string }) {
  const { values, most, limit } = props;
  const width = 100 / Math.max(1, values.length);
  const spread = values.map((value) => props.text(value)).slice(0, 12).join(", ");
  return (
    <svg class="bars" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`${props.label}: ${spread}`}>
      {values.map((value, index) => (
        <rect key={index} x={index * width + width * 0.1} width={width * 0.8} y={40 - (value / most) * 38} height={(value / most) * 38} class={limit > 0 && value > limit ? "over" : ""}>
          <title>
            partition {index}: {props.text(value)}
          </title>
        </rect>
      ))}
      {limit > 0 && <line class="limit" x1="0" x2="100" y1={40 - (limit / most) * 38} y2={40 - (limit / most) * 38} />}
    </svg>
  );
}
