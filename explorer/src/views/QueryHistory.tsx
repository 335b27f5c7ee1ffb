import { useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { countText } from "./figures.ts";
import { forgetPastQueries, pastQueries } from "../state/queries.ts";

/** Queries that were run before, in this browser; a click takes one back into the editor. */
export function QueryHistory(props: { container: string; onTake: (text: string) => void }) {
  const [everywhere, setEverywhere] = useState(false);
  const [, setForgotten] = useState(0);
  const past = pastQueries().filter((query) => everywhere || query.container === props.container);
  return (
    <div class="scroll pad history" tabIndex={0} role="region" aria-label="Past queries">
      <div class="row-of">
        <label class="check">
          <input type="checkbox" checked={everywhere} onChange={(event) => setEverywhere(event.currentTarget.checked)} /> Of all containers
        </label>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            forgetPastQueries();
            setForgotten((count) => count + 1);
          }}
        >
          Forget all
        </button>
      </div>
      {past.length === 0 && <p class="soft">No queries yet.</p>}
      <ul class="plain-list">
        {past.map((query, index) => (
          <li key={index}>
            <button type="button" class="past" onClick={() => props.onTake(query.text)}>
              <code>{query.text.slice(0, 300)}</code>
              <span class="soft">
                {new Date(query.at).toLocaleString()} · {countText(query.rows, "row")} · {units(query.charge)} RU
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
