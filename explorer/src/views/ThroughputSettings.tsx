// Changing provisioned throughput later.

import { useState } from "preact/hooks";
import { fail, say } from "../state/notices.ts";
import { client, refreshOffers } from "../state/session.ts";
import { replaceOffer, type Offer } from "../wire/resources.ts";
import { ThroughputFields, throughputError, throughputOf, type ThroughputDraft } from "./throughput.tsx";

function draftOf(offer: Offer): ThroughputDraft {
  const auto = offer.content.offerAutopilotSettings;
  return auto === undefined
    ? { kind: "manual", units: String(offer.content.offerThroughput) }
    : { kind: "autoscale", units: String(auto.maxThroughput) };
}

export function ThroughputSettings(props: { offer: Offer; partitions: number; onSaved?: () => void }) {
  const before = draftOf(props.offer);
  const [draft, setDraft] = useState(before);
  const [busy, setBusy] = useState(false);
  const changed = draft.kind !== before.kind || draft.units !== before.units;
  const save = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await replaceOffer(client(), props.offer, throughputOf(draft));
      say("Changed the throughput");
      props.onSaved?.();
    } catch (error) {
      fail("Cannot change the throughput", error);
    } finally {
      // Changing the kind and the amount are two steps: even after a failure the first may have been made.
      await refreshOffers().catch((error: unknown) => fail("Cannot read the throughput", error));
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <ThroughputFields draft={draft} onChange={setDraft} shared={undefined} existing={props.partitions} />
      <div class="actions">
        <button type="submit" class="primary" disabled={!changed || busy || throughputError(draft) !== ""}>
          Save throughput
        </button>
      </div>
    </form>
  );
}
