// What a container's throughput is at this moment, beside what was asked for.

import { useEffect, useState } from "preact/hooks";
import { fail } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { isAbort } from "../wire/client.ts";
import { readThroughput, type ThroughputState } from "../wire/manage.ts";
import type { Place } from "../wire/resources.ts";
import { numberText } from "./figures.ts";

const EVERY = 2000;

/** Looked at again and again: autoscale moves, and partitions may still be splitting for a higher offer. */
export function ThroughputNow(props: { place: Place }) {
  const [state, setState] = useState<ThroughputState | null>(null);
  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        setState(await readThroughput(client(), props.place, control.signal));
        timer = setTimeout(() => void look(), EVERY);
      } catch (error) {
        if (!isAbort(error)) fail("Cannot read the throughput", error);
      }
    };
    void look();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, []);
  const offer = state?.offer;
  if (offer === undefined || offer === null) return null;
  return (
    <p class="help" data-throughput-now={offer.current} data-pending={offer.pending}>
      Now {numberText(offer.current)} RU/s; it can go down to {numberText(offer.minimum)}.
      {offer.pending && <strong> Partitions are splitting for the new throughput.</strong>}
      {state?.throughputPolicy === "Custom" && " It is divided unequally over the partitions, and cannot be changed until it is equal again."}
    </p>
  );
}
