// Candidates side by side: how storage and load would spread over partitions, and the verdict in words.

import { useState } from "preact/hooks";
import { Meter } from "../parts/TimeChart.tsx";
import type { Advice, Candidate } from "../wire/manage.ts";
import type { Container, Place } from "../wire/resources.ts";
import { bytesText, numberText } from "./figures.ts";
import { RekeyDialog } from "./NewJob.tsx";

/** A key that a container can simply be given; others need a property that the application writes. */
export function plainPaths(key: string): string[] | undefined {
  const paths = key.split(",").map((path) => path.trim());
  return paths.every((path) => /^\/[^+()]+$/.test(path)) ? paths : undefined;
}

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
        {advice.partitions} partitions, {numberText(advice.throughput)} RU/s, looking {numberText(advice.horizonDays)} days ahead
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
  const good = candidate.verdict === "best" || candidate.verdict === "good";
  return (
    <article class={`candidate ${good ? "good" : ""}`} data-candidate={candidate.key} data-verdict={candidate.verdict}>
      <header>
        <h3>
          <bdi>{candidate.key}</bdi> {props.isCurrent && <span class="badge">now</span>}
        </h3>
        <span class="verdict">{candidate.verdict.replaceAll("-", " ")}</span>
      </header>
      <Meter label={`Score of ${candidate.key}`} value={candidate.score} most={100} isLimit={false} text={`${numberText(candidate.score)} of 100`} />
      <p>{candidate.words}</p>
      <h4>Storage of each partition</h4>
      <Bars label={`Storage of each partition with ${candidate.key}`} values={candidate.partitions.map((one) => one.bytesAtHorizon)} most={most.bytes} limit={0} text={bytesText} />
      <h4>Request units a second of each partition</h4>
      <Bars label={`Request units of each partition with ${candidate.key}`} values={candidate.partitions.map((one) => one.unitsPerSecond)} most={most.units} limit={load.budget} text={numberText} />
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
        {candidate.findings.map((finding) => (
          <li key={finding.code} class={finding.against ? "against" : ""}>
            {finding.words}
          </li>
        ))}
      </ul>
      {paths !== undefined && !props.isCurrent && (
        <button type="button" aria-label={`Give the container the key ${candidate.key}`} onClick={() => props.onRekey(paths)}>
          Give the container this key
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
