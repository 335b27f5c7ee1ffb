// Choosing throughput: how, how much, and what that means in physical partitions.

import { Choice, Field } from "../parts/Field.tsx";
import { offers, server } from "../state/session.ts";
import type { Server } from "../wire/manage.ts";
import type { Throughput } from "../wire/resources.ts";

const LEAST = 400;
const AUTOSCALE_LEAST = 1000;
const MOST = 1_000_000;

export interface ThroughputDraft {
  kind: Throughput["kind"];
  units: string;
}

export function throughputError(draft: ThroughputDraft): string {
  if (draft.kind === "shared") return "";
  const value = Number(draft.units);
  if (!Number.isInteger(value)) return "A whole number is needed.";
  const least = draft.kind === "manual" ? LEAST : AUTOSCALE_LEAST;
  if (value < least) return `At least ${least} RU/s.`;
  if (value > MOST) return `At most ${MOST.toLocaleString("en")} RU/s.`;
  if (draft.kind === "manual" && value % 100 !== 0) return "In steps of 100.";
  if (draft.kind === "autoscale" && value % 1000 !== 0) return "In steps of 1,000.";
  return "";
}

export function throughputOf(draft: ThroughputDraft): Throughput {
  switch (draft.kind) {
    case "shared":
      return { kind: "shared" };
    case "manual":
      return { kind: "manual", units: Number(draft.units) };
    case "autoscale":
      return { kind: "autoscale", max: Number(draft.units) };
  }
}

/** By the budgets that the server was started with. */
function partitionsFor(units: number, existing: number | undefined, limits: Server["limits"]): number {
  const { partitionThroughput: most, newPartitionThroughput: each } = limits;
  if (existing !== undefined) return Math.max(existing, Math.ceil(units / most));
  return units <= most ? 1 : Math.ceil(units / each);
}

/** What an amount of throughput means for a container with so many partitions now, or for a new one. */
export function meaning(draft: ThroughputDraft, limits: Server["limits"] | undefined, existing?: number): string {
  if (draft.kind === "shared" || throughputError(draft) !== "" || limits === undefined) return "";
  const value = Number(draft.units);
  const partitions = partitionsFor(value, existing, limits);
  const each = Math.floor(value / partitions).toLocaleString("en");
  const noun = partitions === 1 ? `1 physical partition with ${each} RU/s` : `${partitions} physical partitions, each with ${each} RU/s`;
  const range =
    draft.kind === "autoscale" ? ` Between ${(value / 10).toLocaleString("en")} and ${value.toLocaleString("en")} RU/s in all, as needed.` : "";
  return `${noun}; a logical partition that needs more than that is throttled while others idle.${range}`;
}

interface ThroughputFieldsProps {
  draft: ThroughputDraft;
  onChange: (draft: ThroughputDraft) => void;
  /** What "no throughput of its own" means here. */
  shared: { title: string; note: string } | undefined;
  existing?: number | undefined;
}

export function ThroughputFields(props: ThroughputFieldsProps) {
  const { draft, onChange } = props;
  if (offers.value === null) {
    return (
      <p class="help" data-throughput="serverless">
        This account is serverless: there is no throughput to provision, every request is charged by itself, and each physical
        partition serves up to 5,000 RU/s.
      </p>
    );
  }
  const options = [
    ...(props.shared === undefined ? [] : [{ name: "shared" as const, ...props.shared }]),
    { name: "manual" as const, title: "Manual", note: "A fixed number of request units each second." },
    { name: "autoscale" as const, title: "Autoscale", note: "Follows the load between a tenth and the maximum." },
  ];
  const choose = (kind: ThroughputDraft["kind"]) => {
    const units = kind === "autoscale" ? String(Math.max(AUTOSCALE_LEAST, Math.ceil(Number(draft.units) / 1000) * 1000 || 0)) : draft.units;
    onChange({ kind, units });
  };
  return (
    <>
      <Choice
        label="Throughput"
        help="A request unit (RU) is the price of reading an item of 1 KB by its id. Requests beyond the throughput are throttled: 429."
        options={options}
        chosen={draft.kind}
        onChoose={choose}
      />
      {draft.kind !== "shared" && (
        <Field
          label={draft.kind === "manual" ? "RU/s" : "Maximum RU/s"}
          help={<span data-meaning>{meaning(draft, server.value?.limits, props.existing)}</span>}
          error={throughputError(draft)}
        >
          {(attributes) => (
            <input
              {...attributes}
              name="throughput"
              inputMode="numeric"
              value={draft.units}
              onInput={(event) => onChange({ ...draft, units: event.currentTarget.value.trim() })}
            />
          )}
        </Field>
      )}
    </>
  );
}
