// What a container's throughput is at this moment, beside what was asked for.

import { useLayoutEffect, useState } from "preact/hooks";
import { explain } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { watch } from "../state/watch.ts";
import { readThroughput, type ThroughputState } from "../wire/manage.ts";
import type { Place } from "../wire/resources.ts";
import { numberText } from "./figures.ts";

const EVERY = 2000;

/**
 * Looked at again and again: autoscale moves, and partitions may still be splitting for a higher offer. Nobody looks
 * while it is paused, as when the container is about to go.
 */
export function ThroughputNow(props: { place: Place; paused: boolean }) {
  const [state, setState] = useState<ThroughputState | null>(null);
  const [problem, setProblem] = useState("");
  // Stopped in the same breath as the rendering: a look after that may ask for what is gone.
  useLayoutEffect(() => {
    if (props.paused) return;
    const watching = watch({
      read: (signal) => readThroughput(client(), props.place, signal),
      seen: (found) => {
        setState(found);
        setProblem("");
      },
      failed: (error) => setProblem(explain(error)),
      every: () => EVERY,
    });
    return watching.stop;
  }, [props.paused]);
  if (problem !== "") {
    return (
      <p class="problem" role="alert">
        Cannot read the throughput. {problem}
      </p>
    );
  }
  const offer = state?.offer;
  if (offer === undefined || offer === null) return null;
  return (
    <p class="help" data-throughput-now={offer.current} data-pending={offer.pending}>
      Now {numberText(offer.current)} RU/s; it can go down to {numberText(offer.minimum)} RU/s.
      {offer.pending && <strong> Partitions are splitting for the new throughput.</strong>}
      {state?.throughputPolicy === "Custom" && " It is divided unequally over the partitions, and cannot be changed until it is equal again."}
    </p>
  );
}
